"""How much memory a computation asks for at once, seen from inside torch."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestAllocation(TorchDispatchMode):
    """Within it, `bytes` is the size of the largest tensor that any operation made; views of others are not made."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {memory for memory, _ in _storages((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        made = [size for memory, size in _storages(result) if memory not in given]
        self.bytes = max([self.bytes, *made])
        return result


def _storages(tree: Any) -> Iterator[tuple[int, int]]:
    for leaf in tree_leaves(tree):
        if isinstance(leaf, Tensor) and leaf.device.type != "meta":
            storage = leaf.untyped_storage()
            yield storage.data_ptr(), storage.nbytes()
