"""Pairs from files, and every way in which a file can be wrong."""

import gzip
import hashlib
import io
import shlex
import tarfile
import zipfile
from pathlib import Path

import pytest

import regard as rg
from regard.datasets import Pair, _pair_files, pairs
from regard.errors import ChoiceError, DataError, SkippedRowsWarning

EXCERPT = Path(__file__).parent / "tatoeba_excerpt.tsv"
TABLE = "Go.\tVa !\tby A\nIt's \"me\".\tC'est « moi ».\tby B\n"
EXPECTED = [Pair("Go.", "Va !"), Pair('It\'s "me".', "C'est « moi ».")]


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return file.getvalue()


def corpus(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", TABLE.encode()),
        ("a.tsv", TABLE.replace("\n", "\r\n").encode("utf-8-sig")),
        ("a.TSV", f"source\ttarget\n{TABLE}".encode("utf-16")),
        ("a.tsv", TABLE.encode("utf-32")),
        ("a.tsv", TABLE.replace("\n", "\r").encode()),
        ("a.csv", b'Go.,Va !,A\n"It\'s ""me"".",C\'est \xc2\xab moi \xc2\xbb.,B\n'),
        ("a.csv", "English;French\nGo.;Va !\nIt's \"me\".;C'est « moi ».\n".encode()),
        ("a.txt.gz", gzip.compress(TABLE.encode())),
        ("a.zip", zipped(fra__txt=TABLE, _about__txt="notes")),
        ("a.tsv.zip", zipped(a__tsv=TABLE)),
    ],
    ids=["txt", "tsv", "utf-16", "utf-32", "carriage returns", "csv", "semicolons", "gz", "zip", "tsv.zip"],
)
def test_every_kind_of_file_gives_the_same_pairs(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    found = pairs(tmp_path / name)
    assert list(found) == EXPECTED
    assert (found.source_language, found.target_language) == ("en", "fr")


def test_excerpt_of_the_corpus_is_read_and_split():
    found = pairs(str(EXCERPT))
    assert 100 < len(found) <= 200
    assert sum(map(len, found.split())) == len(found)
    rows = EXCERPT.read_text(encoding="utf-8").splitlines()
    assert all("tatoeba.org" in row.split("\t")[2] for row in rows)


def test_corpus_is_read_inside_its_archive_and_only_if_it_is_the_known_one(tmp_path, monkeypatch):
    path = tmp_path / _pair_files.CORPUS
    path.write_bytes(corpus({"nmt-0.0.6/data/fra-eng.zip": zipped(fra__txt=TABLE, _about__txt="notes")}))
    with pytest.raises(DataError, match=r"only nmt-0.0.6.tar.gz is read, whose sha256 is 65db964c.*this one has"):
        pairs(path)
    monkeypatch.setattr(_pair_files, "CORPUS_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    assert list(pairs(path)) == list(pairs(tmp_path)) == EXPECTED
    assert list(tmp_path.iterdir()) == [path]  # nothing is unpacked
    with pytest.raises(ChoiceError, match="has targets in 'fr' and 'es', not in 'zh'"):
        pairs(path, language="zh")


@pytest.mark.parametrize("name", ["corpus/nmt-0.0.6.tar.gz", "corpus/mine.tsv", "corpus"])
def test_a_missing_file_is_answered_with_the_command_that_fetches_the_corpus(tmp_path, name):
    with pytest.raises(DataError, match="there is no such file") as caught:
        pairs(tmp_path / name)
    command = str(caught.value).splitlines()[1]
    assert shlex.split(command)[-3:] == ["-d", str(tmp_path / "corpus"), "nmt==0.0.6"]
    assert str(tmp_path / "corpus" / "nmt-0.0.6.tar.gz") in str(caught.value).splitlines()[2]


def test_bad_rows_are_named_by_number(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("source\ttarget\nGo.\tVa !\n\nno tab\n \tvide\nempty\t \nRun.\tCours !\n", encoding="utf-8")
    message = (
        "3 of 5 rows are bad: row 4 has one column, and needs a source and a target; row 5 has an empty source; "
        "row 6 has an empty target"
    )
    with pytest.raises(DataError, match=message):
        pairs(path)
    with pytest.warns(SkippedRowsWarning, match=message):
        assert [pair.source for pair in pairs(path, bad="skip")] == ["Go.", "Run."]


def test_many_bad_rows_are_counted_and_five_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a\tb\n" + "no tab\n" * 1200, encoding="utf-8")
    with pytest.raises(
        DataError, match=r"1,200 of 1,201 rows are bad: row 2 .*; row 6 [^;]*, and 1,195 more\. Correct"
    ):
        pairs(path)


def test_a_quoted_text_may_take_several_lines_and_rows_keep_their_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"two\nlines",deux\nbad\n', encoding="utf-8")
    with pytest.raises(DataError, match="1 of 2 rows are bad: row 3 has one column"):
        pairs(path)
    path.write_text('a,b\n"never closed,c\n', encoding="utf-8")
    with pytest.raises(DataError, match="row 2 is no row of a csv table: unexpected end of data"):
        pairs(path)


def test_line_separators_inside_a_text_do_not_end_its_row(tmp_path):
    (tmp_path / "a.tsv").write_text("one\u2028two\tun\x85deux\n", encoding="utf-8")
    assert pairs(tmp_path / "a.tsv")[0].target == "un\x85deux"


def test_another_encoding_has_to_be_named(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes("go\tva\nsummer\tété\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"row 2 is not written in utf-8; encoding= \(--encoding\) names another"):
        pairs(path)
    assert pairs(path, encoding="cp1252")[1].target == "été"
    with pytest.raises(ChoiceError, match="there is no encoding named 'klingon'"):
        pairs(path, encoding="klingon")
    path.write_bytes("go\tva\nrun\tcours\n".encode("utf-16-le"))  # without a mark
    with pytest.raises(DataError, match="row 1 holds bytes of 0, so it is not written in utf-8"):
        pairs(path)
    assert pairs(path, encoding="utf-16-le")[1].target == "cours"


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.zip"])
def test_a_packed_file_that_was_cut_is_refused(tmp_path, name):
    table = "".join(f"word {i}\tmot {i * 7919 % 1000}\n" for i in range(999))
    whole = gzip.compress(table.encode()) if name.endswith("gz") else zipped(a__tsv=table)
    for size in (1, len(whole) // 2, len(whole) - 5):
        (tmp_path / name).write_bytes(whole[:size])
        with pytest.raises(DataError, match="cannot be unpacked, it may have been cut short"):
            pairs(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"", "holds no pairs"),
        ("a.tsv", b"source\ttarget\n", "holds no pairs"),
        ("a.tsv.gz", b"", "holds no pairs"),
        ("a.xlsx", b"x", "pairs are read from .txt, .tsv and .csv files"),
        (
            "a.zip",
            zipped(a__txt="a\tb", b__txt="a\tb"),
            "must hold one table.*; this one holds a.txt, b.txt",
        ),
        ("a.zip", zipped(a__xml="x"), "this one holds a.xml"),
        ("other.tar.gz", b"x", "of .tar.gz files only nmt-0.0.6.tar.gz is read"),
    ],
)
def test_what_is_no_table_of_pairs_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((DataError, ChoiceError), match=message):
        pairs(tmp_path / name)


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_pair_files, "MAX_UNPACKED", 1000)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\tb\n" * 300))
    with pytest.raises(DataError, match="unpacks to more than"):
        pairs(tmp_path / "a.tsv.gz")


def test_an_unknown_way_to_treat_bad_rows_is_refused():
    with pytest.raises(ChoiceError, match="bad must be 'raise' or 'skip'; it came as 'ignore'"):
        pairs(EXCERPT, bad="ignore")


def test_datasets_name_what_they_offer():
    assert set(rg.datasets.__all__) <= set(dir(rg.datasets))
    assert all(getattr(rg.datasets, name) is not None for name in rg.datasets.__all__)
    with pytest.raises(AttributeError, match=r"module 'regard.datasets' has no attribute 'mnist'; it offers"):
        rg.datasets.mnist  # noqa: B018  the access itself is tested
