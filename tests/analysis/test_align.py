"""Alignment: the right links where they are known, from translations and from recorded encoder-decoders."""

import copy
import itertools
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
import tiny_tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from regard import analysis, masks
from regard.datasets import Alignment, numbers, tokenise
from regard.errors import ChoiceError, DataError, DtypeError, PositionError, ShapeError
from regard.recording import Call, Recording

LINKS = st.frozensets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20)


# Error rate


def error_rate_by_hand(found, sure, possible):
    right_sure = sum(1 for link in found if link in sure)
    right = sum(1 for link in found if link in sure or link in possible)
    return 1 - (right_sure + right) / (len(found) + len(sure))


@given(found=LINKS, sure=LINKS, possible=LINKS)
def test_error_rate_is_that_of_och_and_ney(found, sure, possible):
    gold = Alignment(tuple(sure), tuple(possible))  # links may be in both
    expected = error_rate_by_hand(found, sure, possible)
    assert analysis.alignment_error_rate(list(found), gold) == pytest.approx(expected)
    assert analysis.alignment_error_rate(Alignment(tuple(found)).pharaoh(), gold) == pytest.approx(expected)


@given(sure=LINKS, possible=LINKS, extra=st.data())
def test_error_rate_is_0_for_all_sure_and_some_possible_links(sure, possible, extra):
    some = extra.draw(st.frozensets(st.sampled_from(sorted(possible)))) if possible else frozenset()
    assert analysis.alignment_error_rate(sure | some, Alignment(tuple(sure), tuple(possible))) == 0


def test_error_rate_of_several_texts_counts_them_together():
    found, gold = ["0-0 1-1", "0-1"], ["0-0 1-1 2-2", "0-0 0p1"]
    assert analysis.alignment_error_rate(found, gold) == pytest.approx(1 - (2 + 0 + 2 + 1) / (2 + 1 + 3 + 1))
    with pytest.raises(ShapeError, match="each text needs found and gold links: 1 found and 2 gold came"):
        analysis.alignment_error_rate(["0-0"], gold)


def test_links_may_be_numbers_of_any_library():
    found = [(np.int64(0), torch.tensor(1)), [1, 0]]
    assert analysis.alignment_error_rate(found, "0-1 1-0") == 0
    assert analysis.alignment_error_rate([found, "0-0"], ["0-1 1-0", [(0, 0)]]) == 0


def test_error_rate_refuses_what_has_no_links():
    with pytest.raises(DataError, match="neither found links nor sure gold links"):
        analysis.alignment_error_rate("", "0p1")
    with pytest.raises(ShapeError, match="a link is a pair"):
        analysis.alignment_error_rate([(0, -1)], "0-0")
    with pytest.raises(ShapeError, match="each text needs found and gold links: 1 found and 1 gold came"):
        analysis.alignment_error_rate("0-0", ["0-0"])


# Weights whose links are known


def pieces_of(words, draw):
    """Each word cut into parts, as SentencePiece would, and for each part its word."""
    parts, owner = [], []
    for number, word in enumerate(words):
        cut = draw(st.integers(1, len(word)))
        texts = [word[:cut], word[cut:]] if cut < len(word) else [word]
        parts += ["▁" + texts[0], *texts[1:]]
        owner += [number] * len(texts)
    return parts, owner


WORD = st.sampled_from(["one", "two", "three", "l'homme", "été", "go"])


@st.composite
def translations(draw, heads=5):
    """A translation of which one head attends by a permutation of words, and what that permutation is."""
    words = draw(st.lists(WORD, min_size=3, max_size=7))
    places = draw(st.permutations(range(len(words))))
    source, source_word = pieces_of(words, draw)
    target, target_word = pieces_of([words[place].upper() for place in places], draw)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    n, m = len(target), len(source) + 1  # and </s>
    weights = torch.rand(heads, n, m, generator=generator).mul(0.3).softmax(-1)
    weights[0] = torch.eye(m)[m - 1]  # all look at </s>
    weights[1] = torch.eye(m)[0]  # all look at the first token
    aligned = draw(st.integers(2, heads - 1))
    for row, word in enumerate(target_word):
        inside = torch.tensor([part == places[word] for part in source_word] + [False])
        share = torch.rand(m, generator=generator) * inside
        weights[aligned, row] = 0.2 * weights[aligned, row] + 0.8 * share / share.sum()
    links = tuple(sorted((place, number) for number, place in enumerate(places)))
    t = SimpleNamespace(weights=weights, tokens=target, source_tokens=[*source, "</s>"])
    return t, aligned, links, words


@given(translations())
def test_the_head_that_aligns_is_found_without_gold_links(case):
    t, aligned, links, words = case
    found = analysis.align(t)
    assert (found.head, found.links) == (aligned, links)
    assert found.source_words == tuple(words)
    assert found.error_rate(links) == 0
    table = analysis.alignment_heads(t)
    assert table[0].head == aligned
    assert {row.head: row.information for row in table}[1] == pytest.approx(0, abs=1e-6)
    assert all(math.isnan(row.error_rate) for row in table)


@given(translations())
def test_gold_links_choose_the_head_with_the_least_error_rate(case):
    t, _, links, _ = case
    table = analysis.alignment_heads(t, gold=[links])
    for row in (table[0], table[-1]):
        by_hand = analysis.align(t, heads="mean" if row.head is None else row.head)
        assert row.error_rate == by_hand.error_rate(links)
    assert table[0].error_rate == min(table["error_rate"]) == 0
    assert analysis.align(t, gold=links).links == links
    assert analysis.align_all([t, t], gold=[links, links])[1].links == links


@given(translations())
def test_merged_weights_are_sums_over_source_parts_and_means_over_target_parts(case):
    t, aligned, _, words = case
    found = analysis.align(t, heads=aligned)
    rows, columns = word_of_each(t.tokens), word_of_each(t.source_tokens[:-1])
    for i, j in itertools.product(range(len(words)), repeat=2):
        cells = t.weights[aligned][[row == i for row in rows]][:, [column == j for column in columns] + [False]]
        assert float(found.weights[i, j]) == pytest.approx(float(cells.sum()) / len(cells), abs=1e-6)


def word_of_each(tokens):
    return [number - 1 for number in itertools.accumulate(token.startswith("▁") for token in tokens)]


@pytest.mark.parametrize("target", ["zh", "fr", "digits"])
def test_weights_made_from_gold_links_align_numbers_without_error(target):
    for pair in numbers(20, words=(3, 25), target=target, seed=5):
        source, tokens = tokenise(pair.source), tokenise(pair.target, target)
        weights = torch.full((len(tokens), len(source)), 1e-3)
        for i, j in pair.alignment.possible:
            weights[j, i] = 0.5
        for i, j in pair.alignment.sure:
            weights[j, i] = 0.7
        t = SimpleNamespace(weights=weights, tokens=tokens, source_tokens=source)
        assert analysis.align(t, links=0.6).error_rate(pair.alignment) == 0
        assert analysis.align(t, links=0.4).error_rate(pair.alignment) == 0
        best = analysis.align(t)
        assert {j for _, j in best.links} == set(range(len(tokens)))
        assert analysis.alignment_error_rate(best, pair.alignment) == error_rate_by_hand(
            best.links, pair.alignment.sure, pair.alignment.possible
        )
        if target != "fr":  # quarante-deux has two sure links, of which one is the best
            assert best.error_rate(pair.alignment) == 0


def test_rules_for_links():
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.0, 0.0, 0.0]])
    t = SimpleNamespace(weights=weights, tokens=["x", "y", "z"], source_tokens=["a", "b", "c"])
    assert analysis.align(t).pharaoh() == "0-0 0-1"  # a row without weights has no link
    assert analysis.align(t, links="mutual").pharaoh() == "0-0"
    assert analysis.align(t, links=0.3).pharaoh() == "0-0 0-1 1-0 1-1"
    assert analysis.align(t).word_pairs == (("a", "x"), ("a", "y"))
    assert repr(analysis.align(t)) == "<WordAlignment by weights, head 0: a-x a-y>"


def test_lazy_weights_are_read_without_being_built():
    x = torch.randn(2, 3, 5, 7)
    weights = rg.Weights(x[:1], torch.randn(1, 3, 11, 7))
    t = SimpleNamespace(weights=weights, tokens=[*"abcde"], source_tokens=[*"fghijklmnop"])
    dense = SimpleNamespace(weights=weights.dense()[0].numpy(), tokens=t.tokens, source_tokens=t.source_tokens)
    one, other = analysis.align(t), analysis.align(dense)
    assert (one.links, one.head) == (other.links, other.head)
    torch.testing.assert_close(one.weights, other.weights)


def test_translations_without_words_have_no_links():
    t = SimpleNamespace(weights=torch.ones(1, 2) / 2, tokens=["</s>"], source_tokens=["a", "b"])
    assert analysis.align(t).links == ()


# Recordings


MARKS = {"<s>": 0, "</s>": 1, "<pad>": 2}


class Vocabulary:
    """A tokenizer that knows the tokens of a list."""

    all_special_ids = (0, 1, 2)
    unk_token_id = None

    def __init__(self, tokens):
        self.tokens = [*MARKS, *tokens]

    def ids(self, tokens):
        return torch.tensor([[self.tokens.index(token) for token in tokens]])

    def convert_ids_to_tokens(self, ids):
        return [self.tokens[number] for number in ids]

    def decode(self, ids):
        return "".join(self.convert_ids_to_tokens(ids)).replace("▁", " ").strip()


SOURCE = ["▁black", "▁c", "at", "</s>", "<pad>"]
TARGET = ["<s>", "▁ch", "at", "▁noir"]  # what the decoder reads; it writes ▁ch, at, ▁noir, </s>


def decoder_recording(attended, layers=("decoder.0.encoder_attn",)):
    """A recording in which row i of the decoder attends to the source token attended[i]."""
    vocabulary = Vocabulary(dict.fromkeys(SOURCE[:-2] + TARGET[1:]))
    query = 9.0 * torch.eye(5)[torch.tensor(attended)].expand(1, 2, -1, -1)
    weights = rg.Weights(query, torch.eye(5).expand(1, 2, 5, 5), mask=masks.padding(torch.tensor([4])))
    calls = [replace(Call.of_weights(name, 0, weights), cross=True) for name in layers]
    inputs = {0: {"input_ids": vocabulary.ids(SOURCE), "decoder_input_ids": vocabulary.ids(TARGET)}}
    return Recording(calls, inputs, tokenizer=vocabulary)


def test_a_recorded_row_belongs_to_the_token_that_it_produced():
    recording = decoder_recording([1, 2, 0, 3])
    found = analysis.align(recording)
    assert found.source_words == ("black", "cat")
    assert found.target_words == ("chat", "noir")
    assert found.pharaoh() == "0-1 1-0"


def test_shift_0_takes_the_row_that_read_a_word():
    found = analysis.align(decoder_recording([3, 1, 2, 0]), shift=0)
    assert found.word_pairs == (("black", "noir"), ("cat", "chat"))
    assert analysis.align(decoder_recording([3, 1, 2, 0])).word_pairs != found.word_pairs


def test_tokens_that_are_given_are_what_each_row_produced():
    recording = decoder_recording([1, 2, 0, 3])
    found = analysis.align(recording, tokens=["a", "b", "c", "</s>"], source_tokens=["v", "w", "x", "</s>", "<pad>"])
    assert found.word_pairs == (("v", "c"), ("w", "a"), ("x", "b"))
    bare = Recording(recording.calls, {})
    assert analysis.align(bare, tokens=["a", "b", "c", "d"]).source_words == ("0", "1", "2", "3")  # padding is hidden
    with pytest.raises(ChoiceError, match="has no decoder_input_ids for the 4 rows of its weights"):
        analysis.align(bare)


def test_a_recording_from_a_file_needs_its_tokenizer_for_parts_of_words(tmp_path):
    recording = decoder_recording([1, 2, 0, 3])
    recording.save(tmp_path / "a.regard")
    opened = rg.open(tmp_path / "a.regard")
    assert analysis.align(opened, tokenizer=recording.tokenizer).word_pairs == (("black", "noir"), ("cat", "chat"))
    assert analysis.align(opened).source_words == ("black", "c", "at")  # decoded texts have lost their marks


ARCHITECTURES = {"T5": "T5Model", "BART": "BartModel", "Marian": "MarianModel", "Whisper": "WhisperModel"}


def eager_cross_attention(model, inputs):
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    return twin(**inputs, output_attentions=True).cross_attentions


@pytest.mark.parametrize("name", ARCHITECTURES)
@torch.no_grad()
def test_recorded_encoder_decoders_are_aligned_by_their_cross_attention(name):
    model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
    with rg.record(model) as recording:
        model(**inputs)
    cross = [layer.name for layer in recording.layers if layer.cross]
    truth = dict(zip(cross, eager_cross_attention(model, inputs), strict=True))
    assert len(cross) == 2
    for row in range(2):
        found = analysis.align(recording, row=row)
        ids = inputs["decoder_input_ids"][row, 1:]
        assert found.target_words == tuple(str(number) for number in ids.tolist())
        seen = inputs["attention_mask"][row].bool() if "attention_mask" in inputs else slice(None)
        dense = truth[found.layer][row, :, :-1][..., seen]
        expected = dense.mean(0) if found.head is None else dense[found.head]
        torch.testing.assert_close(found.weights, expected, atol=1e-5, rtol=0)
        assert found.links == tuple(sorted((int(s), t) for t, s in enumerate(expected.argmax(-1))))
        if "input_ids" in inputs:
            assert found.source_words == tuple(str(n) for n in inputs["input_ids"][row][seen].tolist())
        else:
            assert found.source_words == tuple(map(str, range(10)))  # frames of sound


@pytest.mark.parametrize("name", ARCHITECTURES)
@torch.no_grad()
def test_the_best_head_has_the_most_information_by_the_textbook(name):
    model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
    with rg.record(model) as recording:
        model(**inputs)
    table = analysis.alignment_heads(recording)
    assert len(table) == 2 * (4 + 1)
    assert list(table["information"]) == sorted(table["information"], reverse=True)
    cross = [layer.name for layer in recording.layers if layer.cross]
    truth = dict(zip(cross, eager_cross_attention(model, inputs), strict=True))
    for layer, head, information, _ in table:
        joint = truth[layer].mean(1) if head is None else truth[layer][:, head]
        by_hand = 0.0
        for row in joint[:, :-1].double():
            p = row / len(row)  # of (target, source)
            ratio = (p / p.sum(0) / p.sum(1, keepdim=True)).clamp_min(1e-300).log()
            by_hand += float((p * ratio).nan_to_num().sum()) / 2
        assert information == pytest.approx(by_hand, abs=1e-6)
    one_head = analysis.align_all(recording)
    assert [(found.layer, found.head) for found in one_head] == [(table[0].layer, table[0].head)] * 2


@pytest.mark.parametrize("kind", tiny_tokenizers.KINDS)
@torch.no_grad()
def test_a_generated_translation_is_aligned_in_words(kind):
    tokenizer = tiny_tokenizers.build(kind)
    options = {**tiny_models.PAIR, "vocab_size": len(tokenizer), "decoder_start_token_id": 0}
    model = tiny_models.make("BartForConditionalGeneration", "BartConfig", options)
    text = "Tom's brother doesn't like it."
    inputs = tokenizer([text + "</s>"], return_tensors="pt", return_token_type_ids=False)
    with rg.record(model, tokenizer=tokenizer) as recording:
        output = model.generate(**inputs, max_new_tokens=12, min_new_tokens=12, do_sample=False)
    found = analysis.align(recording, languages=("en", "fr"))
    spaced = re.sub(r"([^\w\s])", r" \1 ", text) if kind == "wordpiece" else text
    assert list(found.source_words) == tokenise(spaced)
    written = "".join(tokenizer.decode(output[0, :-1], skip_special_tokens=True).split())
    assert "".join(found.target_words).replace("'", "’") == written.replace("##", "").replace("'", "’")
    assert found.weights.shape == (len(found.target_words), len(found.source_words))


# Refusals


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"heads": 7}, ChoiceError, "heads=7 chooses none of the 2 heads of decoder.0.encoder_attn"),
        ({"heads": []}, ChoiceError, "chooses none of the 2 heads"),
        ({"links": "all"}, ChoiceError, "links must be 'best', 'mutual' or the least weight of a link; 'all' came"),
        ({"links": 1.5}, ChoiceError, "above 0 and at most 1; 1.5 came"),
        ({"shift": 2}, ChoiceError, "shift must be 1, the row that produced a word, or 0"),
        ({"row": 3}, PositionError, "there is no row 3 in a batch of 1"),
        ({"layers": "encoder*"}, ChoiceError, "chooses none of the recorded layers"),
        ({"gold": "0-0 5-1"}, ShapeError, "gold has a link 5-1, and there are 2 source and 2 target words"),
        ({"tokens": ["a"]}, ShapeError, "tokens must have one token for each of 4, 1 came"),
        ({"source_tokens": ["a"]}, ShapeError, "source_tokens must have one token for each of 5, 1 came"),
    ],
)
def test_align_refuses_with_reasons(arguments, error, message):
    with pytest.raises(error, match=message):
        analysis.align(decoder_recording([1, 2, 0, 3]), **arguments)


@pytest.mark.plain
def test_align_refuses_one_language_for_both_texts():
    with pytest.raises(ChoiceError, match=r"languages are those of source and target.*; 'en' came"):
        analysis.align(decoder_recording([1, 2, 0, 3]), languages="en")


@torch.no_grad()
def test_align_needs_cross_attention():
    model = tiny_models.build("BERT")
    with rg.record(model) as recording:
        model(**tiny_models.MODELS["BERT"].inputs())
    with pytest.raises(ChoiceError, match="none of these layers attends from a translation to its source"):
        analysis.align(recording)


@pytest.mark.parametrize(
    ("attended", "error", "message"),
    [
        (SimpleNamespace(weights=None, tokens=[], source_tokens=[]), ChoiceError, "its model has no attention"),
        (
            SimpleNamespace(weights=torch.ones(2, 2, 3, 3), tokens=[], source_tokens=[]),
            ShapeError,
            r"\(2, 2, 3, 3\) came",
        ),
        (SimpleNamespace(weights=torch.ones(2, 3), tokens=["a"], source_tokens=["b"]), ShapeError, "each of 2, 1 came"),
        (3, DtypeError, "align takes a recording of an encoder-decoder, or a translation.*int came"),
        ([], DtypeError, "list came"),
    ],
    ids=["no attention", "dimensions", "tokens", "number", "nothing"],
)
def test_align_refuses_what_has_no_weights(attended, error, message):
    with pytest.raises(error, match=message):
        analysis.align(attended)


def test_several_translations_are_for_align_all():
    t = SimpleNamespace(weights=torch.ones(2, 1), tokens=["a", "b"], source_tokens=["c"])
    with pytest.raises(ShapeError, match="align takes one translation, 2 came: align_all takes several"):
        analysis.align([t, t])
    with pytest.raises(ShapeError, match="gold has links for each translation: 2 translations, 1 came"):
        analysis.align_all([t, t], gold=["0-0"])


def test_table_of_heads_sorts_and_prints_the_mean_of_heads():
    recording = decoder_recording([1, 2, 0, 3])
    table = analysis.alignment_heads(recording, gold=["0-1 1-0"])
    assert table.sort("head").column("head") == (0, 1, None)
    assert "mean" in str(table) and "error rate" in str(table)
    assert table.layers == ("decoder.0.encoder_attn",)
