"""Layers under torch.compile (with its backend) and under forward-mode derivatives."""

import math
import shutil

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call, jvp

from regard import masks, nn

B, N, M, D, D_V, HEADS = 2, 5, 23, 7, 11, 3
WIDTH = D * HEADS
LENGTHS = torch.tensor([19, 4])
PADDED = torch.arange(M) >= LENGTHS[:, None]
CAUSAL = torch.ones(M, M, dtype=torch.bool).triu(1)
NUMBERS = torch.linspace(-2, 2, M * M, dtype=torch.float64).view(M, M).masked_fill(CAUSAL, -math.inf)
POSITIONS = torch.linspace(0, M, N)

LAYERS = {
    "additive": lambda **o: nn.AdditiveAttention(D, D, 13, **o),
    "dot": lambda **o: nn.LuongAttention(D, D, **o),
    "general": lambda **o: nn.LuongAttention(D, D, "general", **o),
    "concat": lambda **o: nn.LuongAttention(D, D, "concat", **o),
    "location": lambda **o: nn.LuongAttention(D, D, "location", max_keys=M, **o),
    "local-m": lambda **o: nn.LocalAttention(D, D, 2, "m", "general", **o),
    "local-p": lambda **o: nn.LocalAttention(D, D, 2, "p", **o),
    "kernel": lambda **o: nn.KernelPooling(0.7, D, **o),
}
SEEN = {"everything": {}, "lengths": {"valid_lens": LENGTHS}, "causal": {"mask": masks.causal("bottom-right")}}
MASKED = {
    "nothing": {},
    "causal": {"attn_mask": CAUSAL, "is_causal": True},
    "padding": {"key_padding_mask": PADDED},
    "numbers": {"attn_mask": NUMBERS},
}


def inputs(dtype=torch.float64) -> list[Tensor]:
    return [torch.randn(B, rows, width, dtype=dtype) for rows, width in ((N, D), (M, D), (M, D_V))]


def by_differences(function, at: list[Tensor], along: list[Tensor], step=1e-6) -> Tensor:
    ahead, behind = (function(*(x + side * t for x, t in zip(at, along, strict=True))) for side in (step, -step))
    return (ahead - behind) / (2 * step)


def check_forward_derivative(function, at: list[Tensor]) -> None:
    """By both of torch's ways, also where a backward pass is recorded at the same time."""
    along = [torch.randn_like(x) for x in at]
    with torch.no_grad():
        expected = by_differences(function, [x.detach() for x in at], along)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(jvp(function, tuple(at), tuple(along))[1], expected, rtol=1e-6, atol=1e-7)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x.detach().requires_grad_(), t) for x, t in zip(at, along, strict=True)]
        found = forward_ad.unpack_dual(function(*duals)).tangent
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("name", LAYERS)
def test_forward_derivatives_by_inputs_and_parameters(name, seen):
    layer = LAYERS[name](dtype=torch.float64)
    names = [key for key, _ in layer.named_parameters()]
    options = SEEN[seen] | ({"positions": POSITIONS} if name == "local-m" else {})

    def output(q, k, v, *parameters):
        return functional_call(layer, dict(zip(names, parameters, strict=True)), (q, k, v), options).output

    check_forward_derivative(output, [*inputs(), *layer.parameters()])


@pytest.mark.parametrize("need", [False, True, "lazy"])
@pytest.mark.parametrize("mask", MASKED)
def test_forward_derivatives_of_multihead_attention(mask, need):
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)
    torch.nn.init.normal_(layer.in_proj_bias)

    def answers(x, weight, bias):
        output, weights = functional_call(
            layer, {"in_proj_weight": weight, "in_proj_bias": bias}, (x, x, x), {**MASKED[mask], "need_weights": need}
        )
        if not need:
            return output
        # All that a distribution can be asked for with a derivative.
        asked = [weights.entropy(), weights.saturation(), weights.distance()] if need == "lazy" else [weights]
        return torch.cat([output.flatten(), *(answer.flatten() for answer in asked)])

    x = torch.randn(B, M, WIDTH, dtype=torch.float64)
    check_forward_derivative(answers, [x, layer.in_proj_weight, layer.in_proj_bias])


POOLS = {
    "average": nn.AveragePooling,
    "max": nn.MaxPooling,
    "learned": lambda: nn.LearnedPooling(D),
    "learned, hidden": lambda: nn.LearnedPooling(D, 13),
}


@pytest.mark.parametrize("name", POOLS)
def test_forward_derivatives_of_pools(name):
    pool = POOLS[name]().double()
    check_forward_derivative(lambda x: pool(x, valid_lens=LENGTHS).output, inputs()[1:2])


def test_forward_derivatives_of_self_attention():
    layer = nn.SelfAttention(24, HEADS, positions=[nn.Rotary(8), nn.Alibi(HEADS)], dtype=torch.float64)
    x = torch.randn(B, M, 24, dtype=torch.float64)
    check_forward_derivative(lambda x: layer(x, masks.causal(), LENGTHS).output, [x])


# --- the whole compiler, to machine code

COMPILED = {
    "local-p": lambda: (nn.LocalAttention(D, D, 2, "p"), inputs(torch.float32), {"valid_lens": LENGTHS}),
    "multihead, causal": lambda: multihead(need_weights=False, **MASKED["causal"]),
    "multihead, padding": lambda: multihead(key_padding_mask=PADDED),
    "multihead, numbers": lambda: multihead(need_weights=False, attn_mask=NUMBERS.float()),
    "additive": lambda: (nn.AdditiveAttention(D, D, 13), inputs(torch.float32), {"valid_lens": LENGTHS}),
    "concat": lambda: (nn.LuongAttention(D, D, "concat"), inputs(torch.float32), {}),
    "kernel": lambda: (nn.KernelPooling(0.7), inputs(torch.float32), {"valid_lens": LENGTHS}),
    "learned pool": lambda: (nn.LearnedPooling(D), inputs(torch.float32)[1:2], {"valid_lens": LENGTHS}),
    "max pool": lambda: (nn.MaxPooling(), inputs(torch.float32)[1:2], {"valid_lens": LENGTHS}),
}
QUICK = ("local-p", "multihead, causal")


def multihead(**options):
    return nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), [torch.randn(B, M, WIDTH)] * 3, options


@pytest.mark.plain
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch's compiler needs one for C++")
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in COMPILED])
def test_compiled_to_machine_code(name):
    layer, given, options = COMPILED[name]()
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True)
    compare(layer, compiled, given, options)
    if "valid_lens" in options:  # then nobody sees the last key
        compare(layer, compiled, [*given[:-2], *(t.index_fill(1, LAST, math.nan) for t in given[-2:])], options)


LAST = torch.tensor([M - 1])


def compare(layer, compiled, given, options):
    """Output and gradients, which are numbers."""
    found = []
    for call in (layer, compiled):
        leaf = given[0].clone().requires_grad_()
        output = call(leaf, *given[1:], **options)[0]
        found.append([output, *torch.autograd.grad(output.square().sum(), [leaf, *layer.parameters()])])
    assert all(t.isfinite().all() for t in found[0])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


# --- sequences of another length than the one that was compiled

LENGTHWISE = {
    "multihead": lambda: lengthwise(multihead()[0], lambda x: {"need_weights": False}),
    "multihead, weights": lambda: lengthwise(multihead()[0], lambda x: {}),
    "multihead, padding": lambda: lengthwise(multihead()[0], lambda x: {"key_padding_mask": x[..., 0] > 1}),
    "multihead, causal": lambda: lengthwise(multihead()[0], lambda x: {"attn_mask": after(x), "is_causal": True}),
    "additive": lambda: lengthwise(nn.AdditiveAttention(WIDTH, WIDTH, 5), lambda x: {}),
    "kernel": lambda: lengthwise(nn.KernelPooling(0.3), lambda x: {}),
    "local-p": lambda: lengthwise(nn.LocalAttention(WIDTH, WIDTH, 2, "p"), lambda x: {}),
    "learned pool": lambda: lengthwise(nn.LearnedPooling(WIDTH), lambda x: {}, copies=1),
}


def lengthwise(layer, options, copies=3):
    return layer, lambda x: layer(*[x] * copies, **options(x))[0]


def after(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)


@pytest.mark.plain
@pytest.mark.parametrize("dynamic", [None, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", [n if n == "multihead" else pytest.param(n, marks=pytest.mark.long) for n in LENGTHWISE]
)
def test_a_layer_compiled_for_one_length_takes_another(name, dynamic):
    torch.compiler.reset()
    layer, call = LENGTHWISE[name]()
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for batch, length in ((3, 11), (3, 29), (2, 37)):
        x = torch.randn(batch, length, WIDTH, requires_grad=True)
        answers = [function(x) for function in (call, compiled)]
        grads = [torch.autograd.grad(answer.square().sum(), [x, *layer.parameters()]) for answer in answers]
        torch.testing.assert_close([answers[1], *grads[1]], [answers[0], *grads[0]], rtol=1e-4, atol=1e-4)
