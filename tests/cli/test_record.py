"""`regard record` and `regard inspect`: as people run them, and what they say when they cannot."""

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import tiny_folder
import tiny_models
import torch
from shown_progress import show_progress

import regard as rg
from regard.cli import inspect as inspect_command
from regard.cli import record as record_command
from regard.errors import RegardError
from regard.recording import Recording

COMMAND = Path(sys.executable).with_name("regard")
STORY = "His father is two meters tall. He often skips class."
LAYER = "encoder.layer.{}.attention.self"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_folder.make(tmp_path_factory.mktemp("tiny"), context=31)


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    """A recording of the real MiniLM, made by the command as it is installed."""
    path = tmp_path_factory.mktemp("minilm") / "run.regard"
    run = subprocess.run([COMMAND, "record", "--text", STORY, "-o", path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.splitlines()[0] == "minilm (BertModel)"
    assert "15 tokens, 6 layers, 72 heads" in run.stdout
    assert f"written  {path}" in run.stdout
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# Recording


@pytest.mark.parametrize(("check", "found"), [("all", {"passed"}), ("none", {"none"})])
def test_calls_are_checked_as_asked(here, tiny, check, found):
    record_command.record(tiny_folder.text(9), here / "run.regard", str(tiny), check=record_command.Check(check))
    assert {call.check for call in rg.open(here / "run.regard").calls} == found


def test_layers_that_are_missing_are_named(here, tiny, capsys, monkeypatch):
    from transformers.models.llama import modeling_llama

    attend = modeling_llama.eager_attention_forward
    monkeypatch.setattr(
        modeling_llama.LlamaAttention, "forward", written_out_in_layer_1(modeling_llama.LlamaAttention.forward, attend)
    )
    record_command.record(tiny_folder.text(9), here / "run.regard", str(tiny))
    assert "missing  layers.1.self_attn: it writes out softmax" in capsys.readouterr().out
    assert [name for name, _ in rg.open(here / "run.regard").missing] == ["layers.1.self_attn"]


def written_out_in_layer_1(forward, attend):
    """An attention layer of which the second one does not go through the interface of Hugging Face."""

    def run(self, hidden_states, **options):
        if self.layer_idx == 0:
            return forward(self, hidden_states, **options)
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        q, k, v = (p(hidden_states).view(shape).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        output, _ = attend(self, q, k, v, None, self.scaling)
        return self.o_proj(output.flatten(2)), None

    return run


def test_minilm_is_recorded_with_the_weights_it_computes(minilm):
    recording = rg.open(minilm)
    assert recording.about == {"model": "BertModel", "from": "minilm"}
    assert recording.closed and recording.verify() == []
    assert [layer.name for layer in recording.layers] == [LAYER.format(i) for i in range(6)]
    assert recording.tokens[0]["input_ids"][0][:4] == ["[CLS]", "his", "father", "is"]
    tokenizer, model = rg.models.load("minilm")
    model.set_attn_implementation("eager")
    with torch.no_grad():
        wanted = model(**tokenizer(STORY, return_tensors="pt"), output_attentions=True).attentions
    for number, weights in enumerate(wanted):
        torch.testing.assert_close(recording[LAYER.format(number)].dense(), weights, atol=1e-5, rtol=0)


def test_record_keeps_only_the_chosen_layers_heads_and_type(here, tiny, regard):
    (here / "text.txt").write_text(tiny_folder.text(11), encoding="utf-8-sig")
    options = ("--layers", "1", "--heads", "3,0", "--dtype", "bfloat16")
    said = regard("record", "--model", tiny, "--text", "text.txt", "-o", "run.regard", *options)
    assert said.code == 0, said.err
    assert "11 tokens, 1 layer, 2 heads" in said.out
    (layer,) = rg.open("run.regard").layers
    assert (layer.name, layer.shape, layer.heads) == ("layers.1.self_attn", (1, 2, 11, 11), (3, 0))
    assert rg.open("run.regard")[layer.name].dtype == torch.bfloat16
    facts = json.loads(regard("inspect", "run.regard", "--json").out)
    assert [head["head"] for head in facts["layers"][0]["heads"]] == [3, 0]


def test_generated_tokens_are_recorded_with_the_prompt(here, tiny, regard):
    options = ("--generate", "5", "--layers", "*.0.*")
    said = regard("record", "--model", tiny, "--text", "w3 w5 w7", "-o", "run.regard", *options)
    assert said.code == 0, said.err
    recording = rg.open("run.regard")
    (layer,) = recording.layers
    assert layer.shape == (1, 4, 7, 7)  # three that were given, and all that were written but the last
    tokens = recording.tokens[0]["input_ids"][0]
    assert tokens[:3] == ["w3", "w5", "w7"]
    assert len(tokens) == 7
    (went_on,) = re.findall(r"^went on  (.*)", said.out, re.MULTILINE)
    assert went_on.split()[:4] == tokens[3:]


def test_an_encoder_decoder_model_is_recorded(here, regard, tmp_path):
    folder = tiny_folder.make(tmp_path / "t5")
    tiny_models.build("T5", "T5ForConditionalGeneration").save_pretrained(folder)
    assert regard("record", "--model", folder, "--text", "w1 w2 w3", "-o", "run.regard").code == 0
    assert [layer.shape for layer in rg.open("run.regard").layers] == [(1, 4, 3, 3)] * 2
    made = regard("record", "--model", folder, "--text", "w1 w2 w3", "-o", "two.regard", "--generate", "4")
    assert made.code == 0, made.err
    assert {(layer.cross, layer.shape[-1]) for layer in rg.open("two.regard").layers} >= {(False, 3), (True, 3)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--text", "  \n"), "the text is empty"),
        (("--text", "他 经常 旷课 爱吃"), r"does not know this text: 3 of its 4 tokens are \[UNK\]"),
        (("--text", tiny_folder.text(32)), "reads 31 tokens at a time, and this text has 32: .*--truncate"),
        (("--text", tiny_folder.text(30), "--generate", "2"), "reads 31 .*, 2 of them its own, .* has 30: .* first 29"),
        (("--text", "story.txt"), "story.txt: there is no such file"),
        (("--text", "latin.md"), "latin.md: is not written in UTF-8"),
        (("--text", "w1", "--layers", "7"), "no module of LlamaModel has this number"),
        (("--text", "w1", "--layers", "encoder.*"), "'encoder.*' is no module of this model"),
        (("--text", "w1", "--layers", "norm"), "nothing was recorded"),
        (("--text", "w1", "--heads", "4"), "heads that 'layers.0.self_attn' does not have"),
        (("--text", "w1", "--model", "./nowhere"), "there is no such folder"),
        (("--text", "w1", "--model", "minilm", "--generate", "1"), "reads and does not write"),
        (("--text", "w1", "-o", "old.regard"), "old.regard exists already: .* --force"),
        (("--text", "w1", "-o", "nowhere/run.regard"), "there is no folder nowhere"),
        (("--text", "w1", "-o", "."), "is a folder"),
    ],
)
def test_a_refused_recording_leaves_no_file(here, tiny, regard, options, message):
    (here / "old.regard").write_text("mine")
    (here / "latin.md").write_bytes("naïve".encode("latin-1"))
    said = regard("record", "--model", tiny, "-o", "run.regard", *options)
    assert said.code == 1
    assert re.search(message, said.err), said.err
    assert names(here) == ["latin.md", "old.regard"]
    assert (here / "old.regard").read_text() == "mine"


@pytest.mark.parametrize(
    "options", [("--text", "w1"), ("-o", "x"), ("--text", "w", "-o", "x", "--dtype", "int8"), ("--heads", "a")]
)
def test_wrong_record_options_are_usage_errors(here, tiny, regard, options):
    more = ("--text", "w1", "-o", "x") if "--heads" in options else ()
    assert regard("record", "--model", tiny, *options, *more).code == 2
    assert names(here) == []


def test_minilm_does_not_read_chinese(here, regard):
    said = regard("record", "--text", "他从小的数学成绩并不好，经常旷课", "-o", "run.regard")
    assert said.code == 1 and "minilm does not know this text" in said.err and "--model" in said.err


def test_truncate_cuts_a_long_text(here, tiny, regard):
    said = regard("record", "--model", tiny, "--text", tiny_folder.text(100), "-o", "run.regard", "--truncate")
    assert said.code == 0 and "31 tokens" in said.out
    assert rg.open("run.regard").layers[0].shape[-2:] == (31, 31)


def test_force_takes_the_place_of_a_file_only_for_a_recording(here, tiny, regard):
    (here / "run.regard").write_text("mine")
    arguments = ("record", "--model", tiny, "--text", "w1 w2", "-o", "run.regard", "--force")
    assert regard(*arguments, "--heads", "9").code == 1
    assert (here / "run.regard").read_text() == "mine"
    assert regard(*arguments).code == 0
    assert rg.open("run.regard").layers[0].shape == (1, 4, 2, 2)
    assert names(here) == ["run.regard"]


def test_progress_counts_layers_on_a_terminal(here, tiny, regard, monkeypatch):
    monkeypatch.setattr(record_command, "REFRESH", 0.001)
    stream = show_progress(monkeypatch)
    regard("record", "--model", tiny, "--text", tiny_folder.text(31), "-o", "run.regard")
    assert re.search(r"recording 31 tokens \[[#.]+\] [012] of 2, ", stream.getvalue())
    regard("record", "--model", tiny, "--text", "w1 w2", "-o", "two.regard", "--generate", "3", "--layers", "0")
    assert re.search(r"recording 2 tokens \[[#.]+\] [123] of 3, ", stream.getvalue())


def test_ctrl_c_keeps_what_was_recorded(here):
    folder = tiny_folder.make(here / "deep", layers=150)
    (here / "text.txt").write_text(tiny_folder.text(4000))
    command = [COMMAND, "record", "--model", folder, "--text", "text.txt", "-o", "run.regard"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        while run.poll() is None and calls("run.regard") < 3:
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate()
    assert run.returncode == 130, err
    found = rg.open("run.regard")
    count = len(found.layers)
    assert 3 <= count < 150
    assert err == f"regard: stopped; {count} layers recorded until then: run.regard\n"
    assert out == ""
    assert found.closed and found.verify() == []
    assert found.tokens[0]["input_ids"][0][:2] == ["w0", "w7"]
    assert found[found.layers[-1].name].heatmap(7).shape == (1, 4, 7, 7)
    assert names(here) == ["deep", "run.regard", "text.txt"]


def calls(path):
    """How many calls are in a file that is being written."""
    try:
        return len(rg.open(path).entries)
    except RegardError:
        return 0


@pytest.mark.parametrize("after", [0, 1])
def test_ctrl_c_with_force_replaces_the_file_only_if_something_was_recorded(here, tiny, regard, monkeypatch, after):
    """The old file makes room for what was recorded, if anything was."""

    @contextmanager
    def impatient(path, line):
        if after:
            yield
        raise KeyboardInterrupt

    monkeypatch.setattr(record_command, "_layer_progress", impatient)
    other = rg.nn.SelfAttention(8, 2)
    with torch.no_grad(), rg.record(other, path="run.regard"):
        other(torch.randn(1, 5, 8))
    said = regard("record", "--model", tiny, "--text", "w1 w2", "-o", "run.regard", "--force")
    assert said.code == 130
    assert [layer.shape[-1] for layer in rg.open("run.regard").layers] == ([2, 2] if after else [5])
    assert ("2 layers recorded until then" if after else "nothing was recorded yet") in said.err
    assert names(here) == ["run.regard"]


# Inspecting


def test_inspect_shows_a_profile_for_every_head(minilm, regard):
    said = regard("inspect", minilm, "--layer", "3", "--separator", "[SEP]", "--separator", ".")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("file    ") and lines[1] == "model   BertModel, from minilm"
    assert lines[2].startswith("tokens  15: [CLS] his father is two meters tall . he often")
    start = next(i for i, line in enumerate(lines) if line.startswith(LAYER.format(3)))
    assert "12 heads, 15 x 15, self attention, sees everything" in lines[start]
    columns = lines[start + 1].split()
    assert columns == ["head", *rg.analysis.MEASURES]
    table = rg.analysis.profiles(rg.open(minilm), layers=LAYER.format(3), separators=["[SEP]", "."])
    for line, row in zip(lines[start + 2 :], table, strict=True):
        head, *numbers = line.split()
        assert int(head) == row.head
        assert [float(x) for x in numbers] == pytest.approx(row[3:], abs=6e-3)


def test_a_separator_that_is_no_token_is_refused(minilm, regard):
    said = regard("inspect", minilm, "--layer", "3", "--separator", ".", "--separator", "zzz")
    assert said.code == 1 and "--separator 'zzz' is no token of this recording" in said.err
    said = regard("inspect", minilm, "--layer", "3", "--separator", " . ")
    assert said.code == 1 and "there is '.'" in said.err


def test_inspect_json_holds_every_fact(minilm, regard):
    said = regard("inspect", minilm, "--layer", "*.0.*", "--layer", "5", "--json")
    facts = json.loads(said.out)
    assert [layer["name"] for layer in facts["layers"]] == [LAYER.format(0), LAYER.format(5)]
    table = rg.analysis.profiles(rg.open(minilm), layers=LAYER.format(5))
    assert [head["entropy"] for head in facts["layers"][1]["heads"]] == pytest.approx(table.column("entropy"))
    assert facts["tokens"][0]["texts"] == rg.open(minilm).tokens[0]["input_ids"]
    assert (facts["bytes"], facts["damage"], facts["closed"]) == (minilm.stat().st_size, [], True)
    quick = json.loads(regard("inspect", minilm, "--quick", "--json").out)
    assert len(quick["layers"]) == 6 and all(layer["heads"] == [] for layer in quick["layers"])


@pytest.mark.parametrize("width", [24, 40, 66, 200])
def test_a_table_fits_the_terminal_and_says_what_it_leaves_out(minilm, monkeypatch, width):
    from rich.console import Console

    recording = rg.open(minilm)
    options = {"profiles": True, "advance": lambda *_: None}
    sections = list(inspect_command.layer_sections(recording, recording.layers[:1], None, None, **options))
    out = StringIO()
    monkeypatch.setattr(
        inspect_command,
        "Console",
        lambda **given: Console(file=out, width=width, force_terminal=True, color_system=None, **given),
    )
    inspect_command.show(inspect_command.summarise(recording, sections, []))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    rows = [line.split() for line in lines if re.match(r" +\d+ ", line)]
    assert len(rows) == 12
    left = re.search(r"no room for ([^:]*):", " ".join(out.getvalue().split()))
    hidden = left[1].split(", ") if left else []
    assert len(rows[0]) + len(hidden) == 7
    assert bool(hidden) == (width < 60)


def test_inspect_names_damage_and_shows_the_rest(minilm, here, regard):
    data = bytearray(minilm.read_bytes())
    recording = rg.open(minilm)
    stored = recording.entries[2].group.arrays["key"]
    data[stored.at + 64 + 5] ^= 1
    (here / "hurt.regard").write_bytes(data)
    said = regard("inspect", "hurt.regard")
    assert said.code == 1
    words = f"chunk {stored.chunk} of hurt.regard is damaged: checksum of piece 0 is wrong"
    assert f"damaged: {words}" in said.out
    assert len(re.findall(r"^ +\d+ ", said.out, re.MULTILINE)) == 5 * 12
    facts = json.loads(regard("inspect", "hurt.regard", "--json").out)
    assert [layer["damage"] for layer in facts["layers"]] == [None, None, words, None, None, None]
    assert facts["damage"] == [words]
    (here / "cut.regard").write_bytes(minilm.read_bytes()[: stored.at])
    said = regard("inspect", "cut.regard")
    assert said.code == 0 and "not closed: it is being written, or its writer was killed" in said.out


def test_inspect_separates_steps_and_sequences(here, regard):
    model = tiny_models.build("BART")
    with torch.no_grad(), rg.record(model, path="run.regard"):
        model(**tiny_models.translated())
        model(**tiny_models.translated())
    said = regard("inspect", "run.regard", "--layer", "*encoder_attn")
    assert said.code == 0, said.err
    titles = [line for line in said.out.splitlines() if line.startswith("decoder")]
    assert len(titles) == 4
    assert all("2 sequences, 4 heads, 7 x 11, cross attention, mask padding" in line for line in titles)
    assert said.out.count(" – ") >= 4 * 4  # distance and its like have no meaning there
    assert "tokens  2 x 11 (input_ids, step 1)" in said.out
    one = json.loads(regard("inspect", "run.regard", "--step", "1", "--json").out)["layers"]
    assert {section["step"] for section in one} == {1} and len(one) == 6
    assert "has no step 2; it was recorded in 0, 1" in regard("inspect", "run.regard", "--step", "2").err
    assert "means none of the recorded layers" in regard("inspect", "run.regard", "--layer", "9").err


def test_inspect_names_missing_layers_and_calls_that_were_not_checked(here, regard):
    model = tiny_models.build("BERT")
    with torch.no_grad(), rg.record(model) as recording:
        model(input_ids=tiny_models.tokens())
    checks = ("dropout", "none", "passed")
    calls = [replace(recording.calls[0], name=f"layer{i}", check=check) for i, check in enumerate(checks)]
    missing = [("far.0", "it writes out softmax"), ("far.0", "it is \x1b[31m"), ("far.1", "not equal")]
    Recording(calls, missing=missing).save("run.regard")
    said = regard("inspect", "run.regard", "--quick").out
    assert "layers  3, 12 heads, in 1 step; 2 layers that ran are not in this recording, see below" in said
    assert "not in this recording: far.0: it writes out softmax" in said
    assert r"not in this recording: far.0: it is \x1b[31m" in said
    titles = [line for line in said.splitlines() if re.match(r"layer\d", line)]
    assert [line.partition("not checked: ")[2] for line in titles] == ["dropout", 'recorded with check="none"', ""]
    facts = json.loads(regard("inspect", "run.regard", "--quick", "--json").out)
    assert facts["missing"] == [{"name": name, "reason": reason} for name, reason in missing]
    assert [layer["check"] for layer in facts["layers"]] == list(checks)


def test_control_characters_in_a_file_are_spelled_out(here, tiny, regard):
    text = " ".join(tiny_folder.HOSTILE)
    assert regard("record", "--model", tiny, "--text", text, "-o", "run.regard").code == 0
    said = regard("inspect", "run.regard")
    assert "\x1b" not in said.out and "\u202e" not in said.out
    assert r"\u202eabc \x1b[31m 旷课" in said.out


@pytest.mark.parametrize("content", [None, b"", b"PK\3\4 something else, and long enough to have a head of a file"])
def test_a_file_that_is_no_recording_is_refused(here, regard, content):
    if content is not None:
        (here / "x.regard").write_bytes(content)
    for command in (["inspect", "x.regard"], ["export", "x.regard", "--png"]):
        said = regard(*command)
        assert said.code == 1
        assert re.match(r"regard: x.regard (is no recording|cannot be read)", said.err)
