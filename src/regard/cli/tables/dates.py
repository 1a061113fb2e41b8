"""Dates of tables: recognised in texts, and as numbers (days since 1970-01-01, or year, month, day, weekday, hour)."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, NamedTuple

import numpy as np

from regard.cli.tables.files import pandas_or_hint
from regard.errors import DataError

TIME = r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*(Z|[+-]\d{2}:?\d{2})?)?"
YEAR_FIRST = re.compile(r"(\d{4})(?:([-/.])(\d{1,2})\2(\d{1,2})|(年)(\d{1,2})月(\d{1,2})日)" + TIME)
YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + TIME)
PARTS = ("year", "month", "day", "weekday", "hour")
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  times with a zone are brought to UTC, others are taken as they are
DAY = dt.timedelta(days=1)


class Dates(NamedTuple):
    """A column of dates."""

    days: np.ndarray  # since 1970-01-01, (rows,); NaN where a date is missing
    order: str | None  # of the numbers in texts: "ymd", "dmy" or "mdy"; None if the file knows dates

    @property
    def has_times(self) -> bool:
        present = self.days[~np.isnan(self.days)]
        return bool((present % 1 != 0).any())


def read_dates(series: Any, place: str, order: str | None = None) -> Dates | None:
    """Return a column as dates, or None if one of its values is none.

    A text has its year first (2024-01-31, 2024/1/31, 2024年1月31日) or last (31.1.2024, 31/1/2024, 1/31/2024), and may
    have a time. With points, the day comes first; otherwise a number above 12 in some row says which is the day. If
    there is none, `order` decides, and without it a DataError says that it is unclear.
    """
    pandas = pandas_or_hint()
    if pandas.api.types.is_datetime64_any_dtype(series.dtype):
        return Dates(_days_of_times(series), None)
    present = series.dropna()
    if not len(present):
        return None
    unique = present.unique().tolist()
    if all(isinstance(value, dt.date) for value in unique):  # also datetimes
        return Dates(_days_of_times(pandas.to_datetime(series)), None)
    if not all(isinstance(value, str) for value in unique):
        return None
    by_text = _days_by_text(unique, place, order)
    if by_text is None:
        return None
    days, order = by_text
    return Dates(series.map(days).to_numpy(dtype=np.float64, na_value=np.nan), order)


def _days_of_times(series: Any) -> np.ndarray:
    if series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    return ((series - EPOCH) / DAY).to_numpy(dtype=np.float64)


def _days_by_text(texts: list[str], place: str, order: str | None) -> tuple[dict[str, float], str] | None:
    first = YEAR_FIRST.fullmatch(texts[0].strip()) is not None
    pattern = YEAR_FIRST if first else YEAR_LAST
    matches = {text: match for text in texts if (match := pattern.fullmatch(text.strip()))}
    if len(matches) < len(texts):
        return None
    order = "ymd" if first else _order(list(matches.values()), place, order)
    try:
        return {text: _days(match, order) for text, match in matches.items()}, order
    except (ValueError, OverflowError):  # 31 February
        return None


def _order(matches: list[Any], place: str, order: str | None) -> str:
    """Return the order of day and month in dates that end with the year."""
    if all(match[2] == "." for match in matches):
        return "dmy"
    day_first = any(int(match[1]) > 12 for match in matches)
    month_first = any(int(match[3]) > 12 for match in matches)
    if day_first or month_first:
        return "dmy" if day_first else "mdy"
    if order in ("dmy", "mdy"):
        return order
    raise DataError(
        f"{place}: {matches[0][0]} may be day/month or month/day, and no row tells which; write dates as year-month-day"
    )


def _days(match: re.Match[str], order: str) -> float:
    if order == "ymd":
        year, *month_and_day = (match[1], match[6], match[7]) if match[5] else (match[1], match[3], match[4])
        month, day = month_and_day
    else:
        year, (day, month) = match[4], (match[1], match[3]) if order == "dmy" else (match[3], match[1])
    hour, minute, second, zone = match.groups()[-4:]
    seconds = float(second or 0)
    if int(hour or 0) > 23 or int(minute or 0) > 59 or seconds >= 60:
        raise ValueError
    time = dt.datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0))  # noqa: DTZ001
    return (time - EPOCH - _offset(zone)) / DAY + seconds / 86400


def _offset(zone: str | None) -> dt.timedelta:
    if zone is None or zone == "Z":
        return dt.timedelta()
    sign = -1 if zone[0] == "-" else 1
    return sign * dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))


def date_parts(days: np.ndarray, *, hours: bool) -> dict[str, np.ndarray]:
    """Return year, month (1 to 12), day (1 to 31), weekday (0 = Monday) and, with `hours`, the hour with its fraction.

    >>> {name: part.tolist() for name, part in date_parts(np.array([19753.5]), hours=True).items()}
    {'year': [2024.0], 'month': [1.0], 'day': [31.0], 'weekday': [2.0], 'hour': [12.0]}
    """
    whole = np.floor(days).astype(np.int64)
    date = whole.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    values = (
        date.astype("datetime64[Y]").astype(np.int64) + 1970,
        month.astype(np.int64) % 12 + 1,
        (date - month).astype(np.int64) + 1,
        (whole + 3) % 7,  # 1970-01-01 was a Thursday
        (days - whole) * 24,
    )
    return {name: part.astype(np.float64) for name, part in zip(PARTS[: None if hours else -1], values, strict=False)}
