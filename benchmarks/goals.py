"""Goals of a benchmark line, written as text: `speedup >= 2.5`, `memory_ratio <= 1/50`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import median, quantiles

Text = Mapping[str, str]  # language -> words


def words(en: str, zh: str | None = None) -> Text:
    """Return a text in English and Chinese; code and names need no translation."""
    return {"en": en, "zh": zh or en}


@dataclass(frozen=True)
class Metric:
    """A measured number: its name in each language, its unit and its number of decimals."""

    label: Text
    unit: str
    decimals: int

    def show(self, value: float) -> str:
        return f"{value:.{self.decimals}f} {self.unit}"


class Share(Metric):
    """A small fraction, shown as 1/50."""

    def show(self, value: float) -> str:
        return f"1/{1 / value:.0f}" if 0 < value < 0.5 else f"{value:.2f}"


METRICS: dict[str, Metric] = {
    "time_ratio": Metric(words("time", "耗时"), "x", 2),
    "speedup": Metric(words("speed", "速度"), "x", 1),
    "seconds": Metric(words("time", "耗时"), "s", 2),
    "first_seconds": Metric(words("first call", "首次调用"), "s", 2),
    "added_us": Metric(words("added time", "多耗时"), "us", 1),
    "memory_mb": Metric(words("extra memory", "额外内存"), "MB", 0),
    "memory_ratio": Share(words("share of its memory", "内存之比"), "", 2),
    "error_ratio": Metric(words("error", "误差"), "x", 3),
    "p95_ms": Metric(words("95 of 100 within", "95% 在此之内"), "ms", 1),
    "p99_ms": Metric(words("99 of 100 within", "99% 在此之内"), "ms", 1),
    "errors": Metric(words("errors", "错误"), "", 0),
    "growth": Metric(words("growth of memory", "内存增长"), "%", 1),
    "per_second": Metric(words("answers", "应答"), "/s", 0),
}

GOAL = re.compile(r"(\w+) (<=|>=) ([\d./]+)")
SIGNS = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True)
class Goal:
    """A bound on one metric."""

    metric: str
    sign: str
    bound: float
    text: str

    @staticmethod
    def parse(text: str) -> Goal:
        match = GOAL.fullmatch(text)
        if match is None or match[1] not in METRICS:
            raise ValueError(f"a goal reads `metric <= number` with a metric of {', '.join(METRICS)}: got {text!r}")
        return Goal(match[1], match[2], float(Fraction(match[3])), text)

    def met_by(self, value: float) -> bool:
        return value <= self.bound if self.sign == "<=" else value >= self.bound

    def show(self, language: str = "en") -> str:
        metric, number = METRICS[self.metric], self.text.rsplit(" ", 1)[1]
        return f"{metric.label[language]} {SIGNS[self.sign]} {number} {metric.unit}".strip()


@dataclass(frozen=True)
class Spread:
    """The median of the rounds and its quartiles."""

    median: float
    q1: float
    q3: float

    @staticmethod
    def of(values: list[float]) -> Spread:
        if len(values) == 1:
            return Spread(values[0], values[0], values[0])
        q1, _, q3 = quantiles(values, n=4, method="inclusive")
        return Spread(median(values), q1, q3)
