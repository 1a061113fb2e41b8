"""torch's own conventions for attention: its masks, its multi-head projections, the arguments of its sdpa."""
