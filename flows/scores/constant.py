"""The trivial learner `Constant`, and which results beat it."""

from koco_stream.learners import LEARNERS

CONSTANT = "Constant"
# Not compared with it: itself, and what predicts nothing and so has no loss (KORS).
NOT_JUDGED = {CONSTANT, *(name for name, one in LEARNERS.items() if "loss" in one.unused)}
# the columns of the table `runs` by whose means results are compared with those of `Constant`
JUDGED = ("mean_loss", "error_rate", "constant_mean_loss", "constant_error_rate")


def not_better_words(
    learner: str,
    stream: str,
    mean_loss: float | None,
    error_rate: float | None,
    constant_mean_loss: float | None,
    constant_error_rate: float | None,
) -> str:
    """A sentence on a learner's best result that does not beat `Constant`.

    It has those numbers of `Constant` that the learner does not beat.
    """
    unbeaten = []
    if error_rate is not None and constant_error_rate is not None:
        if error_rate >= constant_error_rate:
            unbeaten.append(f"error {100 * constant_error_rate:.3g} %")
    if mean_loss is not None and constant_mean_loss is not None:
        if mean_loss >= constant_mean_loss:
            unbeaten.append(f"mean loss {constant_mean_loss:.4g}")
    return (
        f"{learner}'s best on {stream} is not better than always predicting a constant"
        f" ({', '.join(unbeaten)})"
    )
