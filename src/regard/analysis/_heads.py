"""Saturated and uniform heads of a model, found by running it once."""

import inspect
import math
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard import scores
from regard.analysis._layer_weights import Recorded, layer_weights
from regard.analysis._query_positions import query_positions
from regard.analysis._table import HeadwiseTable
from regard.capture import is_hugging_face, record, returned_weights, unwrapped
from regard.display.progress import progress
from regard.errors import ChoiceError, DtypeError, IncompleteRecordingWarning, ShapeError
from regard.nn import MultiheadAttention
from regard.normalisers import Hard
from regard.torch_compat.multihead import call_weights, no_fast_path
from regard.weights import Weights

SATURATED = 0.8  # mean saturation from which on a head is called saturated
# Layers that compute what their parameters say. The forward of a subclass, or of one object, may do anything.
KNOWN_FORWARDS = (nn.MultiheadAttention.forward, MultiheadAttention.forward)
UNIFORM = 0.99  # mean relative entropy from which on a head is called uniform


class HeadRow(NamedTuple):
    """One head in one call of its layer. Means are over the queries that see at least two keys."""

    layer: str  # the module's path in the model
    head: int
    entropy: float  # in nats: 0 = one-hot
    relative: float  # entropy / log(visible keys): 0 = one-hot, 1 = uniform over them
    saturation: float  # sum_j p_j²; 1 minus it is the trace of the softmax Jacobian, so at 1 no gradient passes
    visible: float  # share of the keys that a query sees, mean over all queries
    verdict: str  # "saturated", "uniform", "fine" or "undefined"


@dataclass(frozen=True, repr=False)
class HeadTable(HeadwiseTable[HeadRow]):
    """Sharpness of every head: iterate over rows, take a column, sort, print, or make a data frame."""

    columns: ClassVar[tuple[str, ...]] = HeadRow._fields

    @property
    def saturated(self) -> "HeadTable":
        """The heads whose verdict is "saturated"."""
        return self._only("saturated")

    @property
    def uniform(self) -> "HeadTable":
        """The heads whose verdict is "uniform"."""
        return self._only("uniform")

    def _only(self, verdict: str) -> "HeadTable":
        return self._with_rows([row for row in self.rows if row.verdict == verdict])


def heads(model: nn.Module | Recorded, *inputs: Any, **options: Any) -> HeadTable:
    """Find saturated and uniform attention heads: run ``model(*inputs, **options)`` once and measure every head.

    model: a model, or a `regard.Recording` of one, which is measured without another run. inputs, options: what the
    model is called with. What a tokenizer returns may be given as it is, and is called as ``model(**inputs)``.

    A head whose weights are nearly one-hot is saturated: the Jacobian of its softmax vanishes, so that hardly any
    gradient reaches its queries and keys, and small changes flip it. A head that gives every key the same weight is
    uniform: it only averages. Verdicts come from means over the queries that see at least two keys:

    - "saturated": saturation = sum_j p_j² is at least 0.8 (`analysis.SATURATED`), so the largest weight is too
    - "uniform": entropy / log(visible keys) is at least 0.99 (`analysis.UNIFORM`)
    - "undefined": no query sees two keys, rows do not sum to 1, or weights are NaN
    - "fine": none of these

    Layers that are measured: `torch.nn.MultiheadAttention`, also inside `torch.nn.TransformerEncoder` in eval, whose
    fast path is switched off for this one run, every layer that returns `regard.Weights`, and in models of Hugging Face
    all that `regard.record` observes. Hidden keys do not count, and neither do queries that are padding (in torch's
    self-attention with key_padding_mask). Hard attention is judged by the softmax that it chooses from. Weights are
    those before dropout. The model runs in the mode that it is in, training or eval, with gradients or without, and is
    not changed.

    >>> import torch
    >>> from regard import analysis
    >>> layer = torch.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
    >>> with torch.no_grad():
    ...     layer.in_proj_weight[:4] = 0  # the queries of the first head
    ...     layer.in_proj_weight[4:8] *= 1000
    >>> x = torch.randn(3, 5, 8)
    >>> analysis.heads(layer, x, x, x).column("verdict")
    ('uniform', 'saturated')
    """
    if not isinstance(model, nn.Module):
        return _heads_of_recording(model, inputs, options)
    inputs, options = _call_arguments(model, inputs, options)
    if is_hugging_face(model):
        with record(model) as recording:
            model(*inputs, **options)
        return _heads_of_recording(recording, (), {})
    observer = _HeadObserver()
    with ExitStack() as stack:
        stack.enter_context(no_fast_path())
        for name, module in model.named_modules():
            hook = module.register_forward_hook(observer.hook(name or type(model).__name__), with_kwargs=True)
            stack.callback(hook.remove)
        model(*inputs, **options)
    if not observer.rows:
        raise ChoiceError(_no_heads(model))
    return HeadTable(tuple(observer.rows))


@torch.no_grad()
def _heads_of_recording(recording: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> HeadTable:
    if not isinstance(recording, Recorded):
        raise DtypeError(f"heads takes a model or a recording of one, {type(recording).__name__} came")
    if inputs or options:
        raise ChoiceError("a recording has run already: heads(recording) takes no inputs, heads(model, ...) does")
    chosen, rows = layer_weights(recording), list[HeadRow]()
    several = {layer.name for layer in recording.layers if len(layer.steps) > 1}
    with progress("measuring heads", len(chosen)) as advance:
        for layer in chosen:
            label = f"{layer.layer} (step {layer.step})" if layer.layer in several else layer.layer
            rows += _measure(label, layer.weights, None, query_positions(layer.weights, cross=layer.cross).real)
            advance()
    return HeadTable(tuple(rows))


def _call_arguments(
    model: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments for a call of the model. A single dict is spread if its names are those of the model's arguments."""
    if len(inputs) != 1 or not isinstance(inputs[0], Mapping):
        return inputs, options
    given = dict(inputs[0])
    if not (is_hugging_face(model) or set(given) <= set(inspect.signature(model.forward).parameters)):
        return inputs, options
    return (), {**{name: _batch(name, value) for name, value in given.items()}, **options}


def _batch(name: str, value: Any) -> Any:
    """Lists of token ids as a tensor (batch, tokens), which tokenizers return only when they are asked to."""
    if not isinstance(value, list | np.ndarray):
        return value
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"{name} holds texts of different length: ask for tokenizer(texts, padding=True, return_tensors='pt')"
        ) from error
    return tensor.unsqueeze(0) if tensor.dim() == 1 else tensor


class _HeadObserver:
    """Forward hooks that measure the heads of every layer, and change neither its inputs nor its output."""

    def __init__(self) -> None:
        self.rows: list[HeadRow] = []
        self.calls: dict[str, int] = {}
        # A layer around another may return the same weights again. They are kept alive, since a freed id is reused.
        self.seen: list[Weights] = []

    def hook(self, name: str) -> Any:
        @torch.no_grad()
        def measure(module: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
            returned = [w for w in returned_weights(output) if not any(w is other for other in self.seen)]
            self.seen += returned
            if getattr(unwrapped(module, "forward"), "__func__", None) in KNOWN_FORWARDS:
                weights, real = call_weights(module, args, options)
                self._add(name, weights, module.num_heads, real)
            elif isinstance(module, nn.MultiheadAttention) and not returned:
                warnings.warn(
                    f"{name} is not measured: it is a {type(module).__name__} with a forward of its own, not that of "
                    f"MultiheadAttention; rg.record(model) observes what it calls",
                    IncompleteRecordingWarning,
                    stacklevel=2,
                )
            else:
                for weights in returned:
                    self._add(name, weights, _declared_heads(module), None)

        return measure

    def _add(
        self, name: str, weights: Weights, count: int | None, real: Bool[Tensor, "batch 1 queries"] | None
    ) -> None:
        self.calls[name] = call = self.calls.get(name, 0) + 1
        label = name if call == 1 else f"{name} (call {call})"
        self.rows += _measure(label, weights, count, real)


def _declared_heads(module: nn.Module) -> int | None:
    """The `num_heads` of a layer or of the layer inside it, if it has one."""
    counts = (getattr(m, "num_heads", None) for m in (module, *module.children()))
    return next((count for count in counts if isinstance(count, int)), None)


def _measure(
    layer: str, weights: Weights, count: int | None, real: Bool[Tensor, "... queries"] | None
) -> list[HeadRow]:
    """One row for each head. Heads are axis -3 of four dimensions or more, or of three if `count` says so."""
    spec = weights.spec
    if isinstance(spec.normaliser, Hard):
        weights = Weights(weights.query, weights.key, spec.score, spec.mask)
    lead = weights.shape[:-2]
    split = len(lead) > 1 or (len(lead) == 1 and lead[0] == count)
    # With scores of 0 the log-sum-exp is the log of the number of visible keys.
    log_visible = Weights(weights.query, weights.key, scores.uniform(), spec.mask).logsumexp().double()
    shares = log_visible.exp().round() / max(weights.shape[-1], 1)
    if spec.normaliser.normalised:
        entropy, saturation = weights.entropy().double(), weights.saturation().double()
    else:
        entropy = saturation = torch.full_like(log_visible, math.nan)
    real = torch.ones_like(log_visible, dtype=torch.bool) if real is None else real.expand(log_visible.shape)
    several = real & (log_visible > math.log(1.5))
    by_head = [
        (t.movedim(-2, 0) if split else t.unsqueeze(0)).flatten(1)
        for t in (entropy, entropy / log_visible, saturation, several, shares, real)
    ]
    return [_row(layer, number, *parts) for number, parts in enumerate(zip(*by_head, strict=True))]


def _row(
    layer: str,
    head: int,
    entropy: Float[Tensor, " queries"],
    relative: Float[Tensor, " queries"],
    saturation: Float[Tensor, " queries"],
    several: Bool[Tensor, " queries"],
    shares: Float[Tensor, " queries"],
    real: Bool[Tensor, " queries"],
) -> HeadRow:
    mean, ratio, sharpness = (values[several].mean().item() for values in (entropy, relative, saturation))
    return HeadRow(layer, head, mean, ratio, sharpness, shares[real].mean().item(), _verdict(ratio, sharpness))


def _verdict(relative: float, saturation: float) -> str:
    if math.isnan(relative) or math.isnan(saturation):
        return "undefined"
    if saturation >= SATURATED:
        return "saturated"
    return "uniform" if relative >= UNIFORM else "fine"


def _no_heads(model: nn.Module) -> str:
    layers = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.MultiheadAttention)]
    idle = [name or type(layer).__name__ for name, layer in layers]
    which = "which did not run, or not by torch's forward"
    found = f"it has {', '.join(idle)}, {which}" if idle else "it has no such layer that ran"
    return (
        f"heads looks for torch.nn.MultiheadAttention and for layers that return regard.Weights, and of "
        f"{type(model).__name__} nothing can be measured: {found}. Attention that is computed in other ways is "
        f"observed by rg.record(model): give heads the recording"
    )
