"""Route: models that call `torch.nn.functional.scaled_dot_product_attention` themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import ObservedCall
from regard.capture._observer import Observer
from regard.engine.fused.kernel import flash
from regard.torch_compat.sdpa import Arguments

FLASH = 1  # torch's number for the kernel that never builds n x m


class SdpaMode(TorchFunctionMode):
    """A torch function mode that observes scaled_dot_product_attention and lets every function run as it does."""

    def __init__(self, observer: Observer, reader: MaskReader) -> None:
        super().__init__()
        self.observer, self.reader = observer, reader
        self.inside: Callable[[Arguments, Tensor | None], None] | None = None  # takes the call in place of this route

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if func is not scaled_dot_product_attention:
            return func(*args, **options)
        call = Arguments(*args, **options).autocast()
        output, lse = run(call)
        if self.inside is not None:
            self.inside(call, lse)
        elif self.observer.current is not None:
            self.observer.observe(self.observer.current, lambda: self._observed(call, lse))
        return output

    def _observed(self, call: Arguments, lse: Float[Tensor, "batch heads queries"] | None) -> ObservedCall:
        lead = torch.broadcast_shapes(call.query.shape[:-3], call.key.shape[:-3])
        query, key, mask = _four_dimensional(call.query, lead), _four_dimensional(call.key, lead), call.attn_mask
        n, m = query.shape[-2], key.shape[-2]
        if mask is not None and (call.query.dim() == mask.dim() == 3 or mask.dim() > 4):
            mask = _four_dimensional(mask, lead)
        visible, bias = self.reader.read(mask, causal=call.is_causal, n=n, m=m)
        scale = query.shape[-1] ** -0.5 if call.scale is None else call.scale
        cross = self.observer.cross or n != m
        return ObservedCall(query, key, scale, visible, bias, lse=lse, cross=cross)


def run(call: Arguments) -> tuple[Tensor, Float[Tensor, "batch heads queries"] | None]:
    """The output exactly as torch computes it, and the log-sum-exp of each row if torch's kernel returns it."""
    query, key, value, mask = call.tensors
    others = torch._C._len_torch_function_stack()  # noqa: SLF001  modes around this one want to see the call too
    if others or query.device.type != "cpu" or query.dim() != 4 or call.dropout_p:
        return scaled_dot_product_attention(*call.tensors, **call.options), None
    if torch._fused_sdp_choice(*call.tensors, **call.options) != FLASH:  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
        return scaled_dot_product_attention(*call.tensors, **call.options), None
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(~mask, -torch.inf)
    return flash(query, key, value, 0.0, call.is_causal, attn_mask=mask, scale=call.scale)


def _four_dimensional(
    tensor: Shaped[Tensor, "... rows dim"], lead: torch.Size
) -> Shaped[Tensor, "batch heads rows dim"]:
    """(batch, heads, length, dim): a tensor without heads gets one, and leading dimensions become one batch."""
    if tensor.dim() < 4:
        tensor = tensor if tensor.dim() == 3 else tensor.unsqueeze(0)
        return tensor.unsqueeze(1)
    return tensor.expand(*lead, *tensor.shape[-3:]).flatten(0, -4)
