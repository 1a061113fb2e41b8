"""Long texts made of short ones: several pairs, one behind the other, with a given number of words."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from regard.datasets._alignment import Alignment
from regard.datasets._draws import below, weighted
from regard.datasets._pairs import Pair, Pairs, split_side
from regard.datasets._words import tokenise
from regard.errors import ChoiceError, DataError


def joined(pairs: Pairs, n: int, words: tuple[int, int] = (1, 60), *, sentences: int = 6, seed: int = 0) -> Pairs:
    """Make n long pairs, each of 1 to `sentences` pairs that are drawn at random and written one behind the other.

    words: least and largest number of source words, with punctuation; each length that can be reached is as likely.
    sentences: how many pairs are joined at most.
    seed: the same pairs and the same seed give the same result.

    All sentences of a long pair come from one side of `split()`, and the result splits as they do: no test sentence
    gets into training, whether one joins first or splits first. Gold links are joined where all the pairs have them.

    >>> short = Pairs([("go .", "va !"), ("run .", "cours !")])
    >>> joined(short, 1, words=(6, 6), seed=1)[0]
    Pair(source='go . run . go .', target='va ! cours ! va !', alignment=None)
    """
    low, high = words
    if not 1 <= low <= high:
        raise ChoiceError(f"words=(low, high) needs 1 <= low <= high; it came as {words}")
    if n < 0 or sentences < 1:
        raise ChoiceError(f"n must be 0 or more and sentences 1 or more; they came as {n} and {sentences}")
    pools = _pools(pairs, range(low, high + 1), sentences)
    if n and not pools:
        raise DataError(
            f"no {sentences} or fewer of these {len(pairs):,} pairs have {low} to {high} source words together"
        )
    random = Random(seed)
    sizes = [pool.size for pool in pools]
    chosen = [pools[weighted(sizes, random)].draw(random) for _ in range(n)]
    return Pairs(
        (_join(pairs, positions) for positions in chosen),
        source_language=pairs.source_language,
        target_language=pairs.target_language,
        keys=[pairs.key(positions[0]) for positions in chosen],
    )


class Pool:
    """Pairs of one side of the split, from which some are drawn that have a given number of source words together."""

    def __init__(self, positions: Sequence[int], lengths: Sequence[int], totals: range, sentences: int) -> None:
        self.size: int = len(positions)
        self.by_length: dict[int, list[int]] = {}
        for position, length in zip(positions, lengths, strict=True):
            self.by_length.setdefault(length, []).append(position)
        # chance[k][t]: that k pairs drawn at random have t words together
        self.chance: list[list[float]] = [[1.0] + [0.0] * totals[-1]]
        for _ in range(sentences):
            self.chance.append([self._chance_of_one_more(total) for total in range(totals[-1] + 1)])
        self.totals: list[int] = [total for total in totals if any(row[total] for row in self.chance[1:])]

    def _chance_of_one_more(self, total: int) -> float:
        before = self.chance[-1]
        return sum(len(some) / self.size * before[total - n] for n, some in self.by_length.items() if n <= total)

    def draw(self, random: Random) -> list[int]:
        """Positions of pairs: their total is drawn first, then their number, then they."""
        total = self.totals[below(len(self.totals), random)]
        count = 1 + weighted([row[total] for row in self.chance[1:]], random)
        positions: list[int] = []
        for more in reversed(range(count)):
            lengths = [length for length in self.by_length if length <= total]
            weights = [len(self.by_length[n]) * self.chance[more][total - n] for n in lengths]
            length = lengths[weighted(weights, random)]
            positions.append(self.by_length[length][below(len(self.by_length[length]), random)])
            total -= length
        return positions


def _pools(pairs: Pairs, totals: range, sentences: int) -> list[Pool]:
    """A pool for each side of the split that can reach one of these numbers of words."""
    sides: list[list[int]] = [[], [], []]
    for position in range(len(pairs)):
        sides[split_side(pairs.key(position))].append(position)
    pools = [
        Pool(side, [len(tokenise(pairs[i].source, pairs.source_language)) for i in side], totals, sentences)
        for side in sides
        if side
    ]
    return [pool for pool in pools if pool.totals]


def _join(pairs: Pairs, positions: list[int]) -> Pair:
    parts = [pairs[position] for position in positions]
    languages = (pairs.source_language, pairs.target_language)
    source, target = (
        ("" if language == "zh" else " ").join(texts)
        for language, texts in zip(languages, zip(*(part[:2] for part in parts), strict=True), strict=True)
    )
    return Pair(source, target, _join_links(parts, languages))


def _join_links(parts: list[Pair], languages: tuple[str, str]) -> Alignment | None:
    if any(part.alignment is None for part in parts):
        return None
    links: tuple[list[tuple[int, int]], ...] = ([], [])
    i = j = 0
    for part in parts:
        for whole, some in zip(links, part.alignment or (), strict=True):
            whole += [(i + source, j + target) for source, target in some]
        i += len(tokenise(part.source, languages[0]))
        j += len(tokenise(part.target, languages[1]))
    return Alignment(*map(tuple, links))
