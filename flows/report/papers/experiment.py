"""An experiment, from a TOML file: its sweeps, and the figure and claims that judge them."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow.csv import read_csv

from flows.charts import Chart
from flows.pages import Figure
from flows.report.papers.computed import COMPUTED
from flows.report.rows import manifests_of
from flows.views.views import Views, table_of
from storage.catalogue.entries import CATALOGUE

HERE = Path(__file__).parent
NONE = "SELECT 0 LIMIT 0"


@dataclass(frozen=True)
class Experiment:
    """A published figure or table that can be reproduced, as its file has it."""

    name: str
    about: str
    sweeps: Sequence[str]
    chart_name: str = ""
    paper: str = ""
    ending: str = ""
    takes_more: bool = False
    figure: Mapping[str, Any] = field(default_factory=dict)

    @property
    def datasets(self) -> list[str]:
        return [one.name + self.ending for one in CATALOGUE.values() if self.paper in one.papers]

    def drawn(self, views: Views) -> Figure:
        of = {"before": "", "views": "", "finding": NONE, "notes": NONE, **self.figure}
        sources = [  # what generated datasets were made with
            (name, one.source.get("condition_number"), one.source.get("data_seed"))
            for name, one in manifests_of(views).items()
        ]
        views.connection.register(
            "sources", table_of(sources, dataset=str, condition_number=float, data_seed=int)
        )
        if "stored_curves" in of["views"]:
            views.rows("FROM curves LIMIT 0")  # which reads them
        if (printed := HERE / f"{self.name}.csv").is_file():
            views.connection.register("published", read_csv(printed))
        views.connection.execute(of["before"])
        if self.name in COMPUTED:
            views.connection.register(*COMPUTED[self.name](views))
        views.connection.execute(of["views"])
        found = "; ".join(views.column(of["finding"]))
        charts = [
            Chart(
                **{**one, "rows": views.rows(one["rows"])},
                alt=f"{one['title']}: {found or of['title']}.",
            )
            for one in of["charts"]
        ]
        return Figure(
            of["title"],
            [one for one in charts if one.rows],
            views.rows(of["claims"]),
            views.rows(of["table"]),
            "\n".join([of["note"].strip(), *views.column(of["notes"])]),
            found,
        )


EXPERIMENTS = {
    file.stem: Experiment(file.stem, **tomllib.loads(file.read_text(encoding="utf-8")))
    for file in sorted(HERE.glob("*.toml"))
}
FIGURES = {one.chart_name: one for one in EXPERIMENTS.values() if one.chart_name}
