"""The sweep files and datasets of the experiments that `koco reproduce` repeats.

A sweep file is run as it is if all its datasets are available. Otherwise a changed copy is run.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from flows.report.papers.experiment import EXPERIMENTS, Experiment
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.cache import private_folder
from koco_stream.io.files import text_hash, write_text
from storage.catalogue.entries import CATALOGUE, Entry
from storage.generated.generators import GENERATORS

SWEEPS = Path(__file__).parents[1] / "sweeps"


# Datasets made from a catalogue entry's files with other options: the entry and these options.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "parkinsons-motor": ("parkinsons", {"target": "motor_UPDRS", "drop": ("total_UPDRS",)}),
    **{
        f"{entry.name},scale={scale}": (entry.name, {"scale": scale})
        for entry in CATALOGUE.values()
        if entry.task != "regression"
        for scale in ("none", "unit-rows", "unit-mean-square")
    },
}


def entry_of(name: str) -> Entry:
    """Catalogue entry of a dataset in a sweep. Raises `KeyError` if the catalogue has none."""
    return CATALOGUE[VARIANTS[name][0] if name in VARIANTS else name]


def experiment_named(name: str) -> Experiment:
    """Look up an experiment. Raises `WrongInput` with the nearest name if there is none."""
    if name not in EXPERIMENTS:
        raise WrongInput(
            f"there is nothing to reproduce called {name!r}{nearest(name, list(EXPERIMENTS))}"
        )
    return EXPERIMENTS[name]


def prepared_datasets(sweep: str) -> list[str]:
    """Names of a sweep file's datasets that must be prepared because no generator makes them."""
    return [
        table["name"] for table in _content(sweep)["dataset"] if table["name"] not in GENERATORS
    ]


def sweep_for(sweep: str, at_hand: Sequence[str], more: Sequence[dict[str, Any]]) -> Path | None:
    """Path of the sweep file to run; None if no dataset of it is available.

    Parameters
    ----------
    sweep : str
        Name of a shipped sweep file.
    at_hand : sequence of str
        Available prepared datasets; others are left out.
    more : sequence of dict
        [[dataset]] tables to add.

    Returns
    -------
    Path or None
        The shipped file if nothing has to change, else a copy in the cache folder.
    """
    content = _content(sweep)
    kept = [
        table
        for table in content["dataset"]
        if table["name"] in GENERATORS or table["name"] in at_hand
    ]
    if not kept and not more:
        return None
    if len(kept) == len(content["dataset"]) and not more:
        return SWEEPS / f"{sweep}.toml"
    content["dataset"] = [*kept, *more]
    content["name"] = f"{sweep}-at-hand"
    text = f"# flows/sweeps/{sweep}.toml, with the available datasets.\n{tomli_w.dumps(content)}"
    path = Path(private_folder("reproduce", text_hash(text)[:12])) / f"{content['name']}.toml"
    write_text(path, text)
    return path


def _content(sweep: str) -> dict[str, Any]:
    return tomllib.loads((SWEEPS / f"{sweep}.toml").read_text(encoding="utf-8"))
