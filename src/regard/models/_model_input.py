"""A text as a model is given it, with what would go wrong said before the work."""

from __future__ import annotations

from typing import Any, NamedTuple

from regard.errors import DataError, ShapeError, UnknownTextError
from regard.models._hugging_face import load, longest


class Given(NamedTuple):
    """A model and what it is to read."""

    name: str
    tokenizer: Any
    model: Any
    inputs: dict[str, Any]  # input_ids and attention_mask, (1, tokens)

    @property
    def length(self) -> int:
        return self.inputs["input_ids"].shape[-1]


def give(
    name: str,
    text: str,
    *,
    loaded: tuple[Any, Any] | None = None,
    generate: int = 0,
    truncate: bool = False,
    instead: str = "",
    shorter: str = "",
) -> Given:
    """Tokens of a text for a model by name; `loaded`, if its tokenizer and the model are at hand.

    generate: how many tokens it is to write besides. instead, shorter: what the caller offers where the model does not
    know the text, or reads less than this at a time.
    """
    if not text.strip():
        raise DataError("there is nothing to record: the text is empty")
    tokenizer, model = loaded or load(name, causal=generate > 0)
    if model.config.is_encoder_decoder and not generate:
        model = model.get_encoder()  # the half that reads; the half that writes would ask what to write
    most = longest(tokenizer, model) - generate
    options = {"truncation": True, "max_length": max(most, 1)} if truncate else {}
    tokens = tokenizer(text, return_tensors="pt", verbose=False, **options)
    given = Given(name, tokenizer, model, {key: tokens[key] for key in ("input_ids", "attention_mask")})
    _check_known(given, instead)
    if given.length > most:
        also = f", {generate} of them its own" if generate else ""
        raise ShapeError(
            f"{name} reads {most + generate:,} tokens at a time{also}, and this text has {given.length:,}: "
            f"give a shorter one{shorter.format(most=max(most, 0))}"
        )
    return given


def _check_known(given: Given, instead: str) -> None:
    """A text of which the model sees mostly holes says nothing about the text."""
    tokenizer, unknown = given.tokenizer, given.tokenizer.unk_token_id
    own = [i for i in given.inputs["input_ids"][0].tolist() if i == unknown or i not in tokenizer.all_special_ids]
    if not own:
        raise DataError("there is nothing to record: the text has no token but those that the model adds")
    holes = own.count(unknown)
    if 2 * holes > len(own):
        raise UnknownTextError(
            f"{given.name} does not know this text: {holes} of its {len(own)} tokens are {tokenizer.unk_token}{instead}"
        )
