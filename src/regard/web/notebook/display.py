"""The viewer widget for a recording or for weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.errors import ChoiceError, MissingExtraError
from regard.recording import Call, Recording
from regard.web.api.registry import RecordingRegistry, Texts
from regard.weights import Weights

if TYPE_CHECKING:
    from regard.web.notebook.widget import Viewer

Tokens = Sequence[object]


def view(recording: Recording, name: str | None = None, texts: Texts | None = None, **options: Any) -> Viewer:
    """A widget that shows a recording. texts: those of its tokens, where the recording has none."""
    try:
        import anywidget  # noqa: F401
    except ImportError as missing:
        raise MissingExtraError("a view in a notebook needs anywidget: pip install 'regard[jupyter]'") from missing
    from regard.web.notebook.widget import Viewer

    registry = RecordingRegistry()
    registry.add(recording, name or (recording.path.name if recording.path else "recording"), texts=texts)
    return Viewer(registry, **options)


def view_weights(weights: Weights, tokens: Tokens | None, query_tokens: Tokens | None, **options: Any) -> Viewer:
    """A widget that shows weights as they are now, as a recording of one call; tokens are those that they know."""
    n, m = weights.shape[-2:]
    if tokens is None and query_tokens is None:
        query_tokens, tokens = weights.labels
    if query_tokens is None and n == m:
        query_tokens = tokens
    rows = max(1, weights.shape[:-2].numel())  # at most this many sequences
    # A registry takes the keys' texts from the first of these inputs, and the queries' from the second.
    texts = {
        **_texts("input_ids", "tokens", tokens, m, rows),
        **_texts("decoder_input_ids", "query_tokens", query_tokens, n, rows),
    }
    recording = Recording([Call.of_weights("weights", 0, weights)])
    return view(recording, "weights", {0: texts} if texts else None, **options)


def _texts(input_name: str, name: str, tokens: Tokens | None, count: int, rows: int) -> dict[str, list[list[str]]]:
    if tokens is None:
        return {}
    if len(tokens) != count:
        axis = "keys" if name == "tokens" else "queries"
        raise ChoiceError(f"{name} needs a label for each of {count} {axis}, but there are {len(tokens)}")
    return {input_name: [[str(token) for token in tokens]] * rows}
