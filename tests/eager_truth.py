"""Attention weights that transformers computes with its eager attention, and how a recording differs from them."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

TOLERANCE = 5e-4  # eager attention rounds in other places, and later layers amplify that

Truth = dict[str, list[Tensor]]  # the weights of every call of an attention module, by its name


def eager_twin(model: Any) -> Any:
    """A copy of a model that computes its weights."""
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    for module in twin.modules():
        if hasattr(module, "config"):
            module.config._attn_implementation = "eager"  # some refuse to be told
            module.config.output_attentions = True
    return twin


@contextmanager
def eager_weights(twin: Any) -> Iterator[Truth]:
    """Collect the weights that an eager model computes.

    They are those that the attention function returned, and for modules without such a function those that the module
    returned.
    """
    from transformers.modeling_utils import AttentionInterface

    seen: Truth = {}
    names = {id(module): name or type(twin).__name__ for name, module in twin.named_modules()}
    through: set[str] = set()  # modules that take their function from the interface
    original = AttentionInterface.get_interface

    def get_interface(self: Any, implementation: Any, default: Any) -> Any:
        function = original(self, implementation, default)

        def attend(module: Any, *args: Any, **options: Any) -> Any:
            output = function(module, *args, **options)
            weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if isinstance(weights, Tensor) and id(module) in names:
                seen.setdefault(names[id(module)], []).append(weights.detach())
                through.add(names[id(module)])
            return output

        return attend

    def hook(module: Any, _: Any, output: Any) -> None:
        name = names[id(module)]
        weights = [x for x in output if _are_weights(x)] if isinstance(output, tuple | list) else []
        inside = any(one.startswith(name + ".") for one in seen)  # then it only hands them on
        if weights and name not in through and not inside:
            seen.setdefault(name, []).append(weights[0].detach())

    handles = [module.register_forward_hook(hook) for module in twin.modules()]
    AttentionInterface.get_interface = get_interface
    try:
        yield seen
    finally:
        AttentionInterface.get_interface = original
        for handle in handles:
            handle.remove()


def _are_weights(x: Any) -> bool:
    """True for (batch, heads, queries, keys) or (batch x heads, queries, keys) whose rows sum to 1."""
    if not isinstance(x, Tensor) or not x.is_floating_point() or x.dim() not in (3, 4) or not x.numel():
        return False
    return bool((x >= 0).all()) and bool(((x.sum(-1) - 1).abs() < 1e-2).all())


def differences(recording: Any, truth: Truth) -> tuple[list[str], int]:
    """What is wrong in a recording, in words, and how many calls were compared."""
    missing = {name for name, _ in recording.missing}
    recorded: dict[str, list[Any]] = {}
    for call in recording.calls:
        recorded.setdefault(call.name.partition("#")[0], []).append(call)
    unnamed = [name for name in truth.keys() - recorded.keys() if not any(_is_in(name, one) for one in missing)]
    wrong = [f"{name} attends, and is neither recorded nor named" for name in unnamed]
    compared = 0
    for name in truth.keys() & recorded.keys():
        calls = recorded[name]
        for call, expected in zip(calls, _joined(calls, truth[name]), strict=False):
            weights = call.weights()
            error = _largest_difference(weights.dense().float(), expected.float(), ~weights.empty_rows())
            compared += error is not None
            if error is not None and not error <= TOLERANCE:
                wrong.append(f"{call.name} {tuple(call.shape)} {call.spec.mask} is off by {error:.2g}")
    return wrong, compared


def _is_in(name: str, module: str) -> bool:
    """True for a module and for those inside of it."""
    return name == module or name.startswith(module + ".")


def _joined(calls: list[Any], weights: list[Tensor]) -> list[Tensor]:
    """The weights of each recorded call: those of one pass, or the rows of all passes of one generate()."""
    if len(weights) == len(calls):
        return weights
    if len(weights) % len(calls):
        return []
    joined: list[Tensor] = []
    for number, call in enumerate(calls):
        parts = weights[number :: len(calls)]
        total, rows, at = call.shape[-1], [], parts[0].shape[-1] - parts[0].shape[-2]
        for part in parts:
            at += part.shape[-2]
            end = total if part.shape[-1] == total else at  # cross attention has all keys at every time
            rows.append(pad(part, (end - part.shape[-1], total - end)))
        joined.append(torch.cat(rows, -2))
    return joined


def _largest_difference(found: Tensor, expected: Tensor, seen: Tensor) -> float | None:
    """The largest difference in rows that see something; None if the two cannot be compared."""
    if found.numel() != expected.numel() or found.shape[-2:] != expected.shape[-2:]:
        return None
    expected = expected.reshape(found.shape)
    if found.dim() == 4 and found.shape[1] > 1 and torch.equal(expected, expected[:, :1].expand_as(expected)):
        found = found.mean(1, keepdim=True).expand_as(found)  # some return the mean of all heads
    seen = seen & expected.isfinite().all(-1)
    return float((found - expected).abs()[seen].max()) if bool(seen.any()) else None
