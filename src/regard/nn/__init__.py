"""Layers: every attention people name, as the papers define it, each a few lines on top of `regard.attend`."""

from regard.nn._multihead import MultiheadAttention
from regard.nn._positions import Alibi, Positions, Rotary
from regard.nn._self_attention import SelfAttention
from regard.nn._swap import Swapped, restore, swap

__all__ = [
    "Alibi",
    "MultiheadAttention",
    "Positions",
    "Rotary",
    "SelfAttention",
    "Swapped",
    "restore",
    "swap",
]
