"""Hard attention: what is drawn, how likely it was, and a gradient that is right on average."""

import copy
import io
import math
import pickle

import pytest
import torch
from torch import nn

import regard as rg
from regard import masks, scores
from regard.errors import ChoiceError, DtypeError, NotNormalisedError, ShapeError
from regard.nn import HardAttention
from regard.operands import Span

BATCH, N, M, Q, K, V = 2, 3, 5, 7, 11, 13
WIDTHS = {"general": (Q, K), "scaled_dot": (K, K), "additive": (Q, K)}
SCORES = list(WIDTHS)
DRAWS = 20_000


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def make(score="general", **options):
    return HardAttention(*WIDTHS[score], score, **{"hidden_dim": 3, "dtype": torch.float64, **options})


def inputs(score="general", lead=(BATCH,), n=N, m=M, **kind):
    kind = {"dtype": torch.float64, **kind}
    d_q, d_k = WIDTHS[score]
    return torch.randn(*lead, n, d_q, **kind), torch.randn(*lead, m, d_k, **kind), torch.randn(*lead, m, V, **kind)


def scores_by_hand(layer, q, k):
    """All n x m scores, literally."""
    if layer.score == "general":
        return q @ layer.w @ k.mT
    if layer.score == "scaled_dot":
        return q @ k.mT / math.sqrt(K)
    return torch.tanh((q @ layer.w_q.mT)[..., :, None, :] + (k @ layer.w_k.mT)[..., None, :, :]) @ layer.v


# Scores of pairs


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "general", "additive", "concat", "uniform"])
def test_matched_scores_are_the_diagonal_of_all(name):
    q, k = torch.randn(BATCH, N, Q).double(), torch.randn(BATCH, N, K).double()
    if name in ("dot", "scaled_dot", "cosine", "uniform"):
        score, k = getattr(scores, name)(), k[..., :Q]
    else:
        shapes = {"general": [(Q, K)], "additive": [(3, Q), (3, K), (3,)], "concat": [(3, Q + K), (3,)]}[name]
        score = getattr(scores, name)(*(torch.randn(shape).double() for shape in shapes))
    every = score.tile([operand.tensor for operand in score.operands(q, k)], Span(0, N), Span(0, N))
    torch.testing.assert_close(score.rowwise(q, k), every.diagonal(dim1=-2, dim2=-1))


def test_a_score_of_places_has_no_matched_pairs():
    with pytest.raises(NotImplementedError):
        scores.location(torch.randn(N, Q)).rowwise(torch.randn(N, Q), torch.randn(N, K))


# What is drawn


@pytest.mark.parametrize("score", SCORES)
def test_output_is_the_value_of_one_key(score):
    q, k, v = inputs(score)
    output, weights = make(score)(q, k, v)
    dense = weights.dense()
    assert ((dense == 0) | (dense == 1)).all() and (dense.sum(-1) == 1).all()
    assert torch.equal(output, v.gather(1, dense.argmax(-1)[..., None].expand(-1, -1, V)))


@pytest.mark.parametrize("score", SCORES)
def test_keys_are_drawn_as_often_as_the_softmax_says(score):
    layer = make(score, generator=seeded())
    q, k, v = inputs(score, lead=(), n=1)
    often = layer(q.expand(DRAWS, -1), k, v).weights.dense().mean(0)
    p = scores_by_hand(layer, q, k).softmax(-1).squeeze(0)
    assert ((often - p).abs() < 4 * (p * (1 - p) / DRAWS).sqrt()).all()


@pytest.mark.parametrize("score", SCORES)
def test_eval_takes_the_best_and_draws_nothing(score):
    layer = make(score).eval()
    q, k, v = inputs(score)
    state = torch.get_rng_state()
    first, second = layer(q, k, v), layer(q, k, v)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.output, second.output)
    assert torch.equal(first.weights.dense().argmax(-1), scores_by_hand(layer, q, k).argmax(-1))


def test_a_generator_makes_draws_repeatable():
    q, k, v = inputs(n=97)
    one, same, other = (make(generator=seeded(seed)) for seed in (1, 1, 2))
    same.load_state_dict(one.state_dict())
    other.load_state_dict(one.state_dict())
    state = torch.get_rng_state()
    first, again = one(q, k, v).output, one(q, k, v).output
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(same(q, k, v).output, first)
    assert not torch.equal(again, first)
    assert not torch.equal(other(q, k, v).output, first)


# How likely it was


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("mask", [None, masks.hide(torch.eye(N, M, dtype=torch.bool))], ids=["all", "masked"])
def test_log_prob_is_that_of_the_key_that_was_drawn(score, mask):
    layer = make(score)
    q, k, v = inputs(score)
    weights = layer(q, k, v, mask).weights
    table = scores_by_hand(layer, q, k)
    if mask is not None:
        table = table.masked_fill(torch.eye(N, M, dtype=torch.bool), -math.inf)
    expected = table.log_softmax(-1).gather(-1, weights.dense().argmax(-1, keepdim=True)).squeeze(-1)
    torch.testing.assert_close(layer.log_prob(weights), expected)


@pytest.mark.parametrize("score", SCORES)
def test_log_prob_has_the_right_gradient(score):
    q, k, v = inputs(score)
    names = [name for name, _ in make(score, baseline=None).named_parameters()]
    layer = make(score, baseline=None)
    lengths = torch.tensor([3, 5])

    def log_prob(q, k, *parameters):
        named = dict(zip(names, parameters, strict=True))
        layer.generator = seeded()  # the same draws, however often it is called
        return Likelihood(layer).likelihood(named, q, k, v, lengths)

    leaves = [q, k, *(p.detach().clone() for p in layer.parameters())]
    assert torch.autograd.gradcheck(log_prob, [leaf.requires_grad_() for leaf in leaves])


class Likelihood(nn.Module):
    """log p as a forward, so that it can be called with other parameters."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, q, k, v, lengths):
        return self.layer.log_prob(self.layer(q, k, v, valid_lens=lengths).weights)

    def likelihood(self, named, *given):
        return torch.func.functional_call(self, {f"layer.{name}": p for name, p in named.items()}, given)


def test_log_prob_takes_the_parameters_that_drew():
    """Not those that the layer has by the time it is asked."""
    layer, (q, k, v) = make(baseline=None), inputs()
    stand_in = torch.zeros(Q, K, dtype=torch.float64, requires_grad=True)
    weights = torch.func.functional_call(layer, {"w": stand_in}, (q, k, v)).weights
    torch.testing.assert_close(layer.log_prob(weights), torch.full((BATCH, N), -math.log(M), dtype=torch.float64))


def test_log_prob_needs_a_choice():
    q, k, _ = inputs()
    with pytest.raises(NotNormalisedError, match="about a key that was taken, and these weights are softmax"):
        make().log_prob(rg.Weights(q, k, scores.general(torch.ones(Q, K).double())))


# REINFORCE


class Case:
    """One query, five keys and a reward for each: small enough for the exact expectation."""

    def __init__(self, score):
        self.q, self.k, _ = inputs(score, lead=(), n=1)
        self.rewards = torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0], dtype=torch.float64)

    def exact(self, layer):
        """The gradient of E[R] = sum_j p_j R_j with respect to the query and the keys."""
        q, k = self.q.clone().requires_grad_(), self.k.clone().requires_grad_()
        mean = (scores_by_hand(layer, q, k).softmax(-1) * self.rewards).sum()
        return torch.autograd.grad(mean, (q, k))

    def drawn(self, layer):
        """One estimate of each of them for every draw: a batch whose members have tensors of their own."""
        q, k = (t.expand(DRAWS, -1, -1).clone().requires_grad_() for t in (self.q, self.k))
        output, weights = layer(q, k, self.rewards[:, None].expand(DRAWS, -1, 1))
        loss = layer.surrogate(weights, output.squeeze(-1), reduction="sum")
        return [-gradient for gradient in torch.autograd.grad(loss, (q, k))]


@pytest.mark.parametrize("score", ["general", "scaled_dot"])
@pytest.mark.parametrize("baseline", [None, "moving", "learned"])
def test_gradient_is_right_on_average(score, baseline):
    layer, case = make(score, baseline=baseline, generator=seeded(5)), Case(score)
    if baseline == "moving":
        case.drawn(layer)  # the first call has nothing to remember
    for exact, drawn in zip(case.exact(layer), case.drawn(layer), strict=True):
        error = drawn.std(0) / math.sqrt(DRAWS)
        assert ((drawn.mean(0) - exact).abs() < 3 * error).all()
        assert error.norm() < 0.1 * exact.norm()  # fine enough to tell a wrong gradient


def test_additive_gradient_is_right_on_average():
    """Its kernel goes head by head, so the draws are queries of one head and share their keys."""
    layer, case = make("additive", baseline=None, generator=seeded()), Case("additive")
    q = case.q.expand(DRAWS, -1).clone().requires_grad_()
    output, weights = layer(q, case.k, case.rewards[:, None])
    (drawn,) = torch.autograd.grad(-layer.surrogate(weights, output.squeeze(-1), reduction="sum"), q)
    error = drawn.std(0) / math.sqrt(DRAWS)
    assert ((drawn.mean(0) - case.exact(layer)[0].squeeze(0)).abs() < 3 * error).all()
    assert error.norm() < 0.1 * case.exact(layer)[0].norm()


def test_a_baseline_makes_the_gradient_vary_less():
    case = Case("general")
    plain, moving, learned = (make(baseline=baseline, generator=seeded()) for baseline in (None, "moving", "learned"))
    moving.w = learned.w = plain.w
    for _ in range(3):
        case.drawn(moving)
    with torch.no_grad():  # as trained: the mean reward, from a query that is always the same
        learned.expected.weight.zero_()
        learned.expected.bias.fill_(moving.average / (1 - moving.momentum**3))
    spread = [sum(gradient.var(0).sum().item() for gradient in case.drawn(layer)) for layer in (plain, moving, learned)]
    assert max(spread[1:]) < 0.6 * spread[0]


def test_moving_baseline_is_the_mean_of_earlier_rewards():
    layer = make(baseline="moving", momentum=0.5)
    q, k, v = inputs()
    used = []
    for reward in (4.0, 8.0, 6.0):
        weights = layer(q, k, v).weights
        loss = layer.surrogate(weights, torch.full((BATCH, N), reward), reduction="none")
        used.append((reward + loss / layer.log_prob(weights)).mean().item())
    assert used == pytest.approx([0, 4, (0.25 * 4 + 0.5 * 8) / 0.75])


def test_eval_leaves_the_moving_baseline_alone():
    layer = make(baseline="moving")
    weights = layer(*inputs()).weights
    layer.eval().surrogate(weights, torch.ones(BATCH, N))
    assert layer.calls == 0 and layer.average == 0


def test_learned_baseline_learns_the_reward_and_touches_nothing_else():
    layer = make(baseline="learned", generator=seeded())
    optimiser = torch.optim.Adam(layer.expected.parameters(), lr=0.05)
    truth = torch.randn(Q, dtype=torch.float64)
    for _ in range(300):
        q, k, v = inputs(n=19)
        reward = q @ truth + 2
        optimiser.zero_grad()
        layer.surrogate(layer(q, k, v).weights, reward).backward()
        optimiser.step()
    torch.testing.assert_close(layer.expected.weight.squeeze(0), truth, atol=0.05, rtol=0)
    torch.testing.assert_close(layer.expected.bias, torch.full((1,), 2.0, dtype=torch.float64), atol=0.05, rtol=0)


def test_learned_baseline_is_trained_by_its_squared_error_alone():
    layer, (q, k, v) = make(baseline="learned"), inputs()
    q.requires_grad_()
    weights, reward = layer(q, k, v).weights, torch.randn(BATCH, N).double()
    error = (reward - layer.expected(q.detach()).squeeze(-1)).square().mean()
    expected = torch.autograd.grad(error, layer.expected.parameters())
    loss = layer.surrogate(weights, reward)
    torch.testing.assert_close(torch.autograd.grad(loss, layer.expected.parameters(), retain_graph=True), expected)
    advantage = (reward - layer.expected(q).squeeze(-1)).detach()
    pure = torch.autograd.grad(-(advantage * layer.log_prob(weights)).mean(), q)
    torch.testing.assert_close(torch.autograd.grad(loss, q), pure)


def test_entropy_bonus_is_the_entropy_of_the_softmax():
    q, k, v = inputs()
    layer = make(baseline=None, entropy=0.3)
    weights = layer(q, k, v).weights
    p = scores_by_hand(layer, q, k).softmax(-1)
    expected = -0.3 * -(p * p.log()).sum(-1)
    torch.testing.assert_close(layer.surrogate(weights, torch.zeros(BATCH, N), reduction="none"), expected)


def test_one_reward_for_all_queries_and_each_reduction():
    layer, (q, k, v) = make(baseline=None), inputs()
    weights, reward = layer(q, k, v).weights, torch.tensor([[2.0], [3.0]])
    each = layer.surrogate(weights, reward, reduction="none")
    torch.testing.assert_close(each, -reward * layer.log_prob(weights))
    torch.testing.assert_close(layer.surrogate(weights, reward, reduction="sum"), each.sum())
    torch.testing.assert_close(layer.surrogate(weights, reward), each.mean())


def test_reward_is_a_number():
    layer, (q, k, v) = make(baseline=None), inputs()
    v.requires_grad_()
    output, weights = layer(q, k, v)
    loss = layer.surrogate(weights, output.sum(-1))
    assert torch.autograd.grad(loss, v, allow_unused=True) == (None,)


def picking(batch, generator, colours=7, items=11, noise=4):
    """Items with a colour and noise; the query names the colour that one item alone has. Values: the item's code."""
    wanted = torch.randint(colours, (batch,), generator=generator)
    others = (wanted[:, None] + torch.randint(1, colours, (batch, items), generator=generator)) % colours
    place = torch.randint(items, (batch, 1), generator=generator)
    colour = others.scatter(1, place, wanted[:, None])
    marks = torch.cat(
        [nn.functional.one_hot(colour, colours), torch.randn(batch, items, noise, generator=generator)], -1
    )
    mixed = marks @ torch.linalg.qr(torch.randn(colours + noise, colours + noise, generator=seeded(1)))[0]
    codes = torch.randn(batch, items, 2, generator=generator)
    query = nn.functional.one_hot(wanted, colours).float()[:, None]
    return query, mixed, codes, codes.gather(1, place[..., None].expand(-1, -1, 2))


def right(output, target):
    """Exactly the code of the marked item: a blend of codes is no item's code."""
    return (output == target).all(-1).float()


@pytest.mark.parametrize("baseline", [pytest.param("moving", marks=pytest.mark.long), "learned"])
def test_hard_attention_learns_to_pick_the_marked_item(baseline):
    generator = seeded(3)
    layer = HardAttention(7, 11, baseline=baseline, generator=generator, entropy=0.01)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(400):
        q, k, v, target = picking(256, generator)
        output, weights = layer(q, k, v)
        optimiser.zero_grad()
        layer.surrogate(weights, right(output, target)).backward()
        optimiser.step()
    q, k, v, target = picking(2000, generator)
    soft = rg.attend(q, k, v, scores.general(layer.w)).output
    assert right(layer(q, k, v).output, target).mean() > 0.95  # as drawn
    assert right(layer.eval()(q, k, v).output, target).mean() > 0.95
    assert right(soft, target).mean() < 0.05  # even with the same scores


def test_surrogate_refuses_weights_that_were_not_drawn():
    layer, given = make(), inputs()
    greedy = layer.eval()(*given).weights
    with pytest.raises(ChoiceError, match=r"keys that were drawn, and these weights are hard\(q·Wk\).*layer.train\(\)"):
        layer.surrogate(greedy, torch.ones(BATCH, N))
    through = make(estimator="straight-through")
    with pytest.raises(ChoiceError, match="straight-through layer has its gradient already"):
        through.surrogate(through(*given).weights, torch.ones(BATCH, N))


def test_surrogate_refuses_rewards_that_do_not_fit():
    layer = make()
    weights = layer(*inputs()).weights
    with pytest.raises(ShapeError, match=r"\(\.\.\., queries\) = \(2, 3\), but its shape is \(2,\)"):
        layer.surrogate(weights, torch.ones(BATCH))
    with pytest.raises(DtypeError, match="a tensor of numbers, one a query, but it is float"):
        layer.surrogate(weights, 1.0)
    with pytest.raises(ChoiceError, match="no reduction 'max'; there are: mean, sum, none"):
        layer.surrogate(weights, torch.ones(BATCH, N), reduction="max")


# Straight-through


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("training", [True, False])
def test_straight_through_is_hard_forward_and_soft_backward(score, training):
    layer = make(score, estimator="straight-through", generator=seeded()).train(training)
    twin = make(score, generator=seeded()).train(training)
    twin.load_state_dict(layer.state_dict(), strict=False)
    given = [t.requires_grad_() for t in inputs(score)]
    output, weights = layer(*given)
    assert torch.equal(output, twin(*given).output)
    soft = scores_by_hand(layer, *given[:2]).softmax(-1)
    mixed = (weights.dense() + soft - soft.detach()) @ given[2]
    pull = torch.randn_like(output)
    leaves = [*given, *layer.parameters()]
    found, expected = (torch.autograd.grad((x * pull).sum(), leaves, retain_graph=True) for x in (output, mixed))
    torch.testing.assert_close(found, expected)
    by_soft = torch.autograd.grad((soft @ given[2] * pull).sum(), leaves[:2])
    torch.testing.assert_close(found[:2], by_soft)


# The edges


@pytest.mark.parametrize("score", SCORES)
def test_a_single_key_is_certain_and_has_no_gradient(score):
    layer, (q, k, v) = make(score, baseline=None), inputs(score, m=1)
    q.requires_grad_()
    output, weights = layer(q, k, v)
    assert torch.equal(output, v.expand_as(output))
    torch.testing.assert_close(layer.log_prob(weights), torch.zeros(BATCH, N, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(layer.surrogate(weights, torch.ones(BATCH, N)), q)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("training", [True, False])
def test_hidden_keys_are_never_taken(training):
    q, k, v = inputs(n=499)
    layer = make().train(training)
    weights = layer(q, k, v, masks.hide(torch.tensor([0, 1, 0, 0, 0]).bool()), torch.tensor([4, 3])).weights
    assert weights.received()[:, 1].tolist() == [0, 0]
    assert weights.received()[0, 4:].sum() + weights.received()[1, 3:].sum() == 0


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("options", [{"baseline": "moving"}, {"baseline": "learned"}, {"entropy": 0.1}], ids=str)
def test_an_empty_row_is_zero_and_has_no_part_in_the_surrogate(score, options):
    layer = make(score, **options, generator=seeded())
    q, k, v = inputs(score)
    lengths = torch.tensor([0, M])
    k[0], v[0] = math.nan, math.nan  # nobody looks there
    for t in (q, k, v):
        t.requires_grad_()
    output, weights = layer(q, k, v, valid_lens=lengths)
    assert output[0].eq(0).all()
    reward = torch.randn(BATCH, N).double()
    reward[0] = math.nan
    each = layer.surrogate(weights, reward, reduction="none")
    assert each[0].eq(0).all() and each[1].isfinite().all()
    loss = layer.surrogate(weights, reward)
    gradients = torch.autograd.grad(loss, (q, k, *layer.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[0][0].eq(0).all() and gradients[1][0].eq(0).all()
    assert gradients[0][1].ne(0).any()


def test_mean_reduction_counts_only_queries_that_drew_a_key():
    layer = make(baseline=None)
    weights = layer(*inputs(), valid_lens=torch.tensor([0, M])).weights
    each = layer.surrogate(weights, torch.ones(BATCH, N), reduction="none")
    torch.testing.assert_close(layer.surrogate(weights, torch.ones(BATCH, N)), each[1].mean())
    nothing = layer(*inputs(), valid_lens=torch.tensor([0, 0])).weights
    assert layer.surrogate(nothing, torch.ones(BATCH, N)) == 0


def test_low_precision_is_computed_in_float32():
    layer = make(dtype=torch.bfloat16, baseline="learned")
    q, k, v = inputs(dtype=torch.bfloat16)
    output, weights = layer(q, k, v)
    assert output.dtype == torch.bfloat16
    found = layer.log_prob(weights)
    table = (q.float() @ layer.w.float() @ k.float().mT).log_softmax(-1)
    expected = table.gather(-1, weights.dense().float().argmax(-1, keepdim=True)).squeeze(-1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    layer.surrogate(weights, torch.ones(BATCH, N)).backward()
    assert layer.w.grad.isfinite().all()


@pytest.mark.parametrize(
    "twin",
    [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))],  # noqa: S301  our own layer
    ids=["copy", "pickle"],
)
def test_copies_of_a_hard_layer_compute_and_remember_the_same(twin):
    layer, given = make(generator=seeded(), baseline="moving"), inputs()
    layer.surrogate(layer(*given).weights, torch.ones(BATCH, N)).backward()
    other = twin(layer)
    assert torch.equal(other(*given).output, layer(*given).output)
    assert other.average == layer.average != 0


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("baseline", [None, "moving", "learned"])
def test_state_makes_a_round_trip(score, baseline):
    layer, other = make(score, baseline=baseline), make(score, baseline=baseline)
    layer.surrogate(layer(*inputs(score)).weights, torch.ones(BATCH, N))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    given = inputs(score)
    assert torch.equal(other.eval()(*given).output, layer.eval()(*given).output)
    assert set(layer.state_dict()) == {
        *{"general": ["w"], "scaled_dot": [], "additive": ["w_q", "w_k", "v"]}[score],
        *{None: [], "moving": ["average", "calls"], "learned": ["expected.weight", "expected.bias"]}[baseline],
    }


def test_its_name_reads_as_the_formula():
    assert make().extra_repr() == "output = value of a ~ softmax(q·Wk), loss = -(R - mean R) log p(a)"
    learned = make("scaled_dot", baseline="learned", entropy=0.1).extra_repr()
    assert learned.endswith("softmax(q·k / √d), loss = -(R - (u·q + c)) log p(a) - 0.1 entropy")
    assert make(estimator="straight-through").extra_repr().endswith("softmax(q·Wk), straight-through")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "dot"}, "HardAttention has no score 'dot'; there are: general, scaled_dot, additive"),
        ({"estimator": "gumbel"}, "HardAttention has no estimator 'gumbel'; there are: reinforce, straight-through"),
        ({"baseline": "mean"}, "HardAttention has no baseline 'mean'; there are: moving, learned, None"),
        ({"hidden_dim": 0}, "HardAttention needs hidden_dim to be a whole number, 1 or more, but it is 0"),
        ({"momentum": 1.0}, "momentum is the share of the past in the baseline, from 0 up to 1, not 1.0"),
        ({"score": "scaled_dot"}, "query_dim and key_dim must be equal, not 7 and 11; 'general' and 'additive'"),
    ],
)
def test_wrong_choices_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        HardAttention(Q, K, **options)
