"""Successive halving of a sweep's configurations.

All configurations run for some rounds, the best of them for `factor` times as many, and so on until
the end of the stream. A rung is a number of rounds: `first`, `first`·factor, … and finally the
stream's length. A run up to a rung is a run on the stream cut there (`max_rows`), so that its
recorded numbers are those of a whole run, and sweeps with and without halving share runs. After a
rung, the configurations of a learner on a stream are sorted by their mean loss over orders and
seeds, and the best 1/factor of them, rounded up, continue. Decisions depend on recorded losses
only, so a repeated sweep takes the same ones.
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
Losses = Callable[[Sequence[str]], dict[str, float]]  # run_ids → mean losses of runs that are ok


class Halving(BaseModel):
    """The [halving] table of a sweep file: the first rung's rounds, and the factor between rungs.

    After each rung, 1/`factor` of the configurations continue.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    factor: int = Field(default=3, ge=2)
    first: PositiveInt

    def rungs(self, n_rounds: int) -> list[int]:
        """Numbers of rounds of a stream's rungs; the last is `n_rounds`, the stream's length."""
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
    """Yield the runs of each stage of successive halving.

    Parameters
    ----------
    runs : sequence of Run
        All runs of the sweep.
    n_rows : dict of str to int
        Number of rows of each dataset, by dataset hash.
    halving : Halving or None
        Rungs and factor; None for a single stage with all runs.
    losses : callable
        Gives the recorded mean losses of runs, by run_id. It is called after each stage.
    decisions : list of dict
        The decisions of each stage are appended to it.
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
            alive += _continuing(pairs, stage, rounds, halving.factor, found, decisions)


def _at_rung(run: Run, rungs: Sequence[int], stage: int) -> Run:
    """The run cut at its rung of a stage; the whole run from the last rung on."""
    if stage >= len(rungs) - 1:
        return run
    return replace(run, stream=replace(run.stream, max_rows=rungs[stage]))


def _continuing(
    pairs: Sequence[tuple[Run, Run]],
    stage: int,
    rounds: int,
    factor: int,
    losses: dict[str, float],
    decisions: list[dict[str, object]],
) -> list[Run]:
    """Select the runs of a learner on a stream that continue after a rung.

    `pairs` are the whole runs and the runs up to the rung. The decisions are appended to
    `decisions`.
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
    """Mean losses by run_id, of those runs that are in the collected tables with status ok."""
    runs = read_columns(store, ("run_id", "status", "mean_loss"))
    wanted = pc.is_in(runs.column("run_id"), pa.array(run_ids, pa.string()))
    ok = runs.filter(pc.and_(wanted, pc.equal(runs.column("status"), "ok")))
    return dict(
        zip(ok.column("run_id").to_pylist(), ok.column("mean_loss").to_pylist(), strict=True)
    )
