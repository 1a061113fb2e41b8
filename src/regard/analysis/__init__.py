"""Analysis of recordings and models: profiles of heads, similarity, rollout, receivers, saturation, word alignment."""

from regard.analysis._align import (
    AlignmentHeadRow,
    AlignmentHeadTable,
    WordAlignment,
    align,
    align_all,
    alignment_heads,
)
from regard.analysis._compare import CompareRow, CompareTable, compare
from regard.analysis._heads import SATURATED, UNIFORM, HeadRow, HeadTable, heads
from regard.analysis._profiles import MEASURES, ProfileRow, ProfileTable, profiles
from regard.analysis._receivers import ReceiverRow, ReceiverTable, receivers
from regard.analysis._rollout import TokenRow, TokenTable, flow, rollout
from regard.analysis._saturation import (
    POWERS_OF_TWO,
    SaturationRow,
    SaturationTable,
    jacobian_norm,
    saturation,
)
from regard.analysis._similarity import REDUNDANT, SimilarRow, SimilarTable, similar
from regard.analysis._table import Table
from regard.datasets import alignment_error_rate

__all__ = [
    "Table",
    "profiles",
    "ProfileTable",
    "ProfileRow",
    "MEASURES",
    "similar",
    "SimilarTable",
    "SimilarRow",
    "REDUNDANT",
    "rollout",
    "flow",
    "TokenTable",
    "TokenRow",
    "receivers",
    "ReceiverTable",
    "ReceiverRow",
    "compare",
    "CompareTable",
    "CompareRow",
    "heads",
    "HeadTable",
    "HeadRow",
    "SATURATED",
    "UNIFORM",
    "saturation",
    "SaturationTable",
    "SaturationRow",
    "jacobian_norm",
    "POWERS_OF_TWO",
    "align",
    "align_all",
    "WordAlignment",
    "alignment_error_rate",
    "alignment_heads",
    "AlignmentHeadTable",
    "AlignmentHeadRow",
]
