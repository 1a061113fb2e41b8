"""Tables of analysis: what they show in a terminal, in a notebook and as data frames."""

import builtins
import math

import pytest
import torch
import transcript
from web_viewer import HOSTILE, chromium

import regard as rg
from regard import analysis
from regard.analysis._table import Table
from regard.errors import ChoiceError, MissingExtraError

MAX_HTML = 40_000  # characters of any table in a notebook


def profile_rows(count):
    numbers = torch.rand(count, 7, dtype=torch.float64).tolist()
    return [
        analysis.ProfileRow(f"model.layers.{i // 9}.self_attn", 0, i % 9, *row[:6], math.nan)
        for i, row in enumerate(numbers)
    ]


def tokens(texts):
    rows = tuple(analysis.TokenRow(i, text, i / 8) for i, text in enumerate(texts))
    return analysis.TokenTable(rows, torch.zeros(1, len(rows)), ("layer",))


HEADS = analysis.HeadTable(
    (
        analysis.HeadRow("layer.10", 0, 1.0, 0.5, 0.3, 1.0, "fine"),
        analysis.HeadRow("layer.2", 1, math.nan, math.nan, math.nan, 1.0, "undefined"),
        analysis.HeadRow("layer.2", 0, 0.125, 0.0625, 0.9, 0.5, "saturated"),
    )
)


@pytest.fixture(scope="module")
def every_table():
    """A table of each kind, from a recording of 24 heads and 70 tokens."""
    layer = torch.nn.TransformerEncoderLayer(8, 4, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
    with torch.no_grad(), rg.record(model) as made:
        model(torch.randn(2, 70, 8))
    return [
        analysis.profiles(made), analysis.similar(made), analysis.rollout(made, 0), analysis.flow(made, 3),
        analysis.receivers(made, 30, per="head"), analysis.compare(made, made), analysis.heads(made),
        analysis.saturation([1, 4], trials=2),
    ]  # fmt: skip


def test_a_table_is_typed_sorted_and_indexed():
    transcript.check(
        """
        >>> table
        HeadTable, 3 rows
        layer     head  entropy  relative  saturation  visible  verdict  
        layer.10     0   1.0000    0.5000      0.3000   1.0000  fine     
        layer.2      1      nan       nan         nan   1.0000  undefined
        layer.2      0   0.1250    0.0625      0.9000   0.5000  saturated
        >>> print(table.sort("layer"))
        layer     head  entropy  relative  saturation  visible  verdict  
        layer.2      1      nan       nan         nan   1.0000  undefined
        layer.2      0   0.1250    0.0625      0.9000   0.5000  saturated
        layer.10     0   1.0000    0.5000      0.3000   1.0000  fine     
        >>> table.sort("entropy").column("entropy")
        (0.125, 1.0, nan)
        >>> table.sort("entropy", descending=True)["entropy"]
        (1.0, 0.125, nan)
        >>> table[-1].verdict, len(table[1:]), type(table[1:]).__name__
        ('saturated', 2, 'HeadTable')
        >>> table.to_pandas()
              layer  head  entropy  relative  saturation  visible    verdict
        0  layer.10     0    1.000    0.5000         0.3      1.0       fine
        1   layer.2     1      NaN       NaN         NaN      1.0  undefined
        2   layer.2     0    0.125    0.0625         0.9      0.5  saturated
        """,  # noqa: W291  texts are filled with spaces up to the width of their column
        table=HEADS,
    )


def test_a_long_table_shows_ten_rows_and_prints_fifty():
    table = analysis.ProfileTable(tuple(profile_rows(270)))
    assert "ProfileRow(" not in repr(table)
    assert repr(table).splitlines()[0] == "ProfileTable, 270 rows"
    assert repr(table).splitlines()[-1] == "... 260 more rows: .sort(by), .to_pandas()"
    assert len(repr(table).splitlines()) == 13 and len(str(table).splitlines()) == 52
    assert table._repr_html_().count("<tr>") == 51
    assert "220 more rows. A click sorts what is shown; table.sort(by) sorts all." in table._repr_html_()


def test_every_table_is_the_one_class_and_bounded(every_table):
    for table in every_table:
        assert isinstance(table, Table) and {"__repr__", "_repr_html_"} & set(vars(type(table))) == set()
        assert repr(table).startswith(f"{type(table).__name__}, {len(table)} rows\n")
        assert len(repr(table)) < 2_500 and len(str(table)) < 10_000 and len(table._repr_html_()) < MAX_HTML
        assert list(table.to_pandas().columns) == list(table.columns) and len(table.to_pandas()) == len(table)
        for name in table.columns:
            ordered = table.sort(name)
            assert type(ordered) is type(table) and sorted(map(repr, ordered.rows)) == sorted(map(repr, table.rows))
            if not isinstance(table[0][table.columns.index(name)], str):
                known = [value for value in ordered.column(name) if not math.isnan(value)]
                assert known == sorted(known)


def test_long_texts_and_huge_numbers_do_not_widen_a_table():
    row = analysis.ProfileRow("layer." * 500, 0, 0, 1e300, -1e300, math.inf, 0.0, 0.0, 0.0, math.nan)
    table = analysis.ProfileTable((row,) * 60)
    assert max(map(len, str(table).splitlines())) < 200 and len(table._repr_html_()) < MAX_HTML


def test_texts_stand_on_one_line_and_chinese_takes_two_columns():
    transcript.check(
        r"""
        >>> print(table)
        position  token     share
               0  他爸有   0.0000
               1  ↵        0.1250
               2  \x1b[0m  0.2500
        """,
        table=tokens(["他爸有", "\n", "\x1b[0m"]),
    )


def test_a_long_text_shows_the_tokens_with_the_largest_shares():
    table = tokens(["word"] * 300)
    assert "299" in repr(table).splitlines()[2] and "290" in repr(table).splitlines()[-2]
    for chosen in (table.sort("position"), table.sort("token"), table[:200]):  # an order that was asked for is kept
        assert [line.split()[0] for line in repr(chosen).splitlines()[2:5]] == ["0", "1", "2"]


def test_an_empty_table_is_shown_too():
    assert repr(HEADS.uniform).splitlines()[0] == "HeadTable, 0 rows"
    assert "HeadTable, 0 rows" in HEADS.uniform._repr_html_()


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    for ask in (lambda: HEADS.sort("size"), lambda: HEADS["size"]):
        with pytest.raises(ChoiceError, match="no column 'size', its columns are layer, head, entropy"):
            ask()


def test_without_pandas_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest, **options):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[tables\]'"):
        HEADS.to_pandas()


# In a browser


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def show(browser, *tables, scripts=True):
    """The tables on one page that may load nothing; what went wrong is in `page.faults`."""
    page = browser.new_context(java_script_enabled=scripts).new_page()
    page.faults = []
    page.on("request", lambda request: page.faults.append(request.url))
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("dialog", lambda dialog: page.faults.append(dialog.message))
    page.set_content(f"<!doctype html><body>{''.join(table._repr_html_() for table in tables)}</body>")
    return page


def column(page, number, which):
    return page.locator("table").nth(number).locator(f"tbody td:nth-child({which})").all_inner_texts()


def test_a_click_sorts_one_table_and_a_second_click_turns_it(browser):
    page = show(browser, HEADS, HEADS)
    first = page.locator("table").nth(0)
    first.get_by_role("button", name="entropy").click()
    assert column(page, 0, 3) == ["0.1250", "1.0000", "nan"]
    assert first.get_by_role("columnheader", name="entropy").get_attribute("aria-sort") == "ascending"
    first.get_by_role("button", name="entropy").press("Enter")
    assert column(page, 0, 3) == ["1.0000", "0.1250", "nan"]
    first.get_by_role("button", name="layer").click()
    assert column(page, 0, 1) == ["layer.2", "layer.2", "layer.10"]
    assert column(page, 1, 1) == ["layer.10", "layer.2", "layer.2"]  # the other table stays as it is
    assert page.faults == []


def test_numbers_are_sorted_by_all_their_digits(browser):
    rows = [row._replace(entropy=value) for row, value in zip(HEADS, (1.00003, 1.00001, 1.00002), strict=True)]
    page = show(browser, analysis.HeadTable(tuple(rows)))
    page.get_by_role("button", name="entropy").click()
    assert column(page, 0, 7) == ["undefined", "saturated", "fine"]


def test_hostile_tokens_are_text(browser):
    page = show(browser, tokens(HOSTILE))
    assert page.evaluate("window.hurt") is None
    assert column(page, 0, 2)[:4] == HOSTILE[:4]
    assert page.locator("td *").count() == 0 and page.faults == []


def test_without_scripts_the_table_stands(browser):
    page = show(browser, HEADS, scripts=False)
    assert column(page, 0, 1) == ["layer.10", "layer.2", "layer.2"]
    assert page.get_by_role("button").count() == 0


@pytest.mark.parametrize(("ink", "paper"), [("rgb(0, 0, 0)", "white"), ("rgb(230, 230, 230)", "#111")])
def test_a_table_takes_the_colours_of_its_page(browser, ink, paper):
    page = show(browser, HEADS)
    page.evaluate("style => Object.assign(document.body.style, style)", {"color": ink, "background": paper})
    colours = page.evaluate(
        "[...document.querySelectorAll('caption, th, th button, td')].map(cell => getComputedStyle(cell).color)"
    )
    grounds = page.evaluate("[...document.querySelectorAll('table, td')].map(c => getComputedStyle(c).backgroundColor)")
    assert set(colours) == {ink} and set(grounds) == {"rgba(0, 0, 0, 0)"}
