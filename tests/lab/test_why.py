"""The lesson on why attention is needed: what two small trained models recall of a sentence."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ChoiceError, DamageError, ShapeError, UnknownTextError
from regard.lab import recall
from regard.lab.pages import PAGES
from regard.lab.recall import _model
from regard.seq2seq import checkpoint

PAGE = PAGES["why"]
GUIDE = Path(__file__).parents[2] / "frontend" / "src" / "lessons" / "why" / "guide.ts"


def show(**state):
    return PAGE.show(PAGE.read(state))


def random_sentences(count, words, seed=11):
    return torch.randint(len(recall.WORDS), (count, words), generator=torch.Generator().manual_seed(seed))


# The models


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def by_hand(name, sentence):
    """Probabilities (n, 64) and weights (n, n) or None from the stored numbers, by the formulas of a GRU."""
    tensors, _ = checkpoint.read(recall.weights_path(name))
    p = {key: tensor.double().numpy() for key, tensor in tensors.items()}
    state, states = np.zeros(recall.HIDDEN), []
    for word in sentence:
        x = p["rnn.weight_ih_l0"] @ p["words.weight"][word] + p["rnn.bias_ih_l0"]
        h = p["rnn.weight_hh_l0"] @ state + p["rnn.bias_hh_l0"]
        (x_r, x_z, x_n), (h_r, h_z, h_n) = np.split(x, 3), np.split(h, 3)
        z = sigmoid(x_z + h_z)
        state = (1 - z) * np.tanh(x_n + sigmoid(x_r + h_r) * h_n) + z * state
        states.append(state)
    n = len(sentence)
    states, query, weights = np.array(states), p["distances.weight"][n - 1 - np.arange(n)], None
    context = np.repeat(states[-1:], n, 0)
    if name == "luong":
        weights = softmax(query @ p["attention.w"] @ np.concatenate([states, query], -1).T)
        context = weights @ states
    content = context @ p["content.weight"].T + p["content.bias"]
    features = content * (query @ p["gate.weight"].T + p["gate.bias"])
    return softmax(features @ p["output.weight"].T + p["output.bias"]), weights


@pytest.mark.parametrize(("n", "place", "seed"), [(2, 1, 0), (7, 7, 3), (24, 1, 6), (40, 31, 5)])
def test_answers_follow_from_the_stored_numbers(n, place, seed):
    shown = show(n=n, place=place, seed=seed)
    sentence = [shown["vocabulary"]["en"].index(word) for word in shown["words"]["en"]]
    for k, name in enumerate(shown["models"]):
        probabilities, weights = by_hand(name, sentence)
        assert shown["recalled"][k] == pytest.approx(probabilities[range(n), sentence], abs=1e-4)
        assert shown["guesses"][k] == probabilities.argmax(-1).tolist()
        assert shown["right"][k] == (probabilities.argmax(-1) == sentence).sum()
        likeliest = np.argsort(-probabilities[place - 1])[:3]
        assert [one["word"] for one in shown["candidates"][k]] == likeliest.tolist()
        found = [one["probability"] for one in shown["candidates"][k]]
        assert found == pytest.approx(probabilities[place - 1][likeliest], abs=1e-4)
        if weights is not None:
            assert shown["weights"] == pytest.approx(weights[place - 1], abs=1e-4)


@pytest.mark.parametrize("name", recall.MODELS)
@pytest.mark.parametrize("n", [1, 9, 24, 40])
def test_stored_means_are_those_of_other_random_sentences(name, n):
    table, count = recall.mean_probability(name)
    assert table.shape == (recall.LONGEST, recall.LONGEST) and not table[n - 1, n:].any()
    measured = recall.load(name).probability(random_sentences(500, n))
    error = measured.std(0) * (1 / 500 + 1 / count) ** 0.5  # standard error of the difference
    assert (measured.mean(0) - table[n - 1, :n]).abs().le(5 * error + 1e-3).all()


def test_shown_means_are_those_of_the_files():
    shown = show(n=17)
    for k, name in enumerate(shown["models"]):
        table, count = recall.mean_probability(name)
        assert shown["mean"][k] == table[16, :17].tolist() and shown["sentences"] == count
        assert shown["by_length"][k] == pytest.approx([table[n - 1, :n].mean().item() for n in range(1, 41)])


def test_the_last_state_keeps_the_last_words_in_place_and_of_the_others_that_they_occurred():
    sentences = random_sentences(300, 40)
    guesses = recall.load("none")(sentences).logits.argmax(-1)
    right = guesses == sentences
    assert right[:, -7:].float().mean() > 0.85 and right[:, :30].float().mean() < 0.1
    occurs = (guesses.unsqueeze(-1) == sentences.unsqueeze(1)).any(-1)
    assert occurs[~right].float().mean() > 0.95
    attentive = recall.load("luong")(sentences).logits.argmax(-1)
    assert (attentive == sentences).float().mean() > 0.999


def test_both_models_were_trained_alike_and_differ_in_attention_alone():
    none, luong = (checkpoint.read(recall.weights_path(name)) for name in recall.MODELS)
    assert [luong[1][key] for key in ("steps", "seed", "sentences")] == [8_000, 0, 2_000]
    assert {**none[1], "attention": "luong", "seconds": luong[1]["seconds"]} == luong[1]
    assert {name for name in luong[0] if name not in none[0]} == {"attention.w"}
    assert {name: luong[0][name].shape for name in none[0]} == {name: t.shape for name, t in none[0].items()}


# The files


def test_weights_are_small_and_a_changed_byte_is_found(tmp_path, monkeypatch):
    checksums = json.loads(_model.CHECKSUMS.read_text())
    assert set(checksums) == set(recall.MODELS)
    assert sum(recall.weights_path(name).stat().st_size for name in checksums) < 300_000
    card = (_model.WEIGHTS / "README.md").read_text()
    for name, checksum in checksums.items():
        content = bytearray(recall.weights_path(name).read_bytes())
        assert hashlib.sha256(content).hexdigest() == checksum and f"| `{name}` |" in card
        content[-1] ^= 1
        (tmp_path / f"{name}.safetensors").write_bytes(content)
    monkeypatch.setattr(_model, "WEIGHTS", tmp_path)
    for name in checksums:
        with pytest.raises(DamageError, match="is damaged, its sha256 is not"):
            recall.load(name)


def test_a_model_that_there_is_not_is_refused():
    with pytest.raises(ChoiceError, match="attention must be one of none, luong, 'bahdanau' came"):
        recall.load("bahdanau")


# The sentences


def test_words_are_written_differently_in_both_languages():
    forms = [form for word in recall.WORDS for form in word]
    assert len(recall.WORDS) == 64 and len(set(forms)) == 128


@given(st.lists(st.integers(0, 63), max_size=40))
def test_a_text_is_read_in_both_languages(numbers):
    english = ", ".join(recall.WORDS[number].en for number in numbers).title()
    spaced = " ".join(recall.WORDS[number].zh for number in numbers)
    assert recall.read(english).tolist() == numbers == recall.read(spaced).tolist()


def test_chinese_needs_no_spaces():
    assert [recall.WORDS[i].en for i in recall.read("小狗找到红苹果，然后老国王看见白马。")] == [
        "small", "dog", "finds", "red", "apple", "then", "old", "king", "sees", "white", "horse",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "named"),
    [("the red cat", "'the'"), ("红色的猫", "'色的'"), ("cat 3 don't", "'3', \"don't\""), ("猫x狗", "'x'")],
)
def test_a_word_that_is_not_known_is_named(text, named):
    with pytest.raises(UnknownTextError, match=re.escape(f"it has {named}")) as caught:
        show(text=text)
    assert "these 64 words only: red, blue" in str(caught.value) and len(str(caught.value)) < 700


def test_own_words_come_first_and_drawn_ones_follow():
    shown = show(text="Happy fish! quiet door", n=7, seed=2)
    assert shown["words"]["en"] == ["happy", "fish", "quiet", "door", *show(seed=2, n=3)["words"]["en"]]
    assert (shown["own"], shown["n"]) == (4, 7)
    assert show(text="Happy fish! quiet door", n=2)["words"]["zh"] == ["快乐", "鱼"]
    assert show(seed=4, n=12)["words"]["zh"] == show(seed=4, n=40)["words"]["zh"][:12]


def test_a_place_behind_the_end_is_the_last_one():
    assert show(n=5, place=40)["place"] == 5


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"n": 41}, ChoiceError, "n must be from 2 to 40, 41 came"),
        ({"n": 1}, ChoiceError, "n must be from 2 to 40, 1 came"),
        ({"place": 0}, ChoiceError, "place must be from 1 to 40, 0 came"),
        ({"text": " "}, ChoiceError, "text must have 1 to 600 characters, 1 came"),
        ({"text": "cat " * 41}, ShapeError, "text must have at most 40 words, 41 came"),
    ],
)
def test_states_out_of_range_are_refused_with_the_range(state, error, message):
    with pytest.raises(error, match=message):
        show(**state)


# The guide

CLAIMS = [
    lambda s: s["right"] == [5, 5],
    lambda s: max(s["recalled"][0][:5]) < 0.25 and sum(s["recalled"][0][-6:]) > 5 and s["right"][1] == 12,
    lambda s: s["words"]["en"][1] != s["vocabulary"]["en"][s["guesses"][0][1]] in s["words"]["en"],
    lambda s: s["recalled"][0][37] > 0.8 and sum(s["recalled"][0][:30]) < 3,
    lambda s: s["weights"][1] > 0.99 and s["right"][1] == 40,
]


@pytest.mark.parametrize(("step", "holds"), [*enumerate(CLAIMS)])
def test_a_guided_step_says_what_is_shown(step, holds):
    states = re.findall(r"state: \{ \.\.\.sentence, n: (\d+), place: (\d+) \}", GUIDE.read_text(encoding="utf-8"))
    assert len(states) == len(CLAIMS)
    n, place = map(int, states[step])
    assert holds(show(n=n, place=place, seed=6))
