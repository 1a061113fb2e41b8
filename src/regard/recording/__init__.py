"""Recordings: what a model attended to, kept in O(n d) and asked later."""
