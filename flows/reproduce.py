"""Implementation of `koco reproduce`: the papers' figures and tables, from data to claims."""

import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.charts import Row
from flows.comparing.blocks import FIRST_HALF, Blocks, blocks_of, views_to_compare
from flows.pages import Figure, Page, write_page
from flows.preparing.preparation import prepare_named
from flows.report.papers.benchmark import part_figures, table_of
from flows.report.papers.experiment import EXPERIMENTS, Experiment
from flows.runtime.processes import say
from flows.sweeping.file import Sweep, read_sweep, sweep_of
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from flows.views.views import Views
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import write_tables
from koco_stream.streams.manifest import Manifest, load_manifest
from storage.catalogue.entries import CATALOGUE, Entry
from storage.generated.generators import GENERATORS

SWEEPS = Path(__file__).parent / "sweeps"
FIXED = "Each criterion was fixed before the run, unless it says that it was set afterwards."
HALVES = (
    "Configurations are chosen by the first half of each stream and judged on the second; the"
    " sweeps' own reports choose by the rounds on which they judge."
)
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


@dataclass(frozen=True)
class Reproduction:
    """Outcome of an experiment: rows on its datasets, and its sweeps' names with their figures."""

    experiment: Experiment
    sets: list[Row]
    figures: list[tuple[str, Figure]]
    failed: int
    page: str

    @property
    def claims(self) -> list[Row]:
        return [claim for _, figure in self.figures for claim in figure.claims]

    @property
    def summary(self) -> str:
        return Figure("", claims=self.claims).verdict or "no claim could be tested"

    @property
    def lines(self) -> list[str]:
        words = {True: "reproduced", False: "not reproduced", None: "remark"}
        told = [
            f"{words[one['holds']]}: {one['claim']} | criterion: {one['criterion']}"
            f" | came out: {one['came_out']}"
            for one in self.claims
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
    """Repeat an experiment: prepare its data, run its sweeps, judge its claims, write a page."""
    if name not in EXPERIMENTS:
        raise WrongInput(
            f"there is nothing to reproduce called {name!r}{nearest(name, list(EXPERIMENTS))}"
        )
    one = EXPERIMENTS[name]
    sets = datasets_of(one, store, data, workers)
    at_hand = [row["dataset"] for row in sets if row["rows here"]]
    figures = list[tuple[str, Figure]]()
    parts = dict[str, Blocks]()
    failed = 0
    for sweep in one.sweeps:
        given = sweep_for(one, sweep, at_hand)
        if given is None:
            say(f"koco: not run: {sweep}: none of its datasets is available")
            continue
        outcome = launch(SweepRequest(str(given.path), store, workers, cluster), sweep=given)
        failed += outcome["statuses"].get("failed", 0)
        drawn_by = EXPERIMENTS.get(sweep, one)
        if drawn_by.chart_name:
            drawn = [drawn_by.drawn(Views(store, [given.name]))]
        else:
            say("  the learners are being compared")
            parts[sweep] = blocks_of(views_to_compare(store, [given.name], FIRST_HALF))
            drawn = part_figures(sweep, parts[sweep])
        figures += [(given.name, figure) for figure in drawn]
    reports = store_path(store) / "reports"
    page = f"reproduce-{name}"
    if parts:
        write_tables([table_of(parts)], reports / f"{page}.parquet")
    done = Reproduction(one, sets, figures, failed, str(reports / f"{page}.html"))
    write_page(store, page, page_of(done))
    return done


def page_of(done: Reproduction) -> Page:
    drawn = [figure for _, figure in done.figures]
    return Page(
        f"Reproducing {done.experiment.name}",
        [chart for figure in drawn for chart in figure.charts][:1],
        facts=[done.experiment.about],
        finding="; ".join([done.summary, *filter(None, (one.finding for one in drawn))][:2]) + ".",
        flags=[
            *(f"{row['dataset']}: {row['state']}" for row in done.sets if row["state"] != "whole"),
            *[f"{done.failed:,} runs failed"] * (done.failed > 0),
        ],
        note=FIXED if done.experiment.chart_name else f"{FIXED}\n{HALVES}",
        figures=[*drawn, *[Figure("Datasets", rows=done.sets)] * bool(done.sets)],
        links=[*dict.fromkeys(sweep for sweep, _ in done.figures)],
    )


def datasets_of(one: Experiment, store: str, data: Path | None, workers: int) -> list[Row]:
    wanted = dict.fromkeys(name for sweep in one.sweeps for name in prepared_datasets(sweep))
    if one.takes_more:
        wanted |= dict.fromkeys(one.datasets)
    rows = []
    for name in wanted:
        try:
            n_rows = prepared(store, name, data, workers).n_rows
            is_whole = n_rows >= entry_of(name).editions[0].n_rows
            rows.append(_row(name, "whole" if is_whole else "a part", n_rows))
        except WrongInput as error:
            say(f"koco: not available: {name}: {error}")
            rows.append(_row(name, f"not available: {str(error).splitlines()[0]}"))
    for name in one.datasets:
        if name not in wanted:
            entry = entry_of(name)
            has = entry.partial or ("no copy" if entry.absent else "the whole set")
            say(f"koco: not compared: {name}: this project has {has}")
            rows.append(_row(name, f"not compared: this project has {has}"))
    return rows


def _row(name: str, state: str, n_rows: int | None = None) -> Row:
    return {
        "dataset": name,
        "rows in the paper": entry_of(name).editions[0].n_rows,
        "rows here": n_rows,
        "state": state,
    }


def prepared_datasets(sweep: str) -> list[str]:
    return [
        table["name"] for table in _content(sweep)["dataset"] if table["name"] not in GENERATORS
    ]


def prepared(store: str, name: str, data: Path | None, workers: int) -> Manifest:
    with suppress(WrongInput):
        return load_manifest(store, name)
    base, options = VARIANTS.get(name, (name, {}))
    return prepare_named(store, name, [data] if data else [], options, workers, True, base)


def sweep_for(one: Experiment, sweep: str, at_hand: Sequence[str]) -> Sweep | None:
    content = _content(sweep)
    tables = content["dataset"]
    more = set(at_hand).difference(table["name"] for table in tables) if one.takes_more else ()
    chosen = [table for table in tables if table["name"] in {*GENERATORS, *at_hand}]
    chosen += [
        {"name": name, "order": "shuffled", "positive_class": entry_of(name).positive_class}
        for name in one.datasets
        if name in more
    ]
    if chosen == tables:
        return read_sweep(SWEEPS / f"{sweep}.toml")
    return sweep_of({**content, "name": f"{sweep}-at-hand", "dataset": chosen}) if chosen else None


def _content(sweep: str) -> dict[str, Any]:
    return tomllib.loads((SWEEPS / f"{sweep}.toml").read_text(encoding="utf-8"))


def entry_of(name: str) -> Entry:
    return CATALOGUE[VARIANTS[name][0] if name in VARIANTS else name]
