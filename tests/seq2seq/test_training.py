"""Training: runs that go on exactly, budgets, and what is refused."""

import json
import os
import signal
import subprocess
import sys
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from regard import datasets, seq2seq
from regard.datasets import Pairs
from regard.errors import ChoiceError, DataError, FormatError, TrainingError, UnknownTextError
from regard.seq2seq import batches, checkpoint, training
from regard.seq2seq.run import Options

SMALL = {"embedding": 16, "hidden": 16}
FAST = {"steps": 24, "batch_tokens": 100, "validate_every": 6, "seed": 3}
MODELS = {
    "bahdanau": lambda: seq2seq.Seq2Seq("bahdanau", **SMALL),
    "none lstm": lambda: seq2seq.Seq2Seq("none", cell="lstm", **SMALL),
    "transformer": lambda: seq2seq.Transformer(embedding=16, heads=2, layers=2),
}
SCRIPT = """
import sys, torch
from regard import datasets, seq2seq
from regard.seq2seq import training
torch.set_num_threads(1)
training.CHECKPOINT_SECONDS = 0.0
def report(run):
    print(run.steps, flush=True)
model = seq2seq.Seq2Seq("bahdanau", embedding=16, hidden=16)
pairs = datasets.numbers(400, words=(2, 4), seed=0)
run = seq2seq.train(model, pairs, steps=int(sys.argv[2]), batch_tokens=100, validate_every=5, folder=sys.argv[1],
                    report=report)
print("interrupted" if run.interrupted else "finished", run.steps, repr(run.losses[-1]), flush=True)
"""


@pytest.fixture(scope="module")
def pairs():
    return datasets.numbers(400, words=(2, 4), seed=0)


def stop_at(step):
    return lambda run: run.steps < step


@pytest.mark.parametrize("name", MODELS)
def test_interrupted_run_goes_on_to_exactly_the_same_numbers(name, pairs, tmp_path):
    whole = seq2seq.train(MODELS[name](), pairs, **FAST)
    part = seq2seq.train(MODELS[name](), pairs, folder=tmp_path / "run", report=stop_at(12), **FAST)
    assert (part.interrupted, part.steps) == (True, 12)
    torch.manual_seed(99)  # random numbers of others must not matter
    rest = seq2seq.train(MODELS[name](), pairs, folder=tmp_path / "run", **FAST)
    assert rest.losses == whole.losses and len(whole.losses) == 24
    assert [one.validation_loss for one in rest.history] == [one.validation_loss for one in whole.history]
    assert rest.best_step == whole.best_step and not rest.interrupted
    for name_, tensor in whole.model.state_dict().items():
        assert torch.equal(rest.model.state_dict()[name_], tensor), name_


def test_finished_run_is_returned_at_once(pairs, tmp_path):
    first = seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST)
    again = seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST, report=lambda _: pytest.fail("trained"))
    assert again.losses == first.losses
    text = "three hundred five"
    assert seq2seq.load(tmp_path).translate(text).text == again.model.translate(text).text


def test_two_runs_step_by_step_in_turn_are_those_of_train(pairs):
    names = ("bahdanau", "none")
    alone = [seq2seq.train(small(name), pairs, **FAST) for name in names]
    options = Options(
        None, FAST["steps"], FAST["batch_tokens"], 2e-3, 200, 0.1, 1.0, None, FAST["validate_every"], FAST["seed"],
        "auto", 4_000, "float32",
    )  # fmt: skip
    trainers = [training.Trainer(small(name), *training.split_pairs(pairs, None), options, None) for name in names]
    validated = list(zip(*(trainer.steps() for trainer in trainers), strict=True))
    assert validated == [(step % 6 == 0,) * 2 for step in range(1, 25)]
    for trainer, run in zip(trainers, alone, strict=True):
        assert trainer.finish().losses == run.losses
        for name, tensor in run.model.state_dict().items():
            assert torch.equal(trainer.model.state_dict()[name], tensor), name


def small(attention):
    return seq2seq.Seq2Seq(attention, dropout=0.0, **SMALL)  # without dropout it draws no random numbers


def test_training_leaves_the_random_numbers_of_others_alone(pairs):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    seq2seq.train(MODELS["bahdanau"](), pairs, **FAST)
    assert torch.equal(torch.rand(3), expected)


def start(folder, steps):
    source = Path(seq2seq.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(folder), str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def wait_for_step(process, step):
    for line in process.stdout:
        if int(line) >= step:
            return


def test_killed_run_goes_on(tmp_path):
    whole = start(tmp_path / "whole", 40).communicate(timeout=200)[0].splitlines()[-1]
    process = start(tmp_path / "killed", 40)
    wait_for_step(process, 15)
    process.kill()
    process.wait()
    files = sorted(path.name for path in (tmp_path / "killed").iterdir())
    assert files == ["best.safetensors", "last.safetensors", "run.json"]
    lines = start(tmp_path / "killed", 40).communicate(timeout=200)[0].splitlines()
    assert int(lines[0]) >= 15 and lines[-1] == whole


def test_control_c_ends_the_run_and_keeps_the_best_model(tmp_path):
    process = start(tmp_path / "run", 100_000)
    wait_for_step(process, 5)
    process.send_signal(signal.SIGINT)
    last = process.communicate(timeout=200)[0].splitlines()[-1]
    assert process.returncode == 0 and last.startswith("interrupted")
    assert seq2seq.load(tmp_path / "run").translate("three hundred").source_tokens == ("three", "hundred")


def test_loss_that_is_no_number_stops_with_the_last_good_checkpoint(pairs, tmp_path, monkeypatch):
    real, calls = training.batch_loss, []

    def broken(model, batch, smoothing, dtype=torch.float32):
        calls.append(model.training)
        loss = real(model, batch, smoothing, dtype)
        return loss * float("nan") if sum(calls) > 8 else loss

    monkeypatch.setattr(training, "batch_loss", broken)
    model = MODELS["bahdanau"]()
    with pytest.raises(TrainingError, match=r"loss is nan.* at step 9: .*last good checkpoint is .*, of step 6") as e:
        seq2seq.train(model, pairs, folder=tmp_path, **FAST)
    assert "A learning rate below 0.002" in str(e.value)
    assert all(bool(tensor.isfinite().all()) for tensor in model.state_dict().values())


def test_folder_of_other_settings_is_refused(pairs, tmp_path):
    seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST)
    with pytest.raises(ChoiceError, match="other settings: attention was 'bahdanau' and is 'none'"):
        seq2seq.train(seq2seq.Seq2Seq("none", **SMALL), pairs, folder=tmp_path, **FAST)
    with pytest.raises(ChoiceError, match=r"learning_rate was 0.002 and is 0.1"):
        seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST, learning_rate=0.1)
    with pytest.raises(ChoiceError, match="data was"):
        seq2seq.train(MODELS["bahdanau"](), pairs[:300], folder=tmp_path, **FAST)


def test_folder_with_other_files_is_refused(pairs, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ChoiceError, match="holds other files and no run"):
        seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST)
    with pytest.raises(ChoiceError, match="is a file: name a folder"):
        seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path / "letter.txt", **FAST)


def test_damaged_checkpoint_is_refused(pairs, tmp_path):
    seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST)
    path = tmp_path / "best.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(FormatError, match="is damaged"):
        seq2seq.load(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FormatError, match="is no JSON"):
        seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST)


@pytest.fixture
def clock(monkeypatch):
    """A clock for training that goes on by 0.1 s with each step, and not otherwise."""
    steps, step = count(), training.Trainer._step
    now = [0.0]

    def timed_step(trainer, batch):
        now[0] = 0.1 * (1 + next(steps))
        return step(trainer, batch)

    monkeypatch.setattr(training.Trainer, "_step", timed_step)
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=lambda: now[0]))


@pytest.mark.usefixtures("clock")
def test_minutes_are_turned_into_steps_once(pairs, monkeypatch):
    monkeypatch.setattr(training, "MEASURED_STEPS", 4)
    run = seq2seq.train(MODELS["none lstm"](), pairs, minutes=0.05, batch_tokens=100, validate_every=1000)
    assert run.steps == run.total_steps > 4
    assert run.seconds == pytest.approx(60 * 0.05, rel=0.3)


@pytest.mark.usefixtures("clock")
def test_a_run_that_goes_on_before_its_steps_are_known_keeps_to_its_minutes(pairs, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "MEASURED_STEPS", 16)
    options = {"minutes": 0.1, "batch_tokens": 100, "validate_every": 8}
    whole = seq2seq.train(MODELS["none lstm"](), pairs, **options)
    seq2seq.train(MODELS["none lstm"](), pairs, folder=tmp_path, report=lambda _: False, **options)
    continued = seq2seq.train(MODELS["none lstm"](), pairs, folder=tmp_path, **options)
    assert 16 < continued.total_steps == pytest.approx(whole.total_steps, rel=0.1)


def test_learning_rate_rises_and_falls_to_zero():
    options = Options(None, 100, 1, 0.5, 20, 0.0, 1.0, None, None, 0, "auto", 10, "float32")
    rates = [options.learning_rate_at(step, 100) for step in range(101)]
    assert max(rates) == 0.5 == rates[19] and rates[100] == 0 and rates[0] == 0.5 / 20
    assert all(a < b for a, b in pairwise(rates[:20]))
    assert all(a > b for a, b in pairwise(rates[20:]))
    assert [options.learning_rate_at(step, None) for step in range(20)] == rates[:20]


def test_run_without_progress_ends_early(pairs):
    run = seq2seq.train(MODELS["bahdanau"](), pairs, steps=5000, batch_tokens=100, validate_every=2, patience=2,
                        learning_rate=1e-12)  # fmt: skip
    assert run.steps < 200


def test_unsplit_pairs_are_split_and_the_test_part_is_never_seen(pairs, monkeypatch):
    seen = []
    real = batches.encode_pairs
    monkeypatch.setattr(training, "encode_pairs", lambda part, known: seen.extend(part) or real(part, known))
    seq2seq.train(MODELS["bahdanau"](), pairs, **{**FAST, "steps": 1})
    parts = pairs.split()
    assert seen == [*parts.train, *parts.validation] and len(parts.test)


def test_model_learns_short_numbers():
    pairs = datasets.numbers(3_000, words=(1, 2), seed=0)
    model = seq2seq.Seq2Seq("bahdanau", embedding=32, hidden=64, dropout=0.0)
    run = seq2seq.train(model, pairs, steps=150, batch_tokens=400, learning_rate=5e-3)
    result = seq2seq.evaluate(run.model, pairs[:100])
    assert result.exact_match > 0.9 and run.history[-1].validation_loss < run.history[0].validation_loss


def test_pairs_that_cannot_be_learned_from_are_refused():
    with pytest.raises(DataError, match="there are no validation pairs: 2 pairs came"):
        seq2seq.train(MODELS["bahdanau"](), [("go", "va"), ("run", "cours")])
    with pytest.raises(DataError, match="there are no training pairs: 0 pairs came"):
        seq2seq.train(MODELS["bahdanau"](), [], validation=[("go", "va")])
    with pytest.raises(DataError, match="none of 1 pairs has a word on both sides"):
        seq2seq.train(MODELS["bahdanau"](), [("go", " ")], validation=[("go", "va")], steps=1)
    with pytest.raises(DataError, match="at most 4,096 tokens, and one to learn from has 5,000"):
        seq2seq.train(MODELS["bahdanau"](), [("go", "va " * 5_000)], validation=[("go", "va")], steps=1)


def test_held_out_sentences_of_unknown_words_are_translated_as_well_as_may_be():
    learned = [(text, text) for text in ("a b", "b c", "c a")]
    unseen = [("hi .", "u"), ("who", "v")]
    for kind in ("bahdanau", "transformer"):
        run = seq2seq.train(MODELS[kind](), learned, unseen, steps=2, validate_every=1)
        assert len(run.history) == 2 and len(seq2seq.evaluate(run.model, unseen).sentences) == 2
        with pytest.raises(UnknownTextError, match="no part of 'who' is known"):
            run.model.align("who", "v")


def test_options_that_no_run_can_have_are_refused(pairs):
    for message, options in {
        "minutes or steps": {"minutes": 1, "steps": 1},
        "positive number, and came as -1": {"steps": -1},
        "learning_rate and clip are positive": {"learning_rate": -1.0},
        "precision is 'float32' or 'bfloat16', and came as 'int8'": {"precision": "int8"},
        "batch_tokens is 1 or more": {"batch_tokens": 0},
        "vocabulary is 'auto', 'words' or 'bpe'": {"vocabulary": "letters"},
    }.items():
        with pytest.raises(ChoiceError, match=message):
            seq2seq.train(MODELS["bahdanau"](), pairs, **{"steps": 1, **options})


def test_batches_hold_every_pair_once_and_hardly_any_padding():
    pairs = datasets.numbers(2_000, words=(1, 20), seed=1)
    encoded = [(list(range(len(p.source.split()))), list(range(len(p.target)))) for p in pairs]
    sentences = batches.Sentences(encoded, 500)
    order = sentences.order(7)
    assert sorted(i for part in order for i in part) == list(range(2_000))
    assert [p.tolist() for p in order] == [p.tolist() for p in sentences.order(7)]
    assert [p.tolist() for p in order] != [p.tolist() for p in sentences.order(8)]
    made = [sentences.batch(part) for part in order]
    assert max(batch.outputs.numel() for batch in made) <= 500
    filled = sum(int((batch.outputs != 0).sum()) for batch in made)  # token 0 of each row counts as padding here
    assert filled > 0.85 * sum(batch.outputs.numel() for batch in made)


def test_batches_from_a_later_step_are_the_same():
    sentences = batches.Sentences([([5] * (1 + i % 3), [6] * (1 + i % 4)) for i in range(40)], 20)
    first = [batch.source.tolist() for _, (_, batch) in zip(range(30), batches.epochs(sentences, 1, 0), strict=False)]
    later = [batch.source.tolist() for _, (_, batch) in zip(range(10), batches.epochs(sentences, 1, 20), strict=False)]
    assert later == first[20:]


def test_model_file_gives_the_same_model(pairs, tmp_path):
    for name, make in MODELS.items():
        model = seq2seq.train(make(), pairs, **{**FAST, "steps": 2}).model
        model.save(tmp_path / "model.safetensors")
        again = seq2seq.load(tmp_path / "model.safetensors")
        assert again.settings == model.settings and again.known == model.known
        for key, tensor in model.state_dict().items():
            assert torch.equal(again.state_dict()[key], tensor), name


def test_shared_table_is_stored_once(tmp_path):
    pairs = Pairs([("the man", "le monsieur"), ("a man", "un monsieur")] * 5)
    model = seq2seq.Seq2Seq("bahdanau", **SMALL)
    run = seq2seq.train(model, pairs, validation=pairs, vocabulary="bpe", vocabulary_size=60, steps=2)
    run.model.save(tmp_path / "m.safetensors")
    tensors, _ = checkpoint.read(tmp_path / "m.safetensors")
    assert "source_embedding.weight" not in tensors
    again = seq2seq.load(tmp_path / "m.safetensors")
    assert again.source_embedding is again.target_embedding
    assert again.translate("the man").text == run.model.translate("the man").text


def test_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"hello")
    with pytest.raises(FormatError, match=r"is damaged, or no file of regard.seq2seq"):
        seq2seq.load(tmp_path / "a.safetensors")
    from safetensors.torch import save_file

    save_file({"x": torch.ones(1)}, tmp_path / "b.safetensors")
    with pytest.raises(FormatError, match=r"is no model of regard.seq2seq"):
        seq2seq.load(tmp_path / "b.safetensors")
    with pytest.raises(ChoiceError, match="there is no model 'en-de'"):
        seq2seq.load("en-de")


def test_settings_of_a_run_are_readable(pairs, tmp_path):
    seq2seq.train(MODELS["bahdanau"](), pairs, folder=tmp_path, **FAST)
    settings = json.loads((tmp_path / "run.json").read_text())["settings"]
    assert settings["attention"] == "bahdanau" and settings["steps"] == 24
