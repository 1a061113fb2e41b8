"""Heads of a relation: projections of queries and keys, given by words or as matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ChoiceError, DtypeError, ShapeError
from regard.relation._encoders import Encoder, check_known

Heads = Mapping[str, Sequence[str]] | tuple[Tensor, Tensor]


def project(
    heads: Heads, encoder: Encoder, query: Float[Tensor, "questions dim"], key: Float[Tensor, "segments dim"]
) -> tuple[Float[Tensor, "heads questions width"], Float[Tensor, "heads segments width"], tuple[str, ...]]:
    """Queries and keys as each head projects them, and the names of the heads."""
    if isinstance(heads, Mapping):
        if not heads:
            raise ChoiceError("heads needs a name and a few words for each head, and came empty")
        bases = [_directions(encoder, name, words) for name, words in heads.items()]
        widest = max(basis.shape[-1] for basis in bases)
        w = torch.stack([torch.nn.functional.pad(basis, (0, widest - basis.shape[-1])) for basis in bases])
        return query @ w, key @ w, tuple(heads)
    w_q, w_k = _matrices(heads, query.shape[-1])
    return query @ w_q, key @ w_k, tuple(f"head {i + 1}" for i in range(len(w_q)))


def _directions(encoder: Encoder, name: str, words: Sequence[str]) -> Float[Tensor, "dim width"]:
    """Orthonormal basis of the states of `words`; the head sees nothing outside it."""
    if isinstance(words, str) or not words:
        raise ChoiceError(f"head {name!r} needs a list of words to look along, and {words!r} came")
    encoded = encoder.encode(words)
    check_known(encoder, encoded, words)
    directions = torch.nn.functional.normalize(encoded.states, dim=-1)
    _, sizes, basis = torch.linalg.svd(directions, full_matrices=False)
    return basis[sizes > 1e-4].mT


def _matrices(heads: object, dim: int) -> tuple[Float[Tensor, "heads dim width"], Float[Tensor, "heads dim width"]]:
    wanted = f"heads is {{name: [words]}}, or two tensors W_Q and W_K of shape (heads, {dim}, width)"
    if not (isinstance(heads, tuple) and len(heads) == 2 and all(isinstance(w, Tensor) for w in heads)):
        raise DtypeError(f"{wanted}; {type(heads).__name__} came")
    w_q, w_k = heads
    if w_q.dim() != 3 or w_q.shape != w_k.shape or w_q.shape[1] != dim:
        raise ShapeError(f"{wanted}; {tuple(w_q.shape)} and {tuple(w_k.shape)} came")
    return w_q.float(), w_k.float()
