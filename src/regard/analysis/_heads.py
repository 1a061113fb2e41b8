"""Which heads of a model are saturated, and which look at everything alike."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard import scores
from regard.analysis._table import Table
from regard.capture._returned_weights import weights_in
from regard.errors import ChoiceError
from regard.normalisers import Hard
from regard.torch_compat.multihead import is_multihead, of_call
from regard.weights import Weights

SATURATED = 0.8  # mean saturation from which on a head is called saturated
UNIFORM = 0.99  # mean relative entropy from which on a head is called uniform


class HeadRow(NamedTuple):
    """One head in one call of its layer. Means are over queries that see two keys at least: one key is no choice."""

    layer: str  # the module's path in the model
    head: int
    entropy: float  # in nats: 0 = one-hot
    relative: float  # entropy / log(keys that the query sees): 0 = one-hot, 1 = uniform over them
    saturation: float  # sum of p^2, and 1 minus it is the trace of the softmax Jacobian: 1 = nothing can be learned
    visible: float  # the share of the keys that a query sees, over all queries
    verdict: str  # "saturated", "uniform", "fine" or "undefined"


@dataclass(frozen=True)
class HeadTable(Table[HeadRow]):
    """What `heads` found. Iterate over its rows, ask for a column, print it, or make a frame of `to_dict()`."""

    rows: tuple[HeadRow, ...]

    columns = HeadRow._fields

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers, in the order in which they ran."""
        return tuple(dict.fromkeys(self.column("layer")))

    @property
    def saturated(self) -> "HeadTable":
        return self._only("saturated")

    @property
    def uniform(self) -> "HeadTable":
        return self._only("uniform")

    def _only(self, verdict: str) -> "HeadTable":
        return HeadTable(tuple(row for row in self.rows if row.verdict == verdict))

    def __str__(self) -> str:
        width = max([len("layer"), *(len(row.layer) for row in self.rows)])
        head = f"{'layer':<{width}}{'head':>6}" + "".join(f"{name:>12}" for name in HeadRow._fields[2:])
        lines = (
            f"{row.layer:<{width}}{row.head:>6}" + "".join(f"{x:>12.4f}" for x in row[2:6]) + f"{row.verdict:>12}"
            for row in self.rows
        )
        return "\n".join([head, *lines])


def heads(model: nn.Module, *inputs: Any, **options: Any) -> HeadTable:
    """Run ``model(*inputs, **options)`` once and tell of every attention head how sharp it is.

    A head whose weights are nearly one-hot is saturated: the Jacobian of its softmax vanishes, so that hardly any
    gradient reaches its queries and keys, and small changes flip it. One that gives all keys the same is uniform: it
    only averages. The verdicts, from means over the queries that see at least two keys:

    - "saturated": saturation = sum_j p_j² is at least 0.8 (`analysis.SATURATED`), so the largest weight is too
    - "uniform": entropy / log(visible keys) is at least 0.99 (`analysis.UNIFORM`)
    - "undefined": no query sees two keys, rows do not sum to 1, or weights are not numbers
    - "fine": none of these

    Found are `torch.nn.MultiheadAttention`, also inside `torch.nn.TransformerEncoder` in eval, whose fast path is
    switched off for this one run, and every layer that returns `regard.Weights`. Hidden keys do not count, neither do
    queries that are padding themselves (those of torch's self-attention with key_padding_mask). Hard attention is
    judged by the softmax that it chooses from. Weights are those before dropout.

    The model runs as it is: training or eval, with gradients or without. It is left as it was.

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
    watch = Watch()
    with ExitStack() as stack:
        stack.enter_context(_no_fast_path())
        for name, module in model.named_modules():
            hook = module.register_forward_hook(watch.hook(name or type(model).__name__), with_kwargs=True)
            stack.callback(hook.remove)
        model(*inputs, **options)
    if not watch.rows:
        raise ChoiceError(_nothing(model))
    return HeadTable(tuple(watch.rows))


class Watch:
    """Looks at what layers are given and what they return, and changes neither."""

    def __init__(self) -> None:
        self.rows: list[HeadRow] = []
        self.calls: dict[str, int] = {}
        # Kept, not only named: a layer around another may hand its weights on, and an id is used again once freed.
        self.seen: list[Weights] = []

    def hook(self, name: str) -> Any:
        @torch.no_grad()
        def look(module: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
            returned = [w for w in weights_in(output) if not any(w is other for other in self.seen)]
            self.seen += returned
            if is_multihead(module):
                weights, real = of_call(module, args, options)
                self._add(name, weights, module.num_heads, real)
            else:
                for weights in returned:
                    self._add(name, weights, _heads_of(module), None)

        return look

    def _add(self, name: str, weights: Weights, count: int | None, real: Tensor | None) -> None:
        self.calls[name] = call = self.calls.get(name, 0) + 1
        label = name if call == 1 else f"{name} (call {call})"
        self.rows += _measure(label, weights, count, real)


def _heads_of(module: nn.Module) -> int | None:
    """How many heads a layer says it has, itself or by the layer inside it."""
    counts = (getattr(m, "num_heads", None) for m in (module, *module.children()))
    return next((count for count in counts if isinstance(count, int)), None)


def _measure(layer: str, weights: Weights, count: int | None, real: Tensor | None) -> list[HeadRow]:
    """One row a head: axis -3 of four dimensions or more, or of three where the layer says so by its `num_heads`."""
    spec = weights.spec
    if isinstance(spec.normaliser, Hard):
        weights = Weights(weights.query, weights.key, spec.score, spec.mask)
    lead = weights.shape[:-2]
    split = len(lead) > 1 or (len(lead) == 1 and lead[0] == count)
    # Scores of 0: their log-sum-exp is the log of how many keys a query sees.
    choice = Weights(weights.query, weights.key, scores.uniform(), spec.mask).logsumexp().double()
    shares = choice.exp().round() / max(weights.shape[-1], 1)
    if spec.normaliser.normalised:
        entropy, saturation = weights.entropy().double(), weights.saturation().double()
    else:
        entropy = saturation = torch.full_like(choice, math.nan)
    real = torch.ones_like(choice, dtype=torch.bool) if real is None else real.expand(choice.shape)
    several = real & (choice > math.log(1.5))
    by_head = [
        (t.movedim(-2, 0) if split else t.unsqueeze(0)).flatten(1)
        for t in (entropy, entropy / choice, saturation, several, shares, real)
    ]
    return [_row(layer, number, *parts) for number, parts in enumerate(zip(*by_head, strict=True))]


def _row(
    layer: str,
    head: int,
    entropy: Tensor,
    relative: Tensor,
    saturation: Tensor,
    several: Tensor,
    shares: Tensor,
    real: Tensor,
) -> HeadRow:
    mean, ratio, sharpness = (values[several].mean().item() for values in (entropy, relative, saturation))
    return HeadRow(layer, head, mean, ratio, sharpness, shares[real].mean().item(), _verdict(ratio, sharpness))


def _verdict(relative: float, saturation: float) -> str:
    if math.isnan(relative) or math.isnan(saturation):
        return "undefined"
    if saturation >= SATURATED:
        return "saturated"
    return "uniform" if relative >= UNIFORM else "fine"


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """torch's fused encoder layer never calls its attention module, so that there would be nothing to see."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _nothing(model: nn.Module) -> str:
    idle = [name for name, module in model.named_modules() if is_multihead(module)]
    found = f"it has {', '.join(idle)}, which did not run" if idle else "it has no such layer that ran"
    return (
        f"heads looks for torch.nn.MultiheadAttention and for layers that return regard.Weights, and of "
        f"{type(model).__name__} nothing can be told: {found}"
    )
