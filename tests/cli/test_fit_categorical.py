"""`regard fit --categorical`: columns of texts, as people have them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regard import NadarayaWatson

COMMAND = Path(sys.executable).with_name("regard")
KINDS = ["colour", "town"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"size": rng.uniform(30, 200, 61), "colour": rng.choice(["red", "green", "blue"], 61)})
    table["town"] = rng.choice(["01", "02"], 61)
    table["price"] = 2 * table["size"] + 90 * (table["colour"] == "red") + rng.normal(size=61)
    table.to_csv("houses.csv", index=False)
    new = table.drop(columns="price").head(5)
    new["colour"] = ["red", "green", "pink", "blue", "pink"]
    new.to_csv("new.csv", index=False)
    return tmp_path


def tables():
    texts = dict.fromkeys(KINDS, str)
    return pd.read_csv("houses.csv", dtype=texts), pd.read_csv("new.csv", dtype=texts)


def expected(**options):
    table, _ = tables()
    return NadarayaWatson(categorical=KINDS, **options).fit(table[["size", *KINDS]], table["price"])


def line(text, name):
    (found,) = re.findall(rf"^{re.escape(name)} +(.+?) *$", text, re.MULTILINE)
    return found


def test_fit_save_and_predict_in_separate_processes(folder):
    def run(*arguments):
        wide = {**os.environ, "COLUMNS": "200"}
        return subprocess.run([COMMAND, "fit", *arguments], capture_output=True, text=True, env=wide, check=True)

    first = run("houses.csv", "--y", "price", "--categorical", "colour,town", "--save", "m.regard-fit")
    model = expected()
    for name, width in zip(["size", *KINDS], model.bandwidth_, strict=True):
        assert float(line(first.stdout, name).split()[0]) == pytest.approx(width, rel=1e-3, abs=1e-12)
    assert "lambda (3 categories, up to 0.6667)" in line(first.stdout, "colour")
    second = run("--model", "m.regard-fit", "--predict", "new.csv", "-o", "out.csv")
    assert second.stderr == (
        "regard: new.csv: column 'colour' holds 'pink', which the fit has never seen, in rows 3, 5 (counted from 1 "
        "below the names): predicted as if that column were not there\n"
    )
    _, new = tables()
    out = pd.read_csv("out.csv", dtype=dict.fromkeys(KINDS, str))
    pd.testing.assert_frame_equal(out[list(new.columns)], new)  # 01 is still 01
    np.testing.assert_allclose(out["predicted"], model.predict(new), rtol=1e-9)
    assert [list(levels) for levels in NadarayaWatson.load("m.regard-fit").categories_.values()] == [
        ["blue", "green", "red"],
        ["01", "02"],
    ]


def test_parquet_knows_categories_and_numbers(folder, regard):
    table, new = tables()
    table["colour"], table["town"] = table["colour"].astype("category"), table["town"].astype(int)
    table.to_parquet("houses.parquet")
    new["colour"], new["town"] = ["red", "green", "blue", "blue", "red"], new["town"].astype(int)
    new.to_parquet("new.parquet")
    options = ("--bandwidth", "20,0.2,0.1", "--predict", "new.parquet", "-o", "out.parquet")
    assert regard("fit", "houses.parquet", "--y", "price", "--categorical", "colour,town", *options)[::2] == (0, "")
    model = NadarayaWatson(bandwidth=[20, 0.2, 0.1], categorical=KINDS).fit(table[["size", *KINDS]], table["price"])
    np.testing.assert_allclose(pd.read_parquet("out.parquet")["predicted"], model.predict(new), rtol=1e-12)
    alone = regard("fit", "houses.parquet", "--y", "price", "--bandwidth", "20,0.2,1")
    assert line(alone.out, "colour") == "0.2  lambda (3 categories, up to 0.6667)"
    assert "taken as categories: colour (3 levels); " in alone.err


def test_a_number_matches_the_text_it_was_fitted_as(folder, regard):
    expected(bandwidth=[20, 0.2, 0.1]).save("texts")
    table, new = tables()
    numbers = table.assign(town=table["town"].astype(int))[["size", *KINDS]]
    NadarayaWatson(bandwidth=[20, 0.2, 0.1], categorical=KINDS).fit(numbers, table["price"]).save("numbers")
    new["colour"] = "red"
    new.to_csv("new.csv", index=False)
    for name in ("texts", "numbers"):
        assert regard("fit", "--model", name, "--predict", "new.csv", "-o", f"{name}.csv")[::2] == (0, "")
    one, two = pd.read_csv("texts.csv"), pd.read_csv("numbers.csv")
    np.testing.assert_allclose(one["predicted"], two["predicted"], rtol=1e-12)


def test_categorical_columns_are_added_to_those_of_x(folder, regard):
    options = ("--bandwidth", "20,0.2", "--categorical", "colour")
    said = regard("fit", "houses.csv", "--y", "price", "--x", "size", *options)[1]
    assert said.startswith("price from size, colour\n")
    assert line(said, "colour") == "0.2  lambda (3 categories, up to 0.6667)"
    said = regard("fit", "houses.csv", "--y", "price", "--x", "town", "--bandwidth", "0.5", "--categorical", "town")[1]
    assert line(said, "town") == "0.5  lambda (2 categories, up to 0.5) = does not matter"
    alone = regard("fit", "houses.csv", "--y", "price", "--x", "colour", "--bandwidth", "0", *options[2:])[1]
    assert alone.startswith("price from colour\n")
    assert line(alone, "colour") == "0  lambda (3 categories, up to 0.6667) = only the same counts"


def test_a_picture_names_the_categories(folder, regard, monkeypatch):
    from regard import plot

    axes = []
    draw = plot.regression
    monkeypatch.setattr(plot, "regression", lambda *a, **k: axes.append(k["ax"]) or draw(*a, **k))
    options = ("--categorical", "colour,town", "--bandwidth", "20,0.2,0.1", "--plot", "fit.svg")
    assert regard("fit", "houses.csv", "--y", "price", *options)[0] == 0
    assert [text.get_text() for text in axes[1].get_xticklabels()] == ["blue", "green", "red"]
    table, _ = tables()
    middle = {"size": table["size"].median(), "colour": ["blue", "green", "red"], "town": table["town"].mode()[0]}
    expected_line = expected(bandwidth=[20, 0.2, 0.1]).predict(pd.DataFrame(middle))
    (drawn,) = [line.get_ydata() for line in axes[1].get_lines() if len(line.get_ydata()) == 3]
    np.testing.assert_allclose(drawn, expected_line, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--numeric", "colour"], r"column 'colour' is not all numbers: row 1 holds '\w+' .*--x size,town"),
        (["--categorical", "town", "--numeric", "town"], "--categorical and --numeric both name 'town'"),
        (["--numeric", "price"], "--numeric names 'price', the column to predict"),
        (["--categorical", "color,town"], r"has no column 'color', .*did you mean 'colour'\?"),
        (["--categorical", "price"], "--categorical names 'price', the column to predict"),
        (["--categorical", "town,town"], "--categorical names a column twice: town,town"),
        (["--categorical", "colour,town", "--bandwidth", "20,0.9,0.1"], "must be from 0 to 0.6667, but it is 0.9"),
    ],
)
def test_wrong_categorical_options_are_refused(folder, regard, options, message):
    code, said, complaint = regard("fit", "houses.csv", "--y", "price", *options)
    assert (code, said) == (1, "")
    assert re.search(message, complaint), complaint


def test_a_category_that_is_missing_is_refused(folder, regard):
    table, new = tables()
    table.assign(colour=table["colour"].where(table.index != 4)).to_csv("t.csv", index=False)
    complaint = regard("fit", "t.csv", "--y", "price", "--categorical", "colour,town")[2]
    assert "t.csv: column 'colour' has no value in row 5 (" in complaint
    expected(bandwidth=[20, 0.2, 0.1]).save("m")
    new.assign(town=[None, "01", "01", "02", None]).to_csv("bad.csv", index=False)
    complaint = regard("fit", "--model", "m", "--predict", "bad.csv", "-o", "out.csv")[2]
    assert "bad.csv: column 'town' has no value in rows 1, 5 (" in complaint
    new[:0].to_csv("bad.csv", index=False)
    assert "bad.csv: has no rows" in regard("fit", "--model", "m", "--predict", "bad.csv", "-o", "out.csv")[2]
    code, _, complaint = regard("fit", "--model", "m", "--categorical", "town")
    assert code == 2 and "leave out --categorical" in " ".join(re.sub("[│\n]", " ", complaint).split())
