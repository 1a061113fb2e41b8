"""Self-attention and its positions, against transcriptions of the papers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import normal, seeded
from torch import nn

import regard as rg
from regard import errors, masks, scores
from regard.nn import Alibi, Positions, Rotary, SelfAttention


def rotated(x, dim, base):
    """Su et al. 2021, equation 34, number by number."""
    out = x.clone()
    for place in range(x.shape[-2]):
        for pair in range(dim // 2):
            turn = torch.polar(torch.tensor(1.0).double(), torch.tensor(place * base ** (-2 * pair / dim)).double())
            z = torch.complex(x[..., place, 2 * pair], x[..., place, 2 * pair + 1]) * turn
            out[..., place, 2 * pair], out[..., place, 2 * pair + 1] = z.real, z.imag
    return out


@pytest.mark.parametrize(("dim", "width", "base"), [(2, 2, 10000.0), (6, 6, 10000.0), (4, 7, 100.0)])
def test_rotary_is_a_product_of_complex_numbers(dim, width, base):
    q, k = normal(seeded(0), 3, 5, width), normal(seeded(1), 3, 11, width)
    for found, x in zip(Rotary(dim, base).place(q, k), (q, k), strict=True):
        torch.testing.assert_close(found, rotated(x, dim, base))


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 1000), st.integers(0, 2**31))
def test_rotary_scores_depend_on_the_difference_of_positions_alone(i, j, shift, seed):
    rotary, q, k = Rotary(6), normal(seeded(seed), 6), normal(seeded(seed + 1), 6)

    def score(i, j):
        query, key = rotary.place(q.expand(i + 1, 6), k.expand(j + 1, 6))
        return query[i] @ key[j]

    torch.testing.assert_close(score(i + shift, j + shift), score(i, j), rtol=1e-9, atol=1e-9)


def test_rotary_keeps_lengths_and_far_positions_exact():
    q = torch.ones(100_001, 4)
    found = Rotary(4).place(q, q)[0]
    torch.testing.assert_close(found.norm(dim=-1), torch.full((100_001,), 2.0))
    assert math.isclose(found[100_000, 0], math.cos(1e5) - math.sin(1e5), abs_tol=1e-6)


def paper_slopes(heads):
    """The reference code of Press et al. 2022."""

    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(heads).is_integer():
        return power_of_2(heads)
    closest = 2 ** math.floor(math.log2(heads))
    return power_of_2(closest) + paper_slopes(2 * closest)[0::2][: heads - closest]


@pytest.mark.parametrize("heads", [*range(1, 20), 31, 64, 71])
def test_alibi_slopes_are_those_of_the_paper(heads):
    assert Alibi(heads).slopes == pytest.approx(paper_slopes(heads), rel=1e-12)
    assert len(Alibi(heads).slopes) == heads


def test_alibi_of_eight_heads_as_written_in_the_paper():
    assert Alibi(8).slopes == (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256)


# --- in a layer

POSITIONS = {
    "none": (),
    "rotary": Rotary(6),
    "alibi": Alibi(3),
    "both": (Rotary(4), Alibi(3)),
}
MASKS = {"nothing": None, "causal": masks.causal(), "window": masks.window(3, 1)}


def made(positions, **options):
    return SelfAttention(21, 3, positions=POSITIONS[positions], dtype=torch.float64, **options)


def transcribed(layer, x, positions, visible):
    """Head by head, with the formulas of the papers."""
    mha, outputs, weights = layer.attention, [], []
    q, k, v = (x @ mha.in_proj_weight.T + mha.in_proj_bias).chunk(3, -1)
    n = x.shape[-2]
    away = (torch.arange(n)[:, None] - torch.arange(n)).abs()
    for head in range(3):
        qh, kh, vh = (t[..., 7 * head : 7 * head + 7] for t in (q, k, v))
        dim = {"rotary": 6, "both": 4}.get(positions, 0)
        qh, kh = rotated(qh, dim, 10000.0), rotated(kh, dim, 10000.0)
        s = qh @ kh.mT / 7**0.5
        if positions in ("alibi", "both"):
            s = s - paper_slopes(3)[head] * away
        p = s.masked_fill(~visible, -torch.inf).softmax(-1)
        weights.append(p)
        outputs.append(p @ vh)
    return mha.out_proj(torch.cat(outputs, -1)), torch.stack(weights, -3)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("mask", MASKS)
def test_self_attention_is_its_formula(positions, mask):
    layer, x = made(positions), normal(seeded(0), 2, 17, 21)
    nn.init.normal_(layer.attention.in_proj_bias)
    away = torch.arange(17) - torch.arange(17)[:, None]
    visible = {"nothing": away < 99, "causal": away <= 0, "window": (away >= -3) & (away <= 1)}[mask]
    lengths = torch.tensor([17, 11])
    seen = visible & (torch.arange(17) < lengths[:, None, None])
    seen[:, :, 0] |= ~seen.any(-1)  # the transcription knows no empty rows
    expected, weights = transcribed(layer, x, positions, seen)
    found = layer(x, MASKS[mask], lengths)
    full = seen == (visible & (torch.arange(17) < lengths[:, None, None]))
    rows = full.all(-1)
    torch.testing.assert_close(found.output[rows], expected[rows], rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(
        found.weights.dense().transpose(1, 2)[rows], weights.transpose(1, 2)[rows], rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("mask", MASKS)
def test_weights_times_values_are_the_output(positions, mask):
    layer, x = made(positions), normal(seeded(0), 2, 17, 21)
    output, weights = layer(x, MASKS[mask])
    value = layer.attention.project(x, x, x)[2].transpose(-3, -2)
    pooled = weights @ value
    torch.testing.assert_close(layer.attention.join(pooled.transpose(-3, -2)), output)
    torch.testing.assert_close(weights.dense() @ value, pooled)
    torch.testing.assert_close(weights.saturation(), weights.dense().pow(2).sum(-1))


@pytest.mark.parametrize("positions", POSITIONS)
def test_gradients_agree_with_finite_differences(positions):
    layer = made(positions)
    x = normal(seeded(0), 5, 21).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: layer(t, masks.causal()).output, x)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_leading_dimensions_are_a_batch(lead):
    layer, x = made("both"), normal(seeded(0), *lead, 17, 21)
    output, weights = layer(x, masks.causal())
    assert output.shape == x.shape and weights.shape == (*lead, 3, 17, 17)
    first = (0,) * len(lead)
    torch.testing.assert_close(output[first], layer(x[first], masks.causal()).output)


@pytest.mark.parametrize("lead", [(), (2,), (2, 5)])
def test_lengths_for_each_query_are_the_same_in_all_heads(lead):
    layer, x = made("both"), normal(seeded(0), *lead, 17, 21)
    lengths = torch.randint(0, 18, (*lead, 17), generator=seeded(1))
    output, weights = layer(x, masks.causal(), lengths)
    seen = torch.arange(17) < lengths.unsqueeze(-1)
    expected = layer(x, masks.causal() & masks.allow(seen.unsqueeze(-3)))
    torch.testing.assert_close(output, expected.output)
    torch.testing.assert_close(weights.dense(), expected.weights.dense())
    with pytest.raises(errors.ShapeError, match=r"valid_lens.*17 queries"):
        layer(x, valid_lens=lengths[..., :3])


def test_self_attention_without_positions_is_multihead_attention():
    layer, x = made("none"), normal(seeded(0), 2, 17, 21)
    theirs = nn.MultiheadAttention(21, 3, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(layer.attention.state_dict())
    torch.testing.assert_close(layer(x).output, theirs(x, x, x)[0])


def test_dropout_is_for_training():
    layer, x = made("rotary", dropout=0.5), normal(seeded(0), 17, 21)
    assert not torch.equal(layer(x).output, layer(x).output)
    layer.eval()
    assert torch.equal(layer(x).output, layer(x).output)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_bfloat16_keeps_the_digits_of_positions(positions):
    layer = SelfAttention(24, 3, positions=Rotary(8) if positions == "rotary" else Alibi(3))
    x = torch.randn(2, 300, 24, generator=seeded(0)).bfloat16().float()
    low = SelfAttention(24, 3, positions=list(layer.positions))
    low.load_state_dict(layer.state_dict())
    output = low.bfloat16()(x.bfloat16()).output
    torch.testing.assert_close(output.float(), layer(x).output, rtol=0.05, atol=0.02)


@pytest.mark.plain
@pytest.mark.parametrize("positions", ["none", "rotary", "both"])
def test_self_attention_compiles_to_one_graph(positions):
    torch.compiler.reset()
    layer, x = made(positions), normal(seeded(0), 2, 17, 21)
    compiled = torch.compile(lambda t: layer(t, masks.causal()).output, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x, masks.causal()).output)


def test_vmap_equals_a_batch():
    layer, x = made("both"), normal(seeded(0), 5, 17, 21)
    torch.testing.assert_close(torch.func.vmap(lambda t: layer(t).output)(x), layer(x).output)


class Learned(Positions):
    """A bias of the keys that is learned."""

    def __init__(self, keys):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(1, keys, dtype=torch.float64))

    def bend(self, score, query):
        return score + scores.bias(self.bias)


def test_positions_of_ones_own_may_learn():
    layer, x = SelfAttention(21, 3, positions=[Learned(17), Rotary(6)], dtype=torch.float64), normal(seeded(0), 17, 21)
    assert "positions.0.bias" in dict(layer.named_parameters())
    layer(x).output.pow(2).sum().backward()
    assert layer.positions[0].bias.grad.abs().max() > 0


@pytest.mark.plain
@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda: Rotary(5), ValueError, "even"),
        (lambda: Rotary(0), ValueError, "at least 2"),
        (lambda: Rotary(4, -1.0), ValueError, "positive"),
        (lambda: Alibi(0), ValueError, "1 head or more"),
        (lambda: SelfAttention(21, 3, positions=Rotary(8))(torch.randn(5, 21)), ValueError, "8 features.*7"),
        (lambda: SelfAttention(21, 3, positions=Alibi(2))(torch.randn(5, 21)), ValueError, "slopes"),
        (lambda: SelfAttention(21, 3, positions=[masks.causal()]), TypeError, "Rotary"),
        (lambda: SelfAttention(21, 3)(torch.randn(5, 20)), ValueError, r"21 features.*\(5, 20\)"),
        (lambda: SelfAttention(21, 4), ValueError, "multiple"),
    ],
)
def test_bad_arguments_are_refused(wrong, kind, words):
    with pytest.raises(errors.RegardError, match=words) as caught:
        wrong()
    assert isinstance(caught.value, kind)


def test_positions_print_their_formulas():
    text = repr(SelfAttention(21, 3, positions=(Rotary(6), Alibi(3))))
    assert "e^(i p 10000^(-2t/6))" in text and "- slope |i - j|" in text and "softmax" in text


def test_the_weights_are_lazy():
    assert isinstance(made("both")(normal(seeded(0), 17, 21)).weights, rg.Weights)
