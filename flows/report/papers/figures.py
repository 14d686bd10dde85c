"""The papers' figures that a report can draw, by name."""

from collections.abc import Callable

import pyarrow as pa

from flows.report.drawing import Figure
from flows.report.papers.kons_adversary import kons_adversary
from flows.report.papers.poster_tables import poster_tables
from flows.report.papers.sampling_floor import sampling_floor
from flows.report.papers.sketch_start import sketch_start
from flows.report.papers.son_figure_1 import son_figure_1
from flows.report.papers.son_figure_2 import son_figure_2
from flows.report.papers.son_figure_3 import son_figure_3
from koco_stream.io.paths import AnyPath

FIGURES: dict[str, Callable[[AnyPath, pa.Table], Figure]] = {
    "sketch-start": sketch_start,
    "son-figure-1": son_figure_1,
    "son-figure-2": son_figure_2,
    "son-figure-3": son_figure_3,
    "poster-tables": poster_tables,
    "kons-adversary": kons_adversary,
    "sampling-floor": sampling_floor,
}
