"""Repeating an experiment: prepare data, run sweeps, judge the claims, write a page."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flows.comparing.blocks import Blocks
from flows.pages import Claim, Figure, Page, write_page
from flows.prepare.downloads import fetch_edition
from flows.prepare.preparation import prepare_named
from flows.report.papers.benchmark import blocks_of_part, part_figures, table_of
from flows.report.papers.experiment import Experiment
from flows.reproduce.targets import (
    VARIANTS,
    entry_of,
    experiment_named,
    prepared_datasets,
    sweep_for,
)
from flows.runtime.console import say
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from flows.views.views import Views
from koco_stream.errors import WrongInput
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import write_tables
from koco_stream.streams.manifest import Manifest, load_manifest
from storage.catalogue.entries import CATALOGUE, find_edition

FIXED = "Each criterion was fixed before the run, unless it says that it was set afterwards."
HALVES = (
    "Configurations are chosen by the first half of each stream and judged on the second; the"
    " sweeps' own reports choose by the rounds on which they judge."
)
SETS = ("dataset", "rows in the paper", "rows here", "state")


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


@dataclass(frozen=True)
class Reproduction:
    """Outcome of repeating an experiment.

    `sets` are rows on its datasets, with the columns of `SETS`. `figures` are those of its sweeps,
    each with the name of the sweep. `failed` is the number of failed runs, `page` the path of the
    page.
    """

    experiment: Experiment
    sets: list[list[Any]]
    figures: list[tuple[str, Figure]]
    failed: int
    page: str = ""

    @property
    def claims(self) -> list[tuple[str, Claim]]:
        """The claims of all figures, each with the name of its sweep."""
        return [(sweep, claim) for sweep, figure in self.figures for claim in figure.claims]

    @property
    def summary(self) -> str:
        """How many claims are reproduced."""
        judged = [claim.holds for _, claim in self.claims if claim.holds is not None]
        found = f"{sum(judged)} of {len(judged)} claims reproduced"
        return found if judged else "no claim could be tested"

    @property
    def lines(self) -> list[str]:
        """Lines for the terminal: claims, figures that could not be tested, and the summary."""
        words = {True: "reproduced", False: "not reproduced", None: "remark"}
        told = [
            f"{words[one.holds]}: {one.claim} | criterion: {one.criterion}"
            f" | came out: {one.came_out}"
            for _, one in self.claims
        ]
        told += [
            f"not tested: {figure.title} ({sweep})"
            for sweep, figure in self.figures
            if not figure.claims and self.experiment.chart_name
        ]
        return [*told, f"{self.experiment.name}: {self.summary}", f"report: {self.page}"]


def reproduce(
    name: str, store: str, data: Path | None, workers: int, cluster: str = "local"
) -> Reproduction:
    """Repeat an experiment: prepare its data, run its sweeps, judge its claims, write a page.

    `data` is the folder with the source files of datasets that the store lacks; None to download
    them. Datasets that are not available are listed, and reported on stderr. Raises `WrongInput` if
    there is no such experiment or folder, or as a sweep does.
    """
    one = experiment_named(name)
    if data is not None and not data.is_dir():
        raise WrongInput(
            f"--data {data}: there is no such folder; give the folder that has the datasets' files"
        )
    sets = datasets_of(one, store, data, workers)
    at_hand = [found.name for found in sets if found.manifest]
    figures, parts, failed = list[tuple[str, Figure]](), dict[str, Blocks](), 0
    for sweep in one.sweeps:
        path = sweep_for(sweep, at_hand, more_tables(one, sweep, at_hand))
        if path is None:
            say(f"koco: not run: {sweep}: none of its datasets is available")
            continue
        outcome = launch(SweepRequest(str(path), store, workers, cluster=cluster))
        failed += outcome["statuses"].get("failed", 0)
        if one.chart_name:
            drawn = [one.drawn(Views(store, [outcome["sweep"]]))]
        else:
            say("  the learners are being compared")
            parts[sweep] = blocks_of_part(store, outcome["sweep"])
            drawn = part_figures(sweep, parts[sweep])
        figures += [(outcome["sweep"], figure) for figure in drawn]
    if parts:
        file = store_path(store) / "reports" / f"reproduce-{name}.parquet"
        write_tables([table_of(parts)], file)
    done = Reproduction(one, [found.row for found in sets], figures, failed)
    page = page_of(done, flags_of(sets, failed))
    return replace(done, page=str(write_page(store, f"reproduce-{name}", page)))


def page_of(done: Reproduction, flags: list[str]) -> Page:
    """The page of a reproduction: what came out, and the figures of its sweeps."""
    drawn = [figure for _, figure in done.figures]
    findings = [figure.finding for figure in drawn if figure.finding]
    charts = [chart for figure in drawn for chart in figure.charts]
    sets = Figure("Datasets", rows=[dict(zip(SETS, row, strict=True)) for row in done.sets])
    return Page(
        f"Reproducing {done.experiment.name}",
        charts[:1],
        facts=[done.experiment.about],
        finding="; ".join([done.summary, *findings[:1]]) + ".",
        flags=flags,
        note=FIXED if done.experiment.chart_name else f"{FIXED}\n{HALVES}",
        figures=[*drawn, *[sets] * bool(done.sets)],
        links=[*dict.fromkeys(sweep for sweep, _ in done.figures)],
    )


def datasets_of(one: Experiment, store: str, data: Path | None, workers: int) -> list[Dataset]:
    """Prepare an experiment's datasets as far as possible, and list them with their availability.

    These are the datasets of its sweeps, and those of the paper that a sweep can take in addition.
    The paper's other datasets follow as not compared.
    """
    wanted = dict.fromkeys(name for sweep in one.sweeps for name in prepared_datasets(sweep))
    if one.takes_more:
        wanted |= dict.fromkeys(one.datasets)
    found = []
    for name in wanted:
        try:
            manifest = prepared(store, name, data, workers)
            found.append(Dataset(name, state_of(name, manifest.n_rows), manifest))
        except WrongInput as error:
            say(f"koco: not available: {name}: {error}")
            found.append(Dataset(name, f"not available: {str(error).splitlines()[0]}"))
    for name in one.datasets:
        if name not in wanted:
            entry = entry_of(name)
            has = entry.partial or ("no copy" if entry.absent else "the whole set")
            say(f"koco: not compared: {name}: this project has {has}")
            found.append(Dataset(name, f"not compared: this project has {has}"))
    return found


def more_tables(one: Experiment, sweep: str, at_hand: list[str]) -> list[dict[str, Any]]:
    """[[dataset]] tables for available datasets of the paper that the sweep file does not have.

    Only an experiment that `takes_more` uses them. The sweep file lacks them because
    this project has no copy of them.
    """
    if not one.takes_more:
        return []
    added = set(at_hand) - set(prepared_datasets(sweep))
    tables = [
        {"name": name, "order": "shuffled", "positive_class": entry_of(name).positive_class}
        for name in one.datasets
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


def flags_of(sets: list[Dataset], failed: int) -> list[str]:
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
    return [words for words in flags if words]
