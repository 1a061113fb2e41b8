"""One test a message: what was asked, what came, what would be right; our class and the built-in a user expects."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import regard as rg
from regard import errors, masks, normalisers, scores

pytestmark = pytest.mark.plain  # wrong types on purpose


def t(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=device)


def ids(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.long)


def attend(**words: Any) -> Any:
    """Five queries, seven keys, two batches of three heads, unless told otherwise."""
    given = {"query": t(2, 3, 5, 4), "key": t(2, 3, 7, 4), "value": t(2, 3, 7, 6)} | words
    return rg.attend(**given)


def square(**words: Any) -> Any:
    return attend(query=t(2, 3, 7, 4), **words)


def weights(**words: Any) -> Any:
    return attend(**words).weights


class Refused:
    """A call, the error it must raise, the built-in a torch user expects, and the words the message must hold."""

    def __init__(self, name: str, call: Callable[[], Any], error: type, builtin: type, *words: str) -> None:
        self.name, self.call, self.error, self.builtin, self.words = name, call, error, builtin, words


Shape, Dtype, Device = errors.ShapeError, errors.DtypeError, errors.DeviceError
Choice, Mask, Plan, TooLarge = errors.ChoiceError, errors.MaskError, errors.PlanError, errors.TooLargeError
NotNormalised = errors.NotNormalisedError

SHAPES = [
    Refused(
        "key and value lengths",
        lambda: rg.attend(t(2, 5, 16), t(2, 7, 16), t(2, 9, 16)),
        Shape,
        ValueError,
        "keys and values must have the same length: key has 7 rows, value has 9 (key (2, 7, 16), value (2, 9, 16))",
    ),
    Refused("widths", lambda: attend(key=t(2, 3, 7, 9)), Shape, ValueError, "4", "9"),
    Refused(
        "widths of gaussian", lambda: attend(key=t(2, 3, 7, 9), score=scores.gaussian(1.0)), Shape, ValueError, "4", "9"
    ),
    Refused("widths of cosine", lambda: attend(key=t(2, 3, 7, 9), score=scores.cosine()), Shape, ValueError, "4", "9"),
    Refused("batches", lambda: attend(key=t(11, 3, 7, 4)), Shape, ValueError, "(2, 3, 5, 4)", "(11, 3, 7, 4)"),
    Refused("value batches", lambda: attend(value=t(11, 3, 7, 6)), Shape, ValueError, "(11, 3, 7, 6)"),
    Refused("one dimension", lambda: attend(query=t(4)), Shape, ValueError, "query", "(4,)"),
    Refused("no dimension", lambda: attend(value=t()), Shape, ValueError, "value", "()"),
    Refused(
        "heads not a multiple",
        lambda: attend(query=t(2, 7, 5, 4)),
        Shape,
        ValueError,
        "7",
        "3",
        "(2, 7, 5, 4)",
        "(2, 3, 7, 4)",
    ),
    Refused(
        "one query head for more key heads",
        lambda: attend(query=t(2, 1, 5, 4)),
        Shape,
        ValueError,
        "1",
        "3",
        "(2, 1, 5, 4)",
        "(2, 3, 7, 4)",
    ),
    Refused("more key heads", lambda: attend(key=t(2, 6, 7, 4), value=t(2, 6, 7, 4)), Shape, ValueError, "3", "6"),
    Refused("value heads", lambda: attend(query=t(2, 6, 5, 4), value=t(2, 2, 7, 6)), Shape, ValueError, "(2, 2, 7, 6)"),
    Refused(
        "grouped without a batch",
        lambda: rg.attend(t(6, 5, 4), t(3, 7, 4), t(3, 7, 4)),
        Shape,
        ValueError,
        "(6, 5, 4)",
        "(3, 7, 4)",
    ),
    Refused("grouped batches", lambda: attend(query=t(4, 3, 5, 4)), Shape, ValueError, "(4, 3, 5, 4)", "(2, 3, 7, 4)"),
    Refused("general", lambda: attend(score=scores.general(t(4, 9))), Shape, ValueError, "general", "9", "4"),
    Refused(
        "additive",
        lambda: attend(score=scores.additive(t(8, 4), t(8, 9), t(8))),
        Shape,
        ValueError,
        "additive",
        "9",
        "4",
    ),
    Refused(
        "additive hidden sizes",
        lambda: attend(score=scores.additive(t(8, 4), t(11, 4), t(8))),
        Shape,
        ValueError,
        "8",
        "11",
    ),
    Refused("concat", lambda: attend(score=scores.concat(t(8, 9), t(8))), Shape, ValueError, "concat", "9"),
    Refused("location", lambda: attend(score=scores.location(t(9, 4))), Shape, ValueError, "location", "9", "7"),
    Refused("gaussian widths", lambda: attend(score=scores.gaussian(t(9))), Shape, ValueError, "gaussian", "9", "4"),
    Refused("bias", lambda: attend(score=scores.dot() + scores.bias(t(5, 9))), Shape, ValueError, "bias", "9", "7"),
    Refused(
        "a short table",
        lambda: attend(score=scores.dot() + scores.relative(t(9), -4)),
        Shape,
        ValueError,
        "from -4 to 6",
        "from -4 to 4",
    ),
    Refused("alibi", lambda: square(score=scores.dot() + scores.alibi(t(9))), Shape, ValueError, "9", "3"),
    Refused("pooling", lambda: weights() @ t(2, 3, 9, 1), Shape, ValueError, "7", "(2, 3, 9, 1)"),
    Refused("pooling the transposed", lambda: weights().mT @ t(2, 3, 7, 1), Shape, ValueError, "5", "(2, 3, 7, 1)"),
    Refused("distance", lambda: weights().distance(), Shape, ValueError, "5", "7", "query_positions"),
    Refused("positions", lambda: weights().distance(torch.arange(9)), Shape, ValueError, "5", "9"),
    Refused("groups", lambda: weights().mass(ids(9)), Shape, ValueError, "7", "9"),
    Refused(
        "positions of heads", lambda: weights().distance(ids(11, 5)), Shape, ValueError, "query_positions", "(11, 5)"
    ),
    Refused("groups of batches", lambda: weights().mass(ids(11, 7)), Shape, ValueError, "(11, 7)"),
]

MASKS = [
    Refused("causal", lambda: attend(mask=masks.causal()), Mask, ValueError, "5", "7", "top-left", "bottom-right"),
    Refused("window", lambda: attend(mask=masks.window(2, 0)), Mask, ValueError, "5", "7", "top-left", "bottom-right"),
    Refused(
        "causal inside",
        lambda: attend(mask=~(masks.prefix(2) & masks.causal())),
        Mask,
        ValueError,
        "top-left",
        "bottom-right",
    ),
    Refused(
        "align",
        lambda: attend(mask=masks.causal(align="bottom")),
        Choice,
        ValueError,
        "bottom",
        "top-left",
        "bottom-right",
    ),
    Refused("bare boolean", lambda: attend(mask=t(5, 7, dtype=torch.bool)), Mask, TypeError, "allow", "hide"),
    Refused("bare float", lambda: attend(mask=t(5, 7)), Mask, TypeError, "allow", "hide", "bias"),
    Refused(
        "a mask by name",
        lambda: attend(mask="causal"),
        Mask,
        TypeError,
        "mask is an object of regard.masks, not the text 'causal': write mask=masks.causal()",
    ),
    Refused(
        "a mask by name in Weights", lambda: rg.Weights(t(5, 4), t(7, 4), mask="causal"), Mask, TypeError, "causal()"
    ),
    Refused(
        "a mask that needs sizes", lambda: attend(mask="Window"), Mask, TypeError, "mask=masks.window(left, right)"
    ),
    Refused("a mask that is not called", lambda: attend(mask=masks.causal), Mask, TypeError, "mask=masks.causal()"),
    Refused(
        "an unknown mask", lambda: attend(mask="diagonal"), Mask, TypeError, "'diagonal': there are allow, causal,"
    ),
    Refused(
        "bare boolean in Weights",
        lambda: rg.Weights(t(5, 4), t(7, 4), mask=t(5, 7) == 0),
        Mask,
        TypeError,
        "allow",
        "hide",
    ),
    Refused("allow floats", lambda: masks.allow(t(5, 7)), errors.RegardError, TypeError, "allow", "bool", "float32"),
    Refused("hide integers", lambda: masks.hide(ids(5, 7)), errors.RegardError, TypeError, "hide", "bool", "int64"),
    Refused("allow shape", lambda: attend(mask=masks.allow(t(5, 9) == 0)), Shape, ValueError, "allow", "(5, 9)", "7"),
    Refused(
        "hide shape", lambda: attend(mask=masks.hide(t(11, 1, 5, 7) == 0)), Shape, ValueError, "(11, 1, 5, 7)", "2"
    ),
    Refused("lengths", lambda: attend(mask=masks.padding(ids(9))), Shape, ValueError, "padding", "9", "2"),
    Refused("ranges", lambda: attend(mask=masks.ranges(ids(9), ids(9))), Shape, ValueError, "start of ranges", "(9,)"),
    Refused("float ranges", lambda: masks.ranges(ids(2), t(2)), errors.RegardError, TypeError, "stop of ranges"),
    Refused("too many lengths axes", lambda: attend(mask=masks.padding(ids(2, 3, 5))), Shape, ValueError, "(2, 3, 5)"),
    Refused("float lengths", lambda: masks.padding(t(2)), errors.RegardError, TypeError, "lengths", "float32"),
    Refused("query ids", lambda: attend(mask=masks.segments(ids(9), ids(7))), Shape, ValueError, "segments", "9", "5"),
    Refused("key ids", lambda: attend(mask=masks.segments(ids(5), ids(9))), Shape, ValueError, "segments", "9", "7"),
    Refused(
        "ids of batches", lambda: attend(mask=masks.segments(ids(11, 5), ids(11, 7))), Shape, ValueError, "11", "2"
    ),
    Refused("float ids", lambda: masks.segments(t(5), t(7)), errors.RegardError, TypeError, "ids", "float32"),
    Refused("prefix", lambda: masks.prefix(-1), Choice, ValueError, "prefix", "-1"),
    Refused(
        "joined with a tensor", lambda: masks.causal() & (t(5, 7) == 0), errors.RegardError, TypeError, "allow", "hide"
    ),
]

TYPES = [
    Refused("a list of groups", lambda: weights().mass([0] * 7), Dtype, TypeError, "groups", "list", "tensor"),
    Refused("complex groups", lambda: weights().mass(t(7, dtype=torch.cfloat)), Dtype, TypeError, "groups", "complex"),
    Refused(
        "a list of positions",
        lambda: weights().distance([0] * 5),
        Dtype,
        TypeError,
        "query_positions",
        "list",
        "tensor",
    ),
    Refused(
        "complex positions",
        lambda: weights().distance(t(5, dtype=torch.cfloat)),
        Dtype,
        TypeError,
        "query_positions",
        "complex",
    ),
    Refused(
        "boolean positions",
        lambda: weights().distance(t(5, dtype=torch.bool)),
        Dtype,
        TypeError,
        "query_positions",
        "bool",
    ),
    Refused("a list", lambda: attend(query=[[1.0]]), Dtype, TypeError, "query", "list"),
    Refused("integers", lambda: attend(value=ids(2, 3, 7, 6)), Dtype, TypeError, "value", "int64"),
    Refused("booleans", lambda: attend(key=t(2, 3, 7, 4) == 0), Dtype, TypeError, "key", "bool"),
    Refused("two types", lambda: attend(key=t(2, 3, 7, 4).double()), Dtype, TypeError, "float32", "float64"),
    Refused("half and whole", lambda: attend(query=t(2, 3, 5, 4).half()), Dtype, TypeError, "float16", "float32"),
    Refused(
        "complex", lambda: attend(query=t(2, 3, 5, 4, dtype=torch.complex64)), Dtype, TypeError, "query", "complex64"
    ),
    Refused("score", lambda: attend(score="dot"), Dtype, TypeError, "score", "regard.scores"),
    Refused("score function", lambda: attend(score=scores.dot), Dtype, TypeError, "score", "regard.scores", "function"),
    Refused("mask function", lambda: square(mask=masks.causal), Mask, TypeError, "mask", "regard.masks", "function"),
    Refused(
        "normaliser", lambda: attend(normaliser=torch.softmax), Dtype, TypeError, "normaliser", "regard.normalisers"
    ),
    Refused("adding a tensor", lambda: scores.dot() + t(5, 7), Dtype, TypeError, "scores.bias"),
    Refused("float groups", lambda: weights().mass(t(7)), Dtype, TypeError, "groups", "float32"),
    Refused("pooling another type", lambda: weights() @ t(2, 3, 7, 1).double(), Dtype, TypeError, "float32", "float64"),
]

DEVICES = [
    Refused(
        "key", lambda: attend(key=t(2, 3, 7, 4, device="meta")), Device, RuntimeError, "query", "key", "cpu", "meta"
    ),
    Refused("value", lambda: attend(value=t(2, 3, 7, 6, device="meta")), Device, RuntimeError, "value", "cpu", "meta"),
    Refused(
        "general",
        lambda: attend(score=scores.general(t(4, 4, device="meta"))),
        Device,
        RuntimeError,
        "general",
        "cpu",
        "meta",
    ),
    Refused(
        "allow",
        lambda: attend(mask=masks.allow(t(5, 7, device="meta") == 0)),
        Device,
        RuntimeError,
        "allow",
        "cpu",
        "meta",
    ),
    Refused("pooling", lambda: weights() @ t(2, 3, 7, 1, device="meta"), Device, RuntimeError, "cpu", "meta"),
    Refused("groups", lambda: weights().mass(ids(7).to("meta")), Device, RuntimeError, "groups", "cpu", "meta"),
    Refused(
        "positions",
        lambda: weights().distance(ids(5).to("meta")),
        Device,
        RuntimeError,
        "query_positions",
        "cpu",
        "meta",
    ),
]

CHOICES = [
    Refused("plan", lambda: attend(plan="fast"), Choice, ValueError, "fast", "auto", "dense", "tiled", "fused"),
    Refused(
        "plan of Weights",
        lambda: rg.Weights(t(5, 4), t(7, 4), plan="fast"),
        Choice,
        ValueError,
        "fast",
        "auto",
        "tiled",
    ),
    Refused(
        "kernel", lambda: scores.kernel("hat", 1.0), Choice, ValueError, "hat", "gaussian", "epanechnikov", "tricube"
    ),
    Refused("bandwidth", lambda: scores.kernel("gaussian", 0.0), Choice, ValueError, "bandwidth", "0"),
    Refused("pool", lambda: weights().heatmap(4, pool="median"), Choice, ValueError, "median", "mean", "max", "sum"),
    Refused("bins", lambda: weights().heatmap(0), Choice, ValueError, "bins", "0"),
    Refused("budget", lambda: attend(budget=0), Choice, ValueError, "budget", "0"),
    Refused("negative budget", lambda: attend(budget=-5), Choice, ValueError, "budget", "-5"),
    Refused("dropout 1", lambda: attend(dropout_p=1.0), Choice, ValueError, "dropout_p", "1"),
    Refused("dropout below 0", lambda: attend(dropout_p=-0.1), Choice, ValueError, "dropout_p", "-0.1"),
    Refused("top", lambda: weights().top(0), Choice, ValueError, "top", "0"),
    Refused("top -1", lambda: weights().top(-1), Choice, ValueError, "top", "-1"),
    Refused("temperature", lambda: scores.cosine(0.0), Choice, ValueError, "temperature", "0"),
    Refused("softcap", lambda: scores.softcap(scores.dot(), 0.0), Choice, ValueError, "softcap", "0"),
    Refused("sigmoid", lambda: normalisers.sigmoid(float("nan")), Choice, ValueError, "sigmoid", "nan"),
    Refused("group below -1", lambda: weights().mass(ids(7) - 2), Choice, ValueError, "groups", "-2"),
]

PLANS = [
    Refused(
        "values with heads of their own",
        lambda: rg.attend(t(20, 4), t(20, 4), t(5, 20, 4), plan="fused"),
        Plan,
        ValueError,
        "leading dimensions of their own",
    ),
    Refused(
        "additive",
        lambda: fused(score=scores.additive(t(8, 4), t(8, 4), t(8))),
        Plan,
        ValueError,
        "fused",
        "additive|tanh",
    ),
    Refused("sparsemax", lambda: fused(normaliser=normalisers.sparsemax()), Plan, ValueError, "fused", "softmax"),
    Refused("sigmoid", lambda: fused(normaliser=normalisers.sigmoid()), Plan, RuntimeError, "fused", "softmax"),
    Refused("dropout", lambda: fused(dropout_p=0.5), Plan, ValueError, "fused", "dropout"),
    Refused("softcap", lambda: fused(score=scores.softcap(scores.dot(), 2.0)), Plan, ValueError, "fused"),
    Refused("compact kernel", lambda: fused(score=scores.kernel("boxcar", 2.0)), Plan, ValueError, "fused", "boxcar"),
]

LIMITS = [
    Refused("dense", lambda: weights().dense(limit=800), TooLarge, RuntimeError, "840", "800", "bytes"),
    Refused("dense of long rows", lambda: long().dense(), TooLarge, MemoryError, "40,000,000,000|40000000000", "bytes"),
    Refused("a whole block", lambda: long()[:], TooLarge, MemoryError, "bytes"),
]

DISTRIBUTIONS = [
    Refused(
        question,
        lambda ask=ask: ask(weights(normaliser=normalisers.sigmoid())),
        NotNormalised,
        TypeError,
        question,
        "sigmoid",
    )
    for question, ask in {
        "entropy": lambda w: w.entropy(),
        "saturation": lambda w: w.saturation(),
        "logsumexp": lambda w: w.logsumexp(),
        "distance": lambda w: w.distance(torch.arange(5)),
    }.items()
]
DISTRIBUTIONS += [
    Refused(
        "logsumexp of sparsemax",
        lambda: weights(normaliser=normalisers.sparsemax()).logsumexp(),
        NotNormalised,
        ValueError,
        "logsumexp",
        "sparsemax",
    ),
    Refused(
        "logsumexp of hard",
        lambda: weights(normaliser=normalisers.hard()).logsumexp(),
        NotNormalised,
        ValueError,
        "logsumexp",
        "hard",
    ),
]


VALUES = [
    Refused("scale", lambda: scores.scaled_dot(torch.inf), Choice, ValueError, "finite", "inf"),
    Refused("concat of two h", lambda: scores.concat(t(8, 9), t(11)), Shape, ValueError, "concat", "(8, 9)", "(11,)"),
    Refused("bias of integers", lambda: scores.bias(ids(5, 7)), Dtype, TypeError, "t of bias", "int64", "masks"),
    Refused("bias of a list", lambda: scores.bias([1.0]), Dtype, TypeError, "t of bias", "list"),
    Refused("relative of a list", lambda: scores.relative([1.0], 0), Dtype, TypeError, "table of relative", "list"),
    Refused("softcap of a number", lambda: scores.softcap(3.0, 2.0), Dtype, TypeError, "softcap", "float"),
    Refused("w of integers", lambda: scores.general(ids(4, 4)), Dtype, TypeError, "w of general", "int64"),
    Refused("w of one dimension", lambda: scores.general(t(4)), Shape, ValueError, "2 dimensions", "(4,)"),
    Refused(
        "v of two dimensions", lambda: scores.concat(t(8, 9), t(8, 1)), Shape, ValueError, "1 dimension,", "(8, 1)"
    ),
    Refused("bandwidth", lambda: scores.kernel("boxcar", 0.0), Choice, ValueError, "positive bandwidth", "0"),
    Refused("bandwidth of two dimensions", lambda: scores.kernel("boxcar", t(4, 1)), Shape, ValueError, "(4, 1)"),
    Refused("negative window", lambda: masks.window(-1, 0), Choice, ValueError, "0 or more", "left=-1"),
    Refused("half a window", lambda: masks.window(None, 0), Choice, ValueError, "0 or more", "left=None"),
    Refused("budget in words", lambda: attend(budget="64MB"), Choice, ValueError, "bytes", "'64MB'"),
    Refused("dropout in words", lambda: attend(dropout_p="half"), Choice, ValueError, "probability", "'half'"),
]
INDICES = [
    Refused("None", lambda: weights()[None], Choice, ValueError, "None"),
    Refused("a bool", lambda: weights()[True], Choice, ValueError, "bool"),
    Refused("too many", lambda: weights()[0, 0, 0, 0, 0], Choice, ValueError, "4 dimensions", "5 entries"),
    Refused("two ellipses", lambda: weights()[..., 0, ...], Choice, ValueError, "2 ellipses"),
    Refused("backwards", lambda: weights()[..., ::-1], Choice, ValueError, "positive step", "-1"),
    Refused("a text", lambda: weights()["first"], Choice, ValueError, "'first'"),
    Refused("halves", lambda: weights()[..., torch.tensor([0.5])], Choice, ValueError, "float32"),
    Refused("beyond", lambda: weights()[..., 7], errors.PositionError, IndexError, "-7 to 6", "7"),
    Refused("some beyond", lambda: weights()[..., [0, 9], 0], errors.PositionError, IndexError, "-5 to 4", "9"),
    Refused(
        "few bools", lambda: weights()[..., torch.ones(6) > 0], errors.PositionError, IndexError, "7 positions", "(6,)"
    ),
]


def fused(**words: Any) -> Any:
    return rg.attend(t(20, 4), t(20, 4), t(20, 4), plan="fused", **words)


def long() -> Any:
    return rg.Weights(t(100_000, 4), t(100_000, 4))


ALL = {
    f"{kind}: {case.name}": case
    for kind, cases in {
        "shape": SHAPES,
        "mask": MASKS,
        "type": TYPES,
        "device": DEVICES,
        "choice": CHOICES,
        "plan": PLANS,
        "limit": LIMITS,
        "distribution": DISTRIBUTIONS,
        "value": VALUES,
        "index": INDICES,
    }.items()
    for case in cases
}


@pytest.mark.parametrize("name", list(ALL))
def test_bad_input_is_refused_with_the_named_words(name: str) -> None:
    case = ALL[name]
    with pytest.raises(case.error) as caught:
        case.call()
    assert isinstance(caught.value, case.builtin) and isinstance(caught.value, errors.RegardError)
    message = str(caught.value)
    for word in case.words:
        assert any(choice in message for choice in word.split("|")), f"{word!r} is not in: {message}"


@pytest.mark.parametrize("index", [5, -6, (0, 0, 0, 7), (..., 7), (..., [0, 9], 0), (2,)])
def test_an_index_out_of_range_is_an_index_error(index: Any) -> None:
    matrix = weights() if isinstance(index, tuple) else rg.Weights(t(5, 4), t(7, 4))
    with pytest.raises(IndexError) as caught:
        matrix[index]
    assert isinstance(caught.value, errors.RegardError)


def test_a_loop_over_weights_ends() -> None:
    rows = list(rg.Weights(torch.randn(5, 4), torch.randn(7, 4)))
    assert len(rows) == 5 and all(row.shape == (7,) for row in rows)


def test_a_mask_has_no_truth() -> None:
    """`causal and padding` would silently drop one of the two."""
    with pytest.raises((TypeError, errors.RegardError), match="&"):
        bool(masks.causal())


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_the_plan_says_what_it_does_and_why(plan: str) -> None:
    text = str(rg.attend(*(torch.randn(40, 8) for _ in range(3)), plan=plan).weights.plan)
    assert "\n" not in text and len(text) > 20
    assert plan == "auto" or plan in text


@pytest.mark.parametrize("name", [n for n in dir(errors) if n.endswith("Error")])
def test_every_error_is_ours_and_a_built_in(name: str) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.RegardError)
    if error is not errors.RegardError:
        assert any(base.__module__ == "builtins" and base is not Exception for base in error.__bases__)
