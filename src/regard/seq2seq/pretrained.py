"""Models that come with regard, each a float16 file that is checked by its sha256."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from regard.errors import ChoiceError, DamageError, FormatError
from regard.seq2seq import checkpoint
from regard.seq2seq.model import TranslationModel

WEIGHTS = Path(__file__).parent / "weights"
CHECKSUMS = WEIGHTS / "sha256.json"  # name of a model -> sha256 of its file


def load(name: str | Path = "en-fr") -> TranslationModel:
    """A trained model by name, or from a file or the folder of a run.

    Names: "en-fr", English to French, and "numbers", English number words to Chinese numerals, both with Bahdanau's
    attention. A name with "/transformer" is a Transformer for the same, one with "/none" has no attention. They come
    with regard and need no network; `weights/README.md` beside this file has their figures and says how they were made.
    """
    checksums = json.loads(CHECKSUMS.read_text(encoding="utf-8"))
    if str(name) in checksums:
        path = weights_path(str(name))
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != checksums[str(name)]:
            raise DamageError(f"{path}: is damaged, its sha256 is not {checksums[str(name)]}: install regard again")
        return _checked(path)
    if not Path(name).exists():
        known = ", ".join(map(repr, checksums))
        raise ChoiceError(f"there is no model {str(name)!r}: choose {known}, or a file or folder that train wrote")
    return _checked(Path(name))


def names() -> tuple[str, ...]:
    """The names of the models that come with regard."""
    return tuple(json.loads(CHECKSUMS.read_text(encoding="utf-8")))


def figures(name: str) -> dict[str, Any]:
    """Figures of a model that comes with regard on test sentences, as its file has them."""
    return checkpoint.read(weights_path(name))[1]["figures"]


def weights_path(name: str) -> Path:
    """The file of a model that comes with regard."""
    return WEIGHTS / f"{name.replace('/', '-')}.safetensors"


def _checked(path: Path) -> TranslationModel:
    model = checkpoint.load_model(path)
    if not isinstance(model, TranslationModel):
        raise FormatError(f"{path}: holds a {type(model).__name__}, which takes no texts")
    return model
