"""Hard attention: each query takes one key. Gradients are estimated (REINFORCE or straight-through)."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float, Integer, Shaped
from torch import Tensor, nn

from regard import scores
from regard.attention import Attention, attend
from regard.engine.inputs import upcast
from regard.errors import ChoiceError, DtypeError, NotNormalisedError, ShapeError
from regard.masks import Mask
from regard.nn import _parameters
from regard.nn._valid_lens import combined_mask
from regard.normalisers import Hard, hard
from regard.scores import Score
from regard.term import type_name
from regard.tracing import refuse_script
from regard.weights import Weights

SCORES = ("general", "scaled_dot", "additive")
ESTIMATORS = ("reinforce", "straight-through")
BASELINES = ("moving", "learned", None)
REDUCTIONS = ("mean", "sum", "none")


class HardAttention(nn.Module):
    r"""Hard attention: the value of one key, drawn from the softmax in training, the best one in eval.

    a_i ~ softmax_j(s(q_i, k_j)),   output_i = v_{a_i}

    A draw has no derivative with respect to the scores. There are two estimators.

    estimator="reinforce" (Williams 1992): `surrogate(weights, reward)` is a loss whose gradient is the score-function
    estimator of the gradient of -E[R],

        -(R_i - b_i) grad log p(a_i),   log p(a_i) = s(q_i, k_{a_i}) - log sum_j exp(s(q_i, k_j)),

    which is unbiased for any baseline b that does not depend on the draw; a good b reduces its variance.
    baseline="moving" is an exponential moving average of the rewards of earlier calls, with `momentum`.
    baseline="learned" is b_i = u·q_i + c, trained by its squared error (R_i - b_i)², which is part of the surrogate
    loss and reaches u and c alone. baseline=None is 0. `entropy` is the factor of an entropy bonus, which delays a
    one-hot softmax.

    estimator="straight-through" (Bengio et al. 2013): the forward pass is hard, and query, key and score get the
    gradient of soft attention; the value gets its own. It is biased, and needs neither reward nor surrogate.

    score: "general" q·Wk, "scaled_dot" q·k / √d, or "additive" v·tanh(W_q q + W_k k) with `hidden_dim` rows
    (default key_dim). generator: of the draws, in place of torch's global one; its state is not in the state_dict.

    Shapes: query (..., n, query_dim), key (..., m, key_dim), value (..., m, d_v); output (..., n, d_v), weights
    (..., n, m), one-hot. A query that sees no key has output 0 and adds nothing to the surrogate.

    >>> import torch
    >>> from regard.nn import HardAttention
    >>> layer = HardAttention(query_dim=3, key_dim=5, generator=torch.Generator().manual_seed(0))
    >>> query, key, value = torch.randn(2, 7, 3), torch.randn(2, 11, 5), torch.arange(11.0).expand(2, 11)[..., None]
    >>> output, weights = layer(query, key, value, valid_lens=torch.tensor([4, 11]))
    >>> output.shape, bool((output[0] < 4).all())
    (torch.Size([2, 7, 1]), True)
    >>> reward = (output.squeeze(-1) == 3).float()  # the fourth key is the right one
    >>> layer.surrogate(weights, reward).backward()
    >>> layer.w.grad.shape
    torch.Size([3, 5])
    """

    __prepare_scriptable__ = refuse_script

    average: Tensor
    calls: Tensor

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        score: str = "general",
        *,
        hidden_dim: int | None = None,
        estimator: str = "reinforce",
        baseline: str | None = "moving",
        momentum: float = 0.9,
        entropy: float = 0.0,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        hidden = key_dim if hidden_dim is None else hidden_dim
        _parameters.check_sizes("HardAttention", query_dim=query_dim, key_dim=key_dim, hidden_dim=hidden)
        _parameters.check_choice("HardAttention", "score", score, SCORES)
        _parameters.check_choice("HardAttention", "estimator", estimator, ESTIMATORS)
        _parameters.check_choice("HardAttention", "baseline", baseline, BASELINES)
        if not 0 <= momentum < 1:
            raise ChoiceError(f"momentum is the share of the past in the baseline, from 0 up to 1, not {momentum}")
        if score == "scaled_dot" and query_dim != key_dim:
            raise ShapeError(
                f"scaled_dot compares feature by feature, so query_dim and key_dim must be equal, not {query_dim} "
                f"and {key_dim}; 'general' and 'additive' take different widths"
            )
        self.query_dim: int = query_dim
        self.key_dim: int = key_dim
        self.hidden_dim: int = hidden
        self.score: str = score
        self.estimator: str = estimator
        self.momentum: float = momentum
        self.entropy: float = entropy
        self.baseline: str | None = baseline if estimator == "reinforce" else None
        self.generator = generator
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        if score == "general":
            self.w: nn.Parameter = _parameters.empty_parameter(query_dim, key_dim, **options)
        elif score == "additive":
            self.w_q: nn.Parameter = _parameters.empty_parameter(hidden, query_dim, **options)
            self.w_k: nn.Parameter = _parameters.empty_parameter(hidden, key_dim, **options)
            self.v: nn.Parameter = _parameters.empty_parameter(hidden, **options)
        if self.baseline == "learned":
            self.expected: nn.Linear = nn.Linear(query_dim, 1, **options)
        elif self.baseline == "moving":
            self.register_buffer("average", torch.zeros((), device=device))
            self.register_buffer("calls", torch.zeros((), device=device, dtype=torch.int64))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial parameters of the score."""
        _parameters.init_uniform(*self.parameters(recurse=False))

    def extra_repr(self) -> str:
        draw = f"output = value of a ~ softmax({self._score_term()})"
        if self.estimator == "straight-through":
            return f"{draw}, {self.estimator}"
        bonus = f" - {self.entropy:g} entropy" if self.entropy else ""
        baseline = {"moving": "mean R", "learned": "(u·q + c)", None: "0"}[self.baseline]
        return f"{draw}, loss = -(R - {baseline}) log p(a){bonus}"

    def forward(
        self,
        query: Float[Tensor, "*query_lead queries query_dim"],
        key: Float[Tensor, "*key_lead keys key_dim"],
        value: Float[Tensor, "*value_lead keys value_dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> Attention:
        """Take one visible key for each query: its value, and one-hot lazy weights."""
        _parameters.check_widths(self, query=(query, self.query_dim), key=(key, self.key_dim))
        score, mask = self._score_term(), combined_mask(mask, valid_lens, query, key)
        choice = hard(sample=self.training, generator=self.generator)
        output, weights = attend(query, key, value, score, mask, choice)
        if self.estimator == "straight-through":
            # The value gets the gradient of the key that was drawn; only the scores need the soft one.
            soft = Weights(query, key, score, mask) @ value.detach()
            output = output + (soft - soft.detach())
        return Attention(output, weights)

    def log_prob(self, weights: Weights) -> Float[Tensor, "*batch queries"]:
        """log p(a_i) of the keys that were taken, (..., n); 0 for a query that sees no key. Differentiable."""
        return self._log_prob(weights)[0]

    def surrogate(
        self, weights: Weights, reward: Shaped[Tensor, "..."], reduction: str = "mean"
    ) -> Float[Tensor, ""] | Float[Tensor, "*batch queries"]:
        """The loss whose gradient is the score-function estimator -(R_i - b_i) grad log p(a_i).

        weights: as `forward` returned them in training. reward: (..., n), or a shape that broadcasts to it, such as
        (batch, 1) for one reward of all queries; the reward of a loss is its negative. It is a constant here: if the
        loss has a gradient of its own, through the output, add it, ``loss.mean() + layer.surrogate(weights, -loss)``.
        reduction: "mean" over the queries that drew a key, "sum", or "none" for (..., n).
        """
        _parameters.check_choice("surrogate", "reduction", reduction, REDUCTIONS)
        self._check_drawn(weights)
        log_prob, drawn = self._log_prob(weights)
        reward = torch.where(drawn, _broadcast_reward(reward, weights).to(log_prob.dtype), 0)
        expected = self._expected(weights, reward)
        loss = -(reward - expected.detach()) * log_prob
        if self.baseline == "learned":
            loss = loss + (reward - expected).square()
        if self.entropy:
            loss = loss - self.entropy * _soft(weights).entropy()
        if self.baseline == "moving" and self.training:
            self._update_average(reward, drawn)
        loss = torch.where(drawn, loss, 0)
        if reduction == "none":
            return loss
        return loss.sum() if reduction == "sum" else loss.sum() / drawn.sum().clamp_min(1)

    def _score_term(self) -> Score:
        if self.score == "general":
            return scores.general(self.w)
        return scores.additive(self.w_q, self.w_k, self.v) if self.score == "additive" else scores.scaled_dot()

    def _log_prob(self, weights: Weights) -> tuple[Float[Tensor, "*batch queries"], Bool[Tensor, "*batch queries"]]:
        """log p(a_i), and True where a key was drawn. The drawn key is pooled, so one score a query is computed."""
        if not isinstance(weights.spec.normaliser, Hard):
            raise NotNormalisedError(f"log_prob is about a key that was taken, and these weights are {weights.spec}")
        total = _soft(weights).logsumexp()
        drawn = total.detach() != -math.inf
        # Where nothing was drawn all is 0 before the score, not after: there the gradient might be NaN already.
        query = torch.where(drawn.unsqueeze(-1), upcast(weights.query), 0)
        score = weights.spec.score.rowwise(query, upcast(weights @ weights.key))
        return torch.where(drawn, score - torch.where(drawn, total, 0), 0), drawn

    def _expected(self, weights: Weights, reward: Float[Tensor, "*batch queries"]) -> Float[Tensor, "..."]:
        """The baseline b: an estimate of the reward that does not use the draw."""
        if self.baseline == "learned":
            query = weights.query.detach().to(self.expected.weight.dtype)
            return self.expected(query).squeeze(-1).to(reward.dtype)
        if self.baseline == "moving":
            correction = (
                1 - self.momentum ** self.calls.float()
            )  # corrects the bias of the average towards its initial 0
            return (self.average / correction.clamp_min(1 - self.momentum)).to(reward.dtype)
        return reward.new_zeros(())

    @torch.no_grad()
    def _update_average(self, reward: Float[Tensor, "*batch queries"], drawn: Bool[Tensor, "*batch queries"]) -> None:
        """Update the moving baseline, after it was used: one that knows this reward would bias the gradient."""
        if bool(drawn.any()):
            self.average.lerp_(reward[drawn].mean().to(self.average), 1 - self.momentum)
            self.calls += 1

    def _check_drawn(self, weights: Weights) -> None:
        if self.estimator != "reinforce":
            raise ChoiceError(
                "surrogate is the loss of estimator='reinforce'; a straight-through layer has its gradient already"
            )
        normaliser = weights.spec.normaliser
        if not (isinstance(normaliser, Hard) and normaliser.sample):
            raise ChoiceError(
                f"surrogate is right on average over keys that were drawn, and these weights are {weights.spec}: "
                f"call the layer in training mode, layer.train()"
            )


def _soft(weights: Weights) -> Weights:
    """The softmax that the keys were drawn from."""
    return Weights(weights.query, weights.key, weights.spec.score, weights.spec.mask)


def _broadcast_reward(reward: Shaped[Tensor, "..."], weights: Weights) -> Shaped[Tensor, "*batch queries"]:
    if not isinstance(reward, Tensor) or reward.is_complex():
        raise DtypeError(f"reward must be a tensor of numbers, one a query, but it is {type_name(reward)}")
    shape = weights.shape[:-1]
    try:
        return reward.detach().expand(shape)
    except RuntimeError:
        raise ShapeError(
            f"reward must broadcast to one number a query, (..., queries) = {tuple(shape)}, "
            f"but its shape is {tuple(reward.shape)}"
        ) from None
