"""The bidirectional encoder: a source sentence as one annotation for each of its tokens."""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

CELLS = {"gru": nn.GRU, "lstm": nn.LSTM}


class Memory(NamedTuple):
    """What a decoder reads of its source sentences: keys (the involuntary cue) and values (the sensory input).

    A tensor has the sentences along its first axis. `lengths` are the tokens that are no padding, or None if there is
    no padding at all.
    """

    values: Float[Tensor, "batch source dim"]  # an annotation for each source token
    lengths: Int[Tensor, " batch"] | None
    keys: tuple[Tensor, ...] = ()  # what a decoder computes from the values once for all its steps
    final: Float[Tensor, "batch dim"] | None = None  # the whole sentence in one vector

    def take(self, sentences: Int[Tensor, " kept"]) -> Self:
        """The memory of some sentences, each as often as it is named."""
        lengths, final = (None if t is None else t[sentences] for t in (self.lengths, self.final))
        return self._replace(
            values=self.values[sentences],
            lengths=lengths,
            keys=tuple(key[sentences] for key in self.keys),
            final=final,
        )

    def sentence(self, index: int) -> Self:
        """The memory of one sentence without its padding, as a batch of one."""
        length = self.values.shape[1] if self.lengths is None else int(self.lengths[index])
        final = None if self.final is None else self.final[index : index + 1]
        values = self.values[index : index + 1, :length]
        # Keys have the source tokens along the second axis from the end.
        keys = tuple(key[index : index + 1].narrow(-2, 0, length) for key in self.keys)
        return self._replace(values=values, lengths=None, keys=keys, final=final)


class Encoder(nn.Module):
    """A recurrent network that reads the source in both directions (Bahdanau et al. 2015, section 3.2).

    The annotation h_j = [→h_j; ←h_j] of a token knows what stands before and behind it. `final` = [→h_m; ←h_1] is the
    whole sentence in one vector: all that a decoder without attention gets.

    Shapes: embedded (batch, m, embedding) -> values (batch, m, hidden), final (batch, hidden).
    """

    def __init__(self, embedding: int, hidden: int, cell: str) -> None:
        super().__init__()
        self.rnn: nn.RNNBase = CELLS[cell](embedding, hidden // 2, batch_first=True, bidirectional=True)

    def forward(
        self, embedded: Float[Tensor, "batch source embedding"], lengths: Int[Tensor, " batch"] | None
    ) -> Memory:
        """Read a batch of sentences. Padding behind a sentence changes nothing."""
        if lengths is None:
            values, state = self.rnn(embedded)
        else:
            packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
            packed_values, state = self.rnn(packed)
            values, _ = pad_packed_sequence(packed_values, batch_first=True, total_length=embedded.shape[1])
        forward, backward = state[0] if isinstance(state, tuple) else state
        return Memory(values, lengths, final=torch.cat([forward, backward], -1))
