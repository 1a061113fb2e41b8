"""torch.jit.script, and torch.export with sizes that depend on data: they say in words what cannot be done."""

import pytest
import torch
from torch import nn

import regard as rg
from regard.errors import TracingError

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("ignore")]

LAYERS = [
    rg.nn.MultiheadAttention(8, 2),
    rg.nn.SelfAttention(8, 2),
    rg.nn.AdditiveAttention(8, 8, 4),
    rg.nn.LuongAttention(8, 8),
    rg.nn.LocalAttention(8, 8, 3),
    rg.nn.HardAttention(8, 8),
    rg.nn.KernelPooling(),
    rg.nn.AveragePooling(),
    rg.nn.MaxPooling(),
    rg.nn.LearnedPooling(8),
    rg.nn.Rotary(4),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_layers_say_that_they_cannot_be_scripted(layer):
    for module in (layer, nn.Sequential(nn.Linear(8, 8), layer)):
        with pytest.raises(TracingError, match=r"use torch.compile or torch.export"):
            torch.jit.script(module)


def attended(q, k, v):
    return rg.attend(q, k, v).output


def attended_like_torch(q, k, v):
    return rg.nn.functional.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize("function", [attended, attended_like_torch, rg.attend])
def test_functions_say_that_they_cannot_be_scripted(function):
    with pytest.raises(RuntimeError, match=r"use torch.compile or torch.export"):
        torch.jit.script(function)


class Chosen(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend

    def forward(self, x):
        rows = x[x[:, 0] > 0]
        return self.attend(rows, rows, rows)


@pytest.mark.parametrize("function", [attended, attended_like_torch])
def test_export_of_sizes_that_depend_on_data_is_refused_in_words(function):
    with pytest.raises(RuntimeError, match=r"a size depends on the numbers in a tensor; .* pad to one"):
        torch.export.export(Chosen(function), (torch.randn(12, 8),), strict=False)


def test_export_of_known_sizes_is_served():
    x = torch.randn(20, 8)

    class Plain(nn.Module):
        def forward(self, x):
            return rg.attend(x, x, x, mask=rg.masks.causal()).output

    for strict in (False, True):
        program = torch.export.export(Plain(), (x,), strict=strict)
        torch.testing.assert_close(program.module()(x), Plain()(x))
