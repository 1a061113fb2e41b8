"""Arguments and outputs of a model's forward pass: what the model is given, and what it returns for all ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any

from jaxtyping import Shaped
from torch import Tensor, nn

from regard.context_parallel._batch import Batch, find_batch, local
from regard.context_parallel._check import check_short_sequence
from regard.context_parallel._context import Context
from regard.context_parallel._hugging_face import is_hugging_face
from regard.context_parallel._loss import CheckedBackward, SumOverRanks, with_global_labels
from regard.errors import ContextParallelError

FOR_CAUSAL_LOSS = ("shift_labels", "num_items_in_batch")


@contextmanager
def calls_of(context: Context) -> Iterator[None]:
    """Give each call of the model its batch, and make what it returns belong to the whole sequence."""
    model: Any = context.model
    loss_function = vars(model).get("_loss_function")  # one that the user has set

    def before(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if context.suspended:
            return args, options
        batch = find_batch(args, options, type(model).__name__)
        if context.check_is_due and batch.inputs:
            context.check_is_due = False
            check_short_sequence(context, batch)
        options = model_options(model, options, batch)
        if batch.shift_labels is not None and _shifts_labels(model):
            model._loss_function = with_global_labels(model.loss_function, batch.shift_labels, batch.items)  # noqa: SLF001
        context.start(batch)
        return tuple(map(local, args)), {name: local(value) for name, value in options.items()}

    def after(_: nn.Module, args: Any, options: Any, output: Any) -> Any:
        del args, options
        batch, context.running = context.running, None
        if is_hugging_face(model):
            vars(model).pop("_loss_function", None)
            if loss_function is not None:
                model._loss_function = loss_function  # noqa: SLF001
        return None if output is None or batch is None else whole_output(output, context, batch)

    hooks = (
        model.register_forward_pre_hook(before, with_kwargs=True, prepend=True),
        model.register_forward_hook(after, with_kwargs=True, always_call=True),  # also after an error
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def model_options(model: nn.Module, options: Mapping[str, Any], batch: Batch) -> dict[str, Any]:
    """The named arguments for the model: without entries of `shard_batch` that it has no use for."""
    accepted = signature(model.forward).parameters
    takes_all = any(one.kind is Parameter.VAR_KEYWORD for one in accepted.values())
    used = {name: value for name, value in options.items() if takes_all or name in accepted or name not in batch.added}
    if not is_hugging_face(model):
        return used
    if not _shifts_labels(model):
        used = {name: value for name, value in used.items() if not (name in FOR_CAUSAL_LOSS and name in batch.added)}
    cache = used.get("past_key_values")
    if cache is not None and cache.get_seq_length():
        raise ContextParallelError(
            f"{type(model).__name__} was called with past_key_values of {cache.get_seq_length()} tokens: a sharded "
            f"sequence is computed in one forward pass, and generate() is for one process"
        )
    if "position_ids" in batch.added and (layer := _counts_unpadded_tokens(model)):
        raise ContextParallelError(
            f"{type(model).__name__} derives positions from the tokens that are no padding, in {layer}, and this rank "
            f"has a part of them: give rd.shard_batch the position_ids that the model would make for the whole batch"
        )
    if batch.padding is not None and "attention_mask" in used:
        used["attention_mask"] = batch.padding
    return used


def _shifts_labels(model: Any) -> bool:
    """True if the model's loss compares each token with the label of the next one."""
    return is_hugging_face(model) and getattr(model, "loss_type", None) in (None, "ForCausalLM")


def _counts_unpadded_tokens(model: nn.Module) -> str | None:
    """The layer that makes positions from the tokens themselves, as RoBERTa's and OPT's do; None if there is none."""
    for name, module in model.named_modules():
        from_mask = "PositionalEmbedding" in type(module).__name__ and "attention_mask" in (
            signature(module.forward).parameters
        )
        if from_mask or hasattr(module, "create_position_ids_from_input_ids"):
            return f"{name} ({type(module).__name__})"
    return None


def whole_output(output: Any, context: Context, batch: Batch) -> Any:
    """The output of a model, with its loss summed over all ranks; other tensors stay those of this rank's tokens."""
    name = type(context.model).__name__
    if not context.calls:
        raise ContextParallelError(
            f"{name} ran without a call of attention that could be served: its tokens have seen those of this rank "
            f"alone"
        )

    def change(tensor: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        if tensor.dim() == 0 and tensor.is_floating_point():
            if not context.losses:
                raise ContextParallelError(
                    f"{name} returns a number that is no cross entropy of its tokens: what it is for the whole "
                    f"sequence is not known"
                )
            return SumOverRanks.apply(tensor, batch.sharding.transport, context.check_open)  # pyright: ignore[reportReturnType]
        return CheckedBackward.apply(tensor, context.check_open) if tensor.requires_grad else tensor  # pyright: ignore[reportReturnType]

    return _mapped(output, change)


def _mapped(output: Any, change: Any) -> Any:
    """The output with each tensor changed, also those inside mappings, tuples and lists."""
    if isinstance(output, Tensor):
        return change(output)
    if isinstance(output, dict):  # transformers' outputs are dictionaries too
        for name, value in list(output.items()):
            output[name] = _mapped(value, change)
        return output
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return type(output)(*(_mapped(value, change) for value in output))
    if isinstance(output, tuple | list):
        return type(output)(_mapped(value, change) for value in output)
    return output
