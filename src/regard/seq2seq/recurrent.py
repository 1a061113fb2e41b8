"""Recurrent networks: a bidirectional encoder, and decoders with Bahdanau's, Luong's or no attention.

In each decoder its state is the query (the voluntary cue: what it looks for), and the annotations of the
source are the keys (the involuntary cue) and the values (the sensory input).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention import Attention
from regard.nn import AdditiveAttention, LocalAttention, LuongAttention
from regard.weights import Weights

CELLS = {"gru": nn.GRU, "lstm": nn.LSTM}
State = tuple[Tensor, ...]  # each tensor has the sentences along its first axis


class Memory(NamedTuple):
    """The source sentences as a decoder reads them: keys (the involuntary cue) and values (the sensory input).

    A tensor has the sentences along its first axis. `lengths` are the tokens that are no padding, or None if there is
    no padding at all.
    """

    values: Float[Tensor, "batch source dim"]  # an annotation for each source token
    lengths: Int[Tensor, " batch"] | None
    keys: tuple[Tensor, ...] = ()  # what a decoder computes from the values once for all its steps
    final: Float[Tensor, "batch dim"] | None = None  # the whole sentence in one vector

    def take(self, sentences: Int[Tensor, " kept"]) -> Memory:
        """The memory of some sentences, each as often as it is named."""
        lengths, final = (None if t is None else t[sentences] for t in (self.lengths, self.final))
        return self._replace(
            values=self.values[sentences],
            lengths=lengths,
            keys=tuple(key[sentences] for key in self.keys),
            final=final,
        )

    def sentence(self, index: int) -> Memory:
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


class Step(NamedTuple):
    """One step of a decoder: features of the next token, the new state, and how the source was attended."""

    features: Float[Tensor, "batch embedding"]
    state: State
    query: Float[Tensor, "batch ..."] | None = None
    attention: Attention | None = None  # context as `output` (batch, 1, dim), lazy weights (batch, 1, source)


class Forced(NamedTuple):
    """All steps of a decoder that is given the right tokens: features and queries of each."""

    features: Float[Tensor, "batch target embedding"]
    queries: Float[Tensor, "batch ..."] | None = None


class Decoder(nn.Module):
    """The interface of a decoder: `prepare` the memory once, `start`, then `step` by step, or all steps by `force`."""

    def prepare(self, memory: Memory) -> Memory:
        """The memory with all that is the same at each step."""
        return memory

    def start(self, memory: Memory) -> State:
        """The state before the first token."""
        raise NotImplementedError

    def step(self, embedded: Float[Tensor, "batch embedding"], state: State, memory: Memory) -> Step:
        """Take one token in and give the features of the next one out."""
        raise NotImplementedError

    def force(self, embedded: Float[Tensor, "batch target embedding"], memory: Memory) -> Forced:
        """All steps with given tokens (teacher forcing); the same numbers as step by step."""
        raise NotImplementedError

    def weights(self, queries: Float[Tensor, "..."], memory: Memory) -> Weights | None:
        """The weights (n, m) of the queries of one sentence; None without attention."""
        raise NotImplementedError

    def keys_and_values(self, memory: Memory) -> tuple[Float[Tensor, "*heads source dim"], ...]:
        """Keys and values of one sentence: here both are the annotations."""
        return memory.values[0], memory.values[0]


class RecurrentDecoder(Decoder):
    """A decoder with one recurrent layer, whose first state is computed from the encoder's last."""

    def __init__(self, inputs: int, final: int, hidden: int, cell: str) -> None:
        super().__init__()
        self.rnn: nn.RNNBase = CELLS[cell](inputs, hidden, batch_first=True)
        self.first: nn.Linear = nn.Linear(final, hidden)

    def start(self, memory: Memory) -> State:
        """s_0 = tanh(W_s final), and zeros for the cell of an LSTM."""
        assert memory.final is not None  # noqa: S101  recurrent encoders have one
        hidden = torch.tanh(self.first(memory.final))
        return (hidden, torch.zeros_like(hidden)) if isinstance(self.rnn, nn.LSTM) else (hidden,)

    def advance(
        self, inputs: Float[Tensor, "batch steps inputs"], state: State
    ) -> tuple[Float[Tensor, "batch steps hidden"], State]:
        """The hidden states after each input, and the last state."""
        if isinstance(self.rnn, nn.LSTM):
            states, last = self.rnn(inputs, tuple(part.unsqueeze(0) for part in state[:2]))
            return states, tuple(part.squeeze(0) for part in last)
        states, last = self.rnn(inputs, state[0].unsqueeze(0))
        return states, (last.squeeze(0),)


class DeepOutput(nn.Module):
    """Bahdanau's deep output with maxout: t_k = max(t̃_2k, t̃_2k+1), t̃ = U_o s + V_o E y + C_o c (appendix A.2.2)."""

    def __init__(self, hidden: int, embedding: int, context: int) -> None:
        super().__init__()
        self.linear: nn.Linear = nn.Linear(hidden + embedding + context, 2 * embedding)

    def forward(self, *parts: Float[Tensor, "... _"]) -> Float[Tensor, "... embedding"]:
        """Features of the next token from state, last token and context."""
        return self.linear(torch.cat(parts, -1)).unflatten(-1, (-1, 2)).amax(-1)


class BahdanauDecoder(RecurrentDecoder):
    """The decoder of Bahdanau, Cho and Bengio (2015): it attends first, and the context goes into its cell.

    For each target token i, with s the state, h the annotations and E y the embedding of the token before:

        e_ij = v · tanh(W_q s_i-1 + W_k h_j),  c_i = sum_j softmax_j(e_ij) h_j
        s_i = cell(s_i-1, [E y_i-1; c_i]),     t_i = maxout(U_o s_i + V_o E y_i-1 + C_o c_i)

    s_0 = tanh(W_s ←h_1). W_k h is computed once for a sentence. The cell is torch's: its reset gate acts behind the
    matrix, that of the paper before it.
    """

    def __init__(self, embedding: int, hidden: int, cell: str) -> None:
        super().__init__(embedding + hidden, hidden // 2, hidden, cell)
        self.attention: AdditiveAttention = AdditiveAttention(hidden, hidden, hidden)
        self.output: DeepOutput = DeepOutput(hidden, embedding, hidden)

    def prepare(self, memory: Memory) -> Memory:
        """Project the keys, once for all steps."""
        return memory._replace(keys=(self.attention.project_keys(memory.values),))

    def start(self, memory: Memory) -> State:
        """s_0 = tanh(W_s ←h_1), from the backward half of the encoder."""
        assert memory.final is not None  # noqa: S101  recurrent encoders have one
        return super().start(memory._replace(final=memory.final.chunk(2, -1)[1]))

    def attend(self, query: Float[Tensor, "batch steps hidden"], memory: Memory) -> Attention:
        """Context and weights of a query, the state s_i-1."""
        return self.attention.attend_projected(query, memory.keys[0], memory.values, memory.lengths)

    def step(self, embedded: Float[Tensor, "batch embedding"], state: State, memory: Memory) -> Step:
        """Attend, advance the cell, and give the features of the next token."""
        attention = self.attend(state[0].unsqueeze(1), memory)
        inputs = torch.cat([embedded, attention.output[:, 0]], -1)
        hidden, new = self.advance(inputs.unsqueeze(1), state)
        return Step(self.output(hidden[:, 0], inputs), new, state[0], attention)

    def force(self, embedded: Float[Tensor, "batch target embedding"], memory: Memory) -> Forced:
        """All steps: the cell needs the context of each, so they follow one another; the output takes all at once."""
        state = self.start(memory)
        queries, inputs, states = [], [], []
        for token in embedded.unbind(1):
            queries.append(state[0])
            context = self.attend(state[0].unsqueeze(1), memory).output[:, 0]
            inputs.append(torch.cat([token, context], -1))
            hidden, state = self.advance(inputs[-1].unsqueeze(1), state)
            states.append(hidden[:, 0])
        return Forced(self.output(torch.stack(states, 1), torch.stack(inputs, 1)), torch.stack(queries, 1))

    def weights(self, queries: Float[Tensor, "1 steps hidden"], memory: Memory) -> Weights | None:
        """The weights (n, m) of the states of one sentence."""
        return self.attention(queries[0], memory.values[0], memory.values[0]).weights


class LuongDecoder(RecurrentDecoder):
    """The decoder of Luong, Pham and Manning (2015): its cell runs first, then it attends with the new state.

        s_i = cell(s_i-1, E y_i-1),  c_i = sum_j a_ij h_j,  t_i = tanh(W_c [c_i; s_i])

    with a_ij of the global or the local attention (`LuongAttention`, `LocalAttention`). With input feeding the cell
    gets [E y_i-1; t_i-1], and the steps follow one another; without it, all are computed at once.
    """

    def __init__(
        self,
        embedding: int,
        hidden: int,
        cell: str,
        attention: LuongAttention | LocalAttention,
        *,
        input_feeding: bool,
    ) -> None:
        super().__init__(embedding * (2 if input_feeding else 1), hidden, hidden, cell)
        self.input_feeding: bool = input_feeding
        self.embedding: int = embedding
        self.attention: LuongAttention | LocalAttention = attention
        self.output: nn.Linear = nn.Linear(2 * hidden, embedding)

    def start(self, memory: Memory) -> State:
        """The first state, and zeros for the features that are fed in."""
        state = super().start(memory)
        return (*state, state[0].new_zeros(len(state[0]), self.embedding)) if self.input_feeding else state

    def attend(self, query: Float[Tensor, "batch steps hidden"], memory: Memory) -> Attention:
        """Context and weights of queries, the states s_i."""
        return self.attention(query, memory.values, memory.values, valid_lens=memory.lengths)

    def features(
        self, hidden: Float[Tensor, "batch steps hidden"], context: Float[Tensor, "batch steps hidden"]
    ) -> Float[Tensor, "batch steps embedding"]:
        """t = tanh(W_c [c; s])."""
        return torch.tanh(self.output(torch.cat([context, hidden], -1)))

    def step(self, embedded: Float[Tensor, "batch embedding"], state: State, memory: Memory) -> Step:
        """Advance the cell, attend, and give the features of the next token."""
        fed = torch.cat([embedded, state[-1]], -1) if self.input_feeding else embedded
        hidden, new = self.advance(fed.unsqueeze(1), state)
        attention = self.attend(hidden, memory)
        features = self.features(hidden, attention.output)[:, 0]
        return Step(features, (*new, features) if self.input_feeding else new, hidden[:, 0], attention)

    def force(self, embedded: Float[Tensor, "batch target embedding"], memory: Memory) -> Forced:
        """All steps; at once, unless features are fed back."""
        state = self.start(memory)
        if not self.input_feeding:
            hidden, _ = self.advance(embedded, state)
            return Forced(self.features(hidden, self.attend(hidden, memory).output), hidden)
        features, queries = [], []
        for token in embedded.unbind(1):
            step = self.step(token, state, memory)
            state = step.state
            features.append(step.features)
            queries.append(step.query)
        return Forced(torch.stack(features, 1), torch.stack(queries, 1))

    def weights(self, queries: Float[Tensor, "1 steps hidden"], memory: Memory) -> Weights | None:
        """The weights (n, m) of the states of one sentence."""
        return self.attention(queries[0], memory.values[0], memory.values[0]).weights


class FixedVectorDecoder(RecurrentDecoder):
    """A decoder without attention (RNNencdec; Cho et al. 2014): one vector c for the whole source, at every step.

        s_i = cell(s_i-1, [E y_i-1; c]),  t_i = maxout(U_o s_i + V_o E y_i-1 + C_o c),  c = [→h_m; ←h_1]

    However long the sentence is, c has the same width: this is the bottleneck that attention was made for.
    """

    def __init__(self, embedding: int, hidden: int, cell: str) -> None:
        super().__init__(embedding + hidden, hidden, hidden, cell)
        self.output: DeepOutput = DeepOutput(hidden, embedding, hidden)

    def step(self, embedded: Float[Tensor, "batch embedding"], state: State, memory: Memory) -> Step:
        """Advance the cell with the last token and the fixed vector."""
        assert memory.final is not None  # noqa: S101  recurrent encoders have one
        inputs = torch.cat([embedded, memory.final], -1)
        hidden, new = self.advance(inputs.unsqueeze(1), state)
        return Step(self.output(hidden[:, 0], inputs), new)

    def force(self, embedded: Float[Tensor, "batch target embedding"], memory: Memory) -> Forced:
        """All steps at once: no input depends on an earlier step."""
        assert memory.final is not None  # noqa: S101  recurrent encoders have one
        context = memory.final.unsqueeze(1).expand(-1, embedded.shape[1], -1)
        inputs = torch.cat([embedded, context], -1)
        hidden, _ = self.advance(inputs, self.start(memory))
        return Forced(self.output(hidden, inputs))

    def weights(self, queries: Float[Tensor, "..."], memory: Memory) -> Weights | None:
        """None: there is no attention."""
        return None

    def keys_and_values(self, memory: Memory) -> tuple[Float[Tensor, "1 dim"], ...]:
        """The whole sentence, in one row."""
        assert memory.final is not None  # noqa: S101  recurrent encoders have one
        return memory.final, memory.final
