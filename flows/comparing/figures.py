"""The tables of a comparison: learners, pairs of learners, and blocks."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from flows.comparing.blocks import Block, sign_of
from flows.scores import statistics
from flows.scores.constant import CONSTANT
from flows.scores.means import rounded
from koco_stream.runs.schemas import typed
from koco_stream.types import Array

SUMMARY = typed(
    learner=str,
    mean_rank=float,
    first=int,
    wins=int,
    losses=int,
    ties=int,
    difference=float,
    low=float,
    high=float,
    p=float,
    compared=int,
    failed=int,
    beats_constant=str,
    microseconds=float,
)
PAIRS = typed(
    learner=str,
    other=str,
    wins=int,
    losses=int,
    ties=int,
    difference=float,
    p_alone=float,
    p=float,
    compared=int,
)
BLOCKS = typed(
    block=str,
    metric=str,
    learner=str,
    params=str,
    score=float,
    rank=float,
    repeats=int,
    failed=str,
    microseconds=float,
)


def pairs_table(learners: Sequence[str], exact: Array, relative: bool, enough: bool) -> pa.Table:
    """The table `pairs` of exact means; without p-values if there are not enough blocks."""
    counts = statistics.wins_losses_ties(rounded(exact))
    which = list(combinations(range(len(learners)), 2))
    differences = [
        statistics.differences(exact[:, [one]], exact[:, other], relative)[:, 0]
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
                "compared": int(np.isfinite(difference).sum()),
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
    compared = np.isfinite(scores + scores[:, [0]]).sum(axis=0)
    first = (scores == scores.min(axis=1, keepdims=True)).sum(axis=0)
    rows = [
        {
            "learner": name,
            "mean_rank": float(ranks[k]),
            "first": int(first[k]),
            **(_counts(counts[k, 0]) if k else {}),
            **dict(zip(("difference", "low", "high"), differences[k] if k else (), strict=False)),
            "p": against_best.get(name),
            "compared": int(compared[k]) if k else None,
            "failed": sum(bool(block.failed[which]) for block in blocks),
            "beats_constant": _beaten(blocks, which, name),
            "microseconds": _time(blocks, which),
        }
        for k, (name, which) in enumerate(zip(learners, order, strict=True))
    ]
    return pa.Table.from_pylist(rows, SUMMARY)


def _time(blocks: Sequence[Block], learner: int) -> float | None:
    """Microseconds a round of a learner, the geometric mean over blocks; None if not known."""
    known = [block.seconds[learner] for block in blocks]
    logs = [math.log(one) for one in known if one and 0.0 < one < math.inf]
    return 1e6 * math.exp(math.fsum(logs) / len(logs)) if len(logs) == len(known) else None


def _beaten(blocks: Sequence[Block], learner: int, name: str) -> str | None:
    """On how many of the blocks where it is known a learner beats `Constant`: `3 of 4`."""
    known = [block.beats_constant[learner] for block in blocks]
    known = [one for one in known if one is not None]
    return f"{sum(map(bool, known))} of {len(known)}" if known and name != CONSTANT else None


def blocks_table(
    blocks: Sequence[Block], order: Sequence[int], learners: Sequence[str], scores: Array
) -> pa.Table:
    """The table `blocks`."""
    rows = [
        {
            "block": block.title,
            "metric": block.metric,
            "learner": learners[k],
            "params": block.params[which],
            "score": None if math.isinf(score) else float(sign_of(block.metric) * score) + 0.0,
            "rank": float(rank),
            "repeats": len(block.scores),
            "failed": block.failed[which] or None,
            "microseconds": (seconds := block.seconds[which]) and 1e6 * seconds,
        }
        for block, mine in zip(blocks, scores, strict=True)
        for k, (which, score, rank) in enumerate(
            zip(order, mine, statistics.ranks_of(mine), strict=True)
        )
    ]
    return pa.Table.from_pylist(rows, BLOCKS)
