"""Targets of `koco reproduce`: for each its sweeps, the figure with the claims, and its datasets.

A sweep file is run as it is if all its datasets are available. Otherwise a changed copy is run.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.cache import private_folder
from koco_stream.io.files import text_hash, write_text
from storage.catalogue.entries import CATALOGUE, PROS, SON, Entry
from storage.generated.generators import GENERATORS

SWEEPS = Path(__file__).parents[1] / "sweeps"


@dataclass(frozen=True)
class Target:
    """A published figure or table that can be reproduced.

    Attributes
    ----------
    name, about : str
        Name for the command line, and a sentence about it.
    sweeps : tuple of str
        Sweeps whose results are held against the paper's claims.
    figure : str
        Name of the figure that is drawn from each sweep; empty for the parts of the benchmark,
        whose figures are comparisons.
    datasets : tuple of str
        The paper's datasets, by their names in the catalogue.
    """

    name: str
    about: str
    sweeps: tuple[str, ...]
    figure: str
    datasets: tuple[str, ...] = ()


def _datasets_of(paper: str) -> tuple[str, ...]:
    return tuple(entry.name for entry in CATALOGUE.values() if paper in entry.papers)


TARGETS = {
    target.name: target
    for target in (
        Target(
            "son-figure-1",
            "Figure 1 of Luo et al. (NIPS 2016): error against the condition number",
            ("ill-conditioned",),
            "son-figure-1",
        ),
        Target(
            "son-figure-2",
            "Figure 2 of Luo et al. (NIPS 2016): how well Oja's sketch recovers eigenvalues",
            ("ill-conditioned",),
            "son-figure-2",
        ),
        Target(
            "son-figure-3",
            "Figure 3 of Luo et al. (NIPS 2016): progressive error on real data",
            ("son-real",),
            "son-figure-3",
            datasets=tuple(f"{name},scale=none" for name in _datasets_of(SON)),
        ),
        Target(
            "sketch-start",
            "Our own experiment: which start of Oja's sketch makes fewer errors, over all available"
            " datasets, scaled in three ways",
            ("sketch-start",),
            "sketch-start",
        ),
        Target(
            "pros-n-kons-table",
            "Tables 1 and 2 of Calandriello, Lazaric, Valko (NIPS 2017): PROS-N-KONS against its"
            " baselines",
            ("poster-regression", "poster-classification"),
            "poster-tables",
            _datasets_of(PROS),
        ),
        Target(
            "section-6-adversary",
            "Section 6 of Calandriello, Lazaric, Valko (ICML 2017): an adversary of one point",
            ("adversary",),
            "kons-adversary",
        ),
        Target(
            "benchmark",
            "The benchmark: all learners, with equal budgets, on all datasets at hand",
            ("benchmark", "benchmark-whole", "benchmark-text", "benchmark-raw"),
            "",
        ),
        Target(
            "sampling-floor",
            "the abstract of Calandriello, Lazaric, Valko (ICML 2017): 1/γ times the regret at γ²"
            " of the cost",
            ("sampling-floor",),
            "sampling-floor",
        ),
    )
}

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


def target_named(name: str) -> Target:
    """Look up a target. Raises `WrongInput` with the nearest name if there is none."""
    if name not in TARGETS:
        raise WrongInput(
            f"there is nothing to reproduce called {name!r}{nearest(name, list(TARGETS))}"
        )
    return TARGETS[name]


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
