"""Two models that differ in one thing: what they look at when a question comes. Their weights come with regard."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.errors import ChoiceError, DamageError
from regard.lab.recall._vocabulary import WORDS
from regard.nn import LuongAttention
from regard.seq2seq import checkpoint
from regard.weights import Weights

MODELS = ("none", "luong")  # the attention of each
LONGEST = 40  # words of a sentence in training
EMBEDDING, HIDDEN = 48, 96
WEIGHTS = Path(__file__).parent / "weights"
CHECKSUMS = WEIGHTS / "sha256.json"  # name of a model -> sha256 of its file


class Answer(NamedTuple):
    """Answers to all questions about a sentence: question i asks for the word at place i."""

    logits: Float[Tensor, "*batch words vocabulary"]
    weights: Weights | None  # (*batch, words, words): of question i on state j; None without attention


class Recall(nn.Module):
    """A GRU reads a sentence of n words; then, for each place i, a small network says which word stood there.

        h_j = GRU(h_j-1, E x_j)
        q_i = D_n-i                                        the question: the word with n - i words behind it
        c_i = h_n                                          without attention: the last state, for every question
        c_i = sum_j softmax_j(q_i · W [h_j; D_n-j]) h_j    with attention: all states, weighted for this question
        p_i = softmax(U (A c_i * B q_i))

    D_k is the embedding of the distance k. The product of A c_i and B q_i, entry by entry, lets each question read
    other directions of the vector.

    Shapes: sentence (*batch, n) of numbers of words, n at most `LONGEST`; logits (*batch, n, vocabulary).
    """

    def __init__(self, attention: str) -> None:
        super().__init__()
        if attention not in MODELS:
            raise ChoiceError(f"attention must be one of {', '.join(MODELS)}, {attention!r} came")
        self.words: nn.Embedding = nn.Embedding(len(WORDS), EMBEDDING)  # E
        self.distances: nn.Embedding = nn.Embedding(LONGEST, EMBEDDING)  # D
        self.rnn: nn.GRU = nn.GRU(EMBEDDING, HIDDEN, batch_first=True)
        self.attention: LuongAttention | None = (
            LuongAttention(EMBEDDING, HIDDEN + EMBEDDING, method="general") if attention == "luong" else None
        )
        self.content: nn.Linear = nn.Linear(HIDDEN, HIDDEN)  # A
        self.gate: nn.Linear = nn.Linear(EMBEDDING, HIDDEN)  # B
        self.output: nn.Linear = nn.Linear(HIDDEN, len(WORDS))  # U

    def read(self, sentence: Int[Tensor, "*batch words"]) -> Float[Tensor, "*batch words hidden"]:
        """The state of the GRU after each word."""
        return self.rnn(self.words(sentence))[0]

    def questions(self, sentence: Int[Tensor, "*batch words"]) -> Float[Tensor, "*batch words embedding"]:
        """The question for each place: how many words stand behind it."""
        return self.distances.weight[: sentence.shape[-1]].flip(0).expand(*sentence.shape, -1)

    def forward(self, sentence: Int[Tensor, "*batch words"]) -> Answer:
        """Read the sentence once, and answer the question for each of its places."""
        states, query = self.read(sentence), self.questions(sentence)
        if self.attention is None:
            context, weights = states[..., -1:, :], None
        else:
            context, weights = self.attention(query, torch.cat([states, query], -1), states)
        return Answer(self.output(self.content(context) * self.gate(query)), weights)

    def probability(self, sentence: Int[Tensor, "*batch words"]) -> Float[Tensor, "*batch words"]:
        """The probability that the right word gets, for each place."""
        return self(sentence).logits.softmax(-1).gather(-1, sentence.unsqueeze(-1)).squeeze(-1)


def load(attention: str) -> Recall:
    """A trained model: "none" answers from the last state alone, "luong" with attention over all states."""
    model = Recall(attention)
    tensors, _ = _file(attention)
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items() if name != "mean_probability"})
    return model.eval().requires_grad_(requires_grad=False)


def mean_probability(attention: str) -> tuple[Float[Tensor, "longest longest"], int]:
    """The mean probability of the right word, measured after training, and over how many random sentences.

    Row n - 1 is for sentences of n words, column i - 1 for the word at place i; columns from n on are 0.
    """
    tensors, about = _file(attention)
    return tensors["mean_probability"].float(), about["sentences"]


def weights_path(attention: str) -> Path:
    """The file of a model."""
    return WEIGHTS / f"{attention}.safetensors"


def _file(attention: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    path = weights_path(attention)
    expected = json.loads(CHECKSUMS.read_text(encoding="utf-8"))[attention]
    if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
        raise DamageError(f"{path}: is damaged, its sha256 is not {expected}: install regard again")
    return checkpoint.read(path)
