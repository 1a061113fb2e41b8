"""Attention without gradients, compiled, exported, under vmap and under torch.func."""

from typing import Any

import pytest
import torch
from every_plan import AT, ROWS, ask_everything, attend, close, dtypes, every, learn, plans, qkv
from torch import Tensor

import regard as rg
from regard import masks, normalisers, scores


@every("mode", [torch.no_grad, torch.inference_mode])
@plans
@dtypes
def test_attention_without_gradients(mode: Any, plan: str, dtype: torch.dtype) -> None:
    x = learn(*qkv(dtype))
    with mode():
        output, weights = attend(plan, *x, mask=masks.causal())
        ask_everything(weights)
        made_inside = attend(plan, *(t * 1 for t in x), mask=masks.causal())
        ask_everything(made_inside.weights)
    assert not output.requires_grad and not weights.dense().requires_grad
    close(output, attend(plan, *x, mask=masks.causal()).output, dtype)
    assert torch.equal(output, made_inside.output)


@plans
def test_weights_made_without_gradients_still_answer_outside(plan: str) -> None:
    with torch.inference_mode():
        output, weights = attend(plan, *qkv(torch.float32))
    close(weights.dense() @ qkv(torch.float32)[2], output, torch.float32)


COMPILED = {
    "plain": lambda q, k, v: rg.attend(q, k, v).output,
    "causal": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal()).output,
    "window": lambda q, k, v: rg.attend(q, k, v, mask=masks.window(3, 0)).output,
    "gaussian": lambda q, k, v: rg.attend(q, k, v, score=scores.gaussian(0.5), mask=masks.causal()).output,
    "tiled": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal(), plan="tiled", budget=1 << 14).output,
    "dense": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal(), plan="dense").output,
    "sparsemax": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal(), normaliser=normalisers.sparsemax()).output,
}


def poisoned(dtype: torch.dtype = torch.float32) -> tuple[list[Tensor], list[Tensor]]:
    q, k, v = qkv(dtype)
    clean = learn(q, k, v)
    k[..., AT, :], v[..., AT, :] = torch.nan, torch.inf
    return clean, learn(q, k, v)


@pytest.mark.plain
@every("name", list(COMPILED))
def test_compiled_attention(name: str) -> None:
    torch.compiler.reset()
    function = torch.compile(COMPILED[name], fullgraph=True, backend="aot_eager")
    compiled, eager = learn(*qkv(torch.float32)), learn(*qkv(torch.float32))
    outputs = function(*compiled), COMPILED[name](*eager)
    close(*outputs, torch.float32)
    for output in outputs:
        output.square().sum().backward()
    for a, b in zip(compiled, eager, strict=True):
        close(a.grad, b.grad, torch.float32)


@pytest.mark.plain
@every("name", [name for name in COMPILED if name != "plain"])
def test_compiled_attention_with_hidden_nan(name: str) -> None:
    torch.compiler.reset()
    function = torch.compile(COMPILED[name], fullgraph=True, backend="aot_eager")
    clean, dirty = poisoned()
    expected, output = COMPILED[name](*clean), function(*dirty)
    assert output[..., AT, :].isnan().any(-1).all()
    close(output[..., :AT, :], expected[..., :AT, :], torch.float32)
    output[..., :AT, :].sum().backward()
    expected[..., :AT, :].sum().backward()
    for a, b in zip(dirty, clean, strict=True):
        close(a.grad, b.grad, torch.float32)


@pytest.mark.plain
@pytest.mark.long
@every("name", ["plain", "causal"])
def test_attention_compiled_by_inductor(name: str) -> None:
    torch.compiler.reset()
    function = torch.compile(COMPILED[name], fullgraph=True)
    clean, dirty = poisoned()
    x = clean if name == "plain" else dirty
    output, expected = function(*x), COMPILED[name](*clean)
    close(output[..., :AT, :], expected[..., :AT, :], torch.float32)
    output[..., :AT, :].sum().backward()
    assert all(t.grad.isfinite().all() for t in x)


@pytest.mark.plain
@every("name", ["plain", "causal"])
def test_exported_attention(name: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return COMPILED[name](q, k, v)

    x = qkv(torch.float32)
    program = torch.export.export(Module(), tuple(x))
    close(program.module()(*x), COMPILED[name](*x), torch.float32)
    if name == "causal":
        x[1][..., AT, :], x[2][..., AT, :] = torch.nan, torch.nan
        assert torch.equal(program.module()(*x).isnan().all(-1), (ROWS >= AT).expand(2, 3, 24))


@every("name", list(COMPILED))
def test_attention_under_vmap(name: str) -> None:
    x = qkv(torch.float32)
    close(torch.func.vmap(COMPILED[name])(*x), COMPILED[name](*x), torch.float32)
    shared = torch.func.vmap(COMPILED[name], in_dims=(0, None, None))(x[0], x[1][0], x[2][0])
    close(shared[1], COMPILED[name](x[0][1], x[1][0], x[2][0]), torch.float32)


@every("name", ["causal", "window", "dense", "tiled"])
def test_attention_under_vmap_with_hidden_nan(name: str) -> None:
    clean, dirty = poisoned()
    output = torch.func.vmap(COMPILED[name])(*dirty)
    close(output[..., :AT, :], COMPILED[name](*clean)[..., :AT, :], torch.float32)
    assert output[..., AT, :].isnan().any(-1).all()


@every("name", list(COMPILED))
def test_attention_under_func_grad(name: str) -> None:
    x = learn(*qkv(torch.float64))
    actual = torch.func.grad(lambda *t: COMPILED[name](*t).square().sum(), argnums=(0, 1, 2))(*x)
    COMPILED[name](*x).square().sum().backward()
    for a, t in zip(actual, x, strict=True):
        close(a, t.grad, torch.float64)


def test_attention_gradient_per_sample() -> None:
    q, k, v = qkv(torch.float64)
    loss = torch.func.grad(lambda q, k, v: rg.attend(q, k, v, mask=masks.causal()).output.square().sum())
    each = torch.func.vmap(loss)(q, k, v)
    for b in range(2):
        close(each[b], loss(q[b], k[b], v[b]), torch.float64)
