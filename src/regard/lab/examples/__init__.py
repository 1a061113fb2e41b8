"""Worked examples: what they compute, and their pictures."""
