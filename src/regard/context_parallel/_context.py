"""The state of one model whose sequence is sharded: the batch it runs on, and its way to `regard.attend`."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import attend
from regard.context_parallel._batch import Batch, local
from regard.context_parallel._sharding import Sharding
from regard.errors import ContextParallelError
from regard.masks import Mask
from regard.scores import Score
from regard.torch_compat.sdpa import Arguments


class Context:
    """The state of a model inside of its `context_parallel` block."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.running: Batch | None = None  # while the model's forward runs
        self.calls = 0  # of attention, in the forward pass that runs
        self.losses = 0  # of cross entropies in it
        self.checks_positions = False  # a model of which only its calls tell where it takes positions from
        self.is_open = True
        self.suspended = False  # while the model runs alone, to be compared with
        self.check_is_due = False  # a short sequence is to be compared at the first call
        self._names = {id(module): name for name, module in model.named_modules()}
        self._tensors = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self._last: Sharding | None = None
        self.shardings: list[Sharding] = []  # all different ones that the model has run with

    @property
    def model_name(self) -> str:
        return type(self.model).__name__

    def name_of(self, module: nn.Module) -> str:
        """A module of the model, as an error names it."""
        return f"{self._names.get(id(module)) or 'the model'} ({type(module).__name__})"

    def owns_module(self, module: nn.Module) -> bool:
        return id(module) in self._names

    def owns(self, tensor: object) -> bool:
        """True for the model's parameters and buffers."""
        return id(tensor) in self._tensors

    def start(self, batch: Batch) -> None:
        """The model's forward begins."""
        self.running, self.calls, self.losses = batch, 0, 0
        self._last = batch.sharding
        if batch.sharding not in self.shardings:
            self.shardings.append(batch.sharding)

    @property
    def last_sharding(self) -> Sharding:
        """The sharding with which the model has run last."""
        assert self._last is not None  # noqa: S101  it has run
        return self._last

    def is_serving(self) -> bool:
        """True while the model runs, or a backward pass recomputes parts of it."""
        return self.running is not None or (bool(self.shardings) and _in_backward())

    def sharding_now(self) -> Sharding:
        """The sharding of the batch that runs, or is recomputed by gradient checkpointing."""
        if self.running is not None:
            return self.running.sharding
        if not _in_backward():
            raise ContextParallelError(
                f"a part of {self.model_name} was called by itself inside context_parallel: call the model, "
                f"with a batch of rd.shard_batch"
            )
        if len(self.shardings) != 1:
            raise ContextParallelError(
                f"a layer is recomputed in the backward pass, and the model has run with {len(self.shardings)} "
                f"layouts: give batches of another length or layout a `with context_parallel(model)` of their own"
            )
        return self.shardings[0]

    def attend(
        self,
        query: Float[Tensor, "*lead queries dim"],
        key: Float[Tensor, "*key_lead keys dim"],
        value: Float[Tensor, "*key_lead keys dim_v"],
        sharding: Sharding,
        score: Score | None,
        mask: Mask | None,
        dropout_p: float,
    ) -> Float[Tensor, "*lead queries dim_v"]:
        """Attention of this rank's queries over the keys of all ranks."""
        self.calls += 1
        query, key, value, _ = Arguments(query, key, value).autocast().tensors
        with torch._C.DisableTorchFunction():  # noqa: SLF001  what is called below is no call of the model
            shards = (sharding.shard(tensor, -2) for tensor in (query, key, value))
            return local(attend(*shards, score=score, mask=mask, dropout_p=dropout_p).output)

    def check_open(self) -> None:
        """Refuse a backward pass that begins after the block has ended, when no hook sums its gradients."""
        if not self.is_open:
            raise ContextParallelError(
                "backward() was called after `with context_parallel(model)` had ended, where the gradients of the "
                "ranks are summed: call it inside the block"
            )


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1  # noqa: SLF001
