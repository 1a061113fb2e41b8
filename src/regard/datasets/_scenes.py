"""Scenes: objects with features as keys and colours as values, a saliency scorer, and a query."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ChoiceError


class Scene(NamedTuple):
    """Objects of a scene: keys are their features, values their colours. Texts are in English and Chinese (`_zh`)."""

    names: tuple[str, ...]
    names_zh: tuple[str, ...]
    features: tuple[str, ...]
    features_zh: tuple[str, ...]
    keys: Float[Tensor, "objects features"]
    values: Float[Tensor, "objects 3"]  # colour as RGB
    saliency: Float[Tensor, " features"]  # scorer without a query: keys @ saliency
    query: Float[Tensor, "1 features"]
    query_text: str
    query_text_zh: str


def scene(name: str = "desk") -> Scene:
    """A scene by its name: "desk", "room", "cats", "library" or "photo".

    Without a query the object with the largest ``keys @ saliency`` stands out; with the query it is the one with the
    largest ``query @ keys.mT``.

    >>> room = scene("room")
    >>> room.names[(room.keys @ room.saliency).argmax()], room.names[(room.query @ room.keys.mT).argmax()]
    ('television', 'red cup')
    """
    if name not in SCENES:
        raise ChoiceError(f"the scenes are {', '.join(SCENES)}, not {name!r}")
    return SCENES[name]()


def desk() -> Scene:
    """Five objects on a desk, with a scorer that takes no query and a query for a book.

    A key holds four features of an object. Without a query the score is `keys @ saliency`, and the red cup has the
    largest. With the query "I want to read" the score is `query @ keys.mT`, and the book has the largest. The keys are
    the same both times. `values` are colours as RGB.

    >>> d = desk()
    >>> d.names[(d.keys @ d.saliency).argmax()], d.names[(d.query @ d.keys.mT).argmax()]
    ('red coffee cup', 'book')
    """
    # redness, shine, text, pages
    newspaper, paper, cup = [0.0, 0.1, 0.8, 0.3], [0.0, 0.2, 0.7, 0.2], [1.0, 0.9, 0.0, 0.0]
    notebook, book = [0.1, 0.2, 0.2, 0.6], [0.2, 0.1, 1.0, 1.0]
    grey, white, red, blue, brown = (
        [0.75, 0.74, 0.70],
        [0.96, 0.96, 0.94],
        [0.80, 0.10, 0.12],
        [0.25, 0.40, 0.65],
        [0.35, 0.25, 0.20],
    )
    return Scene(
        names=("newspaper", "paper", "red coffee cup", "notebook", "book"),
        names_zh=("报纸", "论文", "红色咖啡杯", "笔记本", "书"),
        features=("redness", "shine", "text", "pages"),
        features_zh=("红色", "光泽", "文字", "页数"),
        keys=torch.tensor([newspaper, paper, cup, notebook, book]),
        values=torch.tensor([grey, white, red, blue, brown]),
        # What the eye is drawn to before it wants anything: colour and shine, hardly letters.
        saliency=torch.tensor([4.0, 2.0, 0.5, 0.0]),
        # Something with words, and enough of them.
        query=torch.tensor([[0.0, 0.0, 4.0, 2.0]]),
        query_text="I want to read",
        query_text_zh="我想读书",
    )


def room() -> Scene:
    """A red cup is looked for: a key is colour, shape and place, the value is the full view."""
    # redness, shape of a cup, on the table, brightness
    television, lamp, red_cup = [0.1, 0.0, 0.0, 1.0], [0.2, 0.3, 0.5, 0.9], [1.0, 1.0, 1.0, 0.2]
    blue_cup, red_cushion, plant = [0.0, 1.0, 1.0, 0.2], [1.0, 0.1, 0.0, 0.2], [0.0, 0.3, 0.6, 0.1]
    return Scene(
        names=("television", "lamp", "red cup", "blue cup", "red cushion", "plant"),
        names_zh=("电视", "台灯", "红杯子", "蓝杯子", "红靠垫", "绿植"),
        features=("redness", "shape of a cup", "on the table", "brightness"),
        features_zh=("红色", "杯子形状", "在桌上", "亮度"),
        keys=torch.tensor([television, lamp, red_cup, blue_cup, red_cushion, plant]),
        values=torch.tensor(
            [
                [0.55, 0.75, 0.95],
                [0.98, 0.90, 0.60],
                [0.82, 0.12, 0.14],
                [0.20, 0.40, 0.75],
                [0.75, 0.20, 0.22],
                [0.25, 0.50, 0.28],
            ]
        ),
        saliency=torch.tensor([1.0, 0.0, 0.0, 4.0]),
        query=torch.tensor([[3.0, 3.0, 1.0, 0.0]]),
        query_text="Where is my red cup?",
        query_text_zh="我的红杯子在哪儿？",
    )


def cats() -> Scene:
    """Cats are counted in a photo: three of them share the weight, so that exp(entropy) is about three."""
    # pointed ears, whiskers, redness, size
    white, black, tabby = [1.0, 1.0, 0.0, 0.3], [1.0, 1.0, 0.0, 0.2], [1.0, 1.0, 0.2, 0.3]
    dog, ball, sofa = [0.2, 0.4, 0.1, 0.5], [0.0, 0.0, 1.0, 0.1], [0.0, 0.0, 0.1, 1.0]
    return Scene(
        names=("white cat", "black cat", "tabby cat", "dog", "red ball", "sofa"),
        names_zh=("白猫", "黑猫", "虎斑猫", "狗", "红球", "沙发"),
        features=("pointed ears", "whiskers", "redness", "size"),
        features_zh=("尖耳朵", "胡须", "红色", "大小"),
        keys=torch.tensor([white, black, tabby, dog, ball, sofa]),
        values=torch.tensor(
            [
                [0.95, 0.94, 0.92],
                [0.12, 0.12, 0.13],
                [0.65, 0.52, 0.38],
                [0.55, 0.38, 0.22],
                [0.85, 0.10, 0.12],
                [0.45, 0.48, 0.52],
            ]
        ),
        saliency=torch.tensor([0.5, 0.0, 4.0, 1.0]),
        query=torch.tensor([[4.0, 4.0, 0.0, 0.0]]),
        query_text="How many cats are there?",
        query_text_zh="有几只猫？",
    )


def library() -> Scene:
    """A book is found in a library: the query is what I want, a key is a label, the value is the book."""
    # astronomy, history, story, gold on the cover
    stars, rome, novel = [1.0, 0.1, 0.0, 0.1], [0.0, 1.0, 0.1, 0.3], [0.4, 0.0, 1.0, 0.2]
    cookbook, encyclopaedia = [0.0, 0.0, 0.0, 0.2], [0.4, 0.5, 0.0, 1.0]
    return Scene(
        names=("atlas of the stars", "history of Rome", "space novel", "cookbook", "gilded encyclopaedia"),
        names_zh=("星图", "罗马史", "太空小说", "菜谱", "烫金百科全书"),
        features=("astronomy", "history", "story", "gold on the cover"),
        features_zh=("天文", "历史", "故事", "封面烫金"),
        keys=torch.tensor([stars, rome, novel, cookbook, encyclopaedia]),
        values=torch.tensor(
            [
                [0.10, 0.15, 0.40],
                [0.55, 0.20, 0.18],
                [0.35, 0.25, 0.55],
                [0.90, 0.75, 0.55],
                [0.80, 0.65, 0.20],
            ]
        ),
        saliency=torch.tensor([0.0, 0.0, 0.5, 4.0]),
        query=torch.tensor([[5.0, 0.5, 0.0, 0.0]]),
        query_text="A book about the stars",
        query_text_zh="一本讲星星的书",
    )


def photo() -> Scene:
    """A face is looked for in a group photo: the eye falls on the red hat, the friend wears glasses and curls."""
    # glasses, curly hair, smile, red hat
    hat, uncle, child = [0.0, 0.2, 0.4, 1.0], [1.0, 0.0, 0.2, 0.0], [0.0, 0.6, 1.0, 0.0]
    friend, grandmother = [1.0, 1.0, 0.7, 0.0], [0.3, 0.7, 0.8, 0.0]
    return Scene(
        names=("man with a red hat", "uncle", "child", "my friend", "grandmother"),
        names_zh=("戴红帽的人", "叔叔", "小孩", "我的朋友", "奶奶"),
        features=("glasses", "curly hair", "smile", "red hat"),
        features_zh=("眼镜", "卷发", "微笑", "红帽子"),
        keys=torch.tensor([hat, uncle, child, friend, grandmother]),
        values=torch.tensor(
            [
                [0.82, 0.14, 0.15],
                [0.30, 0.32, 0.36],
                [0.95, 0.80, 0.45],
                [0.30, 0.55, 0.45],
                [0.70, 0.62, 0.72],
            ]
        ),
        saliency=torch.tensor([0.5, 0.0, 1.0, 4.0]),
        query=torch.tensor([[3.0, 3.0, 0.0, 0.0]]),
        query_text="Where is my friend with the glasses and the curls?",
        query_text_zh="我那个戴眼镜、卷头发的朋友在哪儿？",
    )


SCENES: dict[str, Callable[[], Scene]] = {
    "desk": desk,
    "room": room,
    "cats": cats,
    "library": library,
    "photo": photo,
}
