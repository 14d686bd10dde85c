"""The critical-difference diagram: learners at their mean ranks, the best one on top."""

from collections.abc import Mapping, Sequence

from flows.charts import Chart


def ranks_chart(
    ranks: Mapping[str, float],
    n_blocks: int,
    critical: float | None,
    groups: Sequence[Sequence[str]],
) -> Chart:
    """Mean ranks by learner, the best first, with half the critical difference on both sides.

    Learners whose lines do not overlap differ significantly. `groups` are those that cannot be told
    apart; without a critical difference there are too few blocks for one.
    """
    half = (critical or 0.0) / 2
    places = ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    said = "There are too few blocks for a critical difference."
    if critical is not None:
        joined = "; ".join(", ".join(group) for group in groups)
        said = f"The critical difference is {critical:.2f}. " + (
            f"Not told apart by it: {joined}." if joined else "It tells all of them apart."
        )
    return Chart(
        f"Mean ranks over {n_blocks:,} blocks",
        f"Mean ranks, the best first: {places}. {said}",
        ["learner", "mean rank", "from", "to"],
        [[name, rank, rank - half, rank + half] for name, rank in ranks.items()],
        "mean rank",
        "learner",
        mark="point",
        band=("from", "to") if half else (),
    )
