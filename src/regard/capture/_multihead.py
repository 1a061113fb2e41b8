"""`torch.nn.MultiheadAttention`, alone and in `nn.TransformerEncoderLayer`, whose fast path never calls it."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import Part
from regard.capture._observer import Watch
from regard.torch_compat import multihead as torch_heads

LAYER = inspect.signature(nn.TransformerEncoderLayer.forward)


class MultiheadRoute:
    """Looks at what layers of torch's are given; what they do with it follows from their parameters."""

    def __init__(self, watch: Watch, reader: MaskReader) -> None:
        self.watch, self.reader = watch, reader
        self.called: set[int] = set()  # attention modules that ran since their encoder layer was last asked
        watch.listeners += [(nn.MultiheadAttention, self.attention), (nn.TransformerEncoderLayer, self.layer)]

    def attention(self, module: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        del output
        self.called.add(id(module))
        self._saw(module, torch_heads.arguments(module, args, options))

    def layer(self, module: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        """An encoder layer has run. If its attention has not, it took the fast path."""
        del output
        if id(module.self_attn) in self.called:
            self.called.remove(id(module.self_attn))
            return
        given = LAYER.bind(module, *args, **options).arguments
        x, padded = _dense(given["src"], given.get("src_key_padding_mask"))
        if module.norm_first:
            x = module.norm1(x)
        mask = given.get("src_mask")
        self._saw(module.self_attn, {"query": x, "key": x, "attn_mask": mask, "key_padding_mask": padded})

    @torch.no_grad()
    def _saw(self, module: Any, given: dict[str, Any]) -> None:
        name = self.watch.name_of(module)
        if name is None:
            return
        self.watch.saw(name, lambda: self._part(module, given))

    def _part(self, module: Any, given: dict[str, Any]) -> Part:
        query, key = torch_heads.projected(module, given)
        n, m = query.shape[-2], key.shape[-2]
        mask = torch_heads.kept(module, given, m)
        visible, bias = self.reader.read(mask, causal=False, n=n, m=m)
        cross = given["key"] is not given["query"]
        return Part(query, key, query.shape[-1] ** -0.5, visible, bias, cross=cross)


def _dense(x: Tensor, padded: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Nested sequences, which torch's encoder makes of padded ones, with their padding again."""
    if not x.is_nested:
        return x, padded
    lengths = torch.tensor([len(row) for row in x.unbind()])
    whole = torch.nested.to_padded_tensor(x, 0.0)
    return whole, torch.arange(whole.shape[1]) >= lengths[:, None]
