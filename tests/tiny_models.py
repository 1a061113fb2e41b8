"""Tiny models with random weights, one of each architecture that people use, and inputs for them."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch

IDS = {"vocab_size": 97, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
BODY = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32, **IDS}
GROUPED = {**BODY, "num_key_value_heads": 2}
PAIR = {
    "d_model": 48, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, **IDS,
}  # fmt: skip


class Tiny(NamedTuple):
    model: str
    config: str
    options: dict[str, Any]
    inputs: Callable[[], dict[str, torch.Tensor]]


def tokens(rows: int = 2, length: int = 11) -> torch.Tensor:
    return torch.randint(3, 97, (rows, length), generator=torch.Generator().manual_seed(3))


def padded(side: str) -> dict[str, torch.Tensor]:
    mask = torch.ones(2, 11, dtype=torch.long)
    mask[0, :4] = 0
    return {"input_ids": tokens(), "attention_mask": mask if side == "left" else mask.flip(1)}


def translated() -> dict[str, torch.Tensor]:
    return {**padded("right"), "decoder_input_ids": tokens(length=7)}


def image() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(3))}


def sound() -> dict[str, torch.Tensor]:
    features = torch.randn(2, 8, 20, generator=torch.Generator().manual_seed(3))
    return {"input_features": features, "decoder_input_ids": tokens(length=7)}


MODELS = {
    "BERT": Tiny("BertModel", "BertConfig", BODY, lambda: padded("right")),
    "RoBERTa": Tiny("RobertaModel", "RobertaConfig", BODY, lambda: padded("right")),
    "GPT-2": Tiny("GPT2Model", "GPT2Config", {"n_layer": 2, "n_embd": 48, "n_head": 4, **IDS}, lambda: padded("left")),
    "Llama": Tiny("LlamaModel", "LlamaConfig", GROUPED, lambda: padded("left")),
    "Llama without padding": Tiny("LlamaModel", "LlamaConfig", GROUPED, lambda: {"input_ids": tokens()}),
    "Mistral": Tiny("MistralModel", "MistralConfig", {**GROUPED, "sliding_window": 4}, lambda: {"input_ids": tokens()}),
    "Qwen3": Tiny("Qwen3Model", "Qwen3Config", {**GROUPED, "head_dim": 12}, lambda: padded("right")),
    "Gemma 2": Tiny(
        "Gemma2Model",
        "Gemma2Config",
        {**GROUPED, "head_dim": 12, "sliding_window": 4, "attn_logit_softcapping": 2.0},
        lambda: {"input_ids": tokens()},
    ),
    "Gemma 3": Tiny(
        "Gemma3TextModel",
        "Gemma3TextConfig",
        {**GROUPED, "head_dim": 12, "sliding_window": 4, "sliding_window_pattern": 2},
        lambda: padded("left"),
    ),
    "T5": Tiny(
        "T5Model",
        "T5Config",
        {"d_model": 48, "num_layers": 2, "num_heads": 4, "d_kv": 12, "d_ff": 32, "decoder_start_token_id": 0, **IDS},
        translated,
    ),
    "BART": Tiny("BartModel", "BartConfig", PAIR, translated),
    "Marian": Tiny("MarianModel", "MarianConfig", {**PAIR, "decoder_start_token_id": 0}, translated),
    "ViT": Tiny(
        "ViTModel",
        "ViTConfig",
        {k: v for k, v in BODY.items() if k not in IDS} | {"image_size": 24, "patch_size": 8},
        image,
    ),
    "Whisper": Tiny(
        "WhisperModel",
        "WhisperConfig",
        {**PAIR, "num_mel_bins": 8, "max_source_positions": 10, "decoder_start_token_id": 0},
        sound,
    ),
    "ModernBERT": Tiny("ModernBertModel", "ModernBertConfig", {**BODY, "local_attention": 4}, lambda: padded("right")),
}


@cache
def build(name: str, kind: str | None = None) -> Any:
    """The model, in eval mode, on its own fused attention; `kind` is another class of the same architecture."""
    tiny = MODELS[name]
    return make(kind or tiny.model, tiny.config, tiny.options)


def make(model: str, config: str, options: dict[str, Any]) -> Any:
    import transformers

    torch.manual_seed(1)
    return getattr(transformers, model)(getattr(transformers, config)(**options)).eval()
