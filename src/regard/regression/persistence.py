"""Model files: save a fitted estimator and load it, without pickle. docs/formats/model.md describes the bytes.

A file holds the learned arrays and one JSON text (`engine.array_file`): numbers and names, never code.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from regard import kernels
from regard.engine.array_file import ArrayFile
from regard.errors import ChoiceError, FormatError

FIT_FILE = ArrayFile("regard-fit", "1", "a fit")
SAVED_AS_TEXT = ("device", "plan_")  # objects whose text is all there is to know
Model = TypeVar("Model", bound=Any)


class Persistence:
    """Mixin: `save` and `load` of a fitted estimator."""

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file, without pickle: the format is in docs/formats/model.md.

        The file holds the parameters and every attribute whose name ends in an underscore.

        >>> import numpy as np
        >>> from regard import NadarayaWatson
        >>> x = np.linspace(0, 5, 50)[:, None]
        >>> NadarayaWatson(bandwidth=0.5).fit(x, np.sin(x[:, 0])).save("sine.regard-fit")
        >>> NadarayaWatson.load("sine.regard-fit").predict([[1.0]]).round(2)
        array([0.76])
        """
        check_is_fitted(self)
        model: Any = self
        if model.blocks_ is not None:
            raise FormatError("save needs the data in memory, but this estimator was fitted on blocks of it")
        learned = {name: value for name, value in vars(self).items() if is_learned(name)}
        arrays = {name: a for name, a in learned.items() if isinstance(a, np.ndarray) and a.dtype != object}
        others = {name: _to_json(name, value) for name, value in learned.items() if name not in arrays}
        parameters = {name: _to_json(name, value) for name, value in model.get_params(deep=False).items()}
        text = {"class": type(self).__name__, "parameters": parameters, "learned": others}
        FIT_FILE.write(path, json.dumps(text, separators=(",", ":"), sort_keys=True, allow_nan=False), arrays)

    @classmethod
    def load(cls: type[Model], path: str | Path) -> Model:  # noqa: PYI019  jaxtyping's run-time checks do not know Self
        """Read an estimator that `save` wrote; it predicts the same bits.

        A file that is damaged, or that is something else, raises FormatError.
        """
        text, arrays = FIT_FILE.read(path)
        try:
            content = json.loads(text)
            if content["class"] != cls.__name__:
                raise FormatError(f"{path} holds a {content['class']}, and a {cls.__name__} is wanted")
            kernels.get(content["parameters"]["kernel"])  # a file holds its name alone
            model = cls(**{name: _from_json(value) for name, value in content["parameters"].items()})
            learned = {name: _from_json(value) for name, value in content["learned"].items()} | arrays
        except ChoiceError as error:
            raise FormatError(f"{path} cannot be read before its kernel is defined: {error}") from None
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
            raise FormatError(FIT_FILE.not_ours(path)) from None
        for name, value in learned.items():
            if not is_learned(name):  # somebody made this file by hand: it must not replace a method
                raise FormatError(FIT_FILE.not_ours(path))
            setattr(model, name, value)
        return model


def is_learned(name: str) -> bool:
    """Return True for the name of a learned attribute, as scikit-learn names them: `bandwidth_`."""
    return name.endswith("_") and not name.startswith("_")


def _to_json(name: str, value: Any) -> Any:
    """Convert to JSON. What JSON lacks becomes an object: {"float": "inf"}, {"names": [...]}, {"columns": [...]}..."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        kind = {"O": "names", "U": "texts"}.get(value.dtype.kind, "array")
        return {kind: [_to_json(name, part) for part in value.tolist()]}
    if isinstance(value, dict):  # of columns by their numbers
        return {"columns": [[_to_json(name, key), _to_json(name, part)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return [_to_json(name, part) for part in value]
    if isinstance(value, kernels.Kernel):
        return value.name
    if name in SAVED_AS_TEXT:
        return str(value)
    msg = f"{name} cannot be saved: it is a {type(value).__name__}, and a file holds numbers, texts and arrays"
    raise FormatError(msg)


def _from_json(value: Any) -> Any:
    match value:
        case {"float": text}:
            return float(text)
        case {"names": names}:
            return np.array(names, dtype=object)
        case {"texts": texts}:
            return np.array(texts, dtype=str)
        case {"columns": pairs}:
            return {int(key): _from_json(part) for key, part in pairs}
        case {"array": numbers}:
            return np.array([_from_json(number) for number in numbers])
        case list():
            return [_from_json(part) for part in value]
        case _:
            return value
