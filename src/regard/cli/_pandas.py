"""pandas, which only some commands need."""

from typing import Any

from regard.errors import MissingExtraError


def pandas_or_hint() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import pandas as pd
    except ImportError as missing:
        raise MissingExtraError("tables are read with pandas and pyarrow: pip install 'regard[tables]'") from missing
    return pd
