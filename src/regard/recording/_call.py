"""One call of attention as a recording keeps it: queries, keys and the formula, never the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from regard.display.labels import BatchLabels, WeightLabels
from regard.engine.lazy_matrix import LazyMatrix
from regard.errors import ChoiceError
from regard.masks import Allow, Both, Mask, Ranges
from regard.spec import Spec
from regard.term import select_heads
from regard.weights import Weights, matrix_of, weights_of


@dataclass(frozen=True, eq=False)
class Call:
    """Queries, keys and everything else that determines the weights of one layer in one forward pass."""

    name: str  # the module's path in the model
    step: int  # which forward pass
    query: Tensor  # (batch, heads, queries, dim)
    key: Tensor  # (batch, key heads, keys, dim)
    spec: Spec
    lse: Tensor | None = None  # (batch, heads, queries), if the model's kernel returned it: weight = exp(score - lse)
    cross: bool = False  # True if queries and keys come from two sequences
    heads: tuple[int, ...] | None = None  # which of the layer's query heads were kept; None: all
    chosen: Tensor | None = None  # (batch, heads, queries, 1), the keys that hard attention took
    check: str = ""  # how it was compared with the model's output, see docs/formats/recording.md; "": unknown
    labels: BatchLabels | None = field(default=None, repr=False)  # texts of its tokens, if its recording knows them

    @classmethod
    def of_weights(cls, name: str, step: int, weights: Weights) -> Call:
        """The call behind weights that a layer returned, with any score, mask and normaliser."""
        kept = weights.snapshot()
        chosen = matrix_of(kept).chosen_keys()  # what was drawn stays drawn
        return cls(name, step, kept.query, kept.key, kept.spec, chosen=chosen)

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys); a layer without heads may have other leading dimensions."""
        return (*self.query.shape[:-1], self.key.shape[-2])

    @property
    def mask(self) -> str:
        """The mask in words: "causal('top-left') & padding", "everything", ..."""
        return describe_mask(self.spec.mask)

    @property
    def bytes(self) -> int:
        """Size of the tensors, each counted once."""
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in self.tensors}.values())

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that the call holds."""
        tensors = (self.query, self.key, self.lse, self.chosen, *self.spec.tensors().values())
        return tuple(tensor for tensor in tensors if tensor is not None)

    def weights(self) -> Weights:
        """The lazy matrix (batch, heads, queries, keys)."""
        matrix = LazyMatrix.build(self.query, self.key, self.spec, lse=self.lse, chosen=self.chosen)
        return weights_of(matrix, None if self.labels is None else WeightLabels(self.labels))

    def load(self, head: int | None = None) -> Call:
        """The call itself, or one head of it; a call in a file (`StoredCall`) reads its tensors here."""
        return self if head is None else self.of_head(head)

    def of_head(self, head: int) -> Call:
        """The call of one head alone: weights (batch, 1, queries, keys), its tensors views of the old ones."""
        return self.of_heads((head,))

    def of_heads(self, heads: Sequence[int]) -> Call:
        """The call of some heads: weights (batch, len(heads), queries, keys)."""
        key_heads = [key_head_index(self.name, self.query.shape, self.key.shape, head) for head in heads]
        return replace(
            self,
            query=select_heads(self.query, 1, heads),
            key=select_heads(self.key, 1, key_heads),
            spec=self.spec.of_heads(heads),
            lse=None if self.lse is None else select_heads(self.lse, 1, heads),
            chosen=None if self.chosen is None else select_heads(self.chosen, 1, heads),
            heads=tuple(heads if self.heads is None else (self.heads[head] for head in heads)),
        )


def key_head_index(name: str, query: tuple[int, ...], key: tuple[int, ...], head: int) -> int:
    """The head of the keys that a head of the queries uses; several share one in grouped-query attention."""
    if len(query) != 4 or len(key) != 4:
        raise ChoiceError(f"{name!r} has no heads: its queries are {tuple(query)}, not (batch, heads, queries, dim)")
    if not 0 <= head < query[1]:
        raise ChoiceError(f"{name!r} has heads 0 to {query[1] - 1} in this recording, and not {head}")
    return head * key[1] // query[1]


def describe_mask(mask: Mask | None) -> str:
    """A mask in words: its name where it has a form; else "its own mask" with the bytes that its bits take."""
    if mask is None:
        return "everything"
    if isinstance(mask, Both):
        return f"{describe_mask(mask.first)} & {describe_mask(mask.second)}"
    if isinstance(mask, Ranges):
        return "ranges"
    if isinstance(mask, Allow):
        return "padding" if mask.per_key else f"its own mask, {-(-mask.visible.numel() // 8):,} bytes"
    return str(mask)
