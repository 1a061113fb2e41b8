"""Attention that a module writes out itself, softmax and then a product, which no route can record.

It is found by what the module does, not by its name: the output of a softmax, perhaps after a cast, dropout or another
layout, is an operand of a matrix product. So is exp(scores - logsumexp(scores)). The router of a mixture of experts has
a softmax too, but picks from it.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from torch import Tensor

from regard.capture._observer import Observer

SOFTMAX = frozenset((
    "softmax", "_softmax", "_safe_softmax", "special_softmax", "softmin", "gumbel_softmax",
    "log_softmax", "_log_softmax", "special_log_softmax", "logsumexp",
))  # fmt: skip
# Functions that may change the number of weights, or part them.
LAYOUTS = frozenset((
    "pad", "as_strided", "expand", "narrow", "__getitem__", "select", "cat", "concat", "stack",
    "chunk", "tensor_split", "split", "split_with_sizes", "unbind",
))  # fmt: skip
PRODUCTS = frozenset((
    "matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "addbmm", "einsum", "tensordot", "mm", "addmm",
    "linalg_multi_dot", "chain_matmul", "inner",
))  # fmt: skip
# How the names of torch's own attention kernels begin.
KERNELS = ("_scaled_dot_product_", "flex_attention", "_native_multi_head_attention", "_transformer_encoder_layer_fwd")
MIN_DIMENSIONS = 3  # weights are (batch, queries, keys) at least

WRITTEN_OUT = (
    "it writes out softmax(q k) v itself, which cannot be observed: it can be recorded once it calls rg.attend, "
    "scaled_dot_product_attention or Hugging Face's attention interface"
)


class WrittenOutAttention:
    """Follows the outputs of softmax calls until one of them is multiplied."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._weights: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # by id

    def observe(self, function: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        """A function was called that no route knows."""
        name = getattr(function, "__name__", "").partition(".")[0]
        if name in SOFTMAX:
            if self._is_unserved() and isinstance(output, Tensor) and output.dim() >= MIN_DIMENSIONS:
                self._weights[id(output)] = output
        elif name.startswith(KERNELS):
            if self._is_unserved():
                self._miss(f"it calls torch's kernel {name} itself: call scaled_dot_product_attention in its place")
        elif self._weights:
            self._follow(name, _tensors(args, options), output)

    def _follow(self, name: str, tensors: list[Tensor], output: Any) -> None:
        """A function was called with these tensors: if weights are among them, its output is weights too, or pooled."""
        weights = [tensor for tensor in tensors if self._weights.get(id(tensor)) is tensor]
        if not weights:
            return
        if name in PRODUCTS:
            if self._is_unserved():
                self._miss(WRITTEN_OUT)
        elif name == "__setitem__":
            self._weights[id(tensors[0])] = tensors[0]  # weights were written into it
        elif name in LAYOUTS:
            self._weights.update((id(part), part) for part in _tensors((output,), {}))
        elif isinstance(output, Tensor) and output.numel() in (tensors[0].numel(), weights[0].numel()):
            self._weights[id(output)] = output  # of the scores less their logsumexp, or of a gate and the weights

    def _is_unserved(self) -> bool:
        return self.observer.inner is None and self.observer.current is not None and not self.observer.is_outside()

    def _miss(self, reason: str) -> None:
        assert self.observer.current is not None  # noqa: S101  `_is_unserved` has looked
        self.observer.miss(self.observer.current, reason)


def _tensors(args: tuple[Any, ...], options: dict[str, Any]) -> list[Tensor]:
    """The tensors among the arguments of a function, also in a list of operands."""
    flat: list[Any] = []
    for value in (*args, *options.values()):
        flat.extend(value if isinstance(value, tuple | list) else (value,))
    return [value for value in flat if isinstance(value, Tensor)]
