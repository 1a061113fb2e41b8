"""One call of attention as it is kept: what the weights are made of, never the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from regard.engine.lazy_matrix import LazyMatrix
from regard.errors import ChoiceError
from regard.recording._describe import describe
from regard.spec import Spec
from regard.weights import Weights, matrix_of, weights_of


@dataclass(frozen=True, eq=False)
class Call:
    """Query, key and everything else on which the weights of one layer's call depend."""

    name: str  # the module's path in the model
    step: int  # which forward pass
    query: Tensor  # (batch, heads, n, dim)
    key: Tensor  # (batch, key heads, m, dim)
    spec: Spec
    lse: Tensor | None = None  # (batch, heads, n), where the model's own kernel gave it: a weight is exp(score - lse)
    cross: bool = False  # whether queries and keys come from two sequences
    heads: tuple[int, ...] | None = None  # which of the layer's query heads were kept; None: all
    chosen: Tensor | None = None  # (batch, heads, n, 1), the keys that hard attention took

    @classmethod
    def of_weights(cls, name: str, step: int, weights: Weights) -> Call:
        """What a layer returned as its weights, of whatever formula."""
        kept = weights.snapshot()
        chosen = matrix_of(kept).chosen_keys()  # what was drawn stays drawn
        return cls(name, step, kept.query, kept.key, kept.spec, chosen=chosen)

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys); a layer of another kind may have other leading dimensions."""
        return (*self.query.shape[:-1], self.key.shape[-2])

    @property
    def mask(self) -> str:
        """What the queries see, in words."""
        return describe(self.spec.mask)

    @property
    def bytes(self) -> int:
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in self.tensors}.values())

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All that is kept."""
        found = (self.query, self.key, self.lse, self.chosen, *self.spec.tensors().values())
        return tuple(tensor for tensor in found if tensor is not None)

    def weights(self) -> Weights:
        """The lazy matrix (batch, heads, n, m)."""
        return weights_of(LazyMatrix.build(self.query, self.key, self.spec, lse=self.lse, chosen=self.chosen))

    def load(self, head: int | None = None) -> Call:
        """The call itself, as one in a file is asked for it."""
        return self if head is None else self.of_head(head)

    def of_head(self, head: int) -> Call:
        """The same for one head: (batch, 1, n, m)."""
        key_head = head_of_keys(self.name, self.query.shape, self.key.shape, head)
        return replace(
            self,
            query=self.query.narrow(1, head, 1),
            key=self.key.narrow(1, key_head, 1),
            spec=self.spec.of_head(head),
            lse=None if self.lse is None else self.lse.narrow(1, head, 1),
            chosen=None if self.chosen is None else self.chosen.narrow(1, head, 1),
            heads=(head if self.heads is None else self.heads[head],),
        )


def head_of_keys(name: str, query: tuple[int, ...], key: tuple[int, ...], head: int) -> int:
    """Which head of the keys a head of the queries looks at; queries may share theirs."""
    if len(query) != 4 or len(key) != 4:
        raise ChoiceError(f"{name!r} has no heads: its queries are {tuple(query)}, not (batch, heads, queries, dim)")
    if not 0 <= head < query[1]:
        raise ChoiceError(f"{name!r} has heads 0 to {query[1] - 1} in this recording, and not {head}")
    return head * key[1] // query[1]
