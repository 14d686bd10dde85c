"""The metrics, each declared once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from koco_stream.errors import WrongInput, nearest

CLASSES, NUMBERS = "classification", "regression"  # tasks, as manifests name them


@dataclass(frozen=True)
class Metric:
    """A metric from `low` to `high` for one `task`, "classification" or "regression"."""

    name: str
    meaning: str
    low: float
    high: float
    better: str
    task: str
    of_two: bool = False


ASKED_FOR = (
    Metric(
        "auc",
        "area under the ROC curve of the scores, where ties count half; over more than 2^20 rounds,"
        " the mean over segments of this length; null if only one class occurs",
        *(0.0, 1.0, "higher", CLASSES, True),
    ),
    Metric(
        "balanced_accuracy",
        "share of correctly predicted rows in each class, averaged over the classes that occur",
        *(0.0, 1.0, "higher", CLASSES),
    ),
    Metric(
        "f1",
        "F1, 2·hits/(2·hits + misses + false alarms), of the label +1; with multiclass, the mean"
        " over the classes that occur or are predicted",
        *(0.0, 1.0, "higher", CLASSES),
    ),
    Metric(
        "kappa",
        "Cohen's kappa: agreement of labels and predictions beyond chance; null if both have only"
        " one and the same class",
        *(-1.0, 1.0, "higher", CLASSES),
    ),
    Metric(
        "log_loss",
        "mean of −log p, where p is the label's probability: the logistic function of the score, or"
        " with multiclass, the softmax of the scores",
        *(0.0, math.inf, "lower", CLASSES),
    ),
    Metric("mae", "mean absolute error", 0.0, math.inf, "lower", NUMBERS),
    Metric("rmse", "square root of the mean squared error", 0.0, math.inf, "lower", NUMBERS),
    Metric(
        "r2",
        "coefficient of determination, 1 − squared error over the labels' variation; null for fewer"
        " than two rounds",
        *(-math.inf, 1.0, "higher", NUMBERS),
    ),
)
METRICS = {metric.name: metric for metric in ASKED_FOR}
# What is computed for every window, beside what is asked for.
ALWAYS = ("mean_loss", "error_rate")


def check_name(name: str) -> None:
    """Raise `WrongInput` if there is no such metric."""
    if name not in METRICS:
        raise WrongInput(f"no metric is called {name!r}{nearest(name, list(METRICS))}")


def possible(names: Sequence[str], task: str, n_classes: int) -> tuple[str, ...]:
    """The metrics that are defined for a task with so many classes."""
    return tuple(
        name
        for name in names
        if METRICS[name].task == task and not (METRICS[name].of_two and n_classes > 2)
    )
