"""`regard train`: a translation model from a file of pairs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.console import plural, printable
from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.seq2seq import Run


class Kind(StrEnum):
    """Attention of the model."""

    bahdanau = "bahdanau"
    luong = "luong"
    local = "local"
    none = "none"
    transformer = "transformer"


class Cell(StrEnum):
    """Recurrent cells."""

    gru = "gru"
    lstm = "lstm"


Data = Annotated[Path, typer.Argument(help="Pairs: source, target and anything on a line; .tsv, .csv, .txt, also .gz.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the run; the same command goes on where it stopped.")]
Attention = Annotated[Kind, typer.Option(help="The decoder's attention, or a transformer.")]
Score = Annotated[str | None, typer.Option(help="Of luong: dot, general, concat or location.")]
CellOption = Annotated[Cell, typer.Option(help="The recurrent cell.")]
Minutes = Annotated[float | None, typer.Option(help="The budget; 5 if neither this nor --steps is given.")]
Steps = Annotated[int | None, typer.Option(help="The budget in steps instead of minutes.")]
Language = Annotated[str, typer.Option(help="Of the targets: fr, zh, es, ...")]
Vocabulary = Annotated[str, typer.Option(help="words, bpe (parts of words), or auto.")]
Encoding = Annotated[str | None, typer.Option(help="Of a file that is not UTF-8: gb18030, cp1252, ...")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad rows out with a warning.")]
Seed = Annotated[int, typer.Option(help="Of the first weights and of the order of the data.")]


def train(
    data: Data,
    out: Out,
    attention: Attention = Kind.bahdanau,
    score: Score = None,
    cell: CellOption = Cell.gru,
    minutes: Minutes = None,
    steps: Steps = None,
    language: Language = "fr",
    vocabulary: Vocabulary = "auto",
    encoding: Encoding = None,
    skip_bad: SkipBad = False,
    seed: Seed = 0,
) -> None:
    """Train a model that translates, from a file of pairs.

    regard train pairs.tsv -o run --attention bahdanau --minutes 5

    Of the pairs 5 in 256 are kept for validation and as many for a test, by a hash of the source sentence. Ctrl-C keeps
    the best model.
    """
    from regard import datasets, seq2seq

    pairs = datasets.pairs(data, language, bad="skip" if skip_bad else "raise", encoding=encoding)
    if attention is Kind.transformer:
        if score is not None:
            raise ChoiceError(f"--score {score} is for --attention luong and local")
        model = seq2seq.Transformer()
    else:
        model = seq2seq.Seq2Seq(attention.value, score, cell.value)
    options = {"minutes": minutes, "steps": steps, "vocabulary": vocabulary, "seed": seed}
    run = seq2seq.train(model, pairs, folder=out, report=_report, **options)  # pyright: ignore[reportArgumentType]
    if run.interrupted:
        print(f"stopped  at step {run.steps:,}; the same command goes on")
    print(f"model    {out}, best at step {run.best_step:,}, validation loss {run.best_loss:.3f}")
    if len(test := pairs.split().test):
        result = seq2seq.evaluate(run.model, test)
        print(f"test     {plural(len(result.sentences), 'sentence')} that were never trained on")
        print(result.by_length())


def _report(run: Run) -> None:
    last = run.history[-1]
    done = f"{last.step:,}" if run.total_steps is None else f"{last.step:,} of {run.total_steps:,}"
    print(
        f"step {done}: loss {last.loss:.3f}, validation {last.validation_loss:.3f}, "
        f"{last.tokens_per_second:,.0f} tokens/s; {printable(last.sample)}",
        flush=True,
    )
