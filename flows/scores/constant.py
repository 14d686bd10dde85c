"""The trivial learner `Constant`, and which results do not beat it."""

CONSTANT = "Constant"


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
    unbeaten = [
        words.format(scale * constant)
        for words, scale, mine, constant in (
            ("error {:.3g} %", 100.0, error_rate, constant_error_rate),
            ("mean loss {:.4g}", 1.0, mean_loss, constant_mean_loss),
        )
        if mine is not None and constant is not None and mine >= constant
    ]
    return (
        f"{learner}'s best on {stream} is not better than always predicting a constant"
        f" ({', '.join(unbeaten)})"
    )
