"""Small tokenizers that cut words into parts, one of each kind that people use, trained on a few sentences."""

from functools import cache
from pathlib import Path
from typing import Any

SPECIAL = ["<s>", "</s>", "<pad>", "<unk>"]
EXCERPT = Path(__file__).parent / "datasets" / "tatoeba_excerpt.tsv"
KINDS = ("sentencepiece", "byte-level", "wordpiece")


def sentences(column: int) -> list[str]:
    """English (0) or French (1) sentences."""
    return [row.split("\t")[column] for row in EXCERPT.read_text(encoding="utf-8").splitlines()]


@cache
def build(kind: str, size: int = 400) -> Any:
    """A tokenizer of Hugging Face for English and French, with few tokens, so that most words have several."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    options: dict[str, Any] = {"vocab_size": size, "special_tokens": SPECIAL, "show_progress": False}
    if kind == "sentencepiece":
        plain = Tokenizer(models.BPE(unk_token="<unk>"))  # noqa: S106  no password
        plain.pre_tokenizer, plain.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer: Any = trainers.BpeTrainer(**options)
    elif kind == "byte-level":
        plain = Tokenizer(models.BPE())
        plain.pre_tokenizer, plain.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **options)
    else:
        plain = Tokenizer(models.WordPiece(unk_token="<unk>"))  # noqa: S106  no password
        plain.pre_tokenizer, plain.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(**options)
    plain.train_from_iterator([*sentences(0), *sentences(1)], trainer)
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=plain, **names)
