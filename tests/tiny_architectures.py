"""Every architecture of transformers, built tiny from its default configuration, and inputs for it.

Nothing here is written for one architecture: sizes are set by the names that configurations use for them.
"""

import inspect
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

LARGEST = 20_000_000  # parameters; what is larger is not built
VOCABULARY = 128
ROWS, LENGTH = 2, 11

WIDTH, HEADS, HEAD = 128, 4, 32
WIDTHS = (
    "hidden_size",
    "d_model",
    "n_embd",
    "dim",
    "embed_dim",
    "emb_dim",
    "embedding_size",
    "hidden_dim",
    "encoder_hidden_size",
    "decoder_hidden_size",
    "projection_dim",
    "word_embed_proj_dim",
    "d_embed",
    "model_dim",
    "attention_hidden_size",
    "decoder_hidden_dim",
    "encoder_hidden_dim",
    "text_embed_dim",
    "fusion_hidden_size",
    "mask_feature_size",
    "feature_size",
    "conv_dim",
    "backbone_hidden_size",
    "out_hidden_size",
    "output_dim",
    "text_hidden_size",
    "vision_hidden_size",
    "cross_hidden_size",
    "qformer_hidden_size",
    "encoder_embed_dim",
    "decoder_embed_dim",
    "lm_hidden_size",
    "hidden_channels",
    "reduction_hidden_size",
    "project_dim",
    "hidden_size_per_layer_input",
    "perceiver_dim",
    "audio_hidden_size",
    "adapter_hidden_size",
    "state_size_dim",
    "output_hidden_size",
    "vae_hidden_size",
)
FEED_FORWARDS = (
    "intermediate_size",
    "ffn_dim",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "d_ff",
    "n_inner",
    "moe_intermediate_size",
    "mlp_dim",
    "dim_feedforward",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "dense_intermediate_size",
    "expert_intermediate_size",
    "encoder_intermediate_size",
    "decoder_intermediate_size",
    "ffn_hidden_size",
    "feed_forward_size",
    "intermediate_size_mlp",
    "moe_shared_expert_intermediate_size",
    "ffn_embed_dim",
    "feedforward_dim",
    "mlp_hidden_size",
    "lru_width",
)
LAYERS = (
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "encoder_layers",
    "decoder_layers",
    "num_decoder_layers",
    "num_encoder_layers",
    "depth",
    "num_blocks",
    "l_layers",
    "x_layers",
    "r_layers",
    "num_self_attends_per_block",
    "encoder_num_layers",
    "decoder_num_layers",
    "num_encoder_blocks",
    "decoder_num_hidden_layers",
    "encoder_num_hidden_layers",
    "num_self_attention_layers",
    "fusion_num_layers",
)
HEAD_COUNTS = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_num_attention_heads",
    "decoder_num_attention_heads",
    "attention_heads",
    "cross_attention_heads",
    "num_cross_attention_heads",
    "resampler_n_heads",
    "text_enhancer_num_heads",
    "fusion_num_heads",
)
KEY_HEADS = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_kv_heads",
    "multi_query_group_num",
    "encoder_num_key_value_heads",
)
HEAD_WIDTHS = (
    "head_dim",
    "d_kv",
    "attention_head_size",
    "v_head_dim",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "d_head",
    "kv_lora_rank",
    "q_lora_rank",
    "global_head_dim",
    "kv_channels",
    "attention_head_dim",
    "swa_head_dim",
    "index_head_dim",
)
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
SIZES: dict[str, int] = {
    **dict.fromkeys(WIDTHS, WIDTH),
    **dict.fromkeys(FEED_FORWARDS, 32),
    **dict.fromkeys(LAYERS, 4),  # hybrids attend in every third or fourth
    **dict.fromkeys(HEAD_COUNTS, HEADS),
    **dict.fromkeys(KEY_HEADS, 2),
    **dict.fromkeys(HEAD_WIDTHS, HEAD),
    **dict.fromkeys(EXPERTS, 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts", "num_selected_experts"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1),
    **dict.fromkeys(("image_size", "img_size", "input_size", "pretrain_image_size"), 32),
    "patch_size": 8,
    "rotary_dim": 8,
    "num_mel_bins": 8,
    "sliding_window": 4,
    "num_queries": 7,
    "num_latents": 7,
    "num_query_tokens": 7,
}
EVERY_HEAD_HAS_KEYS = {**SIZES, **dict.fromkeys(KEY_HEADS, HEADS)}
MORE_LAYERS = {**SIZES, **dict.fromkeys(LAYERS, 6)}
FEWER_CHANGES = {
    **dict.fromkeys(LAYERS, 2),
    **dict.fromkeys(EXPERTS, 4),
    **{name: SIZES[name] for name in ("num_experts_per_tok", "moe_topk", "moe_k")},
}
SHRINKS = (SIZES, EVERY_HEAD_HAS_KEYS, MORE_LAYERS, FEWER_CHANGES, {})  # tried one after another
FIRST_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


# Configurations


def configuration(kind: Any, sizes: dict[str, int]) -> Any:
    """A configuration of this class, with these sizes where it has them."""
    try:
        default = kind()
    except ValueError:  # some that forecast need to know how far
        default = kind(prediction_length=4)
    return kind(**_shrunken(default, sizes))


def _shrunken(config: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Arguments that make a configuration small."""
    changed: dict[str, Any] = {}
    for name, value in {**config.to_dict(), **vars(config)}.items():
        small = _small(config, name, value, sizes)
        if small is not value:
            changed[name] = small
    return changed


def _small(config: Any, name: str, value: Any, sizes: dict[str, int]) -> Any:
    from transformers import PreTrainedConfig

    if isinstance(value, PreTrainedConfig):
        return {**_shrunken(value, sizes), "model_type": value.model_type}
    if name == "prediction_length":
        return 4
    if value is None and name == "vocab_size":
        return VOCABULARY
    if isinstance(value, int) and not isinstance(value, bool):
        return _small_number(name, value, sizes)
    if isinstance(value, dict) and "mrope_section" in value and "hidden_size" in sizes:
        part = HEAD / (getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        return {**value, "mrope_section": [max(1, round(n * part)) for n in value["mrope_section"]]}
    if isinstance(value, list | tuple) and sizes and value and all(type(v) is int for v in value):
        small = _small_list(name, list(value))
        return value if small == list(value) else small
    return value


def _small_number(name: str, value: int, sizes: dict[str, int]) -> int:
    if name in sizes:
        return min(value, sizes[name])
    if "vocab" in name and "size" in name:
        return min(value, VOCABULARY)
    if name in FIRST_IDS:
        return FIRST_IDS[name]
    if name.endswith(("_id", "_index", "_idx")) and value >= VOCABULARY:
        return VOCABULARY - 20 + sum(map(ord, name)) % 20  # special tokens, above those of the inputs
    return value


def _small_list(name: str, values: list[int]) -> list[int]:
    if name in ("depths", "num_blocks", "encoder_layers_per_stage"):
        return [1] * len(values)
    if name in ("hidden_sizes", "embed_dims", "dims", "neck_hidden_sizes"):
        return [min(v, WIDTH * 2 ** min(i, 2)) for i, v in enumerate(values)]
    if name in ("num_heads", "num_attention_heads"):
        return [min(v, HEADS * 2 ** min(i, 2)) for i, v in enumerate(values)]
    if name in ("image_size", "img_size"):
        return [32] * len(values)
    if name == "conv_dim":
        return [WIDTH] * len(values)
    return values


# Models


class NotBuiltError(Exception):
    """The architecture cannot be built here."""


def build(kind: Any, config: Any) -> nn.Module:
    """The model with random parameters of a size that makes its attention sharp, in eval mode."""
    with torch.device("meta"):
        count = sum(p.numel() for p in kind(config).parameters())
    if count > LARGEST:
        raise NotBuiltError(f"it would have {count:,} parameters")
    torch.manual_seed(1)
    model = kind(config).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            fan_in = parameter[0].numel() if parameter.dim() > 2 else parameter.shape[-1]
            parameter.data.normal_(0.0, 1.4 / math.sqrt(fan_in))
        elif parameter.is_floating_point():
            parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model


# Inputs


def tokens(length: int = LENGTH) -> Tensor:
    return torch.randint(3, 90, (ROWS, length), generator=torch.Generator().manual_seed(3))


def _setting(config: Any, names: tuple[str, ...], default: Any) -> Any:
    parts = [config, *(getattr(config, n, None) for n in ("vision_config", "audio_config", "encoder", "text_config"))]
    for part in parts:
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value
    return default


def _image_size(config: Any) -> tuple[int, int]:
    size = _setting(config, ("image_size", "img_size", "input_size"), 32)
    return (size, size) if isinstance(size, int) else (size[0], size[-1])


def _image(config: Any, *lead: int) -> Tensor:
    channels = _setting(config, ("num_channels", "in_channels", "num_input_channels"), 3)
    return torch.randn(*lead, channels, *_image_size(config))


def _single_inputs(config: Any) -> dict[str, Tensor]:
    """One tensor for each input that an architecture may take."""
    torch.manual_seed(3)
    frames = _setting(config, ("num_frames", "num_image_with_embedding"), 2)
    mels = _setting(config, ("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim"), 8)
    stretch = 2 * _setting(config, ("max_source_positions",), 16)
    return {
        "input_ids": tokens(),
        "decoder_input_ids": tokens(7),
        "pixel_values": _image(config, ROWS),
        "pixel_values_videos": _image(config, ROWS, frames),
        "input_features": torch.randn(ROWS, mels, min(stretch, 3000)),
        "input_features time first": torch.randn(ROWS, 40, mels),
        "input_values": torch.randn(ROWS, 2000),
        "bbox": torch.zeros(ROWS, LENGTH, 4, dtype=torch.long),
        "pixel_values of frames": _image(config, ROWS, frames),
        "hidden_states": torch.randn(ROWS, LENGTH, _setting(config, ("hidden_size",), WIDTH)),
        "inputs": torch.randn(ROWS, LENGTH, _setting(config, ("d_model",), WIDTH)),
        "encoder_hidden_states": torch.randn(ROWS, 5, _setting(config, ("encoder_hidden_size", "hidden_size"), WIDTH)),
        "past_values": torch.randn(ROWS, _setting(config, ("context_length",), 32)),
    }


MIXES = (
    ("input_ids",),
    ("input_ids", "decoder_input_ids"),
    ("pixel_values",),
    ("pixel_values", "decoder_input_ids"),
    ("input_ids", "pixel_values"),
    ("input_ids", "bbox"),
    ("input_ids", "bbox", "pixel_values"),
    ("input_features", "decoder_input_ids"),
    ("input_features time first", "decoder_input_ids"),
    ("input_features",),
    ("input_features time first",),
    ("input_ids", "input_features"),
    ("input_values",),
    ("input_values", "decoder_input_ids"),
    ("input_ids", "input_values"),
    ("pixel_values of frames",),
    ("pixel_values_videos",),
    ("input_ids", "pixel_values of frames"),
    ("hidden_states",),
    ("inputs",),
    ("past_values",),
)


def inputs(model: Any) -> Iterator[dict[str, Tensor]]:
    """Inputs that the model may take, by the names of its arguments."""
    taken = inspect.signature(model.forward).parameters
    single = _single_inputs(model.config)
    main = getattr(model, "main_input_name", "input_ids")
    for mix in sorted(MIXES, key=lambda mix: mix[0].split()[0] != main):
        given = {name.split()[0]: single[name] for name in mix}
        if all(name in taken for name in given):
            yield given


def padded(given: dict[str, Tensor], side: str) -> dict[str, Tensor]:
    """The inputs with a mask that hides three tokens of the first sequence, fewer than a sliding window has.

    Else a last row would see nothing in one layer and something in the next, with a query that eager attention has made
    of a uniform average.
    """
    mask = torch.ones(ROWS, LENGTH, dtype=torch.long)
    mask[0, :3] = 0
    return {**given, "attention_mask": mask if side == "left" else mask.flip(1)}


def takes_padding(model: Any, given: dict[str, Tensor]) -> bool:
    return "input_ids" in given and "attention_mask" in inspect.signature(model.forward).parameters
