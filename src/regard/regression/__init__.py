"""Kernel regression: attention's oldest form, tuned by itself, at a million points."""
