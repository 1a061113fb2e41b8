"""Records every architecture of transformers in several ways, and compares with the eager attention of transformers.

Run as a script with names of architectures, it prints one line of JSON for each case: architecture, class, case,
outcome, and words about it. It has a process of its own, because what is built may crash or take for ever.
"""

import copy
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tiny_architectures as tiny
import torch
from eager_truth import Truth, differences, eager_twin, eager_weights
from torch import Tensor

import regard as rg
from regard.errors import RecordError

SECONDS = 90  # for one class of one architecture
MAPPINGS = ("MODEL_MAPPING", "MODEL_FOR_CAUSAL_LM_MAPPING", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING")
GREEDY = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": 0}

EXACT, CHECKED = "exact", "recorded, checked against its output alone"
MISSING, REFUSED, NO_ATTENTION = "named in missing", "refused", "no softmax attention"
NOT_RUN = "cannot be built or run here"
WRONG, CHANGED, INTERNAL, FALSE_ALARM = "WRONG", "OUTPUT CHANGED", "INTERNAL ERROR", "FALSE ALARM"
FAULTS = (WRONG, CHANGED, INTERNAL, FALSE_ALARM)

Run = Callable[[Any], Any]


class Result(NamedTuple):
    architecture: str
    model: str
    case: str
    outcome: str
    words: str


class LateError(BaseException):
    """The time of one architecture is over."""


# Cases


class Case(NamedTuple):
    name: str
    run: Run
    twin: Callable[[Any], Any] = lambda model: model  # the model that is recorded
    truth: Callable[[Any, Any], Truth] = lambda model, output: {}  # weights, also from what the model returned


def _same_run(run: Run) -> Callable[[Any, Any], Truth]:
    def truth(model: Any, output: Any) -> Truth:
        twin = eager_twin(model)
        torch.manual_seed(5)
        with eager_weights(twin) as seen:
            eager = run(twin)
        return {} if isinstance(output, Tensor) and not same(output, eager) else seen  # it chose other tokens

    return truth


def _pass_over(prompt: dict[str, Tensor]) -> Callable[[Any, Any], Truth]:
    """Weights of one pass over the sequences that beam search returned.

    None if that pass does not give the logits of beam search: in models that are not causal, where only the cache has
    a sliding window, or whose recurrent state does not follow the beams.
    """

    def truth(model: Any, output: Any) -> Truth:
        twin = eager_twin(model)
        beams = twin.generate(**prompt, **GREEDY, num_beams=3, return_dict_in_generate=True, output_logits=True)
        if not same(beams.sequences, output):
            return {}
        name = "decoder_input_ids" if model.config.is_encoder_decoder else "input_ids"
        with eager_weights(twin) as seen:
            logits = twin(**{**prompt, name: output[:, :-1]}).logits[:, -len(beams.logits) :]
        steps = zip(beams.logits, beams.beam_indices.T, strict=False)
        stepwise = torch.stack([one[rows] for one, rows in steps], 1)
        return seen if torch.allclose(stepwise, logits, rtol=0, atol=1e-2 * float(logits.std())) else {}

    return truth


def cases(model: Any, given: dict[str, Tensor]) -> Iterator[Case]:
    """Runs of a model: forward passes, and generation if it can."""

    def case(name: str, run: Run) -> Case:
        return Case(name, run, truth=_same_run(run))

    yield case("forward", lambda m: m(**given))
    padded = tiny.takes_padding(model, given)
    if padded:
        yield case("left padding", lambda m: m(**tiny.padded(given, "left")))
        yield case("right padding", lambda m: m(**tiny.padded(given, "right")))
    half = {name: x.to(torch.bfloat16) if x.is_floating_point() else x for name, x in given.items()}
    yield Case("bfloat16", lambda m: m(**half), lambda m: copy.deepcopy(m).to(torch.bfloat16))
    yield Case("bfloat16, eager", lambda m: m(**half), lambda m: eager_twin(m).to(torch.bfloat16))
    if not callable(getattr(model, "generate", None)) or not model.can_generate():
        return
    if model.generation_config.decoder_start_token_id is None:
        model.generation_config.decoder_start_token_id = tiny.FIRST_IDS["decoder_start_token_id"]
    prompt = {name: value for name, value in given.items() if name != "decoder_input_ids"}
    yield case("generate", lambda m: m.generate(**prompt, **GREEDY))
    if padded:
        yield case("generate, left padding", lambda m: m.generate(**tiny.padded(prompt, "left"), **GREEDY))
    yield Case("generate, beams", lambda m: m.generate(**prompt, **GREEDY, num_beams=3), truth=_pass_over(prompt))


# Outcomes


def same(a: Any, b: Any) -> bool:
    """True if two outputs are equal, bit by bit."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())  # noqa: PLR0124
    if isinstance(a, dict):
        return all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return True


def recorded(model: Any, run: Run) -> tuple[Any, Any, str]:
    """The recording of a run, what the model returned, and the words with which the recording was refused."""
    kept: list[Any] = []
    output = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(5)
            with rg.record(model) as recording:
                kept.append(recording)
                output = run(model)
    except RecordError as error:
        return kept[0], output, str(error)
    return kept[0], output, ""


def outcome(model: Any, case: Case) -> tuple[str, str]:
    """What became of recording one run of a model."""
    twin = case.twin(model)
    plain = []
    for _ in range(2):
        torch.manual_seed(5)
        plain.append(case.run(twin))
    recording, output, refusal = recorded(twin, case.run)
    if same(*plain) and not same(plain[0], output):  # some models draw random numbers that no seed fixes
        return CHANGED, ""
    for words, fault in (("could not be read", INTERNAL), ("do not give its output", FALSE_ALARM)):
        named = [reason for _, reason in recording.missing if words in reason]
        if named:
            return fault, named[0]
    found = _compared(recording, refusal, _truth(case, model, plain[0]))
    return _in_float64(model, case, found) if found[0] == WRONG and not refusal else found


def _truth(case: Case, model: Any, output: Any) -> Truth:
    try:
        return case.truth(model, output)
    except Exception:  # noqa: BLE001  it has no eager attention
        return {}


def _in_float64(model: Any, case: Case, found: tuple[str, str]) -> tuple[str, str]:
    """The outcome in float64, for a difference that may be rounding which layer after layer has amplified."""
    twin = copy.deepcopy(model).double()
    twin.register_forward_pre_hook(_inputs_to_float64, with_kwargs=True)
    try:
        recording, output, refusal = recorded(twin, case.run)
    except Exception:  # noqa: BLE001  it does not run in float64
        return found
    truth = _truth(case, twin, output)
    return _compared(recording, refusal, truth) if truth else found


def _inputs_to_float64(_: Any, args: Any, options: dict[str, Any]) -> Any:
    return args, {
        name: x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for name, x in options.items()
    }


def _compared(recording: Any, refusal: str, truth: Truth) -> tuple[str, str]:
    if refusal:
        if truth and not recording.missing:
            return WRONG, f"{min(truth)} attends, and is not named: {refusal}"
        return (REFUSED if recording.missing else NO_ATTENTION), refusal
    wrong, compared = differences(recording, truth)
    if wrong:
        return WRONG, f"{len(wrong)} times, as in: {wrong[0]}"
    if recording.missing:
        return MISSING, "; ".join(sorted({reason for _, reason in recording.missing}))
    return (EXACT if compared else CHECKED), f"{compared} of {len(recording.calls)} calls"


# Architectures


def kinds(architecture: str) -> list[Any]:
    """The classes of an architecture: base model, causal and seq2seq language model."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto

    found: list[Any] = []
    for name in MAPPINGS:
        mapping = getattr(modeling_auto, name)
        try:
            kind = mapping[CONFIG_MAPPING[architecture]]
        except (KeyError, ValueError, AttributeError):
            continue
        found += [one for one in (kind if isinstance(kind, tuple) else (kind,)) if one not in found]
    return found


def built(architecture: str, kind: Any) -> tuple[Any, dict[str, Tensor]]:
    """The first of the tiny models that runs, and what it runs with."""
    from transformers import CONFIG_MAPPING

    reasons: list[str] = []
    for sizes in tiny.SHRINKS:
        try:
            config = tiny.configuration(CONFIG_MAPPING[architecture], sizes)
            if "is_decoder" in vars(config):  # encoders that can be made to generate
                config.is_decoder = kind in kinds(architecture)[1:] and not config.is_encoder_decoder
            model = tiny.build(kind, config)
        except Exception as error:  # noqa: BLE001  the reason is reported
            reasons.append(f"{type(error).__name__}: {error}")
            continue
        for given in tiny.inputs(model):
            try:
                model(**given)
            except Exception as error:  # noqa: BLE001
                reasons.append(f"{list(given)}: {type(error).__name__}: {error}")
            else:
                return model, given
    raise tiny.NotBuiltError(reasons[0] if reasons else "no input is known")


def sweep(architecture: str) -> Iterator[Result]:
    """All cases of all classes of an architecture."""
    for kind in kinds(architecture):
        name = "build"
        signal.alarm(SECONDS)
        try:
            model, given = built(architecture, kind)
            for case in cases(model, given):
                name = case.name
                yield Result(architecture, kind.__name__, name, *_outcome_or_failure(model, case))
        except tiny.NotBuiltError as error:
            yield Result(architecture, kind.__name__, name, NOT_RUN, str(error))
        except LateError:
            yield Result(architecture, kind.__name__, name, NOT_RUN, f"it takes more than {SECONDS} s")
        finally:
            signal.alarm(0)


def _outcome_or_failure(model: Any, case: Case) -> tuple[str, str]:
    """The outcome, or who failed: the architecture alone, or only when it is recorded."""
    try:
        return outcome(model, case)
    except Exception as error:  # noqa: BLE001
        try:
            case.run(case.twin(model))
        except Exception as own:  # noqa: BLE001
            return NOT_RUN, f"{type(own).__name__}: {own}"
        return INTERNAL, f"{type(error).__name__}: {error}"


def _late(*_: Any) -> None:
    raise LateError


def main(names: list[str]) -> None:
    import transformers

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _late)
    with torch.no_grad():
        for name in names:
            for result in sweep(name):
                sys.stdout.write(json.dumps(result) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main(sys.argv[1:])
