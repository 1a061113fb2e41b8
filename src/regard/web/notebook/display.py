"""From what somebody has in a notebook to the viewer that shows it there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.errors import ChoiceError, MissingExtraError
from regard.recording import Recording
from regard.recording._call import Call
from regard.web.api.registry import Shelf, Texts
from regard.weights import Weights

if TYPE_CHECKING:
    from regard.web.notebook.widget import Viewer

Tokens = Sequence[object]


def view(recording: Recording, name: str | None = None, texts: Texts | None = None, **options: Any) -> Viewer:
    """A recording as a widget. texts: of its tokens, where it has none itself."""
    try:
        import anywidget  # noqa: F401
    except ImportError as missing:
        raise MissingExtraError("a view in a notebook needs anywidget: pip install 'regard[jupyter]'") from missing
    from regard.web.notebook.widget import Viewer

    shelf = Shelf()
    shelf.put(recording, name or (recording.path.name if recording.path else "recording"), texts=texts)
    return Viewer(shelf, **options)


def view_weights(weights: Weights, tokens: Tokens | None, query_tokens: Tokens | None, **options: Any) -> Viewer:
    """Weights as they are now: a recording of one call."""
    n, m = weights.shape[-2:]
    if query_tokens is None and n == m:
        query_tokens = tokens
    rows = max(1, weights.shape[:-2].numel())  # no more sequences than this
    # Under these two names a recording knows what keys and queries stand for.
    texts = {
        **_texts("input_ids", "tokens", tokens, m, rows),
        **_texts("decoder_input_ids", "query_tokens", query_tokens, n, rows),
    }
    recording = Recording([Call.of_weights("weights", 0, weights)])
    return view(recording, "weights", {0: texts} if texts else None, **options)


def _texts(source: str, name: str, tokens: Tokens | None, count: int, rows: int) -> dict[str, list[list[str]]]:
    if tokens is None:
        return {}
    if len(tokens) != count:
        what = "keys" if name == "tokens" else "queries"
        raise ChoiceError(f"{name} needs a label for each of {count} {what}, but there are {len(tokens)}")
    return {source: [[str(token) for token in tokens]] * rows}
