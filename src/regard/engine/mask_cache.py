"""A cache of results that were computed from masks; each is valid while the tensors of its mask hold the same numbers.

The layers of a model ask for one mask again and again, often as a new object over the same tensors, and often in a
buffer that is filled anew for the next batch. So the tensors are compared with copies of them: torch's count of changes
misses those made through numpy, and tensors of inference mode have none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.masks import Mask

Value = TypeVar("Value")

MAX_VALUES = 32  # in the cache, which starts anew when it is full
MAX_NUMBERS = 1 << 17  # in the tensors of a mask, which are copied: 1 MiB of int64

_values: dict[Hashable, tuple[tuple[Tensor, ...], Any]] = {}  # copies of the tensors, and what was made of them


def remembered(kind: Hashable, mask: Mask, make: Callable[[], Value]) -> Value:
    """The result of `make()` for a mask, computed again only when the numbers in its tensors are others.

    `kind` holds all else that the result depends on, the signature of the mask included. The result must not hold the
    caller's tensors.
    """
    if torch._C._len_torch_dispatch_stack():  # noqa: SLF001  a mode may replace tensors by others, such as fake ones
        return make()
    tensors = mask.all_tensors()
    try:
        known = _values.get(kind)
    except TypeError:  # a mask from outside, with a field that has no hash
        return make()
    if known is not None and all(map(torch.equal, known[0], tensors)):
        return known[1]
    value = make()
    if sum([tensor.numel() for tensor in tensors]) <= MAX_NUMBERS:
        with torch._C._InferenceMode(False):  # noqa: SLF001  as torch.inference_mode(False), in half the time
            copies = tuple([tensor.detach().clone() for tensor in tensors])
        if len(_values) >= MAX_VALUES:
            _values.clear()
        _values[kind] = (copies, value)
    return value
