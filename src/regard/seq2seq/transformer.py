"""A small Transformer on `regard.nn.MultiheadAttention`: pre-norm layers, sinusoidal positions."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from regard import masks
from regard.attention import Attention
from regard.masks import Mask
from regard.nn import MultiheadAttention
from regard.seq2seq.dropout import Dropout
from regard.seq2seq.recurrent import Decoder, Forced, Memory, State, Step
from regard.weights import Weights

LARGEST_PERIOD = 10_000.0  # of the sinusoidal positions (Vaswani et al. 2017, section 3.5)


def positions(first: int, count: int, like: Float[Tensor, "... dim"]) -> Float[Tensor, "count dim"]:
    """Sinusoidal encoding of positions first, first + 1, ...: sin and cos of p / 10000^(2t / dim)."""
    dim = like.shape[-1]
    places = torch.arange(first, first + count, dtype=like.dtype, device=like.device)[:, None]
    rates = torch.exp(torch.arange(0, dim, 2, dtype=like.dtype, device=like.device) * (-math.log(LARGEST_PERIOD) / dim))
    angles = places * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


class Heads(MultiheadAttention):
    """Multi-head attention whose keys and values are projected once, for a decoder that asks step by step."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__(dim, heads, dropout, batch_first=True)

    def queries(self, x: Float[Tensor, "batch rows dim"]) -> Float[Tensor, "batch heads rows head_dim"]:
        """W_q x of each head."""
        weight, bias = self.in_proj_weight[: self.embed_dim], self.in_proj_bias[: self.embed_dim]
        return linear(x, weight, bias).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def keys_and_values(self, x: Float[Tensor, "batch rows dim"]) -> tuple[Tensor, Tensor]:
        """W_k x and W_v x of each head, (batch, heads, rows, head_dim) each."""
        weight, bias = self.in_proj_weight[self.embed_dim :], self.in_proj_bias[self.embed_dim :]
        k, v = linear(x, weight, bias).unflatten(-1, (2, self.num_heads, -1)).unbind(2)
        return k.transpose(1, 2), v.transpose(1, 2)

    def pool(
        self,
        q: Float[Tensor, "batch heads rows head_dim"],
        k: Float[Tensor, "batch heads keys head_dim"],
        v: Float[Tensor, "batch heads keys head_dim"],
        mask: Mask | None = None,
    ) -> tuple[Float[Tensor, "batch rows dim"], Attention]:
        """The output projection of what each head pools, and the attention itself."""
        attention = self.attend(q, k, v, None, mask)
        return self.join(attention.output.transpose(1, 2)), attention


class FeedForward(nn.Sequential):
    """W_2 relu(W_1 x), for each position on its own."""

    def __init__(self, dim: int, hidden: int, dropout: float) -> None:
        super().__init__(nn.Linear(dim, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, dim))


class EncoderLayer(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)) (pre-norm; Xiong et al. 2020)."""

    def __init__(self, dim: int, heads: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.attention: Heads = Heads(dim, heads, 0.0)
        self.feed_forward: FeedForward = FeedForward(dim, feed_forward, dropout)
        self.norms: nn.ModuleList = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2))
        self.dropout: Dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch source dim"], mask: Mask | None) -> Float[Tensor, "batch source dim"]:
        """One layer; the mask hides padding."""
        seen = self.norms[0](x)
        pooled, _ = self.attention.pool(self.attention.queries(seen), *self.attention.keys_and_values(seen), mask)
        x = x + self.dropout(pooled)
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


class TransformerEncoder(nn.Module):
    """Layers of self-attention over the source; the annotations are the values of the memory."""

    def __init__(self, dim: int, heads: int, layers: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.layers: nn.ModuleList = nn.ModuleList(
            EncoderLayer(dim, heads, feed_forward, dropout) for _ in range(layers)
        )
        self.norm: nn.LayerNorm = nn.LayerNorm(dim)

    def forward(self, embedded: Float[Tensor, "batch source dim"], lengths: Int[Tensor, " batch"] | None) -> Memory:
        """Read a batch of sentences. Padding behind a sentence changes nothing."""
        mask = None if lengths is None else masks.padding(lengths)
        x = embedded + positions(0, embedded.shape[1], embedded)
        for layer in self.layers:
            x = layer(x, mask)
        return Memory(self.norm(x), lengths)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward, each as x + f(norm(x))."""

    def __init__(self, dim: int, heads: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.attention: Heads = Heads(dim, heads, 0.0)
        self.cross_attention: Heads = Heads(dim, heads, 0.0)
        self.feed_forward: FeedForward = FeedForward(dim, feed_forward, dropout)
        self.norms: nn.ModuleList = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.dropout: Dropout = Dropout(dropout)

    def cross(
        self, x: Float[Tensor, "batch rows dim"], keys: tuple[Tensor, Tensor], mask: Mask | None
    ) -> tuple[Float[Tensor, "batch rows dim"], Float[Tensor, "batch heads rows head_dim"], Attention]:
        """Attention to the source and feed-forward: the new x, the queries of each head, and the attention."""
        q = self.cross_attention.queries(self.norms[1](x))
        pooled, attention = self.cross_attention.pool(q, *keys, mask)
        x = x + self.dropout(pooled)
        return x + self.dropout(self.feed_forward(self.norms[2](x))), q, attention

    def force(self, x: Float[Tensor, "batch target dim"]) -> Float[Tensor, "batch target dim"]:
        """Self-attention of all positions, each of which sees itself and those before it."""
        seen = self.norms[0](x)
        k, v = self.attention.keys_and_values(seen)
        pooled, _ = self.attention.pool(self.attention.queries(seen), k, v, masks.causal())
        return x + self.dropout(pooled)

    def step(self, x: Float[Tensor, "batch 1 dim"], past: State) -> tuple[Float[Tensor, "batch 1 dim"], State]:
        """Self-attention of the newest position, and the keys and values with its own."""
        seen = self.norms[0](x)
        new = self.attention.keys_and_values(seen)
        k, v = (torch.cat([old, part], 2) for old, part in zip(past, new, strict=True))
        pooled, _ = self.attention.pool(self.attention.queries(seen), k, v)
        return x + self.dropout(pooled), (k, v)


class TransformerDecoder(Decoder):
    """Layers that attend to the target so far and to the source (Vaswani et al. 2017), pre-norm.

    Queries and weights are those of one layer, `aligned_layer`: which one aligns best is found after training.
    """

    def __init__(self, dim: int, heads: int, layers: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.layers: nn.ModuleList = nn.ModuleList(
            DecoderLayer(dim, heads, feed_forward, dropout) for _ in range(layers)
        )
        self.norm: nn.LayerNorm = nn.LayerNorm(dim)
        self.heads: int = heads
        self.aligned_layer: int = layers - 1

    def prepare(self, memory: Memory) -> Memory:
        """Keys and values of each layer, (batch, heads, source, head_dim), projected once for all steps."""
        layers = [layer.cross_attention.keys_and_values(memory.values) for layer in self.layers]  # pyright: ignore[reportAttributeAccessIssue,reportCallIssue]
        return memory._replace(keys=tuple(tensor for pair in layers for tensor in pair))

    def start(self, memory: Memory) -> State:
        """No keys and values yet, for each layer."""
        like = memory.keys[0]
        return tuple(like.new_zeros(like.shape[0], self.heads, 0, like.shape[-1]) for _ in range(2 * len(self.layers)))

    def step(self, embedded: Float[Tensor, "batch dim"], state: State, memory: Memory) -> Step:
        """One position through all layers."""
        x = embedded.unsqueeze(1) + positions(state[0].shape[2], 1, embedded)
        mask = None if memory.lengths is None else masks.padding(memory.lengths)
        new: list[Tensor] = []
        query, attention = None, None
        for number, layer in enumerate(self.layers):
            own = slice(2 * number, 2 * number + 2)
            x, past = layer.step(x, state[own])  # pyright: ignore[reportCallIssue]
            x, q, attended = layer.cross(x, memory.keys[own], mask)  # pyright: ignore[reportCallIssue]
            new += past
            if number == self.aligned_layer:
                query, attention = q, attended
        return Step(self.norm(x)[:, 0], tuple(new), query, attention)

    def force(self, embedded: Float[Tensor, "batch target dim"], memory: Memory) -> Forced:
        """All positions at once."""
        x, queries = self.layerwise(embedded, memory)
        return Forced(self.norm(x), queries[self.aligned_layer])

    def layerwise(
        self, embedded: Float[Tensor, "batch target dim"], memory: Memory
    ) -> tuple[Float[Tensor, "batch target dim"], list[Float[Tensor, "batch heads target head_dim"]]]:
        """The output of the last layer, before the norm, and the queries of each layer to the source."""
        x = embedded + positions(0, embedded.shape[1], embedded)
        mask = None if memory.lengths is None else masks.padding(memory.lengths)
        queries: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            x = layer.force(x)  # pyright: ignore[reportCallIssue]
            x, q, _ = layer.cross(x, memory.keys[2 * number : 2 * number + 2], mask)  # pyright: ignore[reportCallIssue]
            queries.append(q)
        return x, queries

    def weights(self, queries: Float[Tensor, "1 heads steps head_dim"], memory: Memory) -> Weights | None:
        """The weights (heads, n, m) of one sentence, of the layer that aligns best."""
        return Weights(queries[0], memory.keys[2 * self.aligned_layer][0])

    def keys_and_values(self, memory: Memory) -> tuple[Float[Tensor, "heads source head_dim"], ...]:
        """Keys and values of one sentence, of each head of the layer that aligns best."""
        first = 2 * self.aligned_layer
        return memory.keys[first][0], memory.keys[first + 1][0]
