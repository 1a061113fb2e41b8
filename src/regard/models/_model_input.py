"""A text as the token ids of a model, checked before the model runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from regard.errors import DataError, ShapeError, UnknownTextError
from regard.models._hugging_face import load, longest


class TokenizedText(NamedTuple):
    """A text as the tokens of a model, with the model and its tokenizer."""

    name: str
    tokenizer: Any
    model: Any
    inputs: dict[str, Any]  # input_ids and attention_mask, (1, tokens)

    @property
    def length(self) -> int:
        """Number of tokens."""
        return self.inputs["input_ids"].shape[-1]


def tokenize(
    name: str,
    text: str,
    *,
    loaded: tuple[Any, Any] | None = None,
    generate: int = 0,
    truncate: bool = False,
    instead: str = "",
    shorter: str = "",
) -> TokenizedText:
    """Load a model by name and tokenize a text for it; refuse empty, unknown and too long texts.

    loaded: tokenizer and model, if they are loaded already. generate: number of tokens that the model is to write, for
    which space is left. truncate: cut a text that is too long. instead, shorter: advice of the caller that is added to
    the error for an unknown text and for one that is too long.
    """
    if not text.strip():
        raise DataError("there is nothing to record: the text is empty")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise DataError(f"the text has half a character (a surrogate) in it: {text[:40]!r}; decode it as UTF-8")
    tokenizer, model = loaded or load(name, causal=generate > 0)
    if model.config.is_encoder_decoder and not generate:
        model = model.get_encoder()  # the decoder would need tokens to begin with
    limit = longest(tokenizer, model) - generate
    options = {"truncation": True, "max_length": max(limit, 1)} if truncate else {}
    tokens = tokenizer(text, return_tensors="pt", verbose=False, **options)
    prepared = TokenizedText(name, tokenizer, model, {key: tokens[key] for key in ("input_ids", "attention_mask")})
    _check_known(prepared, instead)
    if prepared.length > limit:
        also = f", {generate} of them its own" if generate else ""
        raise ShapeError(
            f"{name} reads {limit + generate:,} tokens at a time{also}, and this text has {prepared.length:,}: "
            f"give a shorter one{shorter.format(most=max(limit, 0))}"
        )
    return prepared


def _check_known(prepared: TokenizedText, instead: str) -> None:
    """Refuse a text without tokens, and one most of whose tokens are unknown to the model."""
    tokenizer, unknown = prepared.tokenizer, prepared.tokenizer.unk_token_id
    own = [i for i in prepared.inputs["input_ids"][0].tolist() if i == unknown or i not in tokenizer.all_special_ids]
    if not own:
        raise DataError("there is nothing to record: the text has no token but those that the model adds")
    holes = own.count(unknown)
    if 2 * holes > len(own):
        raise UnknownTextError(
            f"{prepared.name} does not know this text: {holes} of its {len(own)} tokens are "
            f"{tokenizer.unk_token}{instead}"
        )
