"""Methods of live objects, wrapped for a while. Several recordings may wrap one method, and may end in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import Parameter, signature
from threading import Lock
from types import MethodType
from typing import Any

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]

_lock = Lock()
_chains: dict[tuple[int, str], _Chain] = {}  # by the id of the owner, which the chain keeps alive, and the method


class _Chain:
    """All wrappers around one method. A dispatcher that calls them stands in the method's place.

    The dispatcher is a method of the owner, so that a copy of the owner, also through pickle, has a method of its own,
    not that of the original.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        self.original = self.call = _own_method(owner, name)
        stale = _dispatcher_of(owner, name)
        is_of_class = name not in vars(owner) or (stale is not None and stale.shadowed is None)
        self.shadowed = None if is_of_class else self.original  # the attribute that the dispatcher replaces
        self.wrappers: list[Wrapper] = []

        function = getattr(self.original, "__func__", None)

        @wraps(function or self.original)
        def dispatch(this: Any, /, *args: Any, **options: Any) -> Any:
            call = self.call if this is self.owner else self.method_of_copy(this)
            return call(*args, **options)

        if function is None:  # a function without self that somebody put there
            with suppress(TypeError, ValueError):
                given = signature(self.original)
                own = Parameter("self", Parameter.POSITIONAL_ONLY)
                setattr(dispatch, "__signature__", given.replace(parameters=[own, *given.parameters.values()]))  # noqa: B010
        setattr(dispatch, "chain", self)  # noqa: B010
        self.dispatch = MethodType(dispatch, owner)
        setattr(owner, name, self.dispatch)

    def method_of_copy(self, copy: Any) -> Any:
        """The method that a copy of the owner would have without us."""
        bound = getattr(self.original, "__self__", None) is self.owner
        return MethodType(self.original.__func__, copy) if bound else self.original

    def rebuild(self) -> None:
        self.call = self.original
        for wrapper in self.wrappers:
            self.call = wrapper(self.call)

    def restore(self) -> None:
        if vars(self.owner).get(self.name) is not self.dispatch:  # somebody has wrapped it again, and calls it
            return
        delattr(self.owner, self.name)
        if self.shadowed is not None:
            setattr(self.owner, self.name, self.shadowed)


def unwrapped(owner: Any, name: str) -> Any:
    """A method of an object as it is without the wrappers of recordings."""
    chain = _chains.get((id(owner), name))
    return _own_method(owner, name) if chain is None else chain.original


def _own_method(owner: Any, name: str) -> Any:
    """A method of an object that no recording wraps; a copy may have the dispatcher of its original."""
    chain = _dispatcher_of(owner, name)
    return getattr(owner, name) if chain is None else chain.method_of_copy(owner)


def _dispatcher_of(owner: Any, name: str) -> _Chain | None:
    """The chain whose dispatcher stands in the place of a method, or None."""
    return getattr(getattr(vars(owner).get(name), "__func__", None), "chain", None)


@contextmanager
def wrapped(owner: Any, name: str, wrapper: Wrapper) -> Iterator[None]:
    """Let `wrapper(method)` serve the calls of a method of one object."""
    key = (id(owner), name)
    with _lock:
        if key not in _chains:
            _chains[key] = _Chain(owner, name)
        chain = _chains[key]
        chain.wrappers.append(wrapper)
        chain.rebuild()
    try:
        yield
    finally:
        with _lock:
            chain.wrappers.remove(wrapper)
            chain.rebuild()
            if not chain.wrappers:
                del _chains[key]
                chain.restore()
