"""A terminal that shows progress from the first part on."""

import io

from regard.display import progress


def show_progress(monkeypatch):
    """Show progress in a stream, which is returned, as in a terminal."""
    stream = io.StringIO()
    monkeypatch.setattr(progress, "_display", lambda: progress._Terminal(stream))
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "REFRESH", 0.0)
    return stream
