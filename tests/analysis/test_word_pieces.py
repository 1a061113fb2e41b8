"""Parts of words are merged into the words of the text, whatever marks their tokenizer has."""

import re

import pytest
import tiny_tokenizers
import torch

from regard.analysis._word_pieces import merge
from regard.datasets import tokenise


def text_as_read(kind, text):
    """WordPiece does not keep where spaces were around punctuation."""
    return re.sub(r"([^\w\s])", r" \1 ", text) if kind == "wordpiece" else text


@pytest.mark.parametrize("kind", tiny_tokenizers.KINDS)
@pytest.mark.parametrize(("column", "language"), [(0, "en"), (1, "fr")])
def test_merged_parts_are_the_words_of_the_text(kind, column, language):
    tokenizer = tiny_tokenizers.build(kind)
    cut = 0
    for text in tiny_tokenizers.sentences(column):
        tokens = tokenizer.tokenize(text)
        words = merge([*tokens, "</s>"], language, marked=tokenizer.get_vocab())
        assert list(words.texts) == tokenise(text_as_read(kind, text), language)
        torch.testing.assert_close(words.shares[:-1].sum(1), torch.ones(len(tokens)))
        assert not words.shares[-1].any()
        assert (words.shares.sum(0) > 0).all()
        cut += len(tokens) > len(words.texts)
    assert cut > 100  # most sentences have words of several parts


@pytest.mark.parametrize("kind", tiny_tokenizers.KINDS)
def test_each_part_belongs_to_the_word_that_it_is_in(kind):
    tokenizer = tiny_tokenizers.build(kind)
    for text in tiny_tokenizers.sentences(1)[:60]:
        tokens = tokenizer.tokenize(text)
        words = merge(tokens, "fr", marked=tokenizer.get_vocab())
        for token, shares in zip(tokens, words.shares, strict=True):
            letters = tokenizer.convert_tokens_to_string([token]).strip().removeprefix("##")
            if kind != "byte-level" or "\ufffd" not in letters:
                inside = "".join(words.texts[i] for i in shares.nonzero().flatten().tolist())
                assert "".join(letters.split()).replace("’", "'").replace("##", "") in inside


@pytest.mark.parametrize(
    ("tokens", "words", "parts"),
    [
        (["▁mis", "took", "▁him", "</s>"], ["mistook", "him"], [0, 0, 1, None]),
        (["▁", "mis", "took", "▁<unk>"], ["mistook", "<unk>"], [0, 0, 0, 1]),
        (["I", "Ġca", "f", "Ã", "©"], ["I", "café"], [0, 1, 1, 1, 1]),
        (["[CLS]", "play", "##ing", "[UNK]", "[SEP]"], ["playing", "<unk>"], [None, 0, 0, 1, None]),
        (["mis@@", "took", "him"], ["mistook", "him"], [0, 0, 1]),
        (["mis", "took</w>", "him</w>"], ["mistook", "him"], [0, 0, 1]),
        (["Once", " upon", " a", " ti", "me"], ["Once", "upon", "a", "time"], [0, 1, 2, 3, 3]),
        ([" 旷 1/3", " 旷 2/3", " 旷 3/3", "课"], ["旷", "课"], [0, 0, 0, 1]),
        (["▁我", "爱", "▁GPS", "吗"], ["我", "爱", "GPS", "吗"], [0, 1, 2, 3]),
        (["▁我GPS", "es"], ["我GPSes"], [0, 0]),
        (["æĪ", "ĳ", "çĪ±", "Ġyou"], ["我", "爱", "you"], [0, 0, 1, 2]),
        (["三", "百", "、"], ["三", "百", "、"], [0, 1, 2]),
        (["it", "'s", "a.m."], ["it", "'s", "a.m."], [0, 1, 2]),
        ([">>fra<<", "▁go", "__fr__"], ["go"], [None, 0, None]),
        (["<|startoftranscript|>", "Ġgo"], ["go"], [None, 0]),
        ([], [], []),
        (["</s>"], [], [None]),
    ],
)
def test_marks_of_tokenizers(tokens, words, parts):
    merged = merge(tokens)
    assert list(merged.texts) == words
    expected = torch.zeros(len(tokens), len(words))
    for token, word in enumerate(parts):
        if word is not None:
            expected[token, word] = 1
    assert torch.equal(merged.shares, expected)


def test_a_part_that_spans_two_words_is_shared_by_its_letters():
    merged = merge(["▁it's", "▁不知道"], "en")
    assert merged.texts[:2] == ("it", "'s")
    torch.testing.assert_close(merged.shares[0, :2], torch.tensor([0.5, 0.5]))
    characters = merge(["▁不知道"], "zh")
    assert characters.texts == ("不", "知", "道")
    torch.testing.assert_close(characters.shares[0], torch.full((3,), 1 / 3))


def test_punctuation_is_cut_off_the_end_of_a_word_if_asked():
    tokens = ["▁br", "other", "!", "?", "▁it", "'", "s", "▁...", "▁("]
    assert merge(tokens).texts == ("brother!?", "it's", "...", "(")
    assert merge(tokens, cut_punctuation=True).texts == ("brother", "!", "?", "it's", "...", "(")


def test_special_tokens_may_be_named_by_position():
    assert merge(["▁go", "<x>"], special={0}).texts == ("<x>",)
