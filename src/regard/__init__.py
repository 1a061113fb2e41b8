"""Attention, and seeing it.

    output, weights = regard.attend(query, key, value)

costs what a fused kernel costs, and `weights` is the n x m matrix of attention weights as an object that is never
built: it answers any question at any length.

The names below are loaded when they are first used, so that `import regard` stays cheap and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard import (
        analysis,
        datasets,
        distributed,
        errors,
        kernels,
        masks,
        models,
        nn,
        normalisers,
        plot,
        regression,
        scores,
        seq2seq,
    )
    from regard.attention import Attention, attend
    from regard.capture import record
    from regard.recording import Recording, open  # noqa: A004  rg.open(path)
    from regard.regression import NadarayaWatson
    from regard.relation import Relation, relate
    from regard.weights import Weights

    __version__: str

__all__ = [
    "attend",
    "Attention",
    "Weights",
    "record",
    "Recording",
    "open",
    "NadarayaWatson",
    "relate",
    "Relation",
    "scores",
    "masks",
    "normalisers",
    "kernels",
    "nn",
    "plot",
    "regression",
    "analysis",
    "datasets",
    "models",
    "seq2seq",
    "distributed",
    "errors",
    "__version__",
]

# name -> the module that defines it; a module that defines itself is its own attribute
_HOMES = {
    "attend": "regard.attention",
    "Attention": "regard.attention",
    "Weights": "regard.weights",
    "record": "regard.capture",
    "Recording": "regard.recording",
    "open": "regard.recording",
    "NadarayaWatson": "regard.regression",
    "relate": "regard.relation",
    "Relation": "regard.relation",
}
_MODULES = frozenset(
    {
        "analysis",
        "datasets",
        "distributed",
        "errors",
        "kernels",
        "masks",
        "models",
        "nn",
        "normalisers",
        "plot",
        "regression",
        "scores",
        "seq2seq",
    }
)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"regard.{name}")
    elif name == "__version__":
        value = import_module("importlib.metadata").version("regard")
    else:
        raise AttributeError(f"module 'regard' has no attribute {name!r}; it offers {', '.join(__all__)}")
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
