"""What can be asked about recordings, whoever asks: a browser by HTTP, or a notebook by messages.

Every answer is made in a thread, from numbers that have been read from somebody's request but not yet compared with
what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from regard.errors import ChoiceError
from regard.web.api.map_cache import Atlas, Place
from regard.web.api.params import below
from regard.web.api.profiles import Profiles
from regard.web.api.registry import Shelf, lead
from regard.web.server.errors import Refusal
from regard.web.server.workers import Workshop

POOLS = ("mean", "max")


class Numbers(NamedTuple):
    """Numbers in bulk, and whether they are what the weights say or an estimate from sampled rows."""

    values: np.ndarray
    exact: bool = True


class Answers:
    def __init__(self, shelf: Shelf, work: Workshop) -> None:
        self.shelf, self.work = shelf, work
        self.atlas = Atlas(shelf, work)
        self._profiles: dict[str, Profiles] = {}

    # Whole recordings

    def list(self) -> list[dict[str, Any]]:
        return [one.line() for one in self.shelf]

    def meta(self, id: str) -> dict[str, Any]:  # noqa: A002  as the wire calls it
        return self.shelf.get(id).whole()

    def profiles(self, id: str) -> dict[str, Any]:  # noqa: A002
        """The rows, or how far they are."""
        return self.measuring(id).answer()

    def measuring(self, id: str) -> Profiles:  # noqa: A002
        """Somebody wants to know what the heads do: begin, or go on."""
        shelved = self.shelf.get(id)
        found = self._profiles.get(id) or self._profiles.setdefault(id, Profiles(shelved, self.work))
        found.go_on()
        return found

    def thumbs(self, id: str, entry: int, batch: int, side: int) -> Numbers:  # noqa: A002
        from regard.web.maps.thumbnails import thumbs

        call = self.shelf.get(id).entry(entry)
        below(batch, lead(call.shape)[0], "batch")
        return self._keep((id, entry, batch, side), lambda: thumbs(call, batch, side))

    # One head

    def info(self, place: Place) -> dict[str, Any]:
        return self.atlas.info(place)

    def tile(self, place: Place, pool: str, level: int, row: int, column: int) -> Numbers:
        asked = (place, pool, level, row, column)
        return self._keep(asked, lambda: _among(self.atlas.map(place).tile, pool, level, row, column))

    def peaks(self, place: Place, pool: str, level: int, row: int) -> Numbers:
        """The largest pixel in each line of pixels of a row of tiles, (up to 256,)."""
        found = self.atlas.map(place)
        columns = max(1, -(-found.m // (256 << min(level, 32))))
        tiles = [self.tile(place, pool, level, row, column) for column in range(columns)]
        peaks = np.stack([np.fmax.reduce(tile.values, axis=1, initial=0.0) for tile in tiles]).max(0)
        return Numbers(peaks.astype("<f4"), all(tile.exact for tile in tiles))

    def row(self, place: Place, i: int) -> Numbers:
        return Numbers(_among(self.atlas.map(place).row, i))

    def column(self, place: Place, j: int) -> Numbers:
        return Numbers(_among(self.atlas.map(place).column, j))

    def top(self, place: Place, i: int, k: int) -> dict[str, Any]:
        found = self.atlas.map(place)
        keys, weights = _among(found.top, i, max(1, min(k, found.m)))
        return {"keys": keys, "weights": weights}

    # What is at hand

    def kept(self, asked: tuple[Any, ...]) -> Numbers | None:
        """Numbers that were asked for before: for these nobody needs a thread."""
        kept = self.atlas.tiles.get(asked)
        return None if kept is None else Numbers(kept)

    def _keep(self, asked: tuple[Any, ...], make: Callable[[], Any]) -> Numbers:
        found = self.kept(asked) or Numbers(*make())
        if found.exact:
            self.atlas.tiles.put(asked, found.values)
        return found


def pooled(pool: str) -> str:
    if pool not in POOLS:
        raise Refusal(404, f"tiles are pooled by mean or max, not by {pool[:40]!r}")
    return pool


def _among(ask: Any, *given: Any) -> Any:
    try:
        return ask(*given)
    except ChoiceError as error:  # a level, row or column beyond the map
        raise Refusal(404, str(error)) from error
