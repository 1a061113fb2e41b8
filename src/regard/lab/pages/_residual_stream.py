"""The residual stream of a language model: what enters, leaves and is added in each of its blocks.

A block of the Llama family, such as SmolLM2's, computes

    between = before + attention(norm_1(before))
    after   = between + feed_forward(norm_2(between))

Its modules are observed by forward hooks, and its weights by `regard.record`; nothing is computed a second time. The
logit lens (nostalgebraist, 2020) asks the model's own last norm and output layer what they would say of the stream
after each block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.capture import record
from regard.models import TokenizedText
from regard.recording import Recording

PARTS = ("before", "norm_1", "attention", "between", "norm_2", "feed_forward", "after")


class ResidualStream(NamedTuple):
    """One text as a model read it: the vectors of each block, and the recorded attention."""

    tokens: list[str]
    parts: list[dict[str, Float[Tensor, "tokens width"]]]  # of each block, by the names of PARTS
    recording: Recording
    tokenizer: Any
    model: Any

    def weights(self, block: int, token: int) -> Float[Tensor, "heads tokens"]:
        """The attention of one token in one block; nothing goes to the tokens after it."""
        return self.recording[self.recording.layers[block].name][0, :, token]

    def sizes(self, token: int) -> list[dict[str, float]]:
        """The Euclidean norm of each part, for each block."""
        return [{name: part[token].norm().item() for name, part in parts.items()} for parts in self.parts]

    @torch.no_grad()
    def lens(self, token: int) -> Float[Tensor, "blocks+1 vocabulary"]:
        """Probabilities of the next token before the first block and after each: the last row is the model's own."""
        stream = [self.parts[0]["before"][token], *(parts["after"][token] for parts in self.parts)]
        return self.model.lm_head(self.model.model.norm(torch.stack(stream))).softmax(-1)

    def text(self, token: int) -> str:
        """The text of a token of the vocabulary."""
        return str(self.tokenizer.decode([token]))


def read(text: TokenizedText) -> ResidualStream:
    """Let the model read a text. The output layer is left out: `lens` asks it for one token."""
    recorder = record(text.model, tokenizer=text.tokenizer, check="none")  # the tests compare with the model's output
    with torch.no_grad(), observed(text.model) as parts, recorder as recording:
        text.model.model(**text.inputs, use_cache=False)
    tokens = recording.tokens[0]["input_ids"][0]
    return ResidualStream(tokens, parts, recording, text.tokenizer, text.model)


@contextmanager
def observed(model: Any) -> Iterator[list[dict[str, Tensor]]]:
    """While it is open, a forward pass fills in the PARTS of every block, for the first text of the batch."""
    parts: list[dict[str, Tensor]] = [{} for _ in model.model.layers]
    with ExitStack() as stack:
        for block, found in zip(model.model.layers, parts, strict=True):
            for module, given, made in (
                (block.input_layernorm, "before", "norm_1"),
                (block.self_attn, None, "attention"),
                (block.post_attention_layernorm, "between", "norm_2"),
                (block.mlp, None, "feed_forward"),
                (block, None, "after"),
            ):
                stack.callback(module.register_forward_hook(_keep(found, given, made)).remove)
        yield parts


def _keep(parts: dict[str, Tensor], given: str | None, made: str) -> Any:
    """A forward hook that keeps what a module was given, if that has a name, and what it made."""

    def hook(_: Any, args: tuple[Any, ...], output: Any) -> None:
        if given is not None:
            parts[given] = args[0][0]
        parts[made] = (output[0] if isinstance(output, tuple) else output)[0]

    return hook


class Candidates(NamedTuple):
    """The likeliest tokens, best first."""

    tokens: list[str]
    probabilities: list[float]


def candidates(stream: ResidualStream, row: Float[Tensor, " vocabulary"], count: int) -> Candidates:
    """The likeliest tokens of a row of probabilities."""
    top = row.topk(count)
    return Candidates(_texts(stream, top.indices), top.values.tolist())


def _texts(stream: ResidualStream, tokens: Int[Tensor, " count"]) -> list[str]:
    return [stream.text(token) for token in tokens.tolist()]
