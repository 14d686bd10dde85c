"""The entries of a store's sweeps: their files, run_ids and figures."""

import json
from typing import Any

from koco_stream.errors import WrongInput
from koco_stream.io.paths import StorePath


def read_note(file: StorePath) -> dict[str, Any]:
    """What a store's entry of a sweep says. Raises `WrongInput` if it is damaged."""
    try:
        note = json.loads(file.read_text())
        # older versions stored a single name of a figure
        figures = note.get("figures", [note["figure"]] if note.get("figure") else [])
        known = {"file": "", "datasets": {}, **note, "figures": figures}
        names = [*known["datasets"], *known["datasets"].values()]
        texts = [known["file"], *known["figures"], *known["run_ids"], *names]
        fits = isinstance(known["run_ids"], list) and all(isinstance(one, str) for one in texts)
    except (ValueError, KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise WrongInput(f"{file} is damaged; start its sweep again, which writes it anew")
    return known
