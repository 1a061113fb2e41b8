"""`regard saturation`: how sharp softmax becomes as the width of the keys grows."""

from typing import Annotated

import typer


def saturation(
    d_k: Annotated[list[int] | None, typer.Option(help="A width to measure; may be given several times.")] = None,
) -> None:
    """Measure why scores are divided by sqrt(d_k)."""
    from regard import analysis

    print(analysis.saturation(d_k or analysis.POWERS_OF_TWO))
