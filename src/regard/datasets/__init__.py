"""Small data sets for lessons and examples. Each is made here, from a seed or from numbers that are written out."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.datasets._scenes import SCENES, Scene, desk, scene
from regard.errors import ChoiceError

__all__ = [
    "sine",
    "Sine",
    "desk",
    "scene",
    "Scene",
    "SCENES",
    "worked_example",
    "WorkedExample",
    "passage",
    "Passage",
]


class Sine(NamedTuple):
    x_train: Float[Tensor, " n"]
    y_train: Float[Tensor, " n"]
    x_test: Float[Tensor, "50"]
    y_truth: Float[Tensor, "50"]


class WorkedExample(NamedTuple):
    tokens: Float[Tensor, "5 4"]
    scores: Float[Tensor, "5 5"]
    weights: Float[Tensor, "5 5"]


class Passage(NamedTuple):
    segments: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[int, ...]  # the segment, counted from 0, that answers each question
    tempting: int | None  # a segment that is about the first question and does not answer it


def sine(n: int = 50, seed: int = 0, noise: float = 0.5) -> Sine:
    """A noisy curve: y = 2 sin(x) + x^0.8 + e, with e normal, mean 0, standard deviation `noise`.

    `x_train` is n points uniform on (0, 5), sorted; `x_test` is 0, 0.1, ..., 4.9, and `y_truth` the curve without noise
    there. All are computed in float64 and returned in float32; the same seed gives the same data, and the global
    random state is neither read nor changed.

    >>> sine().x_train.shape, sine().x_test.shape
    (torch.Size([50]), torch.Size([50]))
    """
    if n < 1:
        raise ChoiceError(f"n must be at least 1: the number of training points came as {n}")
    if not 0 <= noise < math.inf:
        raise ChoiceError(f"noise is a standard deviation, 0 or more, and came as {noise}")
    generator = torch.Generator().manual_seed(seed)
    x_train = torch.rand(n, generator=generator, dtype=torch.float64).mul(5).sort().values
    e = torch.randn(n, generator=generator, dtype=torch.float64) * noise
    x_test = torch.arange(50, dtype=torch.float64) / 10
    return Sine(x_train.float(), (_curve(x_train) + e).float(), x_test.float(), _curve(x_test).float())


def _curve(x: Tensor) -> Tensor:
    return 2 * torch.sin(x) + x**0.8


def worked_example() -> WorkedExample:
    """Five tokens of width 4 that attend to each other with no projections: query = key = value = tokens.

    `scores` is tokens @ tokens.mT / sqrt(4) and `weights` its softmax, rounded to four decimals. The first token looks
    most at itself; the fifth looks equally at tokens 1, 3 and 5.
    """
    tokens = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]]
    scores = [
        [1.00, 0.00, 0.50, 0.50, 0.75],
        [0.00, 1.00, 0.50, 0.50, 0.25],
        [0.50, 0.50, 1.00, 0.00, 0.75],
        [0.50, 0.50, 0.00, 1.00, 0.25],
        [0.75, 0.25, 0.75, 0.25, 0.75],
    ]
    weights = [
        [0.2976, 0.1095, 0.1805, 0.1805, 0.2318],
        [0.1205, 0.3275, 0.1986, 0.1986, 0.1547],
        [0.1805, 0.1805, 0.2976, 0.1095, 0.2318],
        [0.1986, 0.1986, 0.1205, 0.3275, 0.1547],
        [0.2374, 0.1440, 0.2374, 0.1440, 0.2374],
    ]
    return WorkedExample(torch.tensor(tokens), torch.tensor(scores), torch.tensor(weights))


BOY = {
    "en": (
        "His father is two meters tall",
        "He has been bad at math since childhood",
        "He often skips class",
        "He loves eating apples",
        "His blood type is A",
        "He loves playing games",
        "His favourite game is The Legend of Zelda",
        "He also often skips class to play",
        "Sometimes he plays a little basketball and table tennis",
        "His favourite sport is running",
        "He is now 2.13 metres tall",
        "He weighs 100 kilograms",
        "He wears size 48 shoes",
    ),
    "zh": (
        "他爸有 2 米高",
        "他从小的数学成绩并不好",
        "经常旷课",
        "他爱吃苹果",
        "他血型是 A",
        "爱玩游戏",
        "他最喜欢的游戏就是塞尔达传说",
        "他还经常逃课去玩",
        "有时候他会打一下篮球和乒乓球",
        "他最喜欢的运动是跑步",
        "他现在身高是 2.13 米",
        "体重是 200 斤",
        "鞋子要穿 48 码的",
    ),
}
ASKED = {
    "en": ("Why is Yao Ming so tall?", "He does not understand trigonometric functions"),
    "zh": ("姚明为什么这么高", "他三角函数不懂"),
}
ASKED_OF_ALL = {"en": ("Why could he grow so tall?",), "zh": ("他为什么可以长这么高",)}


def passage(language: str = "en", *, short: bool = False) -> Passage:
    """A boy told in thirteen segments, and why he is so tall; in English or Chinese ("zh").

    His father's height answers the question. The tempting wrong answer is his own, which is no reason.
    short: the first five segments alone, and two questions.

    >>> passage("zh", short=True).questions
    ('姚明为什么这么高', '他三角函数不懂')
    """
    if language not in BOY:
        raise ChoiceError(f"the passage is told in en and zh, not in {language!r}")
    if short:
        return Passage(BOY[language][:5], ASKED[language], answers=(0, 1), tempting=None)
    return Passage(BOY[language], ASKED_OF_ALL[language], answers=(0,), tempting=10)
