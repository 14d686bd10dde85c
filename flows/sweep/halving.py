"""Successive halving: all configurations run for some rounds, the better part of them for `factor`
times as many, and so on to the end.

A rung is a number of rounds: `first`, `first`·factor, … below the stream's length, and that length.
What a run does up to a rung is a run of its own, on the stream cut there (`max_rows`), so that
every number in the tables means what it says, and a sweep with halving and one without share what
they have in common. After a rung, the configurations of one learner on one stream are put in order
by their mean loss over orders and seeds, and 1/factor of them, rounded up, go on. The order depends
on recorded losses alone: the same sweep decides the same.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from koco_stream.io.files import canonical_json
from koco_stream.io.paths import AnyPath
from koco_stream.runs.run import Run
from storage.results import read_columns

LARGEST = 2**63 - 1
Losses = Callable[[Sequence[str]], dict[str, float]]  # run_ids → mean losses of those that are ok


class Halving(BaseModel):
    """`halving = { factor = 3, first = 1000 }` of a sweep file: 1/`factor` of the configurations go
    on after each rung; the first rung is after `first` rounds.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    factor: int = Field(default=3, ge=2)
    first: PositiveInt

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
    """The runs of each stage, in turn.

    Parameters
    ----------
    runs
        All runs of the sweep. Without halving they are the one stage that there is.
    n_rows
        The datasets' numbers of rows, by dataset hash.
    halving
        How many go on, and when; None without halving.
    losses
        What gives the recorded losses, from which each stage is decided after the one before.
    decisions
        The decisions are appended to it.
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
    alive = list(runs)
    for stage in itertools.count():
        now = [_at_rung(run, rungs[run.stream], stage) for run in alive]
        yield now
        groups: dict[tuple[object, ...], list[tuple[Run, Run]]] = {}
        for run, cut in zip(alive, now, strict=True):
            if stage < len(rungs[run.stream]) - 1:
                groups.setdefault((run.stream.group, run.learner), []).append((run, cut))
        if not groups:
            return
        alive, found = [], losses([run.run_id for run in now])
        for pairs in groups.values():
            rounds = rungs[pairs[0][0].stream][stage]
            alive += _going_on(pairs, stage, rounds, halving.factor, found, decisions)


def _at_rung(run: Run, rungs: Sequence[int], stage: int) -> Run:
    """The run up to its rung of that stage; the whole run from the last rung on."""
    if stage >= len(rungs) - 1:
        return run
    return replace(run, stream=replace(run.stream, max_rows=rungs[stage]))


def _going_on(
    pairs: Sequence[tuple[Run, Run]],
    stage: int,
    rounds: int,
    factor: int,
    losses: dict[str, float],
    decisions: list[dict[str, object]],
) -> list[Run]:
    """Which runs of one learner on one stream go on: `pairs` are the runs and what they did up to
    the rung. The decisions are appended.
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
    decisions += [
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
    return [run for params in going for run, _ in configurations[params]]


def losses_of(store: AnyPath, run_ids: Sequence[str]) -> dict[str, float]:
    """The mean losses of those of these runs that were collected and are ok."""
    runs = read_columns(store, ("run_id", "status", "mean_loss"))
    wanted = pc.is_in(runs.column("run_id"), pa.array(run_ids, pa.string()))
    ok = runs.filter(pc.and_(wanted, pc.equal(runs.column("status"), "ok")))
    return dict(
        zip(ok.column("run_id").to_pylist(), ok.column("mean_loss").to_pylist(), strict=True)
    )
