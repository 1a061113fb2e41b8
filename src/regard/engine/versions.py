"""Versions of tensors: noticing that a tensor was changed in place, and copying it so that this does no harm.

torch counts the changes in place of every tensor but those made under `torch.inference_mode`. These are copied when
weights are made of them, because nothing could tell later that they have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from regard.errors import StaleWeightsError
from regard.spec import Spec
from regard.term import Term

Versions = tuple[tuple[str, Tensor, int], ...]  # (name, tensor, torch's count of changes in place)
ANSWER = (
    "since these weights were made, so an answer would be about other numbers; "
    "take weights.snapshot() before the change, or make the weights anew"
)
GRADIENT = (
    "between attend and the backward pass, which needs it as it was, so the gradient would be that of another "
    "function; change it after the backward pass, or change a copy"
)


def versions_of(named: Mapping[str, Tensor]) -> Versions:
    """The current version of each tensor; those made in inference mode have none and are left out."""
    return tuple((name, t, t._version) for name, t in named.items() if not t.is_inference())  # noqa: SLF001


def check_unchanged(versions: Versions | None, harm: str = ANSWER) -> None:
    """Raise StaleWeightsError if a tensor was changed in place since; `harm` says what would go wrong."""
    name = changed_tensor(versions)
    if name is not None:
        raise StaleWeightsError(f"{name} has been changed in place {harm}")


def changed_tensor(versions: Versions | None) -> str | None:
    """The name of a tensor that was changed in place since, or None."""
    return next((name for name, tensor, version in versions or () if tensor._version != version), None)  # noqa: SLF001


def copy_once(tensor: Shaped[Tensor, "*shape"], copies: dict[int, Tensor]) -> Shaped[Tensor, "*shape"]:
    """A detached copy of a tensor, which counts changes in place; `copies` holds earlier ones by id of the original."""
    if id(tensor) not in copies:
        with torch._C._InferenceMode(False):  # noqa: SLF001  as torch.inference_mode(False), in half the time
            copies[id(tensor)] = tensor.detach().clone()
    return copies[id(tensor)]


def copy_tensors(term: Any, copies: dict[int, Tensor], *, uncounted_only: bool = False) -> Any:
    """A spec or a term with every tensor in it copied, or only those whose changes torch does not count."""
    return map_tensors(
        term, lambda tensor: tensor if uncounted_only and not tensor.is_inference() else copy_once(tensor, copies)
    )


def map_tensors(term: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A tensor, or a spec or a term with every tensor in it, after a change such as a move to another device."""
    if isinstance(term, Tensor):
        return change(term)
    if isinstance(term, Spec | Term):
        inner = (field.name for field in fields(term) if field.init)  # pyright: ignore[reportArgumentType]
        changed = {name: map_tensors(getattr(term, name), change) for name in inner}
        return replace(term, **changed)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return term


def copy_uncounted(query: Tensor, key: Tensor, spec: Spec) -> tuple[Tensor, Tensor, Spec]:
    """Query, key and spec, with copies in place of tensors whose changes torch does not count."""
    if not any(tensor.is_inference() for tensor in (query, key, *spec.all_tensors())):
        return query, key, spec
    copies: dict[int, Tensor] = {}
    return tuple(copy_tensors(value, copies, uncounted_only=True) for value in (query, key, spec))  # pyright: ignore[reportReturnType]
