"""The network of a translation model: encoder, decoder, and a table of embeddings for what goes in and comes out."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.errors import DataError
from regard.seq2seq.dropout import Dropout
from regard.seq2seq.recurrent import Decoder, Encoder, Memory, State, Step
from regard.seq2seq.transformer import TransformerEncoder
from regard.seq2seq.vocabulary import Vocabularies
from regard.weights import Weights


class EncoderDecoder(nn.Module):
    """An encoder and a decoder with the vocabularies of both sides; `train` builds the vocabularies.

    One interface for every kind of decoder: `encode` the source, `step` by step through the target, and the `weights`
    of the queries that it asked. The query is the state of the decoder (the voluntary cue), keys and values are
    features of the source (the involuntary cue, and the sensory input).
    """

    kind: ClassVar[str] = ""  # the name of a class in files; empty for one that only serves as a base
    kinds: ClassVar[dict[str, type[EncoderDecoder]]] = {}
    encoder: Encoder | TransformerEncoder
    decoder: Decoder

    def __init_subclass__(cls) -> None:
        """Register the class by its kind, by which files name it."""
        super().__init_subclass__()
        if cls.kind:
            EncoderDecoder.kinds[cls.kind] = cls

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.settings: dict[str, Any] = settings  # the arguments of the constructor
        self.vocabularies: Vocabularies | None = None

    def build(self, vocabularies: Vocabularies, seed: int = 0) -> None:
        """Make the parameters for these vocabularies, drawn from a seed."""
        self.vocabularies = vocabularies
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            width = self.settings["embedding"]
            self.target_embedding: nn.Embedding = _embedding(len(vocabularies.target), width)
            self.source_embedding: nn.Embedding = (
                self.target_embedding if vocabularies.shared else _embedding(len(vocabularies.source), width)
            )
            self.bias: nn.Parameter = nn.Parameter(torch.zeros(len(vocabularies.target)))
            self.dropout: Dropout = Dropout(self.settings["dropout"])
            self.encoder, self.decoder = self.build_layers()

    def build_layers(self) -> tuple[Encoder | TransformerEncoder, Decoder]:
        """Make encoder and decoder."""
        raise NotImplementedError

    @property
    def known(self) -> Vocabularies:
        """The vocabularies; an error for a model that has none yet."""
        if self.vocabularies is None:
            msg = (
                f"{type(self).__name__} has not been trained: train it with regard.seq2seq.train(model, pairs), or "
                "take one from regard.seq2seq.load('en-fr')"
            )
            raise DataError(msg)
        return self.vocabularies

    # One interface: encode, step, weights

    def encode(self, source: Int[Tensor, "batch source"], lengths: Int[Tensor, " batch"] | None = None) -> Memory:
        """Read source tokens; `lengths` are those that are no padding, None if none is."""
        embedded = self.dropout(_embedded(self.source_embedding, source))
        return self.decoder.prepare(self.encoder(embedded, lengths))

    def start(self, memory: Memory) -> State:
        """The state of the decoder before the first token."""
        return self.decoder.start(memory)

    def step(self, tokens: Int[Tensor, " batch"], state: State, memory: Memory) -> Step:
        """Take the last tokens in, the start token first; `logits` turns the step's features into scores of tokens."""
        return self.decoder.step(self.dropout(_embedded(self.target_embedding, tokens)), state, memory)

    def logits(self, features: Float[Tensor, "*lead embedding"]) -> Float[Tensor, "*lead vocabulary"]:
        """Scores of all target tokens: E t + b, with the embeddings of the target side."""
        return linear(self.dropout(features), self.target_embedding.weight, self.bias)

    def force(
        self, target: Int[Tensor, "batch target"], memory: Memory
    ) -> tuple[Float[Tensor, "batch target embedding"], Tensor | None]:
        """Features and queries of all steps, given the tokens that go in, the start token first (teacher forcing)."""
        return self.decoder.force(self.dropout(_embedded(self.target_embedding, target)), memory)

    def weights(self, queries: Float[Tensor, "1 ..."] | None, memory: Memory) -> Weights | None:
        """The weights over the source of one sentence's queries, (n, m) or (heads, n, m); None without attention."""
        return None if queries is None else self.decoder.weights(queries, memory)

    def extra_repr(self) -> str:
        """Settings, as `print(model)` shows them."""
        return ", ".join(f"{name}={value!r}" for name, value in self.settings.items())


def _embedding(count: int, width: int) -> nn.Embedding:
    """Embeddings of standard deviation 1 / √width, as the output needs them; `_embedded` scales them for the input."""
    table = nn.Embedding(count, width)
    nn.init.normal_(table.weight, std=1 / math.sqrt(width))
    return table


def _embedded(table: nn.Embedding, tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape embedding"]:
    return table(tokens) * math.sqrt(table.embedding_dim)
