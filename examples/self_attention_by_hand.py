"""Self-attention small enough to check by hand: five tokens of width 4, query = key = value = tokens.

Run: python examples/self_attention_by_hand.py [picture.png]
"""

import sys

import regard as rg
from regard import datasets
from regard.plot import Picture, heatmap

tokens = datasets.worked_example().tokens
output, weights = rg.attend(tokens, tokens, tokens)  # softmax(Q Kᵀ / √4) V

print("weights")
for row in weights.dense().tolist():
    print("  " + "  ".join(f"{w:.4f}" for w in row))
print("output")
for row in output.tolist():
    print("  " + "  ".join(f"{x:.4f}" for x in row))

if len(sys.argv) > 1:
    names = [" ".join(f"{x:g}" for x in token) for token in tokens.tolist()]
    picture = Picture(figsize=(5.4, 4.4), layout="compressed")
    heatmap(weights, names, ax=picture.subplots(), annotate=".4f", title="Self-attention by hand")
    picture.savefig(sys.argv[1], dpi=150)
