"""Route: `torch.nn.MultiheadAttention`, alone and in `nn.TransformerEncoderLayer`, whose fast path never calls it."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import ObservedCall
from regard.capture._observer import Observer
from regard.torch_compat.multihead import call_arguments, query_and_key, sdpa_mask

ENCODER_LAYER = inspect.signature(nn.TransformerEncoderLayer.forward)


class MultiheadRoute:
    """Computes queries and keys of torch's layers again, from their arguments and parameters."""

    def __init__(self, observer: Observer, reader: MaskReader) -> None:
        self.observer, self.reader = observer, reader
        self.called: set[int] = set()  # attention modules that ran in an encoder layer that has not ended yet
        observer.listeners += [(nn.MultiheadAttention, self.attention), (nn.TransformerEncoderLayer, self.layer)]

    def attention(self, module: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        """An attention module has run."""
        del output
        self.called.add(id(module))
        self._observe(module, call_arguments(module, args, options))

    def layer(self, module: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        """An encoder layer has run. If its attention has not, it took the fast path."""
        del output
        if id(module.self_attn) in self.called:
            self.called.remove(id(module.self_attn))
            return
        given = ENCODER_LAYER.bind(module, *args, **options).arguments
        x, padded = _padded(given["src"], given.get("src_key_padding_mask"))
        if module.norm_first:
            x = module.norm1(x)
        mask = given.get("src_mask")
        self._observe(module.self_attn, {"query": x, "key": x, "attn_mask": mask, "key_padding_mask": padded})

    @torch.no_grad()
    def _observe(self, module: Any, given: dict[str, Any]) -> None:
        name = self.observer.name_of(module)
        if name is None:
            return
        self.observer.observe(name, lambda: self._observed(module, given))

    def _observed(self, module: Any, given: dict[str, Any]) -> ObservedCall:
        query, key = query_and_key(module, given)
        n, m = query.shape[-2], key.shape[-2]
        mask = sdpa_mask(module, given, m)
        visible, bias = self.reader.read(mask, causal=False, n=n, m=m)
        cross = given["key"] is not given["query"]
        return ObservedCall(query, key, query.shape[-1] ** -0.5, visible, bias, cross=cross)


def _padded(x: Tensor, padded: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Sequences and their padding mask; torch's encoder may have turned padded sequences into a nested tensor."""
    if not x.is_nested:
        return x, padded
    lengths = torch.tensor([len(row) for row in x.unbind()])
    whole = torch.nested.to_padded_tensor(x, 0.0)
    return whole, torch.arange(whole.shape[1]) >= lengths[:, None]
