"""`regard fit`: the command as people run it, and what it says when it cannot."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from regard import NadarayaWatson
from regard.cli import _fit

COMMAND = Path(sys.executable).with_name("regard")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"size": rng.uniform(30, 200, 61), "rooms": rng.integers(1, 7, 61)})
    table["price"] = 2 * table["size"] + 50 * np.sin(table["rooms"]) + rng.normal(size=61)
    table.to_csv("houses.csv", index=False)
    table[["rooms", "size"]].head(5).assign(street=list("abcde")).to_csv("new.csv", index=False)
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def expected(**options):
    table = pd.read_csv("houses.csv")
    return NadarayaWatson(**options).fit(table[["size", "rooms"]], table["price"])


def value(text, name):
    (found,) = re.findall(rf"^{re.escape(name)} +(.+?) *$", text, re.MULTILINE)
    return found


def test_a_fit_is_summed_up(folder, regard):
    code, said, _ = regard("fit", "houses.csv", "--y", "price", "--bandwidth", "20,inf", "--kernel", "laplace")
    assert code == 0
    model = expected(bandwidth=[20, np.inf], kernel="laplace")
    assert said.startswith("price from size, rooms")
    assert value(said, "size") == "20"
    assert value(said, "rooms") == "inf  inf = does not matter"
    assert value(said, "points") == "61"
    assert value(said, "kernel") == "laplace"
    assert value(said, "degree") == "0, local constant"
    assert float(value(said, "R² by leave-one-out")) == pytest.approx(model.loo_score_, abs=1e-4)
    assert float(value(said, "effective degrees of freedom")) == pytest.approx(model.effective_df(), abs=0.1)


def test_left_to_itself_it_chooses_as_the_estimator_does(folder, regard):
    code, said, _ = regard("fit", "houses.csv", "--y", "price", "--degree", "1")
    assert code == 0
    model = expected(degree=1)
    for name, width in zip(("size", "rooms"), model.bandwidth_, strict=True):
        assert float(value(said, name).split()[0]) == pytest.approx(width, rel=1e-3)
    assert value(said, "degree") == "1, local linear"


def test_save_predict_and_reload(folder, regard):
    options = ("--predict", "new.csv", "-o")
    fitting = ("fit", "houses.csv", "--y", "price", "--bandwidth", "9", "--save", "m.regard-fit", *options, "out.csv")
    assert regard(*fitting)[0] == 0
    code, said, _ = regard("fit", "--model", "m.regard-fit", *options, "out.parquet")
    assert code == 0
    assert said.startswith("price from size, rooms")
    new, out = pd.read_csv("new.csv"), pd.read_csv("out.csv")
    assert list(out.columns) == ["rooms", "size", "street", "predicted", "low", "high"]
    pd.testing.assert_frame_equal(out[list(new.columns)], new)
    model = expected(bandwidth=9)
    np.testing.assert_allclose(out["predicted"], model.predict(new[["size", "rooms"]]), rtol=1e-12)
    low, high = model.confidence_band(new[["size", "rooms"]])
    np.testing.assert_allclose(out[["low", "high"]], np.column_stack([low, high]), rtol=1e-9)
    pd.testing.assert_frame_equal(pd.read_parquet("out.parquet"), out, check_exact=False)
    assert names(folder) == ["houses.csv", "m.regard-fit", "new.csv", "out.csv", "out.parquet"]


def test_blocks_of_rows_are_put_together(folder, regard, monkeypatch):
    monkeypatch.setattr(_fit, "BLOCK", 2)
    arguments = ("--bandwidth", "9", "--predict", "new.csv", "-o", "out.tsv")
    assert regard("fit", "houses.csv", "--y", "price", *arguments)[0] == 0
    new, out = pd.read_csv("new.csv"), pd.read_csv("out.tsv", sep="\t")
    np.testing.assert_allclose(out["predicted"], expected(bandwidth=9).predict(new[["size", "rooms"]]), rtol=1e-12)


@pytest.mark.parametrize(("x", "panels"), [("size", 1), ("size,rooms", 2)])
def test_a_picture_has_a_panel_for_each_feature(folder, regard, monkeypatch, x, panels):
    from regard import plot

    drawn = []
    draw = plot.regression
    monkeypatch.setattr(plot, "regression", lambda *a, **k: drawn.append(k["xlabel"]) or draw(*a, **k))
    code, said, _ = regard("fit", "houses.csv", "--y", "price", "--x", x, "--bandwidth", "5", "--plot", "fit.png")
    assert code == 0 and "drawn    fit.png" in said
    assert drawn == ["size", "rooms"][:panels]
    assert imread("fit.png")[..., :3].std() > 0.01


def test_parquet_tsv_and_packed_tables_are_read_alike(folder, regard):
    table = pd.read_csv("houses.csv")
    table.to_parquet("houses.parquet")
    table.to_csv("houses.tsv", sep="\t", index=False)
    table.to_csv("houses.csv.gz", index=False)
    table.to_csv("bom.csv", index=False, encoding="utf-8-sig")
    ways = ("houses.csv", "houses.parquet", "houses.tsv", "houses.csv.gz", "bom.csv")
    said = {regard("fit", name, "--y", "price", "--bandwidth", "7")[1] for name in ways}
    assert len(said) == 1 and "price from size, rooms" in said.pop()


def test_an_index_without_a_name_is_no_feature(folder, regard):
    pd.read_csv("houses.csv").to_csv("indexed.csv")
    assert regard("fit", "indexed.csv", "--y", "price", "--bandwidth", "7")[1].startswith("price from size, rooms\n")


def test_a_column_whose_name_has_a_comma(folder, regard):
    pd.read_csv("houses.csv").rename(columns={"size": "size, m²"}).to_csv("c.csv", index=False)
    code, said, _ = regard("fit", "c.csv", "--y", "price", "--x", "size, m²", "--bandwidth", "7")
    assert code == 0 and said.startswith("price from size, m²\n")


def spoil(name, row, column, cell):
    table = pd.read_csv("houses.csv").astype(object)
    table.loc[row - 1, column] = cell
    table.to_csv(name, index=False)


def make(name, content):
    Path(name).write_bytes(content)


ADVICE = "Other columns can be chosen with --x, such as --x size"
BAD_TABLES = [
    (lambda: spoil("t.csv", 7, "rooms", None), [], r"t\.csv: column 'rooms' has no value in row 7 \(counted from 1"),
    (lambda: spoil("t.csv", 7, "rooms", "?"), [], rf"column 'rooms' is not all numbers: row 7 holds '\?' .*{ADVICE}"),
    (lambda: spoil("t.csv", 9, "size", "inf"), [], r"column 'size' is infinite in row 9"),
    (
        lambda: spoil("t.csv", 3, "price", "12 €"),
        [],
        r"column 'price' .* row 3 holds '12 €'.* predict has to be number",
    ),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--x", "size,room"], r"no column 'room', .*; did you mean 'rooms'\?"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--x", "size,price"], "it would predict itself"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--x", "size,size"], "names a column twice"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--x", ","], "has no column to predict from"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--bandwidth", "wide"], "bandwidth, where it is a word, must be one of"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--bandwidth", "1,2,3"], "must be one number or 2"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--kernel", "cubic"], "kernel must be one of"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--degree", "2"], "degree must be 0"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--plot", "fit.jpq"], r"fit\.jpq: a picture is known by its ending"),
    (lambda: spoil("t.csv", 1, "rooms", 1), ["--save", "no/where"], "there is no folder no"),
    (lambda: make("t.csv", b""), [], "t.csv: is no csv table: No columns"),
    (lambda: make("t.csv", b"size,price\n"), [], "t.csv: has no rows"),
    (lambda: make("t.csv", b"price\n1\n"), [], "no column to predict from"),
    (lambda: make("t.csv", b"a,price\n1,2\n1,2,3,4\n"), [], "t.csv: is no csv table: .* line 3"),
    (lambda: make("t.csv", "大小,price\n".encode("gbk")), [], "t.csv: is not written in UTF-8"),
    (lambda: None, [], "t.csv: there is no such file"),
]


@pytest.mark.parametrize(("prepare", "options", "message"), BAD_TABLES, ids=range(len(BAD_TABLES)))
def test_a_refusal_says_what_where_and_what_to_do(folder, regard, prepare, options, message):
    prepare()
    before = names(folder)
    code, said, complaint = regard("fit", "t.csv", "--y", "price", *options)
    assert code == 1
    assert complaint.startswith("regard: ") and "\n" not in complaint
    assert re.search(message, complaint), complaint
    assert said == ""
    assert names(folder) == before


def test_dates_are_no_numbers_and_an_unknown_ending_is_no_table(folder, regard):
    pd.DataFrame({"day": pd.date_range("2024-01-01", periods=3), "price": [1, 2, 3]}).to_parquet("t.parquet")
    assert "column 'day' is not all numbers: row 1" in regard("fit", "t.parquet", "--y", "price")[2]
    make("t.xlsx", b"PK")
    assert "t.xlsx: a table is known by its ending, one of .csv" in regard("fit", "t.xlsx", "--y", "price")[2]
    make("t.parquet", b"PAR1 or not")
    assert "t.parquet: is no parquet table" in regard("fit", "t.parquet", "--y", "price")[2]


def test_new_rows_are_looked_at_as_closely(folder, regard):
    expected(bandwidth=9).save("m")
    new = pd.read_csv("new.csv")
    cases = {
        "has no column 'size', it has rooms, street": new.drop(columns="size"),
        "column 'size' has no value in row 2 (": new.assign(size=[1, None, 3, 4, 5]),
        "has a column 'low' already": new.assign(low=1),
        "has no rows": new[:0],
    }
    for message, table in cases.items():
        table.to_csv("bad.csv", index=False)
        code, _, complaint = regard("fit", "--model", "m", "--predict", "bad.csv", "-o", "out.csv")
        assert code == 1 and f"bad.csv: {message}" in complaint, complaint
        assert not Path("out.csv").exists()


def test_a_fit_without_names_takes_columns_as_they_come(folder, regard):
    X = np.random.default_rng(0).normal(size=(31, 2))
    model = NadarayaWatson(bandwidth=1.0).fit(X, X[:, 0])
    model.save("m")
    pd.DataFrame(X).to_csv("x.csv", index=False)
    code, said, _ = regard("fit", "--model", "m", "--predict", "x.csv", "-o", "out.csv", "--plot", "m.svg")
    assert code == 0 and said.startswith("y from x0, x1")
    np.testing.assert_allclose(pd.read_csv("out.csv")["predicted"], model.predict(X))
    pd.DataFrame(X[:, :1]).to_csv("x.csv", index=False)
    assert (
        "has 1 columns, and the fit was made without names on 2"
        in regard("fit", "--model", "m", "--predict", "x.csv", "-o", "out.csv")[2]
    )


def test_every_output_has_its_columns(folder, regard):
    X = np.random.default_rng(0).normal(size=(31, 2))
    pd.DataFrame(X).to_csv("x.csv", index=False)
    for y, names in ((X, (1, 2)), (pd.DataFrame(X, columns=["rent", "price"]), ("rent", "price"))):
        model = NadarayaWatson(bandwidth=1.0).fit(X, y)
        model.save("m")
        code, _, complaint = regard("fit", "--model", "m", "--predict", "x.csv", "-o", "out.csv")
        assert code == 0, complaint
        out = pd.read_csv("out.csv").iloc[:, 2:]
        assert list(out.columns) == [f"{one} {name}" for name in names for one in ("predicted", "low", "high")]
        expected = np.stack([model.predict(X), *model.confidence_band(X)], 2).reshape(31, 6)
        np.testing.assert_allclose(out.to_numpy(), expected)


def test_a_damaged_model_is_refused(folder, regard):
    expected(bandwidth=9).save("m")
    Path("m").write_bytes(Path("m").read_bytes()[:-1])
    assert regard("fit", "--model", "m")[::2] == (
        1,
        "regard: m is damaged: its bytes are not those that were written (the checksum differs)",
    )
    assert regard("fit", "--model", "nowhere")[::2] == (1, "regard: nowhere: No such file or directory")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "or a saved fit"),
        (["houses.csv"], "the column to predict"),
        (["--model", "m", "--y", "price", "--degree", "1"], "leave out --y, --degree"),
        (["houses.csv", "--y", "price", "--predict", "new.csv"], "give both"),
        (["houses.csv", "--y", "price", "-o", "out.csv"], "give both"),
        (["houses.csv", "--y", "price", "--degree", "one"], "--degree"),
    ],
)
def test_a_question_that_is_not_understood_exits_with_2(folder, regard, arguments, message):
    code, said, complaint = regard("fit", *arguments)
    assert (code, said) == (2, "")
    assert message in " ".join(re.sub("[│\n]", " ", complaint).split())


def test_ctrl_c_while_writing_leaves_the_old_file(folder, regard, monkeypatch):
    make("out.csv", b"old")

    def half(self, file, **_):
        file.write(b"predic")
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    arguments = ("--bandwidth", "9", "--predict", "new.csv", "-o", "out.csv")
    assert regard("fit", "houses.csv", "--y", "price", *arguments)[0] == 130
    assert Path("out.csv").read_bytes() == b"old"
    assert names(folder) == ["houses.csv", "new.csv", "out.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe that has a name is a thing of Unix")
def test_ctrl_c_ends_it_with_130_and_keeps_what_is_done(folder):
    os.mkfifo("pipe.csv")  # nobody ever writes to it: the command waits until it is stopped
    arguments = ["--bandwidth", "9", "--save", "m", "--predict", "pipe.csv", "-o", "out.csv"]
    with subprocess.Popen([COMMAND, "fit", "houses.csv", "--y", "price", *arguments], stderr=subprocess.PIPE) as run:
        while not Path("m").exists() and run.poll() is None:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        assert b"Traceback" not in run.communicate()[1]
    assert run.returncode == 130
    assert names(folder) == ["houses.csv", "m", "new.csv", "pipe.csv"]
    assert NadarayaWatson.load("m").n_samples_fit_ == 61


def test_progress_is_told_on_a_terminal_only(folder, regard, monkeypatch):
    from rich.console import Console

    from regard.cli import _progress

    said = []
    monkeypatch.setattr(_progress.Step, "say", lambda self, text: said.append((self._progress.disable, text)))
    assert regard("fit", "houses.csv", "--y", "price")[2] == ""
    assert said[0][1].startswith("choosing bandwidths: try 1, mean squared error ")
    assert {disabled for disabled, _ in said} == {True}
    said.clear()
    monkeypatch.setattr(Console, "is_terminal", True)
    assert "fitting 61 rows" in regard("fit", "houses.csv", "--y", "price")[2]
    assert {disabled for disabled, _ in said} == {False}


def test_tables_without_pandas_name_the_extra(folder, regard, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install 'regard[tables]'" in regard("fit", "houses.csv", "--y", "price")[2]
