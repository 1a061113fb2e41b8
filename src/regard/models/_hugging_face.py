"""Hugging Face models, loaded from packages, from folders, or by a name on the hub."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import ChoiceError, MissingExtraError, RegardError
from regard.models._cache import made_once
from regard.models._hub import is_on_disk, known_names
from regard.models._packages import PACKAGES, find

GENERATIVE = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel")  # endings of class names
_logging_lock = threading.Lock()  # verbosity of transformers is one setting for all threads


def folder(name: str) -> Path:
    """The folder of a packaged model, "minilm" or "smollm2", as `from_pretrained` takes it.

    SmolLM2 comes quantised to four bits. The first call converts it to float32 in the cache, which takes about half a
    minute; afterwards it loads in a second or two.
    """
    if name == "minilm":
        return find(PACKAGES["minilm"]).parent
    if name == "smollm2":
        return made_once(PACKAGES["smollm2"].mark, _convert_smollm2)
    raise ChoiceError(f"the packaged models are minilm and smollm2, not {name!r}")


def load(name: str | Path, *, causal: bool = False) -> tuple[Any, Any]:
    """Load a tokenizer and a model in evaluation mode, from "minilm", "smollm2", a folder, or a name on the hub.

    causal: load a generative model, with the layer that predicts the next token. Only a name on the hub uses the
    network; what is in the cache of the hub loads without it too.
    """
    if not str(name):
        raise ChoiceError(f"the name of a model is empty. {known_names('')}")
    packaged = name in ("minilm", "smollm2")
    path = Path(folder(str(name))) if packaged else Path(name).expanduser()
    is_folder = path.is_dir()
    only = {"local_files_only": is_folder or is_on_disk(str(name))}
    source = str(path if is_folder else name)
    transformers = import_transformers()
    try:
        with _logging_lock, quiet():
            model_class = _generative_class(transformers, name, source, only) if causal else transformers.AutoModel
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **only)
            model, report = model_class.from_pretrained(source, output_loading_info=True, **only)
    except RegardError:
        raise
    except (OSError, ValueError) as error:  # transformers raises one of the two for what it does not find or know
        reason = " ".join(str(error).split())
        raise ChoiceError(f"{name}: no model could be loaded from there: {reason}") from error
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)  # a pooler comes after all attention
    if missing:
        warnings.warn(f"{name}: has no numbers for {', '.join(missing[:5])}, which are random now", stacklevel=2)
    return tokenizer, model.eval()


def _generative_class(transformers: Any, name: str | Path, source: str, only: dict[str, bool]) -> Any:
    """The class of a generative model. Any other model would get a last layer of random numbers."""
    config = transformers.AutoConfig.from_pretrained(source, **only)
    classes = config.architectures or []
    if not any(made.endswith(GENERATIVE) for made in classes):
        raise ChoiceError(f"{name} is a {', '.join(classes) or config.model_type}, which reads and does not write")
    return transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM


def longest(tokenizer: Any, model: Any) -> int:
    """The largest number of tokens that a model reads at a time."""
    return min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or 2**30)


def import_transformers() -> Any:
    """The package transformers, or an error that names the extra to install."""
    try:
        import transformers
    except ImportError as missing:
        raise MissingExtraError("language models need transformers: pip install 'regard[models]'") from missing
    # transformers replaces itself in sys.modules. A thread that waited for the import holds the empty module.
    return sys.modules[transformers.__name__]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars and loading reports of transformers."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def _convert_smollm2(target: Path) -> None:
    transformers, source = import_transformers(), find(PACKAGES["smollm2"])
    try:
        import accelerate  # noqa: F401  transformers reads GGUF with the two of them
        import gguf  # noqa: F401
    except ImportError as missing:
        raise MissingExtraError("SmolLM2 is read with gguf and accelerate: pip install 'regard[models]'") from missing
    where = {"gguf_file": source.name, "local_files_only": True}
    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source.parent), **where)
        packed = transformers.AutoModelForCausalLM.from_pretrained(str(source.parent), **where)
        # It still calls itself quantised, and such a model cannot be saved: copy its float32 numbers into a new one.
        config = type(packed.config).from_dict({**packed.config.to_dict(), "quantization_config": None})
        del config.quantization_config
        plain = transformers.AutoModelForCausalLM.from_config(config, dtype=packed.dtype)
        plain.load_state_dict(packed.state_dict())
        plain.save_pretrained(target)
        tokenizer.save_pretrained(target)
