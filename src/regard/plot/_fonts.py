"""Fonts with Chinese characters: a fallback for the texts of our own pictures, never a global setting."""

import re
import sys
import warnings
from collections.abc import Iterable

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager, get_font

# In order of preference: simplified Chinese first, then any font that has the characters.
FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti SC",
    "STHeiti",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Noto Sans CJK JP",
    "Noto Sans CJK TC",
    "Source Han Sans",
    "Heiti TC",
    "Noto Serif CJK SC",
    "Noto Serif CJK JP",
    "Arial Unicode MS",
)
FILES = re.compile(
    "cjk|notosanssc|sourcehan|pingfang|hiragino|heiti|msyh|simhei|wqy|droidsansfallback|arial unicode", re.IGNORECASE
)
FIRST_CJK = "\u2e80"  # first character of the CJK blocks of Unicode


def find_cjk_family() -> str | None:
    """Return the name of an installed font with Chinese characters, or None."""
    family = _first_installed()
    if family is None:
        # matplotlib keeps its list of fonts on disk, so it does not notice a font installed after its first run.
        _register_new_files()
        family = _first_installed()
    return family


def _first_installed() -> str | None:
    names = {entry.name for entry in fontManager.ttflist}
    return next((family for family in FAMILIES if family in names), None)


def _register_new_files() -> None:
    known = {str(entry.fname) for entry in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known and FILES.search(path):
            fontManager.addfont(path)


def families_for(texts: Iterable[str]) -> list[str] | None:
    """Return font families that can draw `texts`; None if the user's own can, or if none is installed."""
    families = list(rcParams["font.family"])
    missing = _missing({c for text in texts for c in text if c.isprintable()}, families)
    if not missing:
        return None
    fallback = find_cjk_family()
    if fallback is not None:
        return [*families, fallback]
    if any(c >= FIRST_CJK for c in missing):  # one text for all warnings, so that Python shows it once
        warnings.warn(
            "no installed font has Chinese characters: they will be drawn as boxes. "
            "Install one, e.g. `apt-get install fonts-noto-cjk` or `dnf install google-noto-sans-cjk-fonts`",
            stacklevel=_level_of_caller(),
        )
    return None


def _missing(characters: set[str], families: list[str]) -> set[str]:
    for family in families:
        font = get_font(findfont(FontProperties(family=[family])))
        characters = {c for c in characters if not font.get_char_index(ord(c))}
    return characters


def _level_of_caller() -> int:
    """Return the stack level of the first frame outside regard, so that a warning points at the user's line."""
    level, frame = 0, sys._getframe(1)  # noqa: SLF001  (warnings.warn can skip a package only from Python 3.12 on)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("regard."):
        level, frame = level + 1, frame.f_back
    return level + 1


def set_families(axes: Iterable[Axes], families: list[str] | None) -> None:
    """Set the font families of all texts of `axes`; None leaves them as they are."""
    if families is None:
        return
    for ax in axes:
        legend = ax.get_legend()
        for text in (ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *(legend.get_texts() if legend else ())):
            text.set_fontfamily(families)
        ax.tick_params(labelfontfamily=families)
