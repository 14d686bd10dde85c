"""Reproduction of a published figure or table: prepare data, run sweeps, judge the claims."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.comparing.blocks import Blocks
from flows.prepare.downloads import fetch_edition
from flows.prepare.preparation import prepare_named
from flows.report.drawing import Figure, Flag
from flows.report.pages import write_pages
from flows.report.papers.figures import FIGURES
from flows.reproduce.benchmark import (
    PARTS,
    blocks_of_part,
    comparison_of_part,
    part_figures,
    table_of,
)
from flows.reproduce.outcome import Reproduction
from flows.reproduce.targets import (
    VARIANTS,
    Target,
    entry_of,
    prepared_datasets,
    sweep_for,
    target_named,
)
from flows.results.views import runs_of
from flows.runtime.console import say
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from koco_stream.errors import WrongInput
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import write_tables
from koco_stream.streams.manifest import Manifest, load_manifest
from storage.catalogue.entries import CATALOGUE, find_edition

TAKES_MORE = "son-figure-3"  # target with one point per dataset, to which datasets can be added


@dataclass(frozen=True)
class Dataset:
    """A dataset of a target, and whether it is available.

    `state` says in words whether it is whole, partial, not available (with the reason) or not
    compared. `manifest` is None if it is not available.
    """

    name: str
    state: str
    manifest: Manifest | None = None

    @property
    def row(self) -> list[Any]:
        """The dataset as a table row with the columns of `SETS`."""
        return [
            self.name,
            entry_of(self.name).editions[0].n_rows,
            self.manifest.n_rows if self.manifest else None,
            self.state,
        ]


def reproduce(
    name: str, store: str, data: Path | None, workers: int, cluster: str = "local"
) -> tuple[Reproduction, str]:
    """Reproduce a published figure or table, and write a page about it; returns also its path.

    `data` is the folder with the source files of datasets that the store lacks; None to download
    them. Datasets that are not available are listed, and reported on stderr. Raises `WrongInput` if
    there is no such target or folder, or as a sweep does.
    """
    target = target_named(name)
    if data is not None and not data.is_dir():
        raise WrongInput(
            f"--data {data}: there is no such folder; give the folder that has the datasets' files"
        )
    sets = datasets_of(target, store, data, workers)
    at_hand = [one.name for one in sets if one.manifest]
    figures, parts, failed = list[tuple[str, Figure]](), dict[str, Blocks](), 0
    for sweep in target.sweeps:
        path = sweep_for(sweep, at_hand, more_tables(target, sweep, at_hand))
        if path is None:
            say(f"koco: not run: {sweep}: none of its datasets is available")
            continue
        outcome = launch(SweepRequest(str(path), store, workers, cluster=cluster))
        failed += outcome["statuses"].get("failed", 0)
        if sweep in PARTS:
            say("  the learners are being compared")
            parts[sweep] = blocks_of_part(store, outcome["sweep"])
            compared = comparison_of_part(parts[sweep])
            drawn = part_figures(PARTS[sweep], parts[sweep], compared)
            figures += [(outcome["sweep"], one) for one in drawn]
            continue
        figure = FIGURES[target.figure](store, runs_of(store, outcome["sweep"]))
        figures.append((outcome["sweep"], figure))
    flags, rows = flags_of(sets, failed), [one.row for one in sets]
    done = Reproduction(target, flags, rows, figures, failed)
    if parts:
        write_tables([table_of(parts)], store_path(store) / "reports" / f"{done.name}.parquet")
    return done, str(write_pages(store, done.name, "reproduction", done=done))


def datasets_of(target: Target, store: str, data: Path | None, workers: int) -> list[Dataset]:
    """Prepare a target's datasets as far as possible, and list them with their availability.

    These are the datasets of its sweeps, and those of the paper that a sweep can take in addition.
    The paper's other datasets follow as not compared.
    """
    wanted = dict.fromkeys(name for sweep in target.sweeps for name in prepared_datasets(sweep))
    if target.figure == TAKES_MORE:
        wanted |= dict.fromkeys(target.datasets)
    found = []
    for name in wanted:
        try:
            manifest = prepared(store, name, data, workers)
            found.append(Dataset(name, state_of(name, manifest.n_rows), manifest))
        except WrongInput as error:
            say(f"koco: not available: {name}: {error}")
            found.append(Dataset(name, f"not available: {str(error).splitlines()[0]}"))
    for name in target.datasets:
        if name not in wanted:
            entry = entry_of(name)
            has = entry.partial or ("no copy" if entry.absent else "the whole set")
            say(f"koco: not compared: {name}: this project has {has}")
            found.append(Dataset(name, f"not compared: this project has {has}"))
    return found


def more_tables(target: Target, sweep: str, at_hand: list[str]) -> list[dict[str, Any]]:
    """[[dataset]] tables for available datasets of the paper that the sweep file does not have.

    Only the target `TAKES_MORE` uses them. The sweep file lacks these datasets because this project
    has no copy of them.
    """
    if target.figure != TAKES_MORE:
        return []
    added = set(at_hand) - set(prepared_datasets(sweep))
    tables = [
        {"name": name, "order": "shuffled", "positive_class": entry_of(name).positive_class}
        for name in target.datasets
        if name in added
    ]
    return [{key: value for key, value in table.items() if value is not None} for table in tables]


def prepared(store: str, name: str, data: Path | None, workers: int) -> Manifest:
    """Manifest of a dataset, which is prepared if the store lacks it.

    Raises `WrongInput` if it is not available.
    """
    with suppress(WrongInput):
        return load_manifest(store, name)
    if name not in VARIANTS:
        return prepare_named(store, name, [data] if data else [], {}, workers, replace=True)
    base, options = VARIANTS[name]
    entry = CATALOGUE[base]
    edition, paths = find_edition(entry, data) if data else fetch_edition(store, entry)[:2]
    return prepare_named(store, name, paths, {**edition.options, **options}, workers, replace=True)


def state_of(name: str, n_rows: int) -> str:
    """Whether a dataset with `n_rows` rows is whole or partial, in words."""
    editions = entry_of(name).editions
    named = [one.subset for one in editions if one.subset and one.n_rows == n_rows]
    subset = f"a part: {[*named, 'fewer rows than the whole'][0]}"
    return "whole" if n_rows >= editions[0].n_rows else subset


def flags_of(sets: list[Dataset], failed: int) -> list[Flag]:
    """Warnings that a reader of the page must see first."""
    absent = [one.name for one in sets if one.state.startswith("not available")]
    # a dataset that is read in two ways is named once
    partial = dict.fromkeys(
        f"{entry_of(one.name).name} ({one.state.removeprefix('a part: ')})"
        for one in sets
        if one.state.startswith("a part")
    )
    flags = [
        f"Not available, and so not in the comparison: {', '.join(absent)}" if absent else "",
        f"Only in part: {'; '.join(partial)}" if partial else "",
        *(
            f"Not compared: {one.name}; {one.state.removeprefix('not compared: ')}"
            for one in sets
            if one.state.startswith("not compared")
        ),
        f"{failed:,} runs failed" if failed else "",
    ]
    return [Flag(words) for words in flags if words]
