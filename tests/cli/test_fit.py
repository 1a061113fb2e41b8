"""`regard fit`: the command as people run it, and what it says when it cannot."""

import decimal
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from shown_progress import show_progress

from regard import NadarayaWatson
from regard.cli import fit as fit_command

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


def test_a_fit_prints_a_summary(folder, regard):
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


def test_default_options_are_those_of_the_estimator(folder, regard):
    code, said, _ = regard("fit", "houses.csv", "--y", "price", "--degree", "1")
    assert code == 0
    model = expected(degree=1)
    for name, width in zip(("size", "rooms"), model.bandwidth_, strict=True):
        assert float(value(said, name).split()[0]) == pytest.approx(width, rel=1e-3)
    assert value(said, "degree") == "1, local linear"


def test_a_saved_fit_predicts_the_same_numbers_later(folder, regard):
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


def test_predictions_in_blocks_are_joined_in_order(folder, regard, monkeypatch):
    monkeypatch.setattr(fit_command, "BLOCK_ROWS", 2)
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


def test_an_index_with_a_name_is_a_feature_as_in_the_library(folder, regard):
    table = pd.read_csv("houses.csv").set_index("size")
    table.to_parquet("indexed.parquet")
    code, said, _ = regard("fit", "indexed.parquet", "--y", "price", "--bandwidth", "1,9")
    assert code == 0 and said.startswith("price from rooms, size\n")
    there = NadarayaWatson(bandwidth=[1, 9]).fit("indexed.parquet", "price")
    assert float(value(said, "R² by leave-one-out")) == pytest.approx(there.loo_score_, abs=1e-4)
    table[table["rooms"] > 3].reset_index().sample(frac=1, random_state=0).to_parquet("counted.parquet")
    assert regard("fit", "counted.parquet", "--y", "price", "--bandwidth", "7")[1].startswith(
        "price from size, rooms\n"
    )
    table.reset_index(drop=True).rename_axis("row").to_parquet("range.parquet")
    assert regard("fit", "range.parquet", "--y", "price", "--bandwidth", "7")[1].startswith("price from rooms\n")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_and_tabs_are_seen_in_the_first_line(folder, regard, separator):
    table = pd.read_csv("houses.csv")
    table.to_csv("t.csv", sep=separator, index=False)
    arguments = ("--y", "price", "--bandwidth", "7")
    assert regard("fit", "t.csv", *arguments) == regard("fit", "houses.csv", *arguments)
    table.to_csv("t.csv", sep=";", decimal=",", index=False)  # as spreadsheets in many countries write it
    assert regard("fit", "t.csv", *arguments)[:2] == regard("fit", "houses.csv", *arguments)[:2]


@pytest.mark.parametrize("first", [b"size,rooms,price", b"size,rooms,price,", b"size,rooms,price,,"])
def test_commas_at_the_ends_of_lines_are_no_columns(folder, regard, first):
    lines = Path("houses.csv").read_bytes().splitlines()[1:]
    ends = b"," * max(1, first.endswith(b",") + first.endswith(b",,"))
    make("t.csv", b"\n".join([first, *(line + ends for line in lines)]))
    arguments = ("--y", "price", "--bandwidth", "7")
    assert regard("fit", "t.csv", *arguments) == regard("fit", "houses.csv", *arguments)


def test_decimals_and_integers_beyond_int64_are_numbers(folder, regard):
    table = pd.read_csv("houses.csv")
    exact = [decimal.Decimal(f"{size:.2f}") for size in table["size"]]
    table.assign(size=exact).to_parquet("exact.parquet")
    code, said, _ = regard("fit", "exact.parquet", "--y", "price", "--bandwidth", "7")
    assert code == 0 and said.startswith("price from size, rooms\n")
    for shift in (0, 50):  # with a sign, pandas reads texts
        table.assign(size=[int((size - shift) * 2**64) for size in table["size"]]).to_csv("long.csv", index=False)
        found = regard("fit", "long.csv", "--y", "price", "--bandwidth", f"{2.0**64 * 7},7")[1]
        expected = value(regard("fit", "houses.csv", "--y", "price", "--bandwidth", "7")[1], "R² by leave-one-out")
        assert value(found, "R² by leave-one-out") == expected


def test_long_numbers_are_not_changed_on_the_way(folder, regard):
    new = pd.read_csv("new.csv").assign(street=[str(2**70 + i) for i in range(5)])
    new.to_csv("new.csv", index=False)
    options = ("--bandwidth", "9", "--predict", "new.csv", "-o", "out.csv")
    assert regard("fit", "houses.csv", "--y", "price", *options)[0] == 0
    assert pd.read_csv("out.csv", dtype=str)["street"].tolist() == new["street"].tolist()


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip"])
def test_predictions_are_packed_as_their_name_says(folder, regard, ending):
    for out in (f"out.csv.{ending}", "out.csv"):
        options = ("--bandwidth", "9", "--predict", "new.csv", "-o", out)
        assert regard("fit", "houses.csv", "--y", "price", *options)[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv(f"out.csv.{ending}"), pd.read_csv("out.csv"))
    assert Path(f"out.csv.{ending}").read_bytes()[:6] != Path("out.csv").read_bytes()[:6]


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip"])
def test_a_damaged_compressed_file_is_named(folder, regard, ending):
    make(f"t.csv.{ending}", Path("houses.csv").read_bytes())
    assert re.match(rf"regard: t\.csv\.{ending}: cannot be ", regard("fit", f"t.csv.{ending}", "--y", "price")[2])
    pd.read_csv("houses.csv").to_csv(f"t.csv.{ending}", index=False)
    make(f"t.csv.{ending}", Path(f"t.csv.{ending}").read_bytes()[:-40])
    assert regard("fit", f"t.csv.{ending}", "--y", "price")[2].startswith(f"regard: t.csv.{ending}: cannot be ")


def test_parquet_is_not_packed_twice(folder, regard, monkeypatch):
    assert "Parquet is packed inside" in regard("fit", "t.parquet.gz", "--y", "price")[2]
    arguments = ("fit", "houses.csv", "--y", "price", "--predict", "new.csv", "-o")
    assert "o.parquet.gz: Parquet is packed inside" in regard(*arguments, "o.parquet.gz")[2]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "o.csv.zst: a .zst file needs the package zstandard" in regard(*arguments, "o.csv.zst")[2]


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
    (lambda: make("t.csv", b"a,price\n1,2\n1,2,3,4\n"), [], "t.csv: the first line has 2 names, and line 3 has 4"),
    (
        lambda: make("t.csv", b"a,price\n1,2,3\n4,5,6\n"),
        [],
        "first line has 2 names, and there are rows with more values",
    ),
    (lambda: make("t.csv", b"a,price\n1,2,3,4\n"), [], "first line has 2 names, and there are rows with more values"),
    (
        lambda: make("t.csv", b"a,price,price,a\n1,2,3,4\n"),
        [],
        "t.csv: has more than one column 'a', 'price'; give each",
    ),
    (lambda: make("t.csv", b"a|b|price\n1|2|3\n"), [], r"it has a\|b\|price; the separator seems to be '\|'"),
    (lambda: make("t.csv", b"a;b,c;price\n1,2\n"), [], "it has a;b, c;price; the separator seems to be ';'"),
    (lambda: make("t.csv", b"size,price\n1,2\n"), [], "t.csv: has one row, and a fit needs two"),
    (lambda: make("t.csv", "大小,price\n".encode("gbk")), [], "t.csv: has no rows"),
    (lambda: make("t.csv", "Größe,price\n1,2\n".encode("cp1252")), [], "neither in UTF-8 .*--encoding cp1252"),
    (lambda: None, [], "t.csv: there is no such file"),
]


@pytest.mark.parametrize(("prepare", "options", "message"), BAD_TABLES, ids=range(len(BAD_TABLES)))
def test_a_bad_table_is_refused_with_place_and_remedy(folder, regard, prepare, options, message):
    prepare()
    before = names(folder)
    code, said, complaint = regard("fit", "t.csv", "--y", "price", *options)
    assert code == 1
    assert complaint.startswith("regard: ") and "\n" not in complaint
    assert re.search(message, complaint), complaint
    assert said == ""
    assert names(folder) == before


@pytest.mark.parametrize(
    ("make_bad", "options", "message", "advice"),
    [
        (lambda table: table.assign(rooms=table["rooms"].where(table.index != 7)), [], "row 8 ", "--x size"),
        (lambda table: table.assign(size=table["size"].replace(table["size"][4], np.inf)), [], "row 5 ", "--x rooms"),
        (lambda table: table.assign(z=np.nan), [], "column 'z' has no value in any row", "--x size,rooms"),
        (lambda table: table.assign(t=["a", None, *"b" * 59]), ["--categorical", "t"], "row 2 ", "--x size,rooms"),
        (
            lambda table: table.assign(t=["a", None, *"b" * 59], u=["p", *"q" * 60]),
            ["--categorical", "t,u"],
            "column 't' has no value",
            "--x size,rooms,u --categorical u",
        ),
        (
            lambda table: table.assign(t=["a", None, *"b" * 59], u=["p", *"q" * 60]),
            ["--categorical", "t"],
            "column 't' has no value in row 2",
            "--x size,rooms,u and no --categorical",
        ),
        (
            lambda table: table.assign(u=[f"house {i}" for i in range(61)]),
            [],
            "column 'u' is not all numbers",
            "--categorical u. Other columns can be chosen with --x, such as --x size,rooms",
        ),
        (
            lambda table: table.rename(columns={"size": "living area"}).assign(z=np.nan),
            [],
            "'z'",
            "'living area,rooms'",
        ),
    ],
    ids=range(8),
)
def test_advice_of_a_refused_fit_can_be_followed(folder, regard, make_bad, options, message, advice):
    make_bad(pd.read_csv("houses.csv")).to_csv("t.csv", index=False)
    code, _, complaint = regard("fit", "t.csv", "--y", "price", *options)
    assert code == 1 and message in complaint and advice in complaint
    said = re.findall(r"(--(?:x|categorical) (?:'.+?'|\S+?)(?: --categorical \S+?)?)(?:\.? |\.?$)", complaint)
    assert said
    for one in said:
        assert regard("fit", "t.csv", "--y", "price", "--bandwidth", "0.5", *shlex.split(one))[0] == 0, one


def test_no_advice_is_given_when_no_column_can_be_used(folder, regard):
    pd.DataFrame({"a": [1.0, None, 3.0], "price": [1, 2, 3]}).to_csv("t.csv", index=False)
    assert regard("fit", "t.csv", "--y", "price")[2].endswith("or its most frequent category.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--save", "houses.csv"], "--save houses.csv: is also DATA, and would take its place"),
        (["--save", "./link.csv"], "--save link.csv: is also DATA"),
        (["--predict", "new.csv", "-o", "new.csv"], "--out new.csv: is also --predict"),
        (["--predict", "new.csv", "-o", "same.csv", "--save", "same.csv"], "--save same.csv: is also --out"),
        (["--plot", "same.svg", "--save", "same.svg"], "--save same.svg: is also --plot"),
        (["--save", ""], "--save .: is a folder"),
        (["--save", "there.csv"], "--save there.csv: is a folder; name a file in it"),
        (["--predict", "new.csv", "-o", "there.csv"], "--out there.csv: is a folder"),
        (["--predict", "nowhere.csv", "-o", "out.csv"], "nowhere.csv: there is no such file"),
        (["--predict", "short.csv", "-o", "out.csv"], "short.csv: has no column 'rooms', it has size"),
        (["--predict", "none.csv", "-o", "out.csv"], "none.csv: has no rows"),
        (["--predict", "full.csv", "-o", "out.csv"], "full.csv: has a column 'predicted' already"),
    ],
)
def test_outputs_that_could_not_be_written_are_refused_before_the_fit(folder, regard, monkeypatch, options, message):
    new = pd.read_csv("new.csv")
    Path("link.csv").symlink_to("houses.csv")
    Path("there.csv").mkdir()
    new[["size"]].to_csv("short.csv", index=False)
    new[:0].to_csv("none.csv", index=False)
    new.assign(predicted=0).to_csv("full.csv", index=False)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    monkeypatch.setattr(NadarayaWatson, "fit", lambda *_: pytest.fail("fitted"))
    code, _, complaint = regard("fit", "houses.csv", "--y", "price", *options)
    assert code == 1 and message in complaint, complaint
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_saved_fit_is_not_overwritten_by_what_it_predicts(folder, regard):
    expected(bandwidth=9).save("m.csv")
    assert "is also --model" in regard("fit", "--model", "m.csv", "--predict", "new.csv", "-o", "m.csv")[2]
    assert NadarayaWatson.load("m.csv").n_samples_fit_ == 61


def test_a_fit_without_a_leave_one_out_score_prints_a_summary(folder, regard):
    table = pd.read_csv("houses.csv")
    NadarayaWatson(bandwidth=9).fit(table[["size"]][:1], table["price"][:1]).save("m")
    code, said, complaint = regard("fit", "--model", "m", "--predict", "new.csv", "-o", "out.csv")
    assert (code, complaint) == (0, "")
    assert value(said, "R² by leave-one-out") == "none: not every row is predicted by the others"
    assert (pd.read_csv("out.csv")["predicted"] == table["price"][0]).all()


def test_an_unknown_ending_is_no_table(folder, regard):
    make("t.xlsx", b"PK")
    assert "t.xlsx: a table is known by its ending, one of .csv" in regard("fit", "t.xlsx", "--y", "price")[2]
    make("t.parquet", b"PAR1 or not")
    assert "t.parquet: is no parquet table" in regard("fit", "t.parquet", "--y", "price")[2]


def test_new_rows_are_checked_like_the_table(folder, regard):
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


def test_a_fit_without_names_takes_columns_in_order(folder, regard):
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


def test_each_output_has_three_new_columns(folder, regard):
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
        (["houses.csv"], "give the column to predict; houses.csv has size, rooms, price"),
        (["houses.csv", "--y", "price", "--decimal", ";"], "a decimal mark is . or , and not ';'"),
        (["houses.csv", "--y", "price", "--missing", "skip"], "'drop', 'mean', 'error'"),
        (["--model", "m", "--missing", "mean", "--dates", "days"], "leave out --missing, --dates"),
        (["--model", "m", "--y", "price", "--degree", "1"], "leave out --y, --degree"),
        (["houses.csv", "--y", "price", "--predict", "new.csv"], "give both"),
        (["houses.csv", "--y", "price", "-o", "out.csv"], "give both"),
        (["houses.csv", "--y", "price", "--degree", "one"], "--degree"),
    ],
)
def test_wrong_usage_exits_with_2(folder, regard, arguments, message):
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
def test_ctrl_c_exits_with_130_and_keeps_the_saved_fit(folder):
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


def test_progress_is_shown_on_a_terminal_only(folder, regard, monkeypatch):
    assert regard("fit", "houses.csv", "--y", "price")[2] == ""
    stream = show_progress(monkeypatch)
    regard("fit", "houses.csv", "--y", "price")
    assert "choosing bandwidths: try 1, mean squared error " in stream.getvalue()


def test_tables_without_pandas_name_the_extra(folder, regard, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install 'regard[tables]'" in regard("fit", "houses.csv", "--y", "price")[2]
