"""Why scores are divided by sqrt(d_k): without it long vectors give one-hot weights, and no gradient passes.

Run: python examples/saturation.py [picture.png]
"""

import sys

from regard import analysis, plot

table = analysis.saturation()
print(table)

if len(sys.argv) > 1:
    plot.saturation(table).savefig(sys.argv[1], dpi=150)
