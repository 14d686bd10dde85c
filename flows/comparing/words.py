"""What a comparison says in words: what may be concluded, and how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flows.charts import Row
from flows.comparing.blocks import ALL, CONSTANT, LOSS
from flows.scores import least_p

if TYPE_CHECKING:
    from flows.comparing.comparison import Comparison

# With fewer blocks Wilcoxon's p-value is above 0.1 even if one learner wins everywhere, and the
# distribution of Friedman's statistic is far from the one that its p-value is taken from.
MIN_BLOCKS = 5
SIGNS = "Wilcoxon's test with Holm's correction"
NEMENYI = "Nemenyi's critical difference"


def concluded(found: Comparison) -> str:
    if found.friedman is None:
        return (
            f"Not enough datasets for a test: {counted(found.n_blocks, 'block')}, and one needs at"
            f" least {MIN_BLOCKS}. {_leader(found)} here, which says nothing of other datasets."
        )
    words = _of_several(found, found.friedman.p) if found.learners[2:] else _of_two(found)
    if found.n_datasets < MIN_BLOCKS:
        words += (
            f" But the blocks are of {counted(found.n_datasets, 'dataset')} only, and blocks of one"
            " dataset are not independent: the p-values are too small, and speak of no other"
            " dataset."
        )
    return words


def _of_two(found: Comparison) -> str:
    [pair] = found.against_best
    one, other, test = *found.learners, f"Wilcoxon's test, {p_text(pair['p'])}"
    if is_better(pair, found.alpha):
        over = f"it wins on {pair['wins']} of {found.n_blocks} blocks"
        return f"{one} is better than {other}: {over} ({test})."
    over = f"can be shown over {found.n_blocks} blocks ({test}).{_too_few(found)}"
    return f"No difference between {one} and {other} {over}"


def _of_several(found: Comparison, p: float) -> str:
    over = f"over {found.n_blocks} blocks (Friedman's test, {p_text(p)})"
    if p > found.alpha:
        return (
            f"No difference among the {len(found.learners)} learners can be shown {over}."
            f" {_leader(found)}, but that may be chance."
        )
    begin, (best, *rest), ranks = f"The learners differ {over}.", found.learners, found.ranks
    critical = found.critical_difference or 0.0
    by_signs = [pair["other"] for pair in found.against_best if is_better(pair, found.alpha)]
    by_ranks = [one for one in rest if ranks[one] - ranks[best] >= critical]
    if not by_signs and not by_ranks:
        return (
            f"{begin} {_leader(found)}, but neither {SIGNS} nor {NEMENYI} tells it apart from"
            f" another one at level {found.alpha:g}.{_too_few(found)}"
        )
    both = {f"{SIGNS} and by {NEMENYI}": by_signs}
    by = both if by_signs == by_ranks else {SIGNS: by_signs, NEMENYI: by_ranks}
    told = " and ".join(f"than {listed(names)} by {test}" for test, names in by.items() if names)
    others = listed([one for one in rest if one not in {*by_signs, *by_ranks}])
    apart = f"; it cannot be told apart from {others}" if others else ""
    return f"{begin} {best} is better {told}, at level {found.alpha:g}{apart}."


def is_better(pair: Row, alpha: float) -> bool:
    return bool(pair["p"] <= alpha and pair["wins"] > pair["losses"])


def _leader(found: Comparison) -> str:
    least = min(found.ranks.values())
    first = [name for name, rank in found.ranks.items() if rank == least]
    return f"{listed(first)} ha{'ve' if first[1:] else 's'} the least mean rank ({least:.3g})"


def _too_few(found: Comparison) -> str:
    """A sentence, if no pair of learners could be told apart with so few blocks."""
    least = min(1.0, len(found.pairs) * least_p(found.n_blocks))
    return f" With so few blocks Wilcoxon's p-value is {least:.2g} at least." * (
        least > found.alpha
    )


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def beaten(rows: Sequence[Row]) -> str | None:
    """On how many blocks a learner beats `Constant`, where that is known."""
    known = [row["beats_constant"] for row in rows if row["beats_constant"] is not None]
    return f"{sum(known)} of {len(known)}" if known and rows[0]["learner"] != CONSTANT else None


def counted(n: int, what: str, of: str = "") -> str:
    return f"{n:,}{of} {what}{'s' * (n != 1 or bool(of))}"


def p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def how_compared(found: Comparison, choices: int, halved: bool) -> str:
    least, most = found.repeats
    often = f"{least}" if least == most else f"{least} to {most}"
    best = f"For each learner and block, of up to {choices:,} configurations the one with the best"
    chosen = (
        f"{best} mean over its repeats was chosen, by the same numbers that are compared: the more"
        " configurations a learner has, the more that favours it. The selection first-half does not"
        " choose by what it compares."
        if found.select == ALL
        else f"{best} mean on the first half of the stream was chosen; the second half alone is"
        " compared."
    )
    if choices == 1:
        nothing = "" if halved else ", so nothing was chosen"
        chosen = f"Each learner has one configuration on each block{nothing}."
    early = (
        " Halving or a race had stopped other configurations, by the first rounds of the same"
        " streams."
    )
    return (
        f"{counted(found.n_blocks, 'block')} (a dataset in one kind of order) of"
        f" {counted(found.n_datasets, 'dataset')}, with {often} repeat{'s' * (most != 1)} (orders"
        f" and seeds) each, by {' or '.join(found.metrics)}. {chosen}{early * halved}"
    )


def unresolved(found: Comparison) -> str:
    """A sentence, if differences from the best are below their resolution."""
    below = {
        pair["resolution"]: pair["resolved_over"]
        for pair in found.against_best
        if None not in (pair["resolution"], pair["difference"])
        and abs(pair["difference"]) < pair["resolution"]
    }
    if not below:
        return ""
    ends = " to ".join(f"{one:.2g}" for one in sorted({min(below), max(below)}))
    return (
        f"Differences from {found.learners[0]} below {ends} cannot be resolved by"
        f"{' the orders and seeds of' * ('repeats' in below.values())} these"
        f" {counted(found.n_blocks, 'block')}."
    )


def weaknesses(blocks: Sequence[Sequence[Row]]) -> list[str]:
    failed = {
        mine[0]["learner"]: [f"{row['title']} ({row['failed']})" for row in mine if row["failed"]]
        for mine in zip(*blocks, strict=True)
    }
    mixed = [row["title"] for row, *_ in blocks if row["metric"] == LOSS and row["losses"][1:]]
    losses = (
        f"the learners have different losses on {', '.join(mixed)}, so that their mean losses"
        " cannot be compared; give them one loss"
    )
    return [
        *(
            f"{name} has no result on {len(where)} of {len(blocks)} blocks, and the worst rank"
            f" there: {'; '.join(where)}"
            for name, where in failed.items()
            if where
        ),
        *([losses] if mixed else []),
    ]
