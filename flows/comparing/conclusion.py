"""What may be concluded of a comparison, in one to three sentences."""

from collections.abc import Sequence

import pyarrow as pa

from flows.scores.statistics import Friedman, least_p
from koco_stream.types import Array

# With fewer blocks Wilcoxon's p-value is above 0.1 even if one learner wins everywhere, and the
# distribution of Friedman's statistic is far from the one that its p-value is taken from.
MIN_BLOCKS = 5


def concluded(
    learners: Sequence[str],
    ranks: Array,
    n_blocks: int,
    n_datasets: int,
    friedman: Friedman | None,
    critical: float | None,
    pairs: pa.Table,
    alpha: float,
) -> str:
    """Sentences on what the tests allow to say. `learners` and `ranks` begin with the best."""
    if friedman is None or critical is None:
        return (
            f"Not enough datasets for a test: {n_blocks} block{'s' * (n_blocks != 1)}, and one"
            f" needs at least {MIN_BLOCKS}. {_leader(learners, ranks)} here, which says nothing of"
            " other datasets."
        )
    against_best = pairs.slice(0, len(learners) - 1).to_pylist()
    words = (
        _of_two(against_best[0], n_blocks, alpha)
        if len(learners) == 2
        else _of_several(learners, ranks, n_blocks, friedman, critical, against_best, alpha)
    )
    if n_datasets < MIN_BLOCKS:
        words += (
            f" But the blocks are of {n_datasets} dataset{'s' * (n_datasets != 1)} only, and blocks"
            " of one dataset are not independent: the p-values are too small, and speak of no"
            " other dataset."
        )
    return words


def _of_two(pair: dict[str, object], n_blocks: int, alpha: float) -> str:
    """What may be said of two learners."""
    one, other, p = pair["learner"], pair["other"], float(str(pair["p"]))
    test = f"Wilcoxon's test, {p_text(p)}"
    if is_better(pair, alpha):
        return (
            f"{one} is better than {other}: it wins on {pair['wins']} of {n_blocks} blocks"
            f" ({test})."
        )
    return (
        f"No difference between {one} and {other} can be shown over {n_blocks} blocks"
        f" ({test}).{_too_few(n_blocks, 1, alpha)}"
    )


def _of_several(
    learners: Sequence[str],
    ranks: Array,
    n_blocks: int,
    friedman: Friedman,
    critical: float,
    against_best: Sequence[dict[str, object]],
    alpha: float,
) -> str:
    """What may be said of three learners or more."""
    test = f"Friedman's test, {p_text(friedman.p)}"
    if friedman.p > alpha:
        return (
            f"No difference among the {len(learners)} learners can be shown over {n_blocks} blocks"
            f" ({test}). {_leader(learners, ranks)}, but that may be chance."
        )
    by_signs = [str(pair["other"]) for pair in against_best if is_better(pair, alpha)]
    by_ranks = [
        name for name, rank in zip(learners, ranks, strict=True) if rank - ranks[0] >= critical
    ]
    others = [name for name in learners[1:] if name not in {*by_signs, *by_ranks}]
    signs, nemenyi = "Wilcoxon's test with Holm's correction", "Nemenyi's critical difference"
    begin = f"The learners differ over {n_blocks} blocks ({test})."
    if not by_signs and not by_ranks:
        n_pairs = len(learners) * (len(learners) - 1) // 2
        return (
            f"{begin} {_leader(learners, ranks)}, but neither {signs} nor {nemenyi} tells it apart"
            f" from another one at level {alpha:g}.{_too_few(n_blocks, n_pairs, alpha)}"
        )
    found = {signs: by_signs, nemenyi: by_ranks}
    if by_signs == by_ranks:
        found = {f"{signs} and by {nemenyi}": by_signs}
    told = " and ".join(f"than {listed(names)} by {by}" for by, names in found.items() if names)
    apart = f"; it cannot be told apart from {listed(others)}" if others else ""
    return f"{begin} {learners[0]} is better {told}, at level {alpha:g}{apart}."


def is_better(pair: dict[str, object], alpha: float) -> bool:
    """Whether the first learner of a row of `pairs` is better than the other one, by the test."""
    wins, losses = int(str(pair["wins"])), int(str(pair["losses"]))
    return pair["p"] is not None and float(str(pair["p"])) <= alpha and wins > losses


def _leader(learners: Sequence[str], ranks: Array) -> str:
    """Who has the least mean rank."""
    first = [name for name, rank in zip(learners, ranks, strict=True) if rank == ranks[0]]
    have = "has" if len(first) == 1 else "have"
    return f"{listed(first)} {have} the least mean rank ({ranks[0]:.3g})"


def _too_few(n_blocks: int, n_pairs: int, alpha: float) -> str:
    """A sentence, if no pair of learners could be told apart with so few blocks."""
    least = min(1.0, n_pairs * least_p(n_blocks))
    if least <= alpha:
        return ""
    return f" With so few blocks Wilcoxon's p-value is {least:.2g} at least."


def listed(names: Sequence[str]) -> str:
    """Names in a list: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def p_text(p: float) -> str:
    """A p-value: `p = 0.02`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
