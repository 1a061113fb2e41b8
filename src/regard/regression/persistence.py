"""A fitted estimator in a file and back, without pickle: a file can only hold numbers and names, never code."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from regard.errors import FormatError
from regard.regression import file_format

IN_WORDS = ("device", "plan_")  # objects whose text says everything
Model = TypeVar("Model", bound=Any)


class Saved:
    """An estimator that can be written to a file and read again."""

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file, without pickle: the format is in docs/formats/model.md.

        >>> import numpy as np
        >>> from regard import NadarayaWatson
        >>> x = np.linspace(0, 5, 50)[:, None]
        >>> NadarayaWatson(bandwidth=0.5).fit(x, np.sin(x[:, 0])).save("sine.regard-fit")
        >>> NadarayaWatson.load("sine.regard-fit").predict([[1.0]]).round(2)
        array([0.76])
        """
        check_is_fitted(self)
        if vars(self).get("blocks_") is not None:
            raise FormatError("save needs the data in memory, but this estimator was fitted on blocks of it")
        save(self, path)

    @classmethod
    def load(cls: type[Model], path: str | Path) -> Model:  # noqa: PYI019  as in _frames
        """The estimator that `save` wrote; a file that is damaged or something else is refused."""
        return load(cls, path)


def save(model: Any, path: str | Path) -> None:
    """Write a fitted estimator: its parameters, and every attribute that ends in an underscore."""
    learned = {name: value for name, value in vars(model).items() if is_learned(name)}
    arrays = {name: value for name, value in learned.items() if _is_numeric(value)}
    others = {name: _plain(name, value) for name, value in learned.items() if name not in arrays}
    parameters = {name: _plain(name, value) for name, value in model.get_params(deep=False).items()}
    text = {"class": type(model).__name__, "parameters": parameters, "learned": others}
    file_format.write(path, json.dumps(text, separators=(",", ":"), sort_keys=True, allow_nan=False), arrays)


def load(kind: type[Model], path: str | Path) -> Model:
    """The estimator that was saved; it predicts the same bits."""
    content = file_format.read(path)
    try:
        text = json.loads(content.text)
        if text["class"] != kind.__name__:
            msg = f"{path} holds a {text['class']}, and a {kind.__name__} is wanted"
            raise FormatError(msg)
        model = kind(**{name: _restored(value) for name, value in text["parameters"].items()})
        learned = {name: _restored(value) for name, value in text["learned"].items()} | content.arrays
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
        raise FormatError(file_format.foreign(path)) from None
    for name, value in learned.items():
        if not is_learned(name):  # somebody made this file by hand: it must not replace a method
            raise FormatError(file_format.foreign(path))
        setattr(model, name, value)
    return model


def is_learned(name: str) -> bool:
    """Whether an attribute of this name is what a fit has learned, as scikit-learn names it."""
    return name.endswith("_") and not name.startswith("_")


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype != object


def _plain(name: str, value: Any) -> Any:
    """As JSON has it. What JSON has no word for is marked: {"float": "inf"}, {"names": [...]}, {"columns": [...]}..."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        kind = {"O": "names", "U": "texts"}.get(value.dtype.kind, "array")
        return {kind: [_plain(name, part) for part in value.tolist()]}
    if isinstance(value, dict):  # of columns by their numbers
        return {"columns": [[_plain(name, key), _plain(name, part)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return [_plain(name, part) for part in value]
    if name in IN_WORDS:
        return str(value)
    msg = f"{name} cannot be saved: it is a {type(value).__name__}, and a file holds numbers, texts and arrays"
    raise FormatError(msg)


def _restored(value: Any) -> Any:
    match value:
        case {"float": text}:
            return float(text)
        case {"names": names}:
            return np.array(names, dtype=object)
        case {"texts": texts}:
            return np.array(texts, dtype=str)
        case {"columns": pairs}:
            return {int(key): _restored(part) for key, part in pairs}
        case {"array": numbers}:
            return np.array([_restored(number) for number in numbers])
        case list():
            return [_restored(part) for part in value]
        case _:
            return value
