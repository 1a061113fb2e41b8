"""Layers: every attention people name, as the papers define it, each a few lines on top of `regard.attend`."""

from regard.nn import functional

__all__ = ["functional"]
