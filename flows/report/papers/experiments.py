"""The experiments that can be reproduced, by name; and their figures, by their names in sweeps."""

from flows.report.papers import (
    benchmark,
    kons_adversary,
    poster_tables,
    sampling_floor,
    sketch_start,
    son_figure_1,
    son_figure_2,
    son_figure_3,
)

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        *(son_figure_1, son_figure_2, son_figure_3, sketch_start),
        *(poster_tables, kons_adversary, benchmark, sampling_floor),
    )
}
FIGURES = {one.chart: one.figure for one in EXPERIMENTS.values() if one.figure}
