"""Names of models: those that regard knows, folders, and names on the Hugging Face hub, which is asked only once."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from regard.errors import ChoiceError, MissingExtraError
from regard.models._packages import PACKAGES

HUB_SECONDS = 2.0  # in which the hub has to answer; its own client would try for a minute
PATIENCE = "HF_HUB_ETAG_TIMEOUT"  # the hub's own setting for slow networks, in seconds


def is_on_disk(name: str) -> bool:
    """True for a model on the hub that has to be loaded from the local cache; refuse a name that nobody knows.

    The hub is asked once whether it has the model. Without an answer the cache has to do.
    """
    _check_form(name)
    hub = _import_hub()
    reason = _ask_hub(hub, name)
    if reason is None:
        return False
    with suppress(hub.errors.HFValidationError):  # a name with a blank is in no cache
        if isinstance(hub.try_to_load_from_cache(name, "config.json"), str):
            return True
    raise ChoiceError(f"{name}: there is no such folder, and {reason}. {known_names(name)}")


def known_names(name: str) -> str:
    """Return a sentence with the names that regard knows, the one most like `name` first.

    >>> known_names("minlm")
    "Did you mean 'minilm'? The names that need no network are minilm, smollm2 and, for relate alone, words"
    """
    similar = get_close_matches(name.lower(), PACKAGES, n=1)
    question = f"Did you mean {similar[0]!r}? " if similar else ""
    models = ", ".join(other for other in PACKAGES if other != "words")
    return f"{question}The names that need no network are {models} and, for relate alone, words"


def _check_form(name: str) -> None:
    """Refuse what is neither `model` nor `owner/model`, the names of the hub."""
    if Path(name).expanduser().is_file():
        raise ChoiceError(f"{name}: is a file; name the folder that holds the model with its config.json and tokenizer")
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise ChoiceError(f"{name}: there is no such folder, and it is no name of a model on the Hugging Face hub")
    if name == "words":
        raise ChoiceError("words are word vectors for relate, and no model that runs: take minilm or smollm2")


def _ask_hub(hub: Any, name: str) -> str | None:
    """Return None if the hub has the model, else the reason why it cannot be had from there."""
    answer: list[str | None] = []
    seconds = hub.constants.HF_HUB_ETAG_TIMEOUT if PATIENCE in os.environ else HUB_SECONDS

    def ask() -> None:
        try:
            hub.model_info(name, timeout=seconds)
        except (hub.errors.RepositoryNotFoundError, hub.errors.HFValidationError) as error:
            is_gated = isinstance(error, hub.errors.GatedRepoError)  # then loading says how to get access
            answer.append(None if is_gated else "the Hugging Face hub has no model of that name")
        except Exception as error:  # noqa: BLE001  errors of the network differ from one release to the next
            answer.append(f"the Hugging Face hub cannot be asked ({' '.join(str(error).split())[:200]})")
        else:
            answer.append(None)

    # In a thread: no timeout covers the time in which the system looks up the hub's address.
    thread = threading.Thread(target=ask, name="regard-hub", daemon=True)
    thread.start()
    thread.join(seconds)
    return (
        answer[0]
        if answer
        else f"the Hugging Face hub gave no answer in {seconds:g} seconds ({PATIENCE} gives it more)"
    )


def _import_hub() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ImportError as missing:
        raise MissingExtraError("language models need transformers: pip install 'regard[models]'") from missing
    return huggingface_hub
