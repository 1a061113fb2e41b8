"""Methods of torch.Tensor that lazy weights do not have, and what to ask instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import torch

# Advice for the methods that people try first, several names to one line.
ADVICE = {
    "T H mH t transpose swapaxes swapdims permute movedim adjoint": "the transpose of any shape is weights.mT, lazy",
    "topk sort argsort kthvalue": "the largest weights of each query are weights.top(k), with their keys",
    "amax aminmax": "the largest weight of each query is weights.max(-1).values",
    "min amin argmin": "the largest weights are weights.top(k); queries without any are weights.empty_rows()",
    "mean nanmean": (
        "a mean over heads or rows is weights.heatmap().mean(...), in bins; over keys it is weights.sum(-1) / keys"
    ),
    "std var norm median quantile": "how sharp each query is: weights.entropy(), weights.saturation(), weights.max(-1)",
    "cumsum cumprod prod": "sums are weights.sum(-1) by query, weights.received() by key, weights.mass(groups)",
    "softmax log_softmax": "they are normalised already; the log-sum-exp of the scores is weights.logsumexp()",
    "exp log log2 log10 sqrt square pow": "the entropy is weights.entropy(), the sum of squares weights.saturation()",
    "any all nonzero count_nonzero isnan isinf isfinite": "queries that see no key are weights.empty_rows()",
    "size": "the sizes are weights.shape",
    "dim ndimension": "the number of dimensions is weights.ndim",
    "numel nelement": "the number of weights is weights.shape.numel()",
    "to cuda float double half bfloat16 type type_as": (
        "device and dtype are those of query and key, rg.Weights(query.to(...), key.to(...)); weights.cpu() moves"
    ),
    "clone copy_ contiguous new_tensor": "a copy that stays as it is now is weights.snapshot()",
    "tolist item data storage data_ptr": "numbers are in a block, weights[..., :10, :10], or in weights.dense()",
    "matmul mm bmm mv dot inner einsum": "products are weights @ x and weights.mT @ x",
    "squeeze unsqueeze reshape flatten expand unflatten": "weights.head(5) and weights.select(...) drop an axis",
    "unbind chunk split index_select gather narrow take": "lazy parts are weights.head(5) and weights.select(...)",
    "backward grad grad_fn requires_grad requires_grad_ retain_grad register_hook": (
        "gradients flow through weights @ x, weights.entropy() and the other questions about rows"
    ),
    "masked_fill masked_fill_ where": "hidden keys are said when the weights are made: mask=masks.hide(...)",
    "imshow show": "a picture is weights.plot()",
}
BY_NAME = {name: advice for names, advice in ADVICE.items() for name in names.split()}


def advice(name: str, offered: Iterable[str]) -> str:
    """A sentence that says what to ask instead of an attribute that weights lack. offered: the names that they have."""
    if name in BY_NAME:
        return f"weights have no {name!r}, they are lazy: {BY_NAME[name]}"
    if hasattr(torch.Tensor, name):
        return (
            f"weights have no {name!r}, they are lazy, not a tensor: weights.heatmap() and weights[...] are small "
            f"tensors, and weights.dense() is the whole one, which has it"
        )
    close = get_close_matches(name, [word for word in offered if not word.startswith("_")], 1, 0.7)
    rest = f": did you mean {close[0]!r}?" if close else "; help(weights) lists what they have"
    return f"weights have no {name!r}{rest}"
