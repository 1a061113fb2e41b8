"""Attention layers as the papers define them, each a thin layer on top of `regard.attend`."""

from regard.nn import functional
from regard.nn._additive import AdditiveAttention
from regard.nn._hard import HardAttention
from regard.nn._kernel import KernelPooling
from regard.nn._local import LocalAttention
from regard.nn._luong import LuongAttention
from regard.nn._multihead import MultiheadAttention
from regard.nn._pooling import AveragePooling, LearnedPooling, MaxPooling
from regard.nn._positions import Alibi, Positions, Rotary
from regard.nn._self_attention import SelfAttention
from regard.nn._swap import Swapped, restore, swap

__all__ = [
    "MultiheadAttention",
    "SelfAttention",
    "AdditiveAttention",
    "LuongAttention",
    "LocalAttention",
    "HardAttention",
    "KernelPooling",
    "AveragePooling",
    "MaxPooling",
    "LearnedPooling",
    "Rotary",
    "Alibi",
    "Positions",
    "swap",
    "restore",
    "Swapped",
    "functional",
]
