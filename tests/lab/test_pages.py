"""The pages of the lab: every state that can be read is shown, and its code gives the numbers that are shown."""

import contextlib
import hashlib
import io
import json
import math
import re
import subprocess
import sys
from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg
from regard import datasets
from regard.errors import ChoiceError, DtypeError, FormatError, RegardError, ShapeError, UnknownTextError
from regard.lab.pages import PAGES, _state, translation
from regard.seq2seq import pretrained

NAMES = list(PAGES)
WORDS = ["the", "tall", "father", "reads", "a", "book", "and", "often", "eats", "apples", "in", "school.", "Why?"]
SENSELESS = {"masks", "normalisers", "relevance", "translation", "why"}  # where fields have to fit each other
WITH_MODEL = {"heads", "relevance", "block", "translation", "bottleneck"}
QUICK = [name for name in NAMES if name not in WITH_MODEL]


def values(field_type):
    """Any value that a field may have."""
    match field_type:
        case _state.Real(least, most):
            return st.floats(least, most, allow_subnormal=False)
        case _state.Whole(least, most):
            return st.integers(least, most)
        case _state.Flag():
            return st.booleans()
        case _state.Choice(options):
            return st.sampled_from(list(options))
        case _state.Text():
            return st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
        case _state.Part(cls):
            return states(cls)
    return values_of_several(field_type)


def values_of_several(field_type):
    match field_type:
        case _state.Maybe(inner):
            return st.none() | values(inner)
        case _state.Many(inner, least, most):
            return st.lists(values(inner), min_size=least, max_size=most)
        case _state.Pair(first, second):
            return st.tuples(values(first), values(second)).map(list)
        case _state.Grid((fewest, most), (narrowest, widest), number):
            return st.integers(narrowest, widest).flatmap(
                lambda width: st.lists(
                    st.lists(values(number), min_size=width, max_size=width), min_size=fewest, max_size=most
                )
            )
    raise AssertionError(field_type)


def states(cls, without=()):
    types = {field.name: field.metadata["type"] for field in fields(cls) if field.name not in without}
    return st.fixed_dictionaries({}, optional={name: values(field_type) for name, field_type in types.items()})


def run(code):
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "page", "exec"), space)  # noqa: S102  that is what the copy button is for
    return {name: value for name, value in space.items() if not name.startswith("__")}


def numbers(value):
    if isinstance(value, rg.Weights):
        value = value.dense()
    return torch.as_tensor(value, dtype=torch.float64).detach().flatten()


def assert_code_agrees(page, state, shown):
    space = run(page.code(state))
    same = [name for name in space if shown.get(name) is not None]
    assert {"output", "weights", "estimate"} & set(same)
    for name in same:
        if name in {"segments", "questions"}:
            assert space[name] == shown[name]
            continue
        torch.testing.assert_close(numbers(space[name]), numbers(shown[name]), rtol=1e-5, atol=1e-6, msg=name)


def assert_rows_are_distributions(rows):
    if isinstance(rows[0], list) and isinstance(rows[0][0], list):  # several heads
        rows = [row for head in rows for row in head]
    for row in rows if isinstance(rows[0], list) else [rows]:
        total = sum(row)
        assert min(row) >= 0 and (math.isclose(total, 1, abs_tol=1e-5) or total == 0)


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=25)
@given(data=st.data())
def test_every_state_is_shown_and_its_code_computes_the_same(name, data):
    page = PAGES[name]
    check_state(page, data.draw(states(page.state)))


@settings(max_examples=15)
@given(asked=states(PAGES["relevance"].state, without=["heads"]))  # the code is about questions alone
def test_every_question_is_answered_and_its_code_computes_the_same(asked):
    check_state(PAGES["relevance"], asked)


@settings(max_examples=5)
@given(asked=states(PAGES["heads"].state))
def test_every_sentence_is_shown(asked):
    shown = show("heads", **asked)
    json.dumps(shown, allow_nan=False)
    for rows in shown["weights"]:
        torch.testing.assert_close(torch.tensor(rows).sum(-1), torch.ones(len(rows)), atol=1e-4, rtol=0)


@settings(max_examples=8)
@given(asked=states(PAGES["translation"].state), direction=st.sampled_from(["numbers", "en-fr"]))
def test_every_text_is_translated_and_its_code_computes_the_same(asked, direction):
    if direction == "numbers" and asked.get("text"):
        asked["text"] = "two thousand " + asked["text"]  # a word that is known
    asked["direction"] = direction
    check_state(PAGES["translation"], asked)


def check_state(page, asked):
    """It is shown, as JSON, with weights that are weights; the code says the same, also where that is an error."""
    state = page.read(json.dumps(asked))
    try:
        shown = page.show(state)
    except RegardError as error:  # a state that makes no sense: the code says the same
        assert page.name in SENSELESS
        with pytest.raises(type(error), match=re.escape(str(error))):
            run(page.code(state))
        return
    json.dumps(shown, allow_nan=False)
    if shown.get("weights") is not None and shown.get("normalised", True):
        assert_rows_are_distributions(shown["weights"])
    assert_code_agrees(page, state, shown)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_survives_json(name):
    page = PAGES[name]
    assert page.read({}) == page.state()
    assert page.read(json.dumps(page.default)) == page.state()


@pytest.mark.parametrize("name", NAMES)
def test_every_shown_field_is_described_in_the_docstring(name):
    import importlib

    described = importlib.import_module(f"regard.lab.pages.{name}").__doc__
    page = PAGES[name]
    for field in page.show(page.state()):
        assert field in described, field


def nested(depth):
    inner = []
    for _ in range(depth):
        inner = [inner]
    return inner


HOSTILE = [None, True, 7.5, -(10**30), 10**5000, math.nan, math.inf, "x" * 10**6, "\ud800", "", [], {}, nested(10**5)]


def refusal(page, given):
    """What a page says to a state; None if it takes it."""
    try:
        page.read(given)
    except (DtypeError, ChoiceError, ShapeError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_invalid_values_are_refused_or_round_trip(name, value):
    page = PAGES[name]
    for field in fields(page.state):
        said = refusal(page, {field.name: value})
        if said is None:  # it may be that
            assert _state.write(page.read({field.name: value}))[field.name] == value
        else:
            assert field.name in said and len(said) < 400


@pytest.mark.parametrize("name", NAMES)
def test_unknown_fields_are_refused_by_name(name):
    with pytest.raises(ChoiceError, match="there is no field 'wights'; there are "):
        PAGES[name].read({"wights": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the state must be JSON: "),
        ('{"scene": NaN}', "has no NaN"),
        ('{"scene": "desk", "scene": "room"}', "says 'scene' twice"),
        ("[" * 10**6, "deeper than any state"),
        ('{"scene": ' + "9" * 10**4 + "}", "the state must be JSON"),
        (b"\xff\xfe\xfa", "the state must be JSON"),
    ],
)
def test_invalid_json_is_refused_with_the_reason(text, message):
    with pytest.raises(FormatError, match=message):
        PAGES["cues"].read(text)


@pytest.mark.parametrize("given", ["null", "[]", "3", '"desk"'])
def test_a_state_is_an_object(given):
    with pytest.raises(DtypeError, match="the state must be an object with fields scene, pooling, query, saliency"):
        PAGES["cues"].read(given)


def show(name, **state):
    page = PAGES[name]
    return page.show(page.read(state))


# cues


def test_the_desk_has_another_winner_with_a_query():
    looked = show("cues")
    names = looked["names"]["en"]
    assert names[looked["bottom_up"]["winner"]] == "red coffee cup"
    assert names[looked["top_down"]["winner"]] == "book"
    assert names[show("cues", pooling="learned")["winner"]] == "red coffee cup"
    assert names[looked["winner"]] == "book" and looked["own_query"]


def test_pooling_without_a_query():
    desk = datasets.desk()
    average, largest = show("cues", pooling="average"), show("cues", pooling="max")
    assert average["weights"] == pytest.approx([0.2] * 5) and average["winner"] is None
    assert average["output"] == pytest.approx(desk.values.mean(0).tolist())
    assert largest["weights"] is None and largest["sources"] == [2, 2, 4, 4]
    assert largest["pooled"] == pytest.approx([1.0, 0.9, 1.0, 1.0])


def test_three_cats_are_counted():
    seen = show("cues", scene="cats")
    assert seen["leaders"] == [0, 1, 2] and seen["effective"] == pytest.approx(3, abs=0.05)


@pytest.mark.parametrize("scene", list(datasets.SCENES))
def test_every_scene_has_two_languages_and_two_winners(scene):
    seen = show("cues", scene=scene)
    for texts in (seen["names"], seen["features"]):
        assert len(texts["en"]) == len(texts["zh"]) == len(set(texts["zh"]))
    assert seen["bottom_up"]["winner"] is not None
    assert seen["bottom_up"]["winner"] not in seen["leaders"]


def test_a_query_of_zeros_asks_for_nothing():
    seen = show("cues", query=[0, 0, 0, 0])
    assert seen["weights"] == pytest.approx([0.2] * 5) and not seen["own_query"]


# regression


def test_three_fits_of_the_sine():
    average, fixed, learned = (show("regression", mode=mode) for mode in ("average", "fixed", "learned"))
    data = datasets.sine()
    assert average["prediction"] == pytest.approx([data.y_train.mean().item()] * 50, rel=1e-5)
    a = torch.softmax(-(data.x_test[:, None] - data.x_train).square() / 2, -1)
    assert fixed["prediction"] == pytest.approx((a @ data.y_train).tolist(), abs=1e-4)
    assert learned["w"] == pytest.approx(3.446, abs=1e-3) and learned["losses"][-1] < learned["losses"][0]
    assert learned["numbers"]["roughness"] > fixed["numbers"]["roughness"]  # rougher
    assert learned["numbers"]["entropy"] < fixed["numbers"]["entropy"]  # and sharper
    assert learned["start"]["numbers"] == fixed["numbers"] and learned["start"]["prediction"] == fixed["prediction"]


def test_points_may_come_in_any_order():
    there, back = (
        show("regression", points=[[1, 2], [4, 0], [2, 1]]),
        show("regression", points=[[4, 0], [2, 1], [1, 2]]),
    )
    assert there["prediction"] == back["prediction"] and there["x_train"] == [1, 2, 4]
    assert there["order"] == [0, 2, 1] and back["order"] == [2, 1, 0]


def test_inputs_out_of_a_compact_kernels_reach_are_empty():
    shown = show("regression", points=[[2, 1]], kernel="boxcar", w=2)
    reached = [place for place in range(50) if place not in shown["empty"]]
    assert reached == list(range(15, 26)) and shown["prediction"][15] == 1 and shown["prediction"][14] == 0


def test_training_ends_with_the_width_of_show_and_can_be_stopped():
    page = PAGES["regression"]
    state = page.read({"mode": "learned", "n": 11, "steps": 12})
    *steps, last = page.train(state)
    shown = page.show(state)
    assert [step["step"] for step in steps] == list(range(1, 13))
    assert [step["loss"] for step in steps] == shown["losses"]
    assert [step["step"] for step in steps if "prediction" in step] == [5, 10]
    assert last["done"] and last["w"] == shown["w"] and last["prediction"] == shown["prediction"]
    assert show("regression", mode="learned", n=11, learned=last["w"])["prediction"] == shown["prediction"]
    running = page.train(state)
    next(running)
    running.close()


def test_the_regression_lesson_shows_the_shapes_of_a_batch_product():
    shown = show("regression", n=7)
    assert shown["product"] == {"left": [50, 1, 7], "right": [50, 7, 1], "result": [50, 1, 1]}
    left, right, result = (torch.tensor(shown["example"][name]) for name in ("left", "right", "result"))
    assert (left.shape, right.shape, result.shape) == ((2, 1, 4), (2, 4, 6), (2, 1, 6))
    assert left.eq(1).all() and right.eq(1).all() and result.eq(4).all()


# scores


def test_eight_scores_of_the_same_keys():
    shown = show("scores")
    rows = {row["name"]: row for row in shown["rows"]}
    q, k = torch.tensor(shown["query"]), torch.tensor(shown["keys"])
    state = PAGES["scores"].state()
    w, w_q, w_k, v, w_qk = (torch.tensor(x) for x in (state.w, state.w_q, state.w_k, state.v, state.w_qk))
    expected = {
        "dot": k @ q,
        "scaled_dot": k @ q / 2**0.5,
        "general": k @ (q @ w),
        "additive": torch.tanh(w_q @ q + k @ w_k.mT) @ v,
        "concat": torch.tanh(torch.cat([q.expand(5, 2), k], -1) @ w_qk.mT) @ v,
        "location": torch.tensor(state.w_places)[:5] @ q,
        "gaussian": -(k - q).square().sum(-1) / 2,
        "cosine": torch.cosine_similarity(k, q[None]),
    }
    assert set(rows) == set(expected)
    for name, scores in expected.items():
        assert rows[name]["scores"] == pytest.approx(scores.tolist(), abs=1e-6), name
        assert rows[name]["weights"] == pytest.approx(scores.softmax(-1).tolist(), abs=1e-6), name


def test_local_attention_looks_around_a_place():
    here = show("scores", query=[0, 0])["local"]
    assert here["place"] == pytest.approx(2.5)  # half way along five keys
    assert here["weights"][0] == here["weights"][1] == here["weights"][4] == 0 and 0 < here["total"] < 1


# saturation


def test_variance_is_d_k_unless_divided():
    for d_k in (16, 256, 1024):
        plain, scaled = show("saturation", d_k=d_k), show("saturation", d_k=d_k, scaled=True)
        assert plain["expected"] == d_k and plain["variance"] == pytest.approx(d_k, rel=0.1)
        assert scaled["expected"] == 1 and scaled["variance"] == pytest.approx(1, rel=0.1)
        assert sum(plain["counts"]) == 4096 == pytest.approx(sum(plain["normal"]))
    assert plain["entropy"] < 0.1 and scaled["entropy"] > 2
    assert plain["jacobian"] < 0.05 and scaled["jacobian"] > 0.1
    assert plain["nudge"]["mean_moved"] > 2 * scaled["nudge"]["mean_moved"]


def test_curves_are_those_of_analysis_saturation():
    curves = show("saturation", keys=7)["curves"]
    assert curves["scaled"]["d_k"] == [1, 4, 16, 64, 256, 1024]
    for d_k, variance, error in zip(*(curves["unscaled"][c] for c in ("d_k", "variance", "error")), strict=True):
        assert abs(variance - d_k) < 4.5 * error
    assert curves["unscaled"]["gradient"][-1] < curves["scaled"]["gradient"][-1] / 3


# masks


def test_visible_cells_follow_the_mask_expression():
    shown = show("masks")
    assert shown["formula"] == "causal" and shown["seen"] == list(range(1, 9)) and shown["empty"] == []
    rules = [
        {"kind": "causal"},
        {"kind": "window", "left": 1, "right": 0, "negate": True},
        {"kind": "prefix", "join": "or"},
    ]
    shown = show("masks", rules=rules)
    assert shown["expression"] == "(masks.causal() & ~masks.window(1, 0)) | masks.prefix(2)"
    expected = [[(j <= i and not i - 1 <= j <= i) or j < 2 for j in range(8)] for i in range(8)]
    assert shown["visible"] == expected


def test_an_empty_row_is_zero():
    shown = show("masks", rules=[{"kind": "causal"}, {"kind": "prefix", "length": 2, "negate": True}])
    assert shown["empty"] == [0, 1] and shown["weights"][0] == [0] * 8


def test_the_copied_recipe_sees_the_future():
    recipe = show("masks", n=12, m=12)["recipe"]
    assert recipe["visible"] == [[j > i for j in range(12)] for i in range(12)]
    assert recipe["torch"][11] == [None] * 12 and recipe["regard"][11] == [0] * 12 and recipe["empty"] == [11]
    assert recipe["causal"][0] == [1] + [0] * 11
    assert recipe["torch"][3] == pytest.approx(recipe["regard"][3])
    demo = show("masks", n=10, m=12, align="bottom-right")["recipe"]  # the sizes that its own demo asks for
    assert len(demo["torch"]) == 10 and demo["empty"] == []


def test_masks_need_align_and_refuse_a_bare_boolean():
    with pytest.raises(RegardError, match="align"):
        show("masks", n=5, m=7)
    assert "allow" in show("masks")["message"] and "hide" in show("masks")["message"]


# by hand


def test_the_worked_example_to_four_decimals():
    shown = show("by_hand")
    assert [[round(x, 4) for x in row] for row in shown["weights"]] == [
        [0.2976, 0.1095, 0.1805, 0.1805, 0.2318],
        [0.1205, 0.3275, 0.1986, 0.1986, 0.1547],
        [0.1805, 0.1805, 0.2976, 0.1095, 0.2318],
        [0.1986, 0.1986, 0.1205, 0.3275, 0.1547],
        [0.2374, 0.1440, 0.2374, 0.1440, 0.2374],
    ]
    assert shown["scores"][0] == [1, 0, 0.5, 0.5, 0.75] and shown["scores"][4] == [0.75, 0.25, 0.75, 0.25, 0.75]
    assert shown["leaders"] == [[0], [1], [2], [3], [0, 2, 4]] and shown["ties"] == [4]


def test_tokens_of_different_lengths_are_refused():
    with pytest.raises(ShapeError, match=r"tokens must have one length: tokens\[0\] has 2 numbers, tokens\[1\] has 1"):
        PAGES["by_hand"].read({"tokens": [[1, 2], [3]]})
    with pytest.raises(RegardError, match=r"tokens\[1\]\[0\] must be from -100 to 100, a number that is not finite"):
        PAGES["by_hand"].read({"tokens": [[1], [math.nan]]})


# normalisers


def test_normalisers_on_the_same_scores():
    shown = show("normalisers", chosen="sparsemax")
    rows = {row["name"]: row for row in shown["rows"]}
    assert rows["softmax"]["support"] == 5 > rows["entmax15"]["support"] >= rows["sparsemax"]["support"]
    assert rows["hard"]["weights"] == [1, 0, 0, 0, 0] and rows["sample"]["support"] == 1
    assert rows["sigmoid"]["entropy"] is None and rows["sigmoid"]["total"] > 1
    assert shown["weights"] == rows["sparsemax"]["weights"] == [1, 0, 0, 0, 0]


def test_reinforce_is_unbiased_and_a_baseline_reduces_variance():
    shown = show("normalisers", draws=500, rewards=[5, 6, 5, 5, 5])
    p, r = torch.tensor(shown["probabilities"]), torch.tensor(shown["rewards"])
    assert shown["exact"] == pytest.approx((p * (r - p @ r)).tolist(), abs=1e-6)
    for mean, spread in (("estimate", "spread"), ("calmer", "calmer_spread")):
        for true, found, deviation in zip(shown["exact"], shown[mean], shown[spread], strict=True):
            assert abs(found - true) < 4.5 * deviation / 500**0.5
    assert shown["variance_ratio"] < 0.05 and shown["baseline"] == pytest.approx(shown["expected"], abs=0.1)
    assert sum(shown["counts"]) == 500


def test_each_draw_moves_the_scores_by_its_gradient():
    shown = show("normalisers", view="gradient", scores=[1, 0, -1], rewards=[0, 2, -1], rate=0.25, seed=5)
    learning = shown["learning"]
    scores, p = torch.tensor(learning["scores"]), torch.tensor(learning["probabilities"])
    drawn, earned, baseline = (torch.tensor(learning[name]) for name in ("drawn", "earned", "baseline"))
    assert scores.shape == (61, 3) and scores[0].tolist() == [1, 0, -1]
    torch.testing.assert_close(p, scores.softmax(-1))
    torch.testing.assert_close(torch.tensor(learning["expected"]), p @ torch.tensor([0.0, 2, -1]))
    assert earned.tolist() == [(0, 2, -1)[key] for key in drawn]
    toward = torch.nn.functional.one_hot(drawn, 3) - p[:-1]
    torch.testing.assert_close(scores.diff(dim=0), 0.25 * (earned - baseline)[:, None] * toward, atol=1e-5, rtol=1e-4)
    recent = 0.9 ** torch.arange(60).flip(0)  # the latest rewards count most
    means = [(recent[-n:] @ earned[:n] / recent[-n:].sum()).item() for n in range(1, 60)]
    assert baseline.tolist() == pytest.approx([0, *means], abs=1e-4)
    assert learning["expected"][-1] > learning["expected"][0] + 0.5


def test_nothing_is_learned_where_it_is_not_shown():
    assert show("normalisers")["learning"] is None


def test_a_wrong_number_of_rewards_is_refused():
    with pytest.raises(ShapeError, match="rewards must be as many as scores, one a key: 5 scores came, and 2 rewards"):
        show("normalisers", rewards=[1, 2])


# heads


def test_heads_of_a_real_model():
    page = PAGES["heads"]
    state = page.state()
    shown = page.show(state)
    assert shown["tokens"][0] == "[CLS]" and shown["tokens"][-1] == "[SEP]" and "animal" in shown["tokens"]
    n = len(shown["tokens"])
    weights = torch.tensor(shown["weights"])
    assert weights.shape == (12, n, n) and len(shown["layers"]) == 6 and len(shown["heads"]) == 12
    torch.testing.assert_close(weights.sum(-1), torch.ones(12, n), atol=1e-4, rtol=0)
    for head, matrix in zip(shown["heads"], weights, strict=True):
        assert head["first"] == pytest.approx(matrix[:, 0].mean().item(), abs=1e-5)
        assert head["separators"] == pytest.approx(matrix[:, -1].mean().item(), abs=1e-5)
        assert head["previous"] == pytest.approx(matrix.diagonal(-1).sum().item() / n, abs=1e-5)
        assert head["pair"]["weight"] == pytest.approx(
            matrix[head["pair"]["query"], head["pair"]["key"]].item(), abs=1e-5
        )
        assert head["share"] is None or head["share"] > 0.5
    assert_code_agrees(page, state, shown)


def test_the_lesson_opens_on_the_head_that_finds_what_it_means():
    shown = show("heads")
    rows = torch.tensor(shown["weights"])[:, shown["tokens"].index("it"), shown["tokens"].index("animal")]
    assert rows.argmax() == shown["head"] == 1 and rows[1] > 2 * rows.sort().values[-2]
    pair = shown["heads"][shown["head"]]["pair"]
    assert (shown["tokens"][pair["query"]], shown["tokens"][pair["key"]]) == ("it", "animal")


def test_sentences_too_long_or_unknown_are_refused():
    with pytest.raises(ShapeError, match="sentence must have at most 64 tokens to be looked at head by head, 82 came"):
        show("heads", sentence="word " * 80)
    with pytest.raises(UnknownTextError, match=r"minilm .* does not know"):
        show("heads", sentence="他从小的数学成绩并不好")
    assert show("heads", sentence="Tall")["heads"][0]["pair"] is None


# translation


def offered(direction):
    return show("translation", direction=direction)["models"][direction]


@pytest.mark.parametrize("direction", ["en-fr", "numbers"])
def test_all_steps_of_every_decoder_are_shown(direction):
    for model in offered(direction):
        shown = show("translation", direction=direction, model=model)
        found = rg.seq2seq.load(translation.name_of(direction, model)).translate(shown["source_text"])
        n, m = len(shown["target"]), len(shown["source"])
        assert (shown["text"], n) == (found.text, len(found.tokens) + found.finished)
        assert math.log(math.prod(shown["probabilities"])) == pytest.approx(found.score, abs=1e-3)
        assert len(shown["candidates"]) == n and shown["unknown"] == []
        if model == "none":
            assert shown["weights"] is None and shown["query"] is None
            assert shown["context"] == [[shown["value"][0][0]] * n]
            continue
        weights, value, context = (torch.tensor(shown[name]) for name in ("weights", "value", "context"))
        assert weights.shape == (len(shown["query"]), n, m)
        torch.testing.assert_close(weights @ value, context, atol=1e-3, rtol=1e-3)


def test_examples_of_numbers_are_right_with_attention():
    for text in translation.EXAMPLES["numbers"]:
        found = show("translation", direction="numbers", text=text)
        assert found["text"] == found["expected"]
    assert show("translation", direction="numbers", model="none", text=text)["text"] != found["expected"]


def test_steps_of_one_text_are_decoded_once(monkeypatch):
    show("translation", direction="numbers", step=0)
    monkeypatch.setattr(rg.seq2seq.TranslationModel, "translate", None)
    assert [show("translation", direction="numbers", step=step)["at"] for step in (1, 2, 70)] == [1, 2, 6]


@pytest.mark.parametrize("direction", ["en-fr", "numbers"])
def test_texts_that_cannot_be_translated_are_refused(direction):
    with pytest.raises(UnknownTextError, match="no part of '我们走吧。' is known to the model, which reads 'en'"):
        show("translation", direction=direction, text="我们走吧。")
    with pytest.raises(ShapeError, match="text must have at most 60 tokens to be drawn, 1000 came"):
        show("translation", direction=direction, text="two " * 1000)
    with pytest.raises(ChoiceError, match="text must have 1 to 8000 characters"):
        show("translation", direction=direction, text="  ")


def test_words_that_the_translation_model_does_not_know_are_named():
    assert show("translation", direction="numbers", text="two black cats")["unknown"] == ["black", "cats"]


@pytest.fixture
def own_weights(monkeypatch, tmp_path):
    """A folder that holds what comes with regard, empty at first, and a function that puts a model there."""
    source, checksums = pretrained.WEIGHTS, {}
    caches = (translation.model_of, translation._figures, translation._walk)

    def put(name: str, like: str) -> None:
        content = (source / pretrained.weights_path(like).name).read_bytes()
        pretrained.weights_path(name).write_bytes(content)
        checksums[name] = hashlib.sha256(content).hexdigest()
        pretrained.CHECKSUMS.write_text(json.dumps(checksums))

    monkeypatch.setattr(pretrained, "WEIGHTS", tmp_path)
    monkeypatch.setattr(pretrained, "CHECKSUMS", tmp_path / "sha256.json")
    for cache in caches:
        cache.cache_clear()
    yield put
    for cache in caches:
        cache.cache_clear()


def test_a_decoder_is_offered_as_soon_as_it_comes_with_regard(own_weights):
    own_weights("en-fr", like="en-fr")
    assert offered("en-fr") == ["bahdanau"]
    own_weights("en-fr/none", like="numbers/none")
    assert offered("en-fr") == ["bahdanau", "none"]
    assert show("translation", direction="en-fr", model="none", text="seventy two")["text"] == "七十二"


def test_decoders_that_do_not_come_with_regard_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(translation, "load", lambda name: rg.seq2seq.load(name + "/small"))
    translation.model_of.cache_clear()
    with pytest.raises(ChoiceError, match="there is no model 'numbers/none/small': choose "):
        show("translation", direction="numbers", model="none", text="seventy two")
    translation.model_of.cache_clear()


# relevance


@pytest.mark.parametrize("language", ["en", "zh"])
def test_relevance_opens_with_the_text_of_the_pages_language(language):
    opened = show("relevance", language=language)
    assert opened["preset"] == f"{language}-short"
    assert opened == show("relevance", preset=f"{language}-short")


@pytest.mark.parametrize("preset", ["en-short", "zh-short", "en-whole", "zh-whole"])
def test_the_right_segments_win(preset):
    page = PAGES["relevance"]
    state = page.read({"preset": preset})
    shown = page.show(state)
    answers = [0, 1] if preset.endswith("short") else [0]
    assert [verdict["winner"] for verdict in shown["verdicts"]] == answers
    assert all(verdict["right"] and verdict["answer_rank"] == 1 for verdict in shown["verdicts"])
    if preset.endswith("whole"):
        assert shown["verdicts"][0]["tempting"] == 10 and shown["verdicts"][0]["beaten"]
    assert shown["pairs"]["math_class"] > shown["pairs"]["class_apples"]
    assert_rows_are_distributions(shown["weights"])
    assert_rows_are_distributions(shown["among"])
    body, school = shown["heads"]["weights"]
    rows = [head[0] for head in (body, school)]  # one row of Q, two heads
    first = [row.index(max(row)) for row in rows]
    assert first == [0, 1] if preset.endswith("short") else first[0] in {0, 10}
    assert max(rows[0]) > 1.5 * max(rows[1])  # the question is about the body, and the other head sees little of it
    assert_code_agrees(page, state, shown)


def test_any_passage_and_questions():
    passage = "Cats sleep all day. Rain falls from clouds. Bread is baked in an oven."
    shown = show("relevance", passage=passage, questions=["Where does water come from?", "What do bakers make?"])
    assert shown["segments"] == ["Cats sleep all day.", "Rain falls from clouds.", "Bread is baked in an oven."]
    assert [verdict["winner"] for verdict in shown["verdicts"]] == [1, 2]
    assert {verdict["right"] for verdict in shown["verdicts"]} == {None} and shown["pairs"] is None
    alone = show("relevance", passage="Cats sleep all day.", questions=["Who sleeps?"])
    assert alone["weights"] == [[1]] and alone["among"] is None


@pytest.mark.parametrize(
    "state",
    [
        {"preset": "zh-short", "encoder": "minilm"},
        {"preset": "en-short", "encoder": "words"},
        {"passage": "привет мир. как дела?", "questions": ["что это?"]},
        {"questions": ["qzx wvbk xqj?"]},
    ],
)
def test_text_that_the_encoder_does_not_know_is_refused(state):
    with pytest.raises(UnknownTextError):
        show("relevance", **state)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"passage": "Cats sleep. " * 50}, "passage must have at most 40 segments, 50 came"),
        ({"passage": "... | !"}, "passage must have a segment that says something"),
        ({"heads": [{"name": "a"}, {"name": "a"}]}, "heads must have different names"),
    ],
)
def test_invalid_passages_are_refused(state, message):
    with pytest.raises(RegardError, match=message):
        show("relevance", **state)


def test_the_extra_of_the_lab_is_enough_for_every_lesson():
    """The packages of all other extras are hidden from a new process."""
    others = ["anywidget", "dask", "finufft", "matplotlib", "pandas", "pyarrow", "sklearn"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({others}))\n"
        "from regard.lab.pages import PAGES\n"
        "print(*(page.name for page in PAGES.values() if page.show(page.read({}))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == NAMES, done.stderr
