"""Beam search, and what a translation says about itself."""

import itertools
import math

import pytest
import torch
from seq2seq_models import KINDS, SOURCE, TARGET, built
from torch.nn.functional import log_softmax

from regard.errors import ChoiceError, DataError, ShapeError, UnknownTextError
from regard.seq2seq import Seq2Seq, Vocabularies, Vocabulary, decoding
from regard.seq2seq.vocabulary import END, PAD, SPECIAL, START, UNKNOWN

TEXTS = ["a b c d e", "g f", "c", "b a d c a b e f"]


def greedy(model, source):
    """The likeliest token at each step, by the definition."""
    memory = model.encode(torch.tensor([source]))
    ids, limit = [], 2 * len(source) + 10
    while len(ids) < limit:
        features, _ = model.force(torch.tensor([[START, *ids]]), memory)
        logits = model.logits(features[0, -1])
        logits[[PAD, START]] = -math.inf
        best = int(logits.argmax())
        if best == END:
            break
        ids.append(best)
    return ids


def log_probability(model, memory, ids):
    features, _ = model.force(torch.tensor([[START, *ids]]), memory)
    logits = model.logits(features[0])
    logits[:, [PAD, START]] = -math.inf
    return float(log_softmax(logits, -1)[range(len(ids) + 1), [*ids, END]].sum())


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_beam_of_one_is_greedy_search(kind):
    model = built(kind)
    for text, found in zip(TEXTS, model.translate(TEXTS, beam=1), strict=True):
        expected = greedy(model, SOURCE.encode(text).ids)
        assert found.tokens == tuple(TARGET.tokens[i] for i in expected)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("kind", ["bahdanau", "luong dot", "none", "transformer"])
@torch.no_grad()
def test_beam_that_holds_everything_is_exhaustive_search(kind, length_penalty):
    model = built(kind, seed=5)
    usable = [i for i in range(len(TARGET)) if i not in {PAD, START, END}]
    longest = 3
    memory = model.encode(torch.tensor([[5, 8, 4]]))
    candidates = [ids for n in range(longest) for ids in itertools.product(usable, repeat=n)]
    scored = {ids: log_probability(model, memory, list(ids)) for ids in candidates}
    best = max(scored, key=lambda ids: scored[ids] / (len(ids) + 1) ** length_penalty)
    width = len(TARGET) ** longest
    (found,) = decoding.search(model, memory, width, length_penalty, max_tokens=longest)
    assert (tuple(found.ids), found.finished) == (best, True)
    assert found.score == pytest.approx(scored[best], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_is_translated_as_each_text_alone(kind):
    model = built(kind)
    together = model.translate(TEXTS, beam=3)
    for text, found in zip(TEXTS, together, strict=True):
        alone = model.translate(text, beam=3)
        assert (found.text, found.tokens) == (alone.text, alone.tokens)
        assert found.score == pytest.approx(alone.score, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_score_and_weights_are_those_of_the_chosen_tokens(kind):
    model = built(kind)
    found = model.translate("a b c d e", beam=4)
    again = model.align("a b c d e", " ".join(found.tokens))
    assert again.tokens == found.tokens
    if found.finished:
        assert again.score == pytest.approx(found.score, abs=1e-4)
    if kind.startswith("none"):
        assert found.weights is None
        return
    heads = (3,) if kind == "transformer" else ()
    assert found.weights.shape == (*heads, len(found.tokens), 5)
    torch.testing.assert_close(found.weights.dense(), again.weights.dense(), atol=1e-5, rtol=1e-4)
    assert found.weights.labels.query == found.tokens and found.weights.labels.key == found.source_tokens
    if not kind.startswith("local"):
        torch.testing.assert_close(found.weights.dense().sum(-1), torch.ones(*heads, len(found.tokens)))


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_replay_is_what_the_decoder_computes_step_by_step(kind):
    model = built(kind)
    found = model.translate("a b c d e", beam=2)
    again = model.replay(found, top=3)
    ids = [*TARGET.numbers(found.tokens), END][: len(again.tokens)]
    assert again.tokens == tuple(TARGET.tokens[i] for i in ids)
    memory = model.encode(torch.tensor([SOURCE.encode("a b c d e").ids]))
    state, total = model.start(memory), 0.0
    for i, token in enumerate([START, *ids[:-1]]):
        step = model.step(torch.tensor([token]), state, memory)
        state = step.state
        context = memory.final if step.attention is None else step.attention.output.squeeze(-2)
        torch.testing.assert_close(again.context[..., i, :], context[0], atol=1e-5, rtol=1e-4)
        if step.attention is not None:
            weights = step.attention.weights.dense()[0].squeeze(-2)
            torch.testing.assert_close(again.weights.dense()[..., i, :], weights, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(again.weights.dense() @ again.values, again.context, atol=1e-5, rtol=1e-4)
            assert again.queries.shape[-2] == len(ids) and again.keys.shape[-2] == 5
        logits = model.logits(step.features)[0]
        logits[[PAD, START]] = -math.inf
        best, places = logits.softmax(-1).topk(3)
        assert [one.token for one in again.candidates[i]] == [TARGET.tokens[k] for k in places.tolist()]
        assert [one.probability for one in again.candidates[i]] == pytest.approx(best.tolist(), abs=1e-5)
        total += math.log(again.probabilities[i])
    assert total == pytest.approx(found.score, abs=1e-3)


def test_replay_of_nothing_is_refused():
    model = built("bahdanau")
    with pytest.raises(ChoiceError, match="an empty text has no steps"):
        model.replay(model.translate(""))
    with pytest.raises(ChoiceError, match="top is a number of candidates, 1 or more, and came as 0"):
        model.replay(model.translate("a b"), top=0)


def test_weights_stay_valid_when_the_model_changes():
    model = built("bahdanau")
    found = model.translate("a b c")
    before = found.weights.dense()
    for parameter in model.parameters():
        parameter.data.zero_()
    torch.testing.assert_close(found.weights.dense(), before)


def test_empty_text_has_an_empty_translation():
    found = built("transformer").translate(["a b c d e", "", " "])
    assert found[0].tokens and [(one.text, one.score, one.weights) for one in found[1:]] == [("", 0.0, None)] * 2


def test_text_of_which_nothing_is_known_is_refused():
    with pytest.raises(UnknownTextError, match=r"no part of '我们走吧' is known.*made up"):
        built("bahdanau").translate("我们走吧")


@pytest.mark.parametrize("text", ["我们走吧", "我们走吧.", "😀", "Привет!"])
def test_text_of_which_only_marks_are_known_is_refused(text):
    line = ["we go .", "they go !", "we run ."] * 4
    learned = Vocabulary.of_subwords((line, line), 40, ("en", "fr"), (True, False))
    model = built("bahdanau", vocabularies=Vocabularies(*learned))
    with pytest.raises(UnknownTextError, match=f"no part of {text!r} is known"):
        model.translate(text)
    assert model.translate(f"we {text}", max_tokens=3).source_tokens[0] == "▁we"
    assert model.translate(".", max_tokens=3).source_tokens == ("▁.",)


@pytest.mark.parametrize("given", [None, 3, b"a b", {"a b"}, {"a": "b"}, ["a", None], [["a"]], torch.ones(2)])
def test_what_is_no_text_is_refused(given):
    with pytest.raises(ChoiceError, match=r"translate takes a text or a list of texts, and \w+.* came"):
        built("bahdanau").translate(given)


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_half_of_a_character_is_refused(kind):
    for call in (lambda model: model.translate("a \ud83d"), lambda model: model.align("a", "u \ude00")):
        with pytest.raises(ChoiceError, match="holds half of one"):
            call(built(kind))


@pytest.mark.parametrize("text", ["我们走吧", "我们走吧 !", "我们 走吧."])
def test_parts_of_words_of_which_nothing_is_known_are_refused(text):
    texts = ["the man is here. go!", "there is a man!"] * 3
    known = Vocabularies(*Vocabulary.of_subwords((texts, texts), 40, ("en", "fr"), (True, True)))
    model = built("bahdanau", vocabularies=known)
    assert model.translate("...", max_tokens=3) and model.translate("the 走吧", max_tokens=3)
    with pytest.raises(UnknownTextError, match=r"no part of .* is known"):
        model.translate(text)


def test_thousand_words_are_translated():
    found = built("bahdanau").translate("a b c d e " * 200, beam=1, max_tokens=30)
    assert len(found.source_tokens) == 1_000 and found.weights.shape[1] == 1_000


def test_location_refuses_more_words_than_it_has_places():
    with pytest.raises(ShapeError, match="max_keys = 128 keys, but 1000 keys came"):
        built("luong location").translate("a b c d e " * 200)


def test_text_that_is_far_too_long_is_refused():
    with pytest.raises(DataError, match="at most 4,096 tokens, and this one has 5,000"):
        built("none").translate("a " * 5_000)


def test_translation_that_never_ends_is_cut_and_says_so():
    model = built("none")
    model.bias.data[END] = -1e4
    found = model.translate("a b", beam=2)
    assert (len(found.tokens), found.finished) == (14, False)


def test_unknown_token_is_replaced_by_the_attended_source_token():
    model = built("bahdanau")
    model.bias.data[UNKNOWN] = 1e4
    plain = model.translate("a q c", beam=1, max_tokens=3)
    copied = model.translate("a q c", beam=1, max_tokens=3, replace_unknown=True)
    assert plain.text == "<unk> <unk> <unk>"
    places = plain.weights.dense().argmax(-1).tolist()
    assert copied.tokens == tuple("aqc"[place] for place in places)


def test_options_out_of_range_are_refused():
    model = built("none")
    with pytest.raises(ChoiceError, match="beam is a number of hypotheses, 1 or more, and came as 0"):
        model.translate("a", beam=0)
    with pytest.raises(ChoiceError, match="length_penalty is a number, 0 or more"):
        model.translate("a", length_penalty=-1)
    for penalty in (math.nan, math.inf, "1"):
        with pytest.raises(ChoiceError, match="length_penalty is a number, 0 or more"):
            model.translate("a", length_penalty=penalty)
    for beam in (2.5, "4", None):
        with pytest.raises(ChoiceError, match="beam is a number of hypotheses"):
            model.translate("a", beam=beam)
    for limit in (0, -1, 2.5):
        with pytest.raises(ChoiceError, match="max_tokens is a number of tokens, 1 or more"):
            model.translate("a", max_tokens=limit)
    with pytest.raises(ChoiceError, match="attention is 'none'"):
        model.translate("a", replace_unknown=True)
    with pytest.raises(DataError, match="Seq2Seq has not been trained"):
        Seq2Seq().translate("a")


def test_model_options_out_of_range_are_refused():
    with pytest.raises(ChoiceError, match="attention is one of 'bahdanau'"):
        Seq2Seq("bahdanow")
    with pytest.raises(ChoiceError, match="score='dot' is for attention='luong' and 'local'"):
        Seq2Seq("bahdanau", "dot")
    with pytest.raises(ChoiceError, match="score of attention='local' is one of"):
        Seq2Seq("local", "location")
    with pytest.raises(ChoiceError, match="hidden is an even number"):
        Seq2Seq(hidden=7)


def test_parts_of_words_come_back_as_ordinary_writing():
    french = ["L'homme est là.", "Où vas-tu ?", "Il a dit : « non » !"] * 3
    english = ["the man is here.", "where are you going?", "he said no!"] * 3
    source, target = Vocabulary.of_subwords((english, french), 80, ("en", "fr"), (True, False))
    assert Vocabularies(source, target).shared and len(source) <= 80
    for text in french:
        encoded = target.encode(text)
        assert target.text(encoded.tokens).replace("\u00a0", " ") == text
    assert source.encode("The MAN").ids == source.encode("the man").ids
    unknown = source.encode("the 人")
    assert UNKNOWN in unknown.ids and "人" in "".join(unknown.tokens)
    assert Vocabulary.from_json(source.to_json()) == source


def test_words_that_occur_once_are_unknown():
    vocabulary = Vocabulary.of_words(["two two three"], 10, "en", lower=True)
    assert vocabulary.tokens == (*SPECIAL, "two")
