"""`regard fit` on the files that people have: what is typed, what is shown, and what new rows get."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regard import NadarayaWatson
from regard.cli import fit_report
from regard.cli.tables import columns as table_columns
from regard.cli.tables import number_notation
from regard.cli.tables.files import ReadOptions, read_table

FIT = ("--y", "price", "--bandwidth")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def houses(n=60):
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"size": rng.uniform(30, 200, n).round(2), "rooms": rng.integers(1, 7, n).astype(float)})
    return table.assign(price=(2 * table["size"] + 50 * np.sin(table["rooms"])).round(2))


def value(text, name):
    (found,) = re.findall(rf"^{re.escape(name)} +(.+?) *$", text, re.MULTILINE)
    return found


# Missing values


def with_gaps():
    table = houses()
    table.loc[[2, 6], "rooms"] = np.nan
    table.loc[6, "size"] = np.nan
    table.loc[9, "price"] = np.nan
    return table.assign(town=["Cork", None, *["Cork", "Basel"] * 29])


def test_missing_values_are_refused_with_rows_columns_and_options(regard):
    with_gaps().to_csv("t.csv", index=False)
    code, said, complaint = regard("fit", "t.csv", *FIT, "7")
    assert (code, said) == (1, "")
    assert complaint == (
        "regard: t.csv: column 'size' has no value in row 7, column 'rooms' has no value in rows 3, 7, column 'town' "
        "has no value in row 2, column 'price' has no value in row 10 (counted from 1 below the names). --missing drop "
        "leaves out 4 rows, --missing mean fills in the mean of a column, or its most frequent category."
    )


def test_drop_leaves_rows_out_of_the_fit_and_of_predictions(regard):
    table = with_gaps()
    table.to_csv("t.csv", index=False)
    said = regard("fit", "t.csv", *FIT, "9,1,0.1", "--missing", "drop", "--save", "m")
    assert said.code == 0 and value(said.out, "points") == "56"
    assert "regard: t.csv: 4 of 60 rows left out, without a value in size, rooms, town, price\n" in said.err
    whole = table.dropna()
    expected = NadarayaWatson(bandwidth=[9, 1, 0.1], categorical=["town"]).fit(
        whole[["size", "rooms", "town"]], whole.price
    )
    assert np.array_equal(NadarayaWatson.load("m").X_, expected.X_)
    table.drop(columns="price").to_csv("new.csv", index=False)
    said = regard("fit", "--model", "m", "--predict", "new.csv", "-o", "out.csv")
    assert said[::2] == (0, "regard: new.csv: 3 of 60 rows left out, without a value in size, rooms, town\n")
    out = pd.read_csv("out.csv")
    assert np.flatnonzero(out["predicted"].isna()).tolist() == [1, 2, 6] and len(out) == 60
    np.testing.assert_allclose(out["predicted"][:1], expected.predict(whole[["size", "rooms", "town"]])[:1])


def test_mean_fills_new_rows_with_the_means_of_the_fit(regard):
    table = with_gaps()
    table.to_csv("t.csv", index=False)
    said = regard("fit", "t.csv", *FIT, "9,1,0.1", "--missing", "mean", "--save", "m")
    assert said.code == 0 and value(said.out, "points") == "59"  # a row without price teaches nothing
    known = table[table["price"].notna()]
    filled = known.fillna({"size": known["size"].mean(), "rooms": known["rooms"].mean(), "town": "Cork"})
    assert "t.csv: 1 of 60 rows left out, without a value in price\n" in said.err
    assert f"t.csv: column 'rooms': the mean, {known['rooms'].mean():.4g}, filled in in 2 rows\n" in said.err
    assert "t.csv: column 'town': the most frequent, Cork, filled in in 1 row\n" in said.err
    features = ["size", "rooms", "town"]
    expected = NadarayaWatson(bandwidth=[9, 1, 0.1], categorical=["town"]).fit(filled[features], filled["price"])
    new = pd.DataFrame({"size": [np.nan, 90.0], "rooms": [2.0, np.nan], "town": [None, "Basel"]})
    new.to_csv("new.csv", index=False)
    assert regard("fit", "--model", "m", "--predict", "new.csv", "-o", "out.csv").code == 0
    by_fit = new.fillna({"size": known["size"].mean(), "rooms": known["rooms"].mean(), "town": "Cork"})
    np.testing.assert_allclose(pd.read_csv("out.csv")["predicted"], expected.predict(by_fit), rtol=1e-12)
    pd.testing.assert_frame_equal(pd.read_csv("out.csv")[features], new)  # the file is given back as it was


def test_an_option_that_cannot_help_is_said(regard):
    houses().assign(z=np.nan).to_csv("t.csv", index=False)
    for how in ("drop", "mean"):
        assert "column 'z' has no value in any row" in regard("fit", "t.csv", *FIT, "7", "--missing", how)[2]
    pd.DataFrame({"a": [1, None, 2, None], "price": [None, 1, None, 2]}).to_csv("t.csv", index=False)
    assert "has no row with a value in each of a, price" in regard("fit", "t.csv", *FIT, "7", "--missing", "drop")[2]
    houses().to_csv("t.csv", index=False)
    assert regard("fit", "t.csv", *FIT, "7", "--save", "m").code == 0
    houses().drop(columns="price").assign(rooms=np.nan).to_csv("new.csv", index=False)
    assert (
        "new.csv: column 'rooms' has no value in any row"
        in regard("fit", "--model", "m", "--predict", "new.csv", "-o", "o.csv").err
    )


# Categories


def test_texts_with_few_levels_become_categories_by_themselves(regard):
    table = houses().assign(town=["Arles", "Basel", "Cork"] * 20, id=[f"house {i}" for i in range(60)])
    table.to_csv("t.csv", index=False)
    complaint = regard("fit", "t.csv", *FIT, "7").err
    assert "column 'id' is not all numbers: row 1 holds 'house 0'" in complaint  # 60 levels are too many
    assert "As categories it is taken by --categorical id. " in complaint
    assert "Other columns can be chosen with --x, such as --x size,rooms,town" in complaint
    said = regard("fit", "t.csv", *FIT, "7,1,0.1", "--x", "size,rooms,town")
    assert value(said.out, "town") == "0.1  lambda (3 categories, up to 0.6667)"
    assert said.err == "regard: t.csv: taken as categories: town (3 levels); --numeric or --x decides otherwise\n"


@pytest.mark.parametrize(
    ("levels", "rows", "becomes"), [(50, 500, "category"), (51, 1000, None), (6, 60, "category"), (7, 60, None)]
)
def test_few_levels_are_fifty_and_one_for_ten_rows(levels, rows, becomes):
    for kind in (str, "category"):
        texts = pd.Series([f"level {i % levels}" for i in range(rows)], name="a").astype(kind)
        column = table_columns.column_of(texts, "t.csv: column 'a'", "days")
        assert (column and column.kind) == becomes


def test_numbers_among_texts_look_like_a_mistake(regard):
    table = houses().assign(floor=["1", "2", "?"] * 20)
    table.to_csv("t.csv", index=False)
    complaint = regard("fit", "t.csv", *FIT, "7").err
    assert "column 'floor' is not all numbers: row 3 holds '?'" in complaint and "--categorical floor." in complaint


def test_numeric_takes_categories_and_texts_as_numbers(regard):
    table = houses().assign(floor=pd.Categorical(["1", "2", "3"] * 20), year=["1990", "2000"] * 30)
    table.to_parquet("t.parquet")
    assert "taken as categories: floor (3 levels), year (2 levels)" in regard("fit", "t.parquet", *FIT, "0.1").err
    said = regard("fit", "t.parquet", *FIT, "7", "--numeric", "floor,year", "--save", "m")
    assert said[::2] == (0, "")
    expected = table.assign(floor=table["floor"].astype(float), year=table["year"].astype(float))
    assert np.array_equal(NadarayaWatson.load("m").X_, expected.drop(columns="price"))


# Dates


def dated(form="%Y-%m-%d", n=60):
    days = pd.date_range("2023-12-20", periods=n, freq="D")
    return pd.DataFrame({"day": days.strftime(form), "price": np.sin(np.arange(n) / 5).round(3)})


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y年%m月%d日", "%Y-%m-%d 00:00"]
)
def test_dates_are_days_in_the_notations_of_many_countries(regard, form):
    dated(form).to_csv("t.csv", index=False)
    said = regard("fit", "t.csv", *FIT, "2", "--save", "m")
    assert said.code == 0
    assert said.err == (
        "regard: t.csv: taken as dates, by days since 1970-01-01: day; --dates or --categorical decides otherwise\n"
    )
    first = (pd.Timestamp("2023-12-20") - pd.Timestamp(0)).days
    assert NadarayaWatson.load("m").X_[:, 0].tolist() == list(range(first, first + 60))


def test_dates_that_a_file_knows_are_dates(regard):
    table = dated().assign(day=pd.date_range("2024-01-01", periods=60, freq="6h", tz="Europe/Paris"))
    table.to_parquet("t.parquet")
    assert regard("fit", "t.parquet", *FIT, "2", "--save", "m").code == 0
    assert NadarayaWatson.load("m").X_[:2, 0].tolist() == [19722 + 23 / 24, 19723 + 5 / 24]  # in UTC
    table.assign(day=pd.date_range("2024-01-01", periods=60).date).to_parquet("t.parquet")
    assert regard("fit", "t.parquet", *FIT, "2", "--save", "m").code == 0
    assert NadarayaWatson.load("m").X_[0, 0] == 19723


def test_parts_of_dates_are_features(regard):
    table = dated("%Y-%m-%dT%H:%M").assign(day=lambda t: t["day"].str.replace("00:00", "18:30"))
    table.to_csv("t.csv", index=False)
    said = regard("fit", "t.csv", *FIT, "1", "--dates", "parts", "--save", "m")
    assert said.out.startswith("price from day.year, day.month, day.day, day.weekday, day.hour\n")
    day = pd.to_datetime(table["day"])
    expected = np.stack([day.dt.year, day.dt.month, day.dt.day, day.dt.day_of_week, np.full(60, 18.5)], 1)
    np.testing.assert_allclose(NadarayaWatson.load("m").X_, expected)
    table[["day"]].head(3).to_csv("new.csv", index=False)
    assert regard("fit", "--model", "m", "--predict", "new.csv", "-o", "out.csv").code == 0
    expected = NadarayaWatson.load("m").predict(
        pd.DataFrame(expected[:3], columns=NadarayaWatson.load("m").feature_names_in_)
    )
    np.testing.assert_allclose(pd.read_csv("out.csv")["predicted"], expected)


def test_dates_can_be_refused_and_unclear_ones_are(regard):
    dated().to_csv("t.csv", index=False)
    complaint = regard("fit", "t.csv", *FIT, "1", "--dates", "error").err
    assert "column 'day' is not all numbers: row 1 holds '2023-12-20'" in complaint
    assert "As dates it is taken by --dates days or parts." in complaint
    dated("%m/%d/%Y").iloc[12:24].to_csv("t.csv", index=False)  # 1 to 12 January
    assert regard("fit", "t.csv", *FIT, "1").err == (
        "regard: t.csv: column 'day': 01/01/2024 may be day/month or month/day, and no row tells which; write dates as "
        "year-month-day"
    )


def test_new_rows_have_their_dates_in_the_order_of_the_fit(regard):
    for form, day in (("%m/%d/%Y", "2024-01-02"), ("%d/%m/%Y", "2024-02-01")):
        dated(form).to_csv("t.csv", index=False)
        pd.DataFrame({"day": ["01/02/2024"]}).to_csv("new.csv", index=False)
        assert regard("fit", "t.csv", *FIT, "2", "--save", "m", "--predict", "new.csv", "-o", "out.csv").code == 0
        model, days = NadarayaWatson.load("m"), (pd.Timestamp(day) - pd.Timestamp(0)).days
        expected = model.predict(pd.DataFrame({"day": [float(days)]}))
        np.testing.assert_allclose(pd.read_csv("out.csv")["predicted"], expected, rtol=1e-9)
    pd.DataFrame({"day": ["soon"]}).to_csv("new.csv", index=False)
    complaint = regard("fit", "--model", "m", "--predict", "new.csv", "-o", "out.csv").err
    assert "new.csv: column 'day' is not all dates: row 1 holds 'soon'" in complaint


# Encodings


def chinese():
    return houses().rename(columns={"size": "面积", "rooms": "房间"}).assign(城市=["北京", "上海", "广州"] * 20)


ENCODINGS = ["utf-8", "utf-8-sig", "gbk", "gb18030", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zip"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_chinese_tables_are_read_in_every_encoding(encoding, ending):
    chinese().to_csv(f"t.{ending}", index=False, encoding=encoding)
    table = read_table(Path(f"t.{ending}"))
    pd.testing.assert_frame_equal(table.frame, chinese(), check_dtype=False)
    said = [f"t.{ending}: is read as GB18030 (GBK), since it is not UTF-8; --encoding names another"]
    assert table.notes == (said if encoding in ("gbk", "gb18030") else [])


def test_a_chinese_table_from_end_to_end(regard):
    chinese().to_csv("t.csv", index=False, encoding="gb18030")
    said = regard("fit", "t.csv", *FIT, "9,1,0.1", "--plot", "t.png", "--lang", "zh")
    assert said.code == 0 and said.out.startswith("price from 面积, 房间, 城市\n")
    assert said.err.splitlines()[0] == (
        "regard: t.csv: is read as GB18030 (GBK), since it is not UTF-8; --encoding names another"
    )


def test_other_encodings_are_named_by_the_user(regard):
    table = houses().rename(columns={"size": "Größe"}).assign(Ort=["Köln", "Würzburg"] * 30)
    table.to_csv("t.csv", index=False, encoding="cp1252")
    assert re.search(
        "neither in UTF-8 .* name its encoding, such as --encoding cp1252", regard("fit", "t.csv", *FIT, "7").err
    )
    assert regard("fit", "t.csv", *FIT, "7,1,0.1", "--encoding", "cp1252").out.startswith(
        "price from Größe, rooms, Ort\n"
    )
    assert "--encoding klingon: is not known" in regard("fit", "t.csv", *FIT, "7", "--encoding", "klingon").err
    assert "is not written in that encoding" in regard("fit", "t.csv", *FIT, "7", "--encoding", "utf-8").err
    for encoding in ("big5", "shift_jis", "cp1251"):
        Path("t.csv").write_bytes(
            "название,price\n".encode("cp1251") if encoding == "cp1251" else "東京都,價格\n".encode(encoding)
        )
        assert "--encoding" in regard("fit", "t.csv", *FIT, "7").err


# Decimal commas and thousands


def write(name, separator, *rows):
    Path(name).write_text("\n".join(separator.join(row) for row in rows) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("separator", "cells", "numbers"),
    [
        (";", ["1.234,5", "12", "-7,25"], [1234.5, 12, -7.25]),
        (";", ["1 234,5", "1 234 567", "0,5"], [1234.5, 1234567, 0.5]),
        (";", ["1\u202f234,5", "2\u00a0000,5", "0,5"], [1234.5, 2000.5, 0.5]),
        (";", ["1'234.5", "12", "1e3"], [1234.5, 12, 1000]),
        (",", ['"1,234.5"', "12", '"1,234,567"'], [1234.5, 12, 1234567]),
        (",", ['"1,5"', "12", '"0,25"'], [1.5, 12, 0.25]),
        (",", ['"1,234"', "12", '"5,678"'], [1234, 12, 5678]),  # leaves it open: no semicolons, so thousands
        (";", ["1,234", "12", "5,678"], [1.234, 12, 5.678]),  # leaves it open: semicolons, so decimal commas
        ("\t", ["1,234", "12", "5,678"], [1234, 12, 5678]),
        (";", ["1.234", "12", "5.678"], [1.234, 12, 5.678]),  # a point alone is a decimal point
        (";", ["1.234.567", "12", "5.678"], [1234567, 12, 5678]),
        (";", ["−1,5", "+2", ",5"], [-1.5, 2, 0.5]),
    ],
)
def test_numbers_are_read_as_they_are_written(separator, cells, numbers):
    write("t.csv", separator, ["a", "b"], *([cell, "1"] for cell in cells))
    frame = read_table(Path("t.csv")).frame
    assert frame["a"].tolist() == numbers


@pytest.mark.parametrize(
    "cells", [["1,23,456"], ["12,5", "a"], ["1.2,3.4"], ["1,5", "2.5"], ["1 23"], ["0,125", "1.234.5"]]
)
def test_texts_are_not_taken_for_numbers(cells):
    write("t.csv", ";", ["a", "b"], *([cell, "1"] for cell in cells))
    assert read_table(Path("t.csv")).frame["a"].tolist() == cells


def test_other_columns_decide_where_one_leaves_it_open():
    write("t.csv", ";", ["a", "b", "c"], ["1.234", "3,5", "1"], ["5.678", "4", "2"], ["", "7,25", "3"])
    table = read_table(Path("t.csv"))
    assert table.frame["a"].tolist()[:2] == [1234, 5678] and np.isnan(table.frame["a"][2])
    assert table.frame["b"].tolist() == [3.5, 4, 7.25]
    assert table.notes == [
        "t.csv: 3,5 is read as 3.5, with a decimal comma, in b",
        "t.csv: column 'a': 1.234 is read as 1234; --decimal . reads 1.234",
    ]
    assert read_table(Path("t.csv"), ReadOptions(decimal=".")).frame["a"].tolist()[:2] == [1.234, 5.678]
    write("t.csv", ";", ["a", "b"], ["1.25", "3,5"], ["5.678", "4"])  # 1.25 is clear
    assert read_table(Path("t.csv")).frame["a"].tolist() == [1.25, 5.678]


def test_an_open_case_is_said_and_can_be_decided(regard):
    write("t.csv", ",", ["a", "price"], *([f'"{i},500"', str(i)] for i in range(1, 30)))
    said = regard("fit", "t.csv", *FIT, "999", "--save", "m")
    assert said.err == "regard: t.csv: column 'a': 1,500 is read as 1500; --decimal , reads 1.5\n"
    assert NadarayaWatson.load("m").X_[0, 0] == 1500
    said = regard("fit", "t.csv", *FIT, "9", "--decimal", ",", "--save", "m")
    assert said.err == "regard: t.csv: 1,500 is read as 1.5, with a decimal comma, in a\n"
    assert NadarayaWatson.load("m").X_[0, 0] == 1.5


def test_new_rows_are_read_in_the_notation_of_the_fit(regard):
    write("t.csv", ";", ["a", "price"], *([f"{i}.000,5", str(i)] for i in range(1, 30)))
    assert regard("fit", "t.csv", *FIT, "900", "--save", "m").code == 0
    model = NadarayaWatson.load("m")
    for cells, numbers in ((["3.000", "4.000"], [3000.0, 4000.0]), (["3000.5", "4000"], [3000.5, 4000.0])):
        write("new.csv", ";", ["a"], *([cell] for cell in cells))
        assert regard("fit", "--model", "m", "--predict", "new.csv", "-o", "out.csv").code == 0
        expected = model.predict(pd.DataFrame({"a": numbers}))
        np.testing.assert_allclose(pd.read_csv("out.csv")["predicted"], expected, rtol=1e-9)


def test_columns_without_marks_are_left_to_pandas():
    assert number_notation.interpret({"a": ["12", str(2**70)], "b": ["x"]}, {}, ";") == {}


# Refusals come before torch


REFUSED = [
    (["t.csv"], 2, "has size, rooms, price"),
    (["t.csv", "--y", "prise"], 1, "did you mean 'price'"),
    (["gaps.csv", "--y", "price", "--plot", "t.png"], 1, "--missing drop"),
    (["t.csv", "--y", "price", "--plot", "t.xyz"], 1, "a picture is known by its ending"),
    (["t.csv", "--y", "price", "--predict", "gaps.csv", "-o", "out.csv"], 1, "has no value"),
    (["none.csv", "--y", "price"], 1, "there is no such file"),
    (["--model", "none"], 1, "No such file"),
]


def test_what_is_refused_is_refused_before_torch_is_imported():
    houses().to_csv("t.csv", index=False)
    with_gaps().to_csv("gaps.csv", index=False)
    program = """
import io, sys
from contextlib import redirect_stderr, redirect_stdout
from regard import cli
for arguments, code, message in {cases!r}:
    sys.argv = ["regard", "fit", *arguments]
    said = io.StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            cli.main()
    except SystemExit as end:
        text = said.getvalue() + str(end.code)
        assert message in " ".join(text.replace("│", " ").split()), text
        assert code == (1 if isinstance(end.code, str) else end.code), end.code
    heavy = {{"torch", "sklearn", "scipy", "matplotlib"}} & set(sys.modules)
    assert not heavy, (arguments, heavy)
"""
    command = [sys.executable, "-c", program.format(cases=REFUSED)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


# The picture


@pytest.mark.parametrize(
    ("lang", "titles", "fit"),
    [
        (
            "en",
            ["price by size\nothers at median or mode", "price by day\nothers at median or mode"],
            "fit, and 95 % band",
        ),
        (
            "zh",
            ["price 随 size 的变化\n其他特征取中位数或众数", "price 随 day 的变化\n其他特征取中位数或众数"],
            "拟合与 95% 置信带",
        ),
    ],
)
def test_panels_are_titled_by_feature_in_the_language(regard, monkeypatch, lang, titles, fit):
    from regard import plot

    axes = []
    draw = plot.regression
    monkeypatch.setattr(plot, "regression", lambda *a, **k: axes.append(k["ax"]) or draw(*a, **k))
    table = houses().drop(columns="rooms").assign(day=dated()["day"], town=["a", "b"] * 30)
    table.to_csv("t.csv", index=False)
    assert regard("fit", "t.csv", *FIT, "9,3,0.1", "--plot", "t.png", "--lang", lang).code == 0
    assert [ax.get_title() for ax in axes[:2]] == titles
    assert axes[0].get_legend().get_texts()[0].get_text() == fit
    assert axes[1].get_xticklabels()[0].get_text().startswith("202")  # dates, not numbers of days


def test_every_ending_that_is_offered_can_be_drawn():
    from regard import plot

    assert set(fit_report.PICTURES) <= {f".{ending}" for ending in plot.Picture().canvas.get_supported_filetypes()}
