"""Successive halving: all configurations run for some rounds, the better part of them for `factor`
times as many, and so on to the end.

A rung is a number of rounds: `first`, `first`·factor, … below the stream's length, and that length.
What a run does up to a rung is a run of its own, on the stream cut there (`max_rows`), so that
every number in the tables means what it says, and a sweep with halving and one without share what
they have in common. After a rung, the configurations of one learner on one stream are put in order
by their mean loss over orders and seeds, and 1/factor of them, rounded up, go on. The order depends
on recorded losses alone: the same sweep decides the same.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath
from koco_stream.runs.run import Run
from storage.results import read_columns

LARGEST = 2**63 - 1
Losses = Callable[[Sequence[str]], dict[str, float]]  # run_ids → mean losses of those that are ok


@dataclass(frozen=True)
class Halving:
    """1/`factor` of the configurations go on after each rung; the first rung is after `first`
    rounds.
    """

    factor: int
    first: int

    def rungs(self, n_rounds: int) -> list[int]:
        """The rungs of a stream of `n_rounds` rounds; the last is its end."""
        found, rung = [], self.first
        while rung < n_rounds:
            found.append(rung)
            rung *= self.factor
        return [*found, n_rounds]


def stages(
    runs: Sequence[Run],
    n_rows: dict[str, int],
    halving: Halving | None,
    losses: Losses,
    decisions: list[dict[str, object]],
) -> Iterator[list[Run]]:
    """The runs of each stage, in turn; those of one are decided from the losses of the one before,
    and the decisions appended. Without halving there is one stage with all `runs`. `n_rows` are the
    datasets' numbers of rows, by dataset hash.
    """
    if halving is None:
        yield list(runs)
        return
    rungs = {
        run.stream: halving.rungs(
            min(n_rows[run.stream.dataset_hash], run.stream.max_rows or LARGEST)
        )
        for run in runs
    }
    alive, stage = list(runs), 0
    while True:
        now = [at_rung(run, rungs[run.stream], stage) for run in alive]
        yield now
        open_ended = {run.run_id for run in alive if stage < len(rungs[run.stream]) - 1}
        if not open_ended:
            return
        found = losses([run.run_id for run in now])
        groups: dict[tuple[object, ...], list[tuple[Run, Run]]] = {}
        for run, cut in zip(alive, now, strict=True):
            if run.run_id in open_ended:
                groups.setdefault((run.stream.group, run.learner), []).append((run, cut))
        alive = []
        for pairs in groups.values():
            kept, rows = decided(
                pairs, stage, rungs[pairs[0][0].stream][stage], halving.factor, found
            )
            alive += kept
            decisions += rows
        stage += 1


def at_rung(run: Run, rungs: Sequence[int], stage: int) -> Run:
    """The run up to its rung of that stage; the whole run from the last rung on."""
    return (
        run
        if stage >= len(rungs) - 1
        else replace(run, stream=replace(run.stream, max_rows=rungs[stage]))
    )


def decided(
    pairs: Sequence[tuple[Run, Run]], stage: int, rounds: int, factor: int, losses: dict[str, float]
) -> tuple[list[Run], list[dict[str, object]]]:
    """Which runs of one learner on one stream go on, and the decisions: `pairs` are the runs
    and what they did up to the rung.
    """
    configurations: dict[str, list[tuple[Run, Run]]] = {}
    for run, cut in pairs:
        configurations.setdefault(canonical_json(run.params), []).append((run, cut))
    means = {
        params: fmean(losses.get(cut.run_id, math.inf) for _, cut in cuts)
        for params, cuts in configurations.items()
    }
    ranked = sorted(means, key=lambda params: (means[params], params))
    going = ranked[: math.ceil(len(ranked) / factor)]
    stream, learner = pairs[0][0].stream, pairs[0][0].learner
    rows: list[dict[str, object]] = [
        {
            "rung": stage + 1,
            "rounds": rounds,
            "dataset": stream.dataset,
            "positive_class": stream.positive_class,
            "order": stream.order,
            "learner": learner,
            "params": params,
            "n_runs": len(configurations[params]),
            "mean_loss": means[params] if math.isfinite(means[params]) else None,
            "place": number,
            "goes_on": number <= len(going),
        }
        for number, params in enumerate(ranked, 1)
    ]
    return [run for params in going for run, _ in configurations[params]], rows


def losses_of(store: AnyPath, run_ids: Sequence[str]) -> dict[str, float]:
    """The mean losses of those of these runs that were collected and are ok."""
    runs = read_columns(store, ("run_id", "status", "mean_loss"))
    wanted = pc.and_(
        pc.is_in(runs.column("run_id"), pa.array(run_ids, pa.string())),
        pc.equal(runs.column("status"), "ok"),
    )
    runs = runs.filter(wanted)
    return dict(
        zip(runs.column("run_id").to_pylist(), runs.column("mean_loss").to_pylist(), strict=True)
    )
