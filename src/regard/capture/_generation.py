"""All forward passes of one `generate()` with a cache, which become one step of a recording.

Beam search puts the sequences of the cache into another order after every pass; the sequences that it returned are
recorded, traced back through these orders.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from functools import wraps
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.capture._generation_steps import GenerationSteps
from regard.capture._observed_call import ObservedCall
from regard.capture._output_check import WatchedOutput
from regard.capture._patching import wrapped
from regard.errors import RecordError

Inputs = dict[str, Tensor]


class Generation:
    """All forward passes of one `generate()`: their inputs, the calls of every layer, and the orders of beams."""

    def __init__(self) -> None:
        self.beams = 1  # sequences for each prompt
        self.layers: dict[tuple[str, int], GenerationSteps] = {}  # by name and number of the call within a pass
        self.inputs: list[Inputs] = []  # token ids of every pass
        self.orders: list[Tensor | None] = []  # the sequence of the pass before that each sequence of a pass continues
        self.sequences: Tensor | None = None  # what generate() has returned
        self._order: Tensor | None = None  # of the next pass
        self._calls: Counter[str] = Counter()  # of every layer in the present pass
        self._cache: Any = None
        self._patches = ExitStack()

    def begin(self, inputs: Inputs, cache: Any) -> None:
        """A forward pass begins."""
        if cache is not self._cache and callable(getattr(cache, "reorder_cache", None)):
            self._cache = cache
            self._patches.enter_context(wrapped(cache, "reorder_cache", self._observe_order))
        self.inputs.append(inputs)
        self.orders.append(self._order)
        self._order = None
        self._calls.clear()

    def _observe_order(self, reorder: Any) -> Any:
        @wraps(reorder)
        def observed(index: Tensor, *args: Any, **options: Any) -> Any:
            self._order = index.clone() if self._order is None else self._order[index]
            return reorder(index, *args, **options)

        return observed

    def add(self, name: str, call: ObservedCall, watched: WatchedOutput | None, check: str) -> None:
        """A layer was called, perhaps not for the first time in this pass."""
        key = name, self._calls[name]
        self._calls[name] += 1
        if key not in self.layers:
            self.layers[key] = GenerationSteps(check)
        self.layers[key].append(call, watched, len(self.orders) - 1, self.orders[-1])

    def close(self) -> None:
        self._patches.close()

    def token_inputs(self) -> Inputs:
        """All token ids, by the name of the input; with beams those of the sequences that were returned."""
        joined: Inputs = {}
        for inputs in self.inputs:
            for name, ids in inputs.items():
                same = name in joined and joined[name].shape[0] == ids.shape[0]
                joined[name] = torch.cat([joined[name], ids], 1) if same else ids
        name = self._generated_name()
        if self.has_beams and self.sequences is not None and name in joined:
            joined[name] = self._with_prompts(self.sequences)[:, : joined[name].shape[1]]
        return joined

    def _with_prompts(self, sequences: Int[Tensor, "sequences tokens"]) -> Int[Tensor, "sequences more"]:
        """The returned sequences from their first token on: Whisper returns them without the prompt."""
        name = self._generated_name()
        read = next(inputs[name] for inputs in self.inputs if name in inputs)
        prompts = read[[self._first_beam(i, len(sequences), len(read)) for i in range(len(sequences))]]
        begun = torch.equal(sequences[:, : prompts.shape[1]], prompts)
        return sequences if begun else torch.cat([prompts, sequences], 1)

    @property
    def has_beams(self) -> bool:
        """True if the sequences of the cache were put into another order."""
        return any(order is not None for order in self.orders)

    def _generated_name(self) -> str:
        return next((name for inputs in self.inputs for name in inputs if name.startswith("decoder")), "input_ids")

    def chosen_rows(self) -> dict[int, Int[Tensor, " sequences"]] | None:
        """For every pass, the sequence of its batch that each returned one was then; -1 after it has ended.

        None if nothing was put into another order.
        """
        if not self.has_beams:
            return None
        if self.sequences is None:
            raise RecordError("beam search was stopped before it chose a beam")
        passes = [number for number, inputs in enumerate(self.inputs) if self._generated_name() in inputs]
        if not passes or (passes[0] > 0 and self._generated_name() == "input_ids"):
            raise RecordError("beam search that begins with inputs_embeds has no tokens by which a beam could be known")
        ends = self._ends(passes, self._with_prompts(self.sequences))
        rows = {number: torch.full((len(ends),), -1) for number in passes}
        for sequence, (last, row) in enumerate(ends):
            for number in reversed(passes[: passes.index(last) + 1]):
                rows[number][sequence] = row
                order = self.orders[number]
                row = row if order is None else int(order[row])  # noqa: PLW2901  the row in the pass before
        return rows

    def _first_beam(self, sequence: int, sequences: int, rows: int) -> int:
        """The first row, of those that a pass read, of the same prompt as one of the returned sequences."""
        return sequence * max(1, rows // self.beams) // sequences * self.beams

    def _ends(self, passes: list[int], sequences: Int[Tensor, "sequences tokens"]) -> list[tuple[int, int]]:
        """For each returned sequence the last pass that it was part of, and its row there, known by its tokens."""
        ends: list[tuple[int, int] | None] = [None] * len(sequences)
        read: Tensor | None = None  # all tokens that each sequence of a pass consists of
        for number in passes:
            ids, order = self.inputs[number][self._generated_name()], self.orders[number]
            before = read if read is None or order is None else read[order]
            read = ids if before is None else torch.cat([before, ids], 1)
            if read.shape[1] > sequences.shape[1]:
                break
            for sequence, tokens in enumerate(sequences):
                first = self._first_beam(sequence, len(sequences), len(read))
                same = (read[first : first + self.beams] == tokens[: read.shape[1]]).all(1)
                if bool(same.any()):
                    ends[sequence] = number, first + int(same.to(torch.uint8).argmax())
        found = [end for end in ends if end is not None]
        if len(found) < len(ends):
            raise RecordError("the sequences that beam search returned are not among those that the model has read")
        return found
