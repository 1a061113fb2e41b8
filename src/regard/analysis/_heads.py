"""Saturated and uniform heads of a model, found by running it once."""

import math
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard import scores
from regard.analysis._table import HeadwiseTable
from regard.capture import returned_weights
from regard.errors import ChoiceError
from regard.normalisers import Hard
from regard.torch_compat.multihead import call_weights, no_fast_path
from regard.weights import Weights

SATURATED = 0.8  # mean saturation from which on a head is called saturated
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


@dataclass(frozen=True)
class HeadTable(HeadwiseTable[HeadRow]):
    """Sharpness of every head: iterate over rows, take a column, print it, or use `to_dict()` for a data frame."""

    rows: tuple[HeadRow, ...]

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
        return HeadTable(tuple(row for row in self.rows if row.verdict == verdict))

    def __str__(self) -> str:
        width = self._layer_width
        head = f"{'layer':<{width}}{'head':>6}" + "".join(f"{name:>12}" for name in HeadRow._fields[2:])
        lines = (
            f"{row.layer:<{width}}{row.head:>6}" + "".join(f"{x:>12.4f}" for x in row[2:6]) + f"{row.verdict:>12}"
            for row in self.rows
        )
        return "\n".join([head, *lines])


def heads(model: nn.Module, *inputs: Any, **options: Any) -> HeadTable:
    """Find saturated and uniform attention heads: run ``model(*inputs, **options)`` once and measure every head.

    A head whose weights are nearly one-hot is saturated: the Jacobian of its softmax vanishes, so that hardly any
    gradient reaches its queries and keys, and small changes flip it. A head that gives every key the same weight is
    uniform: it only averages. Verdicts come from means over the queries that see at least two keys:

    - "saturated": saturation = sum_j p_j² is at least 0.8 (`analysis.SATURATED`), so the largest weight is too
    - "uniform": entropy / log(visible keys) is at least 0.99 (`analysis.UNIFORM`)
    - "undefined": no query sees two keys, rows do not sum to 1, or weights are NaN
    - "fine": none of these

    Layers that are measured: `torch.nn.MultiheadAttention`, also inside `torch.nn.TransformerEncoder` in eval, whose
    fast path is switched off for this one run, and every layer that returns `regard.Weights`. Hidden keys do not count,
    and neither do queries that are padding (in torch's self-attention with key_padding_mask). Hard attention is judged
    by the softmax that it chooses from. Weights are those before dropout. The model runs in the mode that it is in,
    training or eval, with gradients or without, and is not changed.

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
            if isinstance(module, nn.MultiheadAttention):
                weights, real = call_weights(module, args, options)
                self._add(name, weights, module.num_heads, real)
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
    layer: str, weights: Weights, count: int | None, real: Bool[Tensor, "batch 1 queries"] | None
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
    idle = [name for name, module in model.named_modules() if isinstance(module, nn.MultiheadAttention)]
    found = f"it has {', '.join(idle)}, which did not run" if idle else "it has no such layer that ran"
    return (
        f"heads looks for torch.nn.MultiheadAttention and for layers that return regard.Weights, and of "
        f"{type(model).__name__} nothing can be told: {found}"
    )
