"""The entries of a store's sweeps: their files, run_ids and figures."""

import json
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.io.paths import StorePath


def read_note(file: StorePath) -> dict[str, Any]:
    """What a store's entry of a sweep says. Raises `WrongInput` if it is damaged."""
    try:
        note: dict[str, Any] = json.loads(file.read_text())
        names = [*note["datasets"], *note["datasets"].values()]
        texts = [note["file"], *note["figures"], *note["run_ids"], *names]
        lists = all(isinstance(note[name], list) for name in ("figures", "run_ids"))
        fits = lists and all(isinstance(one, str) for one in texts)
    except (ValueError, KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise WrongInput(f"{file} is damaged; start its sweep again, which writes it anew")
    return note
