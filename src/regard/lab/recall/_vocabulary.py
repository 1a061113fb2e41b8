"""The 64 words that are recalled, each in English and Chinese, and sentences of them."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from regard.errors import UnknownTextError


class Word(NamedTuple):
    """A word in both languages: to the models it is a number, its place in `WORDS`."""

    en: str
    zh: str


def _words(pairs: str) -> tuple[Word, ...]:
    return tuple(Word(*pair.split("/")) for pair in pairs.split())


ADJECTIVES = _words(
    "red/红 blue/蓝 green/绿 white/白 black/黑 big/大 small/小 old/老 young/年轻 tall/高 happy/快乐 quiet/安静 "
    "new/新 long/长 bright/亮 clever/聪明"
)
ANIMATE = _words(
    "cat/猫 dog/狗 bird/鸟 horse/马 fish/鱼 bear/熊 rabbit/兔子 child/孩子 mother/妈妈 father/爸爸 teacher/老师 "
    "friend/朋友 doctor/医生 king/国王 farmer/农夫 sailor/水手"
)
VERBS = _words(
    "sees/看见 finds/找到 likes/喜欢 draws/画 buys/买 sells/卖 carries/搬 wants/想要 loses/丢掉 hides/藏 "
    "brings/带来 washes/洗"
)
THINGS = _words(
    "book/书 key/钥匙 apple/苹果 cup/杯子 letter/信 house/房子 tree/树 boat/船 flower/花 lamp/灯 bread/面包 "
    "stone/石头 door/门 clock/钟 chair/椅子 hat/帽子"
)
LINKS = _words("then/然后 but/但是 because/因为 while/同时")
WORDS = (*ADJECTIVES, *ANIMATE, *VERBS, *THINGS, *LINKS)
CLAUSE = (ADJECTIVES, ANIMATE, VERBS, ADJECTIVES, THINGS, LINKS)  # the same order of words in both languages

_NUMBERS = {form: number for number, word in enumerate(WORDS) for form in word}
_CHINESE = "|".join(sorted((word.zh for word in WORDS), key=len, reverse=True))  # the longest that fits comes first
# A word of the vocabulary in Chinese, which has no spaces; any other run of Chinese characters; any other word.
_TOKEN = re.compile(rf"{_CHINESE}|[一-鿿]+?(?={_CHINESE}|[^一-鿿]|$)|[^\W一-鿿]+(?:['’-]\w+)*")


def read(text: str) -> Int[Tensor, " words"]:
    """The words of a text as numbers, in English or Chinese; punctuation is left out.

    A word that is not among the 64 is refused: a model that never saw a word cannot recall it.

    >>> read("Red cat, 小狗").tolist()
    [0, 16, 6, 17]
    """
    tokens = _TOKEN.findall(text.lower())
    unknown = [token for token in dict.fromkeys(tokens) if token not in _NUMBERS]
    if unknown:
        some = ", ".join(repr(token[:20]) for token in unknown[:5])
        words = ", ".join(word.en for word in WORDS)
        raise UnknownTextError(f"the text may have these {len(WORDS)} words only: {words}; it has {some}")
    return torch.tensor([_NUMBERS[token] for token in tokens], dtype=torch.int64)


def draw(words: int, seed: int) -> Int[Tensor, " words"]:
    """A sentence of this many words as in a telegram: red cat finds small key, then tall king ...

    The same seed with more words gives the same sentence, further on.
    """
    chooser = random.Random(seed)
    sentence = [chooser.choice(CLAUSE[place % len(CLAUSE)]) for place in range(words)]
    return torch.tensor([_NUMBERS[word.en] for word in sentence], dtype=torch.int64)
