"""An answer of `koco results` as a terminal shows it: what tells its rows apart, in lines that fit.

What is the same in all rows stands once, below the table.
"""

import json
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flows.tables.parameters import params_text, telling, varied
from flows.tables.tables import grouped, lists_of, rows_of
from flows.tables.text import laid_out
from flows.views.answer import Answer
from koco_stream.metrics import METRICS
from koco_stream.streams.orders import AS_STORED

SINGLE = (
    *("dataset", "positive_class", "multiclass", "order", "order_seed", "window_rows", "max_rows"),
    *("learner", "params", "learner_seed", "status", "error", "mean_loss", "error_rate"),
    *(*METRICS, "seconds"),
)
# columns that are left out where all rows have the same value
SAME = {*SINGLE[1 : SINGLE.index("learner")], "learner_seed", "status", "n_runs", "n_runs_other"}
LEAST = ("n_runs", "seconds_mean")  # columns that matter least beside those of another sweep
USUAL = (AS_STORED, "ok")  # values that go without saying
PARAMS = ("params", "params_other")
SPREAD = 2  # digits of a standard deviation


def in_terminal(answer: Answer, width: int) -> tuple[str, list[str]]:
    """The answer as a table in lines of at most `width` characters, and remarks on it.

    Of the parameters it shows those that vary among the runs that meet the query's filters.
    Empty columns are left out, and those that are the same in all rows.
    """
    names, same = _telling_columns(answer.table)
    texts, constants = _params_in_words(answer.configurations)
    rows = [
        [texts[row["learner"], row[name]] if name in PARAMS else row[name] for name in names]
        for row in rows_of(answer.table.select(names))
    ]
    digits = {name: SPREAD for name in names if name.endswith("_std")}
    text, left_out = laid_out(names, rows, width, digits)
    remarks = [f"all rows: {same}"] if same else []
    if answer.more:
        remarks = [f"{answer.more:,} more rows (--limit {len(rows)})", *remarks]
    remarks += constants
    if left_out:
        remarks.append(f"no room for {', '.join(left_out)}")
    return text, [*remarks, *answer.remarks]


def _telling_columns(table: pa.Table) -> tuple[list[str], str]:
    """The columns that say something, and in words what is the same in all rows."""
    names = list(SINGLE if "run_id" in table.column_names else table.column_names)
    if "difference" in names:
        names.sort(key=lambda name: name.startswith(LEAST))  # last, where there may be no room
    pairs = {*zip(*lists_of(table, ["dataset", "dataset_hash"]), strict=True)}
    dull = {"sketch_size"}  # it is among the parameters
    if len(pairs) == len({dataset for dataset, _ in pairs}):
        dull.add("dataset_hash")
    kept, same = [], []
    for name in names:
        values = pc.unique(table.column(name)).to_pylist()
        if values == [None] or name in dull:
            continue
        if name not in SAME or len(values) > 1:
            kept.append(name)
        elif values[0] not in USUAL:
            same.append(f"{name}={values[0]}")
    return kept, " ".join(same)


def _params_in_words(
    configurations: pa.Table,
) -> tuple[dict[tuple[str, str | None], str], list[str]]:
    """Texts of the parameters that vary, by the learner and their JSON; remarks on others that are
    not usual.
    """
    texts: dict[tuple[str, str | None], str] = defaultdict(str)
    constants = defaultdict[str, list[str]](list)
    for learner, rows in grouped(rows_of(configurations), lambda row: row["learner"]).items():
        decoded = {row["params"]: json.loads(row["params"]) for row in rows}
        vary = varied(learner, decoded.values())
        constant: dict[str, Any] = {}
        for text, params in decoded.items():
            texts[learner, text] = params_text(params, list(vary))
            told = telling(learner, params, vary)
            constant |= {name: params[name] for name in told if name not in vary}
        constants[params_text(constant)].append(learner)
    remarks = [
        f"all rows of {', '.join(names)}: {words}" for words, names in constants.items() if words
    ]
    return texts, remarks
