"""Layers: every attention people name, as the papers define it, each a few lines on top of `regard.attend`."""

from regard.nn._additive import AdditiveAttention
from regard.nn._kernel import KernelPooling
from regard.nn._local import LocalAttention
from regard.nn._luong import LuongAttention
from regard.nn._pooling import AveragePooling, LearnedPooling, MaxPooling

__all__ = [
    "AdditiveAttention",
    "LuongAttention",
    "LocalAttention",
    "KernelPooling",
    "AveragePooling",
    "MaxPooling",
    "LearnedPooling",
]
