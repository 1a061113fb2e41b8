"""Models that call `torch.nn.functional.scaled_dot_product_attention` themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import Part
from regard.capture._observer import Watch
from regard.engine.fused.kernel import flash

FLASH = 1  # what torch calls the kernel that never builds n x m


def _arguments(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> dict[str, Any]:
    return locals()


class SdpaMode(TorchFunctionMode):
    """Lets every function of torch run as it does, and looks at the one."""

    def __init__(self, watch: Watch, reader: MaskReader) -> None:
        super().__init__()
        self.watch, self.reader = watch, reader
        self.inside: Callable[[dict[str, Any], Tensor | None], None] | None = None  # a route that asked to be told

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if func is not scaled_dot_product_attention:
            return func(*args, **options)
        given = _lowered(_arguments(*args, **options))
        output, lse = run(given)
        if self.inside is not None:
            self.inside(given, lse)
        elif self.watch.here is not None:
            self.watch.saw(self.watch.here, lambda: self._part(given, lse))
        return output

    def _part(self, given: dict[str, Any], lse: Tensor | None) -> Part:
        lead = torch.broadcast_shapes(given["query"].shape[:-3], given["key"].shape[:-3])
        query, key = (_four(given[name], lead) for name in ("query", "key"))
        mask = given["attn_mask"]
        n, m = query.shape[-2], key.shape[-2]
        if mask is not None and (given["query"].dim() == mask.dim() == 3 or mask.dim() > 4):
            mask = _four(mask, lead)
        visible, bias = self.reader.read(mask, causal=given["is_causal"], n=n, m=m)
        scale = query.shape[-1] ** -0.5 if given["scale"] is None else given["scale"]
        cross = self.watch.cross or n != m
        return Part(query, key, scale, visible, bias, lse=lse, cross=cross)


def run(given: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
    """The output, to the last bit as torch computes it, and the log-sum-exp where its kernel gives it away."""
    query, key, value, mask = (given[name] for name in ("query", "key", "value", "attn_mask"))
    others = torch._C._len_torch_function_stack()  # noqa: SLF001  modes around this one want to see the call too
    if others or query.device.type != "cpu" or query.dim() != 4 or given["dropout_p"]:
        return scaled_dot_product_attention(**given), None
    if torch._fused_sdp_choice(**given) != FLASH:  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
        return scaled_dot_product_attention(**given), None
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(~mask, -torch.inf)
    return flash(query, key, value, 0.0, given["is_causal"], attn_mask=mask, scale=given["scale"])


def _lowered(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as autocast hands them to the kernel, where it is on."""
    device = given["query"].device.type
    if not torch.is_autocast_enabled(device):
        return given
    dtype = torch.get_autocast_dtype(device)
    floats = {
        name: t
        for name, t in given.items()
        if isinstance(t, Tensor) and t.dtype.is_floating_point and t.dtype.itemsize < 8
    }
    return given | {name: t.to(dtype) for name, t in floats.items()}


def _four(tensor: Tensor, lead: torch.Size) -> Tensor:
    """(batch, heads, length, dim): a tensor without heads has one, and what stands before them is one batch."""
    if tensor.dim() < 4:
        tensor = tensor if tensor.dim() == 3 else tensor.unsqueeze(0)
        return tensor.unsqueeze(1)
    return tensor.expand(*lead, *tensor.shape[-3:]).flatten(0, -4)
