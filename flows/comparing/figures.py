"""The tables of a comparison: learners, pairs of learners, and blocks."""

import math
from collections.abc import Sequence

import pyarrow as pa

from flows.comparing import statistics
from flows.comparing.blocks import Block
from flows.tables.tables import CONSTANT
from koco_stream.metrics import METRICS
from koco_stream.types import Array

SUMMARY = pa.schema(
    [
        *(("learner", pa.string()), ("mean_rank", pa.float64()), ("first", pa.int64())),
        *((name, pa.int64()) for name in ("wins", "losses", "ties")),
        *((name, pa.float64()) for name in ("difference", "low", "high", "p")),
        *(("failed", pa.int64()), ("beats_constant", pa.string())),
        *(("microseconds", pa.float64()), ("pareto", pa.bool_())),
    ]
)
PAIRS = pa.schema(
    [
        *(("learner", pa.string()), ("other", pa.string())),
        *((name, pa.int64()) for name in ("wins", "losses", "ties")),
        *((name, pa.float64()) for name in ("difference", "p_alone", "p")),
    ]
)
BLOCKS = pa.schema(
    [
        *((name, pa.string()) for name in ("block", "metric", "learner", "params")),
        *(("score", pa.float64()), ("rank", pa.float64()), ("repeats", pa.int64())),
        *(("failed", pa.bool_()), ("microseconds", pa.float64())),
    ]
)


def pairs_table(learners: Sequence[str], scores: Array, relative: bool, enough: bool) -> pa.Table:
    """The table `pairs`; without p-values if there are not enough blocks."""
    counts, which = statistics.wins_losses_ties(scores), statistics.pairs_of(len(learners))
    differences = [
        statistics.differences(scores[:, [one]], scores[:, other], relative)[:, 0]
        for one, other in which
    ]
    alone = [statistics.wilcoxon(found) if enough else None for found in differences]
    corrected = statistics.holm([p for p in alone if p is not None]) or alone
    return pa.Table.from_pylist(
        [
            {
                "learner": learners[one],
                "other": learners[other],
                **_counts(counts[one, other]),
                "difference": statistics.mean_difference(difference),
                "p_alone": p_alone,
                "p": p,
            }
            for (one, other), difference, p_alone, p in zip(
                which, differences, alone, corrected, strict=True
            )
        ],
        PAIRS,
    )


def _counts(counts: Sequence[int]) -> dict[str, int]:
    """Wins, losses and ties by name."""
    return dict(zip(("wins", "losses", "ties"), map(int, counts), strict=True))


def summary_table(
    blocks: Sequence[Block],
    order: Sequence[int],
    learners: Sequence[str],
    scores: Array,
    ranks: Array,
    pairs: pa.Table,
    relative: bool,
    alpha: float,
) -> pa.Table:
    """The table `summary`."""
    counts = statistics.wins_losses_ties(scores)
    repeats = [block.scores[:, order] for block in blocks]
    differences = statistics.bootstrap(repeats, 0, relative, alpha)
    against_best = {row["other"]: row["p"] for row in pairs.slice(0, len(learners) - 1).to_pylist()}
    first = (scores == scores.min(axis=1, keepdims=True)).sum(axis=0)
    times = [_time(blocks, one) for one in order]
    front = _pareto(times, ranks.tolist())
    rows = [
        {
            "learner": name,
            "mean_rank": float(ranks[k]),
            "first": int(first[k]),
            **(_counts(counts[k, 0]) if k else {}),
            **dict(zip(("difference", "low", "high"), differences[k] if k else (), strict=False)),
            "p": against_best.get(name),
            "failed": sum(block.failed[which] for block in blocks),
            "beats_constant": _beaten(blocks, which, name),
            "microseconds": times[k],
            "pareto": k in front if times[k] is not None else None,
        }
        for k, (name, which) in enumerate(zip(learners, order, strict=True))
    ]
    return pa.Table.from_pylist(rows, SUMMARY)


def _time(blocks: Sequence[Block], learner: int) -> float | None:
    """Microseconds a round of a learner, the geometric mean over blocks; None if not known."""
    known = [block.seconds[learner] for block in blocks]
    logs = [math.log(one) for one in known if one and 0.0 < one < math.inf]
    return 1e6 * math.exp(sum(logs) / len(logs)) if len(logs) == len(known) else None


def _pareto(times: Sequence[float | None], ranks: Sequence[float]) -> set[int]:
    """Learners that no other one beats in time and mean rank, or in one if equal in the other."""
    known = [
        (time, rank, k) for k, (time, rank) in enumerate(zip(times, ranks, strict=True)) if time
    ]
    return {
        k
        for time, rank, k in known
        if not any(t <= time and r <= rank and (t, r) != (time, rank) for t, r, _ in known)
    }


def _beaten(blocks: Sequence[Block], learner: int, name: str) -> str | None:
    """On how many of the blocks where it is known a learner beats `Constant`: `3 of 4`."""
    known = [block.beats_constant[learner] for block in blocks]
    known = [one for one in known if one is not None]
    return f"{sum(map(bool, known))} of {len(known)}" if known and name != CONSTANT else None


def blocks_table(
    blocks: Sequence[Block], order: Sequence[int], learners: Sequence[str], scores: Array
) -> pa.Table:
    """The table `blocks`."""
    rows = []
    for block, mine in zip(blocks, scores, strict=True):
        higher = block.metric in METRICS and METRICS[block.metric].better == "higher"
        for k, (which, rank) in enumerate(zip(order, statistics.ranks_of(mine), strict=True)):
            seconds = block.seconds[which]
            rows.append(
                {
                    "block": block.title,
                    "metric": block.metric,
                    "learner": learners[k],
                    "params": block.params[which],
                    "score": None
                    if math.isinf(mine[k])
                    else float(-mine[k] if higher else mine[k]),
                    "rank": float(rank),
                    "repeats": len(block.scores),
                    "failed": block.failed[which],
                    "microseconds": None if seconds is None else 1e6 * seconds,
                }
            )
    return pa.Table.from_pylist(rows, BLOCKS)
