"""Measurements that show why attention is built as it is, and how a model's own attention fares."""

from regard.study._heads import SATURATED, UNIFORM, HeadRow, HeadTable, heads
from regard.study._saturation import POWERS_OF_TWO, SaturationRow, SaturationTable, jacobian_norm, saturation

__all__ = [
    "saturation",
    "SaturationTable",
    "SaturationRow",
    "jacobian_norm",
    "POWERS_OF_TWO",
    "heads",
    "HeadTable",
    "HeadRow",
    "SATURATED",
    "UNIFORM",
]
