"""Recordings: what a model attended to, kept in O(n d) and asked later."""

from regard.recording._recording import Layer, Recording

__all__ = ["Layer", "Recording"]
