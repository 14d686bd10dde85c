"""Reproducing a published figure or table: prepare what is needed, run the sweeps, hold the results
against the paper's claims.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from flows.prepare.downloads import fetch_edition
from flows.prepare.preparation import prepare_named
from flows.report.drawing import Claim, Figure
from flows.report.pages import claim_rows, html_page, markdown_page
from flows.report.papers.figures import FIGURES
from flows.reproduce.targets import (
    QUICK_GENERATED,
    QUICK_ROWS,
    QUICK_SEEDS,
    VARIANTS,
    Target,
    entry_of,
    prepared_datasets,
    sweep_for,
    target_named,
)
from flows.results.tables import runs_of
from flows.runtime.console import say
from flows.sweep.launch import launch
from flows.sweep.request import SweepRequest
from koco_stream.errors import WrongInput
from koco_stream.io.paths import store_path
from koco_stream.streams.manifest import Manifest, load_manifest
from storage.catalogue.entries import CATALOGUE, find_edition

SETS = ("dataset", "rows in the paper", "rows here", "state")
QUICK = (
    f"A quick run: at most {QUICK_ROWS:,} rows of a dataset ({QUICK_GENERATED:,} of a generated"
    f" one), {QUICK_SEEDS} seeds, and a part of each grid. It shows that all of it works; its"
    " numbers are not the paper's experiment."
)
TAKES_MORE = "son-figure-3"  # a point a dataset: those that our sweep file leaves out can be added


@dataclass(frozen=True)
class Reproduction:
    """What came of a target: `sets` are rows of `SETS`, `claims` what the paper says, by which
    criterion, what came out and whether it holds; `reports` are the sweeps' own reports.
    """

    target: Target
    quick: bool
    flags: list[str]
    sets: list[list[Any]]
    figures: list[tuple[str, Figure]]  # by sweep
    searches: list[tuple[str, Figure]]
    reports: list[str]
    failed: int = 0
    set_columns: tuple[str, ...] = SETS

    @property
    def name(self) -> str:
        """The page's."""
        return f"reproduce-{self.target.name}" + ("-quick" if self.quick else "")

    @property
    def claims(self) -> list[Claim]:
        """Of all figures but those of searches."""
        return [claim for _, figure in self.figures for claim in figure.claims]

    @property
    def claim_rows(self) -> list[list[Any]]:
        """The claims, as `pages.claim_rows` has them, each with its sweep."""
        return [
            [*row, sweep] for sweep, figure in self.figures for row in claim_rows(figure.claims)
        ]

    @property
    def summary(self) -> str:
        """How many claims are reproduced."""
        tested = [claim[3] for claim in self.claims if claim[3] is not None]
        return (
            f"{sum(tested)} of {len(tested)} claims reproduced"
            if tested
            else "no claim could be tested"
        )

    @property
    def lines(self) -> list[str]:
        """A line for each claim, and what could not be tested."""
        quick = "quick: " if self.quick else ""
        words = {True: "reproduced", False: "not reproduced", None: "remark"}
        found = [
            f"{quick}{words[holds]}: {claim} | criterion: {criterion} | came out: {came}"
            for claim, criterion, came, holds in self.claims
        ]
        untested = [
            f"{quick}not tested: {figure.title} ({sweep})"
            for sweep, figure in self.figures
            if not figure.claims
        ]
        return [*found, *untested, f"{quick}{self.target.name}: {self.summary}"]

    @property
    def contents(self) -> list[tuple[str, str]]:
        """The page's sections: anchor and title."""
        figures = [
            (f"figure-{k}", f"{figure.title}: {sweep}")
            for k, (sweep, figure) in enumerate([*self.figures, *self.searches], 1)
        ]
        return [
            ("claims", "Claims"),
            *figures,
            *([("sets", "Datasets")] if self.sets else []),
            ("reports", "All results"),
        ]


def reproduce(
    name: str, store: str, data: Path | None, quick: bool, workers: int, cluster: str = "local"
) -> tuple[Reproduction, str]:
    """Reproduce the target `name` on `store`: what came out, and the path of its page.

    Datasets that the store does not have are prepared from the folder `data`, or fetched if there
    is none. What is not at hand is said on stderr and in the page. Raises `WrongInput` for a target
    that there is not, and as a sweep does.
    """
    target = target_named(name)
    if data is not None and not data.is_dir():
        raise WrongInput(
            f"--data {data}: there is no such folder; give the folder that has the datasets' files"
        )
    states = {one: prepared(store, one, data, workers) for one in datasets_of(target)}
    for one, state in states.items():
        if isinstance(state, str):
            say(f"koco: not at hand: {one}: {state}")
    for one, has in left_out(target, states).items():
        say(f"koco: not compared: {one}: this project has {has}")
    at_hand = [one for one, state in states.items() if isinstance(state, Manifest)]
    figures, searches = list[tuple[str, Figure]](), list[tuple[str, Figure]]()
    reports, failed = list[str](), 0
    stand_ins = {sweep: (dataset, what) for sweep, dataset, what in target.stand_ins}
    for sweep in (*target.sweeps, *stand_ins, *target.searches):
        path = sweep_for(sweep, at_hand, more_tables(target, sweep, at_hand), quick)
        if path is None:
            say(f"koco: not run: {sweep}: none of its datasets is at hand")
            continue
        if sweep in stand_ins:
            say(f"koco: a stand-in for {stand_ins[sweep][0]}: {stand_ins[sweep][1]}")
        outcome = launch(SweepRequest(str(path), store, workers, cluster=cluster))
        failed += outcome["statuses"].get("failed", 0)
        ran = outcome["sweep"]
        reports.append(ran)
        if sweep in stand_ins:
            figures.append((ran, stand_in_figure(store, ran, *stand_ins[sweep])))
            continue
        figure = FIGURES[target.figure](store, runs_of(store, ran))
        (searches if sweep in target.searches else figures).append((ran, figure))
    flags, sets = flags_of(target, states, quick, failed), rows_of_sets(target, states)
    done = Reproduction(target, quick, flags, sets, figures, searches, reports, failed)
    return done, write_page(store, done)


def datasets_of(target: Target) -> list[str]:
    """The datasets to be prepared: those of the sweeps, and the paper's that a sweep can take in
    addition.
    """
    named = [
        one for sweep in (*target.sweeps, *target.searches) for one in prepared_datasets(sweep)
    ]
    return list(dict.fromkeys([*named, *(target.datasets if target.figure == TAKES_MORE else ())]))


def more_tables(target: Target, sweep: str, at_hand: list[str]) -> list[dict[str, Any]]:
    """[[dataset]] tables for those of the paper's datasets that are at hand, are whole, and are not
    in the sweep file because this project has no copy. Only a figure that has a point a dataset
    takes them.
    """
    if target.figure != TAKES_MORE:
        return []
    absent = [
        one for one in target.datasets if one in at_hand and one not in prepared_datasets(sweep)
    ]
    return [
        {"name": one, "order": "shuffled"}
        | ({} if positive is None else {"positive_class": positive})
        for one, positive in ((one, entry_of(one).positive_class) for one in absent)
    ]


def prepared(store: str, name: str, data: Path | None, workers: int) -> Manifest | str:
    """The dataset's manifest, prepared now if it is not in the store; or why it is not at hand."""
    try:
        return load_manifest(store, name)
    except WrongInput:
        pass
    try:
        if name not in VARIANTS:
            return prepare_named(store, name, [data] if data else [], {}, workers)
        base, options = VARIANTS[name]
        edition, paths = (
            find_edition(CATALOGUE[base], data)
            if data
            else fetch_edition(store, CATALOGUE[base])[:2]
        )
        return prepare_named(store, name, paths, {**edition.options, **options}, workers)
    except WrongInput as error:
        return str(error)


def state_of(name: str, state: Manifest | str) -> str:
    """In words: whole, a part and which, or not at hand and why."""
    if isinstance(state, str):
        return f"not at hand: {state.splitlines()[0]}"
    entry = entry_of(name)
    if state.n_rows >= entry.editions[0].n_rows:
        return "whole"
    part = next(
        (
            edition.part
            for edition in entry.editions
            if edition.part and edition.n_rows == state.n_rows
        ),
        None,
    )
    return f"a part: {part or 'fewer rows than the whole'}"


def left_out(target: Target, states: dict[str, Manifest | str]) -> dict[str, str]:
    """The paper's datasets that no sweep of the target has, and what this project has of them."""
    absent = {one: entry_of(one) for one in target.datasets if one not in states}
    return {
        one: entry.partial or ("no copy" if entry.absent else "the whole set")
        for one, entry in absent.items()
    }


def rows_of_sets(target: Target, states: dict[str, Manifest | str]) -> list[list[Any]]:
    """The datasets, as rows of `SETS`."""

    def row(dataset: str, state: str, here: int | None = None, name: str = "") -> list[Any]:
        return [name or dataset, entry_of(dataset).editions[0].n_rows, here, state]

    return [
        *(
            row(one, state_of(one, state), None if isinstance(state, str) else state.n_rows)
            for one, state in states.items()
        ),
        *(
            row(one, f"not compared: this project has {has}")
            for one, has in left_out(target, states).items()
        ),
        *(
            row(dataset, f"a stand-in: {what}", name=f"{sweep}, for {dataset}")
            for sweep, dataset, what in target.stand_ins
        ),
    ]


def flags_of(
    target: Target, states: dict[str, Manifest | str], quick: bool, failed: int
) -> list[str]:
    """What a reader must know first."""
    flags = [QUICK] if quick else []
    absent = [one for one, state in states.items() if isinstance(state, str)]
    parts = [
        f"{one} ({said.removeprefix('a part: ')})"
        for one, state in states.items()
        if (said := state_of(one, state)).startswith("a part")
    ]
    flags += [f"Not at hand, and so not in the comparison: {', '.join(absent)}"] if absent else []
    flags += [f"Only in part: {'; '.join(parts)}"] if parts else []
    flags += [
        f"Not compared: {one}; this project has {has}"
        for one, has in left_out(target, states).items()
    ]
    flags += [f"A stand-in for {dataset}: {what}" for _, dataset, what in target.stand_ins]
    return flags + ([f"{failed:,} runs failed"] if failed else [])


def stand_in_figure(store: str, sweep: str, dataset: str, what: str) -> Figure:
    """What became of the runs on a stand-in for a dataset on which, the paper says, they did not
    complete.
    """
    runs = runs_of(
        store,
        sweep,
        ("run_id", "learner", "status", "rounds", "mean_loss", "dictionary_size", "seconds"),
    )
    rows = runs.select(["learner", "status", "rounds", "mean_loss", "dictionary_size", "seconds"])
    claims: list[Claim] = [
        (
            f"{row['learner']} does not complete on {dataset}",
            "none: a stand-in cannot tell",
            (
                f"on {sweep} {row['status']} after {row['rounds'] or 0:,} rounds and"
                f" {row['seconds'] or 0:,.0f} s, with {row['dictionary_size'] or 0:,} points"
            ),
            None,
        )
        for row in rows.to_pylist()
    ]
    return Figure(
        f"A stand-in for {dataset}",
        [],
        claims,
        rows.column_names,
        [list(row.values()) for row in rows.filter(pc.is_valid(rows.column("status"))).to_pylist()],
        f"Not {dataset}, but {what}. What ends here may have been too slow for the paper's code; of"
        f" {dataset} itself it says nothing.",
        opened=True,
    )


def write_page(store: str, done: Reproduction) -> str:
    """The page of a reproduction as HTML, and as Markdown beside it; returns the HTML file's
    path.
    """
    folder = store_path(store) / "reports"
    (folder / f"{done.name}.md").write_text(markdown_page("reproduction.md", done=done))
    written = folder / f"{done.name}.html"
    written.write_text(html_page("reproduction.html", done=done, contents=done.contents))
    return str(written)
