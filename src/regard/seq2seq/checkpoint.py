"""Files of models and of runs: safetensors with JSON in their header, written atomically, read without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.engine.files import atomic_file
from regard.errors import FormatError, MissingExtraError
from regard.seq2seq.network import EncoderDecoder
from regard.seq2seq.transformer import TransformerDecoder
from regard.seq2seq.vocabulary import Vocabularies, Vocabulary

FORMAT, VERSION = "regard-translation", 1


def write(path: str | Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write named tensors and a JSON object; the path holds the whole new file or the old one."""
    try:
        from safetensors.torch import save
    except ImportError as missing:
        raise MissingExtraError("models are kept with safetensors: pip install 'regard[translation]'") from missing
    header = {"format": FORMAT, "version": str(VERSION), "about": json.dumps(about, ensure_ascii=False)}
    content = save({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, header)
    with atomic_file(path) as file:
        file.write(content)


def read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the JSON object of a file that `write` wrote; FormatError for any other file."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as missing:
        raise MissingExtraError("models are kept with safetensors: pip install 'regard[translation]'") from missing
    path = Path(path)
    if not path.is_file():
        raise FormatError(f"{path}: there is no such file; a model is written by regard.seq2seq.train or model.save")
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise FormatError(f"{path}: is no model of regard.seq2seq, its header says {header.get('format')!r}")
            if header["version"] != str(VERSION):
                version = header["version"]
                raise FormatError(f"{path}: has version {version} of {FORMAT}, and this regard reads version {VERSION}")
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(header["about"])  # noqa: SIM118
    except (SafetensorError, ValueError, KeyError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path}: is damaged, or no file of regard.seq2seq ({error})") from error


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object, atomically."""
    with atomic_file(path) as file:
        file.write((json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of `write_json`."""
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise FormatError(f"{path}: is no JSON ({error})") from error
    if not isinstance(values, dict):
        raise FormatError(f"{path}: holds no JSON object")
    return values


def describe_model(model: EncoderDecoder) -> dict[str, Any]:
    """Kind, settings and vocabularies: all that is needed to make the model again but its parameters."""
    source, target = model.known
    aligned = model.decoder.aligned_layer if isinstance(model.decoder, TransformerDecoder) else None
    # A list of tokens that both sides share is written once.
    shared = {"language": source.language, "lower": source.lower} if model.known.shared else source.to_json()
    return {
        "kind": model.kind,
        "settings": model.settings,
        "source": shared,
        "target": target.to_json(),
        "aligned_layer": aligned,
    }


def build_model(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> EncoderDecoder:
    """The model of `describe_model` with these parameters, ready to translate."""
    try:
        model = EncoderDecoder.kinds[about["kind"]](**about["settings"])
        target = Vocabulary.from_json(about["target"])
        source = about["source"]
        if "tokens" in source:
            read_source = Vocabulary.from_json(source)
        else:
            read_source = Vocabulary(target.tokens, source["language"], source["lower"], target.merges)
        model.build(Vocabularies(read_source, target))
        model.load_state_dict({name: tensor.to(torch.float32) for name, tensor in tensors.items()}, strict=True)
        if isinstance(model.decoder, TransformerDecoder):
            model.decoder.aligned_layer = about["aligned_layer"]
    except (KeyError, TypeError, RuntimeError) as error:
        raise FormatError(f"the file is no model that this regard can build: {error}") from error
    return model.eval()


def model_tensors(model: EncoderDecoder) -> dict[str, Tensor]:
    """The parameters of a model by name; an embedding that both sides share has two names and is kept once."""
    shared = model.known.shared
    state = model.state_dict()
    return {name: tensor for name, tensor in state.items() if not (shared and name.startswith("source_embedding"))}


def with_shared_embedding(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of `model_tensors`, with the shared embedding under both names."""
    named = dict(tensors)
    named.setdefault("source_embedding.weight", named["target_embedding.weight"])
    return named


def save_model(model: EncoderDecoder, path: str | Path, dtype: torch.dtype | None = None, **more: Any) -> None:
    """Write a model; in float16 it takes half the space. `more` is kept beside its settings."""
    tensors = {name: tensor if dtype is None else tensor.to(dtype) for name, tensor in model_tensors(model).items()}
    write(path, tensors, {"model": describe_model(model), **more})


def load_model(path: str | Path) -> EncoderDecoder:
    """Read a model from a file, or the best one from the folder of a run."""
    path = Path(path)
    tensors, about = read(path / "best.safetensors" if path.is_dir() else path)
    if "model" not in about:
        raise FormatError(f"{path}: holds no model")
    return build_model(about["model"], with_shared_embedding(tensors))
