"""`regard train` and `regard translate` as a user meets them: files that are wrong, and a run from end to end."""

import gzip
import subprocess
import sys

import pytest

from regard import datasets


def rows(count=300):
    return [f"{pair.source}\t{pair.target}" for pair in datasets.numbers(count, words=(1, 2), seed=0)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a short run."""
    from regard import seq2seq

    path = tmp_path_factory.mktemp("run")
    pairs = datasets.numbers(300, words=(1, 2), seed=0)
    model = seq2seq.Seq2Seq("bahdanau", embedding=16, hidden=16)
    seq2seq.train(model, pairs, folder=path / "run", steps=3, batch_tokens=200)
    return path / "run"


def test_file_is_trained_on_and_the_folder_translates(regard, tmp_path):
    (tmp_path / "pairs.tsv").write_text("\n".join(rows()) + "\n", encoding="utf-8")
    said = regard("train", tmp_path / "pairs.tsv", "-o", tmp_path / "run", "--steps", "3", "--language", "zh",
                  "--attention", "luong", "--score", "dot")  # fmt: skip
    assert said.code == 0 and "step 3 of 3: loss" in said.out and "exact match" in said.out
    again = regard("translate", "forty two", "--model", tmp_path / "run", "--beam", "2")
    assert again.code == 0 and len(again.out.splitlines()) == 1
    other = regard("train", tmp_path / "pairs.tsv", "-o", tmp_path / "run", "--steps", "4", "--language", "zh")
    assert other.code == 1 and "holds a run with other settings" in other.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tab.tsv", "one\t一\ntwo 二\nthree\t三\n".encode(), "row 2"),
        ("empty.tsv", "one\t一\ntwo\t\n".encode(), "row 2"),
        ("latin.tsv", "one\tdéjà\n".encode("cp1252"), "not written in utf-8"),
        ("cut.tsv.gz", gzip.compress("\n".join(rows()).encode())[:200], "cut short"),
        ("few.tsv", "one\t一\n".encode(), "no validation pairs"),
        ("pairs.docx", b"PK", ".tsv"),
    ],
)
def test_malformed_file_is_refused_in_one_line(regard, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    said = regard("train", tmp_path / name, "-o", tmp_path / "run", "--steps", "1")
    assert said.code == 1 and message in said.err and "Traceback" not in said.err
    assert not (tmp_path / "run").exists()


def test_file_that_is_not_there_is_refused(regard, tmp_path):
    said = regard("train", tmp_path / "none.tsv", "-o", tmp_path / "run")
    assert said.code == 1 and "there is no such file" in said.err


def test_bad_rows_can_be_skipped(regard, tmp_path):
    (tmp_path / "pairs.tsv").write_text("\n".join([*rows(), "two 二"]), encoding="utf-8")
    with pytest.warns(UserWarning, match="301"):
        said = regard("train", tmp_path / "pairs.tsv", "-o", tmp_path / "run", "--steps", "1", "--skip-bad")
    assert said.code == 0


def test_lines_of_a_file_are_translated_and_alignment_is_drawn(regard, folder, tmp_path):
    (tmp_path / "text.txt").write_text("forty two\n\nseven\n", encoding="utf-8")
    said = regard("translate", tmp_path / "text.txt", "--model", folder)
    assert said.code == 0 and len(said.out.splitlines()) == 3
    drawn = regard("translate", "forty two", "--model", folder, "--plot", tmp_path / "a.png")
    assert drawn.code == 0 and (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_model_and_unknown_text_are_refused(regard, folder, tmp_path):
    said = regard("translate", "forty two", "--model", "en-xx")
    assert said.code == 1 and "there is no model 'en-xx'" in said.err
    said = regard("translate", "四十二", "--model", folder)
    assert said.code == 1 and "no part of '四十二' is known" in said.err
    said = regard("translate", tmp_path / "missing.txt", "--model", folder)
    assert said.code == 1 and "there is no such file" in said.err


@pytest.mark.parametrize("command", ["train", "translate"])
def test_help_does_not_import_torch(command):
    code = f"import sys; sys.argv = ['regard', '{command}', '--help']\nfrom regard import cli\ntry: cli.main()\n"
    code += "except SystemExit: pass\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
