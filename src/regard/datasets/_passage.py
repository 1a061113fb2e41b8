"""A short passage with questions, in English and Chinese."""

from typing import NamedTuple

from regard.errors import ChoiceError


class Passage(NamedTuple):
    """Segments of a text, questions about it, and the segments that answer them."""

    segments: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[int, ...]  # the segment, counted from 0, that answers each question
    tempting: int | None  # a segment that is about the first question and does not answer it


SEGMENTS = {
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
SHORT_QUESTIONS = {
    "en": ("Why is Yao Ming so tall?", "He does not understand trigonometric functions"),
    "zh": ("姚明为什么这么高", "他三角函数不懂"),
}
LONG_QUESTIONS = {"en": ("Why could he grow so tall?",), "zh": ("他为什么可以长这么高",)}


def passage(language: str = "en", *, short: bool = False) -> Passage:
    """A passage about a boy in thirteen segments, and the question why he is so tall; in English or Chinese ("zh").

    His father's height answers the question. The tempting wrong answer is his own height, which is no reason.
    short: only the first five segments, and two questions.

    >>> passage("zh", short=True).questions
    ('姚明为什么这么高', '他三角函数不懂')
    """
    if language not in SEGMENTS:
        raise ChoiceError(f"the passage is written in en and zh, not in {language!r}")
    if short:
        return Passage(SEGMENTS[language][:5], SHORT_QUESTIONS[language], answers=(0, 1), tempting=None)
    return Passage(SEGMENTS[language], LONG_QUESTIONS[language], answers=(0,), tempting=10)
