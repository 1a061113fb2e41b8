"""The models that users make: `Seq2Seq` and `Transformer`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

from regard.errors import ChoiceError
from regard.nn import LocalAttention, LuongAttention
from regard.seq2seq import checkpoint, decoding
from regard.seq2seq.decoding import Replay, Translation
from regard.seq2seq.network import EncoderDecoder
from regard.seq2seq.recurrent import CELLS, BahdanauDecoder, Decoder, Encoder, FixedVectorDecoder, LuongDecoder
from regard.seq2seq.transformer import TransformerDecoder, TransformerEncoder

MAX_KEYS = 128  # source tokens for which the location score has a place


class TranslationModel(EncoderDecoder):
    """A network that takes texts: it translates them, aligns them with given translations, and is saved to a file."""

    @overload
    def translate(
        self,
        text: str,
        beam: int = 4,
        *,
        length_penalty: float = 1.0,
        replace_unknown: bool = False,
        max_tokens: int | None = None,
    ) -> Translation: ...
    @overload
    def translate(
        self,
        text: list[str] | tuple[str, ...],
        beam: int = 4,
        *,
        length_penalty: float = 1.0,
        replace_unknown: bool = False,
        max_tokens: int | None = None,
    ) -> list[Translation]: ...
    def translate(
        self,
        text: str | list[str] | tuple[str, ...],
        beam: int = 4,
        *,
        length_penalty: float = 1.0,
        replace_unknown: bool = False,
        max_tokens: int | None = None,
    ) -> Translation | list[Translation]:
        """Translate a text, or each of a list, by beam search: a `Translation`, or a list of them.

        beam: hypotheses that are kept; 1 is greedy search.
        length_penalty: the best hypothesis has the largest score / length^length_penalty.
        replace_unknown: copy the source token with the largest weight for an unknown token.
        max_tokens: of a translation; twice the source and 10 more if None.

        A text of which the model knows no part is refused.
        """
        texts = decoding.texts_of(text)
        decoding.require_known(self, texts)
        found = decoding.translate(
            self,
            texts,
            beam=beam,
            length_penalty=length_penalty,
            replace_unknown=replace_unknown,
            max_tokens=max_tokens,
        )
        return found[0] if isinstance(text, str) else found

    def align(self, source: str, target: str) -> Translation:
        """The translation `target` as if the model had found it: its score, and weights for its own tokens."""
        decoding.require_known(self, decoding.texts_of(source))
        return decoding.align(self, [(source, target)])[0]

    def replay(self, translation: Translation, top: int = 5) -> Replay:
        """Compute the steps of a translation once more, with the `top` likeliest tokens of each step."""
        return decoding.replay(self, translation, top)

    def save(self, path: str | Path) -> None:
        """Write the model to a safetensors file, with its settings and vocabularies; `seq2seq.load` reads it."""
        checkpoint.save_model(self, path)


class Seq2Seq(TranslationModel):
    """A recurrent encoder-decoder: with Bahdanau's or Luong's attention, or with a fixed vector instead of one.

    attention: "bahdanau" (additive; the context goes into the cell), "luong" (global), "local" (Luong's local-p), or
        "none" (the whole source in one vector).
    score: of "luong": "dot", "general", "concat" or "location"; of "local" all but the last. Default: "general".
    cell: "gru" or "lstm".
    embedding, hidden: widths of the embeddings and of the decoder's state; the annotations of the source are as wide as
        the state, one half for each direction.
    input_feeding: of "luong" and "local": feed the last features into the cell.
    window: of "local": half the width of the window, D.
    dropout: of embeddings and features, in training.

    >>> import regard as rg
    >>> rg.seq2seq.Seq2Seq(attention="luong", score="dot", cell="lstm").settings["score"]
    'dot'
    """

    kind = "seq2seq"

    def __init__(
        self,
        attention: str = "bahdanau",
        score: str | None = None,
        cell: str = "gru",
        *,
        embedding: int = 128,
        hidden: int = 256,
        dropout: float = 0.1,
        input_feeding: bool = False,
        window: int = 10,
    ) -> None:
        _check("attention", attention, ("bahdanau", "luong", "local", "none"))
        _check("cell", cell, tuple(CELLS))
        scored = {"luong": ("dot", "general", "concat", "location"), "local": ("dot", "general", "concat")}
        if attention in scored:
            score = "general" if score is None else score
            _check(f"score of attention={attention!r}", score, scored[attention])
        elif score is not None or input_feeding:
            what = f"score={score!r}" if score is not None else "input_feeding=True"
            raise ChoiceError(f"{what} is for attention='luong' and 'local', and attention came as {attention!r}")
        _check_sizes(embedding=embedding, hidden=hidden, window=window)
        if hidden % 2:
            raise ChoiceError(f"hidden is an even number, one half for each direction, and came as {hidden}")
        settings = {
            "attention": attention, "score": score, "cell": cell, "embedding": embedding, "hidden": hidden,
            "dropout": _dropout(dropout), "input_feeding": input_feeding, "window": window,
        }  # fmt: skip
        super().__init__(settings)

    def build_layers(self) -> tuple[Encoder, Decoder]:
        """Make the bidirectional encoder and the decoder of this attention."""
        chosen = self.settings
        embedding, hidden, cell = chosen["embedding"], chosen["hidden"], chosen["cell"]
        encoder = Encoder(embedding, hidden, cell)
        if chosen["attention"] == "bahdanau":
            return encoder, BahdanauDecoder(embedding, hidden, cell)
        if chosen["attention"] == "none":
            return encoder, FixedVectorDecoder(embedding, hidden, cell)
        score = chosen["score"]
        if chosen["attention"] == "luong":
            places = MAX_KEYS if score == "location" else None
            attention = LuongAttention(hidden, hidden, score, max_keys=places)
        else:
            attention = LocalAttention(hidden, hidden, chosen["window"], "p", score)
        return encoder, LuongDecoder(embedding, hidden, cell, attention, input_feeding=chosen["input_feeding"])


class Transformer(TranslationModel):
    """A small Transformer: pre-norm layers on `regard.nn.MultiheadAttention`, embeddings tied to the output.

    embedding: width of embeddings and layers. heads: of each attention. layers: of the encoder, and as many of the
    decoder. feed_forward: width inside the feed-forward networks, 2 * embedding unless given.

    >>> import regard as rg
    >>> rg.seq2seq.Transformer(layers=2).settings["layers"]
    2
    """

    kind = "transformer"

    def __init__(
        self,
        *,
        embedding: int = 128,
        heads: int = 4,
        layers: int = 3,
        feed_forward: int | None = None,
        dropout: float = 0.1,
    ) -> None:
        feed_forward = 2 * embedding if feed_forward is None else feed_forward
        _check_sizes(embedding=embedding, heads=heads, layers=layers, feed_forward=feed_forward)
        if embedding % (2 * heads):
            raise ChoiceError(f"embedding is a multiple of 2 * heads = {2 * heads}, and came as {embedding}")
        settings = {
            "embedding": embedding, "heads": heads, "layers": layers, "feed_forward": feed_forward,
            "dropout": _dropout(dropout),
        }  # fmt: skip
        super().__init__(settings)

    def build_layers(self) -> tuple[TransformerEncoder, TransformerDecoder]:
        """Make the layers of encoder and decoder."""
        chosen = self.settings
        sizes = chosen["embedding"], chosen["heads"], chosen["layers"], chosen["feed_forward"], chosen["dropout"]
        return TransformerEncoder(*sizes), TransformerDecoder(*sizes)


def _check(name: str, value: str, offered: Sequence[str]) -> None:
    if value not in offered:
        raise ChoiceError(f"{name} is one of {', '.join(map(repr, offered))}, and came as {value!r}")


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ChoiceError(f"{name} is a whole number, 1 or more, and came as {size!r}")


def _dropout(value: float) -> float:
    if not 0 <= value < 1:
        raise ChoiceError(f"dropout is a probability from 0 up to but not including 1, and came as {value!r}")
    return float(value)
