"""Which runs of which sweeps are compared, and by what: of whole streams, or of their halves."""

from collections.abc import Sequence

from flows.scores.constant import CONSTANT, NOT_JUDGED
from flows.views.views import Views, is_one_of
from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath
from koco_stream.metrics import METRICS

ALL, FIRST_HALF = "all", "first-half"
SELECTIONS = (ALL, FIRST_HALF)
LOSS, ERROR = "mean_loss", "error_rate"
MEASURES = (LOSS, ERROR, *METRICS)
WITHOUT_PREDICTIONS = NOT_JUDGED - {CONSTANT}


def check_choices(select: str, metric: str | None) -> None:
    """Raise `WrongInput` for an unknown selection or metric, or two that do not go together."""
    if select not in SELECTIONS:
        raise WrongInput(f"select is {select!r}{nearest(select, list(SELECTIONS))}")
    if metric is not None and metric not in MEASURES:
        raise WrongInput(f"no metric is called {metric!r}{nearest(metric, list(MEASURES))}")
    if select == FIRST_HALF and metric not in (None, LOSS, ERROR):
        raise WrongInput(
            f"{metric} is only known of whole streams, and select={FIRST_HALF!r} needs it of their"
            f" halves; take {LOSS} or {ERROR}, or select={ALL!r}"
        )


def views_to_compare(
    store: AnyPath,
    sweeps: Sequence[str],
    select: str = ALL,
    metric: str | None = None,
    learners: Sequence[str] = (),
) -> Views:
    """Views of the runs of some sweeps that a comparison counts, measured by what it compares.

    `learners` are those that are compared; all that predict something, if none are named. Raises
    `WrongInput` for an unknown sweep or learner.
    """
    views = Views(store, sweeps)
    found = views.table("SELECT DISTINCT learner FROM runs").column("learner").to_pylist()
    there = sorted({*found} - WITHOUT_PREDICTIONS)
    for name in learners:
        if name not in there:
            raise WrongInput(f"no run of {', '.join(sweeps)} is of {name!r}{nearest(name, there)}")
    if {*found} - {*(learners or there)}:
        views.select([is_one_of("learner", learners or there)])
    if select == FIRST_HALF:
        of_halves = {LOSS: "{}_loss", ERROR: "{}_error"}
        by = of_halves.get(metric or "", "coalesce({0}_error, {0}_loss)")
        views.measure(by.format("first"), by.format("second"))
    elif metric is not None:
        sign = "-" if metric in METRICS and METRICS[metric].better == "higher" else ""
        views.measure(f"{sign}{metric}", f"{sign}{metric}")
    return views


def unfinished(views: Views) -> list[str]:
    """A sentence on each sweep of which runs are not there yet."""
    return [
        f"{row['missing']:,} of {row['planned']:,} runs of {row['sweep']} are not computed yet"
        for row in views.rows(
            "SELECT sweep, count(*) AS planned, count(*) FILTER (WHERE r.run_id IS NULL) AS missing"
            " FROM chosen LEFT JOIN stored_runs r USING (run_id) GROUP BY sweep"
            " HAVING missing > 0 ORDER BY sweep"
        )
    ]
