"""An answer of `koco results` as a terminal shows it: what tells its rows apart, in lines that fit.

What is the same in all rows stands once, below the table.
"""

import json
import textwrap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flows.tables.parameters import params_text, telling, varied
from flows.tables.tables import grouped, rows_of
from flows.tables.text import laid_out, printable
from flows.views.answer import Answer, Query
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


def in_terminal(answer: Answer, query: Query, width: int) -> tuple[str, list[str]]:
    """The answer to a query as a table in lines of at most `width` characters, and remarks on it.

    Of the parameters it shows those that vary among the runs that meet the query's filters.
    Empty columns are left out, and those that are the same in all rows.
    """
    names, remarks = _telling_columns(answer.table, query)
    table = answer.table.select(names)
    if any(name in PARAMS for name in names):
        texts, constant = _params_in_words(answer.configurations)
        remarks += constant
        for name in {*PARAMS} & {*names}:
            shown = [texts.get(text, text) for text in table.column(name).to_pylist()]
            table = table.set_column(
                table.column_names.index(name), name, pa.array(shown, pa.string())
            )
    digits = {name: SPREAD for name in names if name.endswith("_std")}
    layout = laid_out(names, [list(row.values()) for row in rows_of(table)], width, digits)
    if answer.more:
        remarks = [f"{answer.more:,} more rows (--limit {query.limit})", *remarks]
    if layout.left_out:
        remarks.append(f"no room for {', '.join(layout.left_out)}")
    remarks = [
        textwrap.fill(
            printable(words),
            width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for words in (*remarks, *answer.remarks)
    ]
    return layout.text, remarks


def _telling_columns(table: pa.Table, query: Query) -> tuple[list[str], list[str]]:
    """The columns that say something, and a remark on what is the same in all rows."""
    names = list(SINGLE if query.single else table.column_names)
    if not table.num_rows:
        return names, []
    if query.other is not None:
        names.sort(key=lambda name: name.startswith(LEAST))  # last, where there may be no room
    if query.best:
        names = [name for name in names if name != "sketch_size"]  # it is among the parameters
    kept, same = [], []
    for name in names:
        values = pc.unique(table.column(name)).to_pylist()
        if values == [None] or (name == "dataset_hash" and _one_each(table)):
            continue
        if name in SAME and len(values) == 1:
            if values[0] not in USUAL:
                same.append(f"{name}={values[0]}")
            continue
        kept.append(name)
    return kept, [f"all rows: {' '.join(same)}"] if same else []


def _one_each(table: pa.Table) -> bool:
    """Whether each dataset's rows have the same content."""
    pairs = table.group_by(["dataset", "dataset_hash"]).aggregate([])
    return pc.count_distinct(pairs.column("dataset")).as_py() == pairs.num_rows


def _params_in_words(configurations: pa.Table) -> tuple[dict[str | None, str], list[str]]:
    """Texts of the parameters that vary, by their JSON; remarks on others that are not usual."""
    texts: dict[str | None, str] = {None: ""}
    constants: dict[str, list[str]] = {}
    by_learner = grouped(rows_of(configurations), lambda row: row["learner"])
    for learner, rows in sorted(by_learner.items()):
        decoded = [json.loads(row["params"]) for row in rows]
        vary = varied(learner, decoded)
        constant: dict[str, Any] = {}
        for row, params in zip(rows, decoded, strict=True):
            # two learners may have the same parameters, of which others vary
            words = (texts.get(row["params"], ""), params_text(params, list(vary)))
            texts[row["params"]] = max(words, key=len)
            told = telling(learner, params, vary)
            constant |= {name: params[name] for name in told if name not in vary}
        if constant:
            constants.setdefault(params_text(constant), []).append(learner)
    remarks = [f"all rows of {', '.join(names)}: {words}" for words, names in constants.items()]
    return texts, remarks
