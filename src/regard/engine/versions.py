"""Versions of tensors: noticing that a tensor was changed in place, and copying it so that this does no harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

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
    """A detached copy of a tensor; `copies` holds those made before, by the id of the original."""
    if id(tensor) not in copies:
        copies[id(tensor)] = tensor.detach().clone()
    return copies[id(tensor)]


def copy_tensors(term: Any, copies: dict[int, Tensor]) -> Any:
    """A spec or a term with every tensor in it copied."""
    if isinstance(term, Tensor):
        return copy_once(term, copies)
    if isinstance(term, Spec | Term):
        return replace(term, **{f.name: copy_tensors(getattr(term, f.name), copies) for f in fields(term) if f.init})  # pyright: ignore[reportArgumentType, reportCallIssue]
    return term
