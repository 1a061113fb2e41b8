"""Python code for the lesson on a Transformer block, as people write it: linear layers, view, transpose."""

from __future__ import annotations

import json
from typing import Any

from regard.lab.pages._numbers import literal


def block(grids: dict[str, Any], heads: int, *, causal: bool) -> str:
    """A block of `heads` heads with the given weights, and the next token."""
    rows = "\n".join(f"{name} = torch.tensor({literal(grid)}, dtype=torch.float64)" for name, grid in grids.items())
    mask = ", mask=rg.masks.causal()" if causal else ""
    return f"""import torch
import regard as rg
from torch import nn

{rows}


def linear(w):
    layer = nn.Linear(*w.shape, bias=False, dtype=w.dtype)
    layer.weight.data = w.mT  # a linear layer computes x @ weight.mT
    return layer


class Block(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = linear(w_q), linear(w_k), linear(w_v), linear(w_o)
        self.up, self.down = linear(w_1), linear(w_2)

    def split(self, x):  # (tokens, width) -> (heads, tokens, width / heads)
        return x.view(len(x), self.heads, -1).transpose(0, 1)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        pooled, self.weights = rg.attend(q, k, v{mask})
        joined = pooled.transpose(0, 1).flatten(1)  # the heads side by side
        x = nn.functional.layer_norm(x + self.out(joined), x.shape[1:])
        return nn.functional.layer_norm(x + self.down(torch.relu(self.up(x))), x.shape[1:])


block = Block(heads={heads})
with torch.no_grad():
    output = block(tokens)
weights = block.weights
logits = output @ tokens.mT
probabilities = logits.softmax(-1)  # of the next token
print(probabilities.round(decimals=2))
"""


def language_model(text: str, token: int, layer: int) -> str:
    """One block of SmolLM2 at one token, and what the model would say after it."""
    return f"""import torch
import regard as rg

tokenizer, model = rg.models.load("smollm2", causal=True)
inputs = tokenizer({json.dumps(text, ensure_ascii=False)}, return_tensors="pt")
block, parts = model.model.layers[{layer}], {{}}
block.self_attn.register_forward_hook(lambda *call: parts.update(attention=call[-1][0][0]))
block.mlp.register_forward_hook(lambda *call: parts.update(feed_forward=call[-1][0]))
block.register_forward_hook(lambda *call: parts.update(after=call[-1][0]))
with torch.no_grad(), rg.record(model, tokenizer=tokenizer) as recording:
    logits = model(**inputs).logits[0]

token = {token}
output = parts["after"][token]
before = output - parts["attention"][token] - parts["feed_forward"][token]
print("sizes", before.norm(), parts["attention"][token].norm(), parts["feed_forward"][token].norm())

weights = recording[recording.layers[{layer}].name].dense()[0, :, token]  # (heads, tokens)
lens = model.lm_head(model.model.norm(output)).softmax(-1)  # if the model ended here
print("after block {layer}", repr(tokenizer.decode(lens.argmax())), lens.max())
probabilities = logits[token].softmax(-1)
for probability, number in zip(*probabilities.topk(8)):
    print(repr(tokenizer.decode(number)), f"{{probability:.3f}}")
"""
