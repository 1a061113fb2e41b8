"""Evaluation against sacreBLEU called by hand, and the alignment of references against links by hand."""

import math

import pytest
import sacrebleu
import torch
from seq2seq_models import built

from regard.datasets import Alignment, Pair, Pairs, alignment_error_rate
from regard.errors import ChoiceError, DataError
from regard.seq2seq import decoding, evaluate, evaluation

PAIRS = Pairs(
    [("a b c", "u v w"), ("A b  c", "U V"), ("d", "x"), ("a b c d e f g a b c d", "y x w v"), ("g g", "u")],
    target_language="fr",
)


def test_figures_are_those_of_sacrebleu_with_all_references(monkeypatch):
    said = {"a b c": "u v w", "d": "x y", "a b c d e f g a b c d": "y x w u v", "g g": "U"}
    model = built("bahdanau")

    def fake(_, texts, **options):
        return [decoding.Translation(said[text], 0.0, (), (), None) for text in texts]

    monkeypatch.setattr(decoding, "translate", fake)
    result = evaluate(model, PAIRS)
    hypotheses = list(said.values())
    references = [["u v w", "x", "y x w v", "u"], ["U V", None, None, None]]
    assert result.bleu == sacrebleu.BLEU(lowercase=True).corpus_score(hypotheses, references).score
    assert result.chrf == sacrebleu.CHRF(lowercase=True).corpus_score(hypotheses, references).score
    single = ["u v w", "u v w", "x y", "y x w u v", "U"]
    flat = [["u v w", "U V", "x", "y x w v", "u"]]
    assert result.bleu_single == sacrebleu.BLEU(lowercase=True).corpus_score(single, flat).score
    assert result.exact_match == 0.5
    table = result.by_length()
    assert [(row.words, row.sentences) for row in table] == [("1-10", 3), ("11-20", 1)]
    assert table["exact_match"] == (pytest.approx(2 / 3), 0.0)
    assert math.isnan(table[0].alignment_error_rate) and "AER" in str(table)


def test_gold_links_are_compared_with_those_of_the_references():
    pair = Pair("a b c", "u v", Alignment(sure=((0, 0), (1, 1))))
    model = built("bahdanau")
    result = evaluate(model, Pairs([pair], target_language="fr"))
    largest = model.align(pair.source, pair.target).weights.dense().argmax(-1)
    links = {(source, target) for target, source in enumerate(largest.tolist())}
    assert result.alignment_error_rate == alignment_error_rate(links, pair.alignment)
    assert math.isnan(evaluate(built("none"), Pairs([pair], target_language="fr")).alignment_error_rate)


def test_best_layer_of_a_transformer_has_the_least_error():
    model = built("transformer")
    pairs = Pairs([Pair("a b c", "u v w", Alignment(sure=((0, 0), (1, 1), (2, 2))))], target_language="fr")
    rates = []
    for layer in range(2):
        model.decoder.aligned_layer = layer
        rates.append(evaluate(model, pairs).alignment_error_rate)
    model.decoder.aligned_layer = 1
    assert rates[evaluation.best_layer(model, pairs)] == min(rates)
    assert model.decoder.aligned_layer == 1


def test_best_layer_without_gold_links_has_the_most_mutual_information():
    model = built("transformer")
    information = []
    for layer in range(2):
        model.decoder.aligned_layer = layer
        p = model.align("a b c", "u v w").weights.dense().mean(0)
        information.append(torch.special.entr(p.mean(0)).sum() - torch.special.entr(p).sum(-1).mean())
    pairs = Pairs([("a b c", "u v w")], target_language="fr")
    assert evaluation.best_layer(model, pairs) == information.index(max(information))


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(DataError, match="no pairs"):
        evaluate(built("none"), [])
    with pytest.raises(ChoiceError, match="width is a number of words"):
        evaluate(built("none"), [("a", "u")]).by_length(0)
