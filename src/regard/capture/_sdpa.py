"""Route: models that call `torch.nn.functional.scaled_dot_product_attention` themselves."""

from __future__ import annotations

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import ObservedCall
from regard.capture._observer import Observer
from regard.capture._output_check import PooledOutput
from regard.errors import RecordError
from regard.operands import broadcast_shapes
from regard.torch_compat.sdpa import Arguments


class SdpaRoute:
    """Reads the calls of scaled_dot_product_attention that no other route observes as part of its own."""

    def __init__(self, observer: Observer, reader: MaskReader) -> None:
        self.observer, self.reader = observer, reader

    def observe(self, call: Arguments, output: Tensor, lse: Float[Tensor, "batch heads queries"] | None) -> None:
        """Report a call to the route around it, or else record it under the module that runs."""
        if self.observer.inner is not None:
            self.observer.inner(call, output, lse)
        elif self.observer.current is not None:
            self.observer.observe(self.observer.current, lambda: self._observed(call, output, lse))

    def _observed(
        self, call: Arguments, output: Float[Tensor, "... queries dim_v"], lse: Float[Tensor, "..."] | None
    ) -> ObservedCall:
        _check_readable(call)
        call, align = call.with_plain_mask()
        call = call.autocast()  # not cast before if it came with a CausalBias: torch casts below a class of tensors
        lead = broadcast_shapes(*(_without_heads(t) for t in (call.query, call.key, call.value)))
        dims = max(call.query.dim(), call.key.dim(), call.value.dim())
        if call.enable_gqa and dims == 3:  # heads, rows and features
            dims, lead = 4, (1,)
        query, key, value = (_four_dimensional(t, dims, lead) for t in (call.query, call.key, call.value))
        heads = max(key.shape[1], value.shape[1])
        if heads > query.shape[1]:  # one query head beside several of keys or values
            query = query.expand(-1, heads, -1, -1)
        n, m = query.shape[-2], key.shape[-2]
        mask = call.attn_mask
        if align == "bottom-right":  # a CausalBias of torch; the reader knows the band again
            call, mask = call._replace(is_causal=False), torch.ones(n, m, dtype=torch.bool).tril(m - n)
        if mask is not None and (mask.dim() > 4 or (dims == 3 and mask.dim() == 3) or (dims > 4 and mask.dim() > 3)):
            mask = _four_dimensional(mask, max(dims, mask.dim()), lead)
        cross = self.observer.cross
        if self.observer.generating is None:
            cross = cross or n != m
        elif not cross:
            m = self.reader.filled(mask, n, m)
            key, value, mask = key[..., :m, :], value[..., :m, :], mask if mask is None else mask[..., :m]
        visible, bias = self.reader.read(mask, causal=call.is_causal, n=n, m=m)
        scale = query.shape[-1] ** -0.5 if call.scale is None else call.scale
        watched = PooledOutput(value, _four_dimensional(output, dims, lead))
        return ObservedCall(
            query, key, scale, visible, bias, lse=lse, cross=cross, watched=watched, dropout=call.dropout_p > 0
        )


def _check_readable(call: Arguments) -> None:
    """Refuse in words what torch computes with and a recording has no form for."""
    tensors = [tensor for tensor in call.tensors if tensor is not None]
    if any(tensor.is_nested for tensor in tensors):
        raise RecordError("it attends with nested tensors: record it with padded ones and a mask")
    if any(tensor.is_meta or isinstance(tensor, FakeTensor) for tensor in tensors):
        raise RecordError("it attends with tensors of the meta device or fake ones, which hold no numbers")
    if call.key.shape[-2] != call.value.shape[-2]:
        raise RecordError(f"it attends with {call.key.shape[-2]} keys and {call.value.shape[-2]} values")


def _without_heads(tensor: Tensor) -> torch.Size:
    """The leading dimensions but for that of heads, which a tensor of fewer than four dimensions does not have."""
    return tensor.shape[:-3] if tensor.dim() > 3 else torch.Size(())


def _four_dimensional(
    tensor: Shaped[Tensor, "... rows dim"], dims: int, lead: tuple[int, ...]
) -> Shaped[Tensor, "batch heads rows dim"]:
    """(batch, heads, rows, dim): a call of two or three dimensions has one head, others have leading dimensions in one.

    dims: how many dimensions the call has. A tensor with fewer is aligned at the right, as torch aligns it.
    """
    if dims < 4:
        tensor = tensor if tensor.dim() == 3 else tensor.unsqueeze(0)
        return tensor.unsqueeze(1)
    tensor = tensor[(None,) * (dims - tensor.dim())]
    return tensor.expand(*lead, *tensor.shape[-3:]).flatten(0, -4)
