"""The page on the benchmark, made from the table that is kept with the package."""

import tomllib

from properdocs.structure.files import File

from flows.charts import drawn
from flows.comparing.blocks import Blocks
from flows.pages import markdown_of
from flows.report.papers.benchmark import PARTS, comparison_of_part, kept_table, scores_of
from flows.reproduce import SWEEPS
from flows.sweeping.search import is_drawn
from flows.tables.tables import grouped
from flows.tables.text import number_text

INTRODUCTION = """\
# The benchmark

All learners of this project, tuned with equal budgets, on all real datasets at hand. These
commands compute it again, in less than an hour on two cores, and compare every number with
this page to the last bit:

```sh
koco reproduce benchmark --data FOLDER --store store
```

FOLDER has the datasets' files ([Data](data.md)). The page that the command writes has the same
tables."""

HOW = """\
## How it was made

- **Parts.** Each part is a packaged sweep. Datasets that are larger elsewhere are here in the
  part that this project has a copy of; `koco list datasets` says which. w1a is a part of w8a, and
  a9a and adult describe the same people in two ways, so that not all blocks are independent.
- **Budget.** Each learner has 16 configurations on each dataset, drawn by a scrambled Sobol
  sequence from the ranges below ([Search](search.md)). Halving keeps a quarter of them at each
  rung, by their mean loss. Learners with more parameters get no more configurations.
- **Repeats.** Three orders, and two seeds of learners that draw random numbers.
- **Selection.** A configuration is chosen by the first half of the stream, and compared on the
  second half ([Compare learners](compare.md)). Errors are progressive: each row is predicted
  before it is learnt.
- **Loss.** The squared loss for all, since all learners have it. Several classes are learnt each
  against the rest. Labels are −1 and 1, and predictions are within [−1, 1].
- **Times** are of the scan only, with both cores of a machine at work. They are the only numbers
  here that another machine does not repeat."""


def on_files(files, config):
    """The builder calls this with the files that it has found."""
    files.append(File.generated(config, "benchmark.md", content=benchmark_page()))
    return files


def benchmark_page():
    """The page as Markdown."""
    parts = parts_of(kept_table())
    sections = [
        INTRODUCTION,
        *(_section(part, comparison_of_part(one)) for part, one in parts.items()),
        HOW,
        _ranges(),
    ]
    return "\n\n".join(sections) + "\n"


def parts_of(table):
    """The blocks of each part, from the table that is kept."""
    rows = [{**row, "failed": "failed" * row["failed"], "lacking": ""} for row in table.to_pylist()]
    parts = {}
    for part, mine in grouped(rows, lambda row: row["part"]).items():
        blocks = [*grouped(mine, lambda row: row["title"]).values()]
        parts[part] = Blocks([row["learner"] for row in blocks[0]], blocks, [])
    return parts


def _section(part, one):
    """A part: its diagram, the table of learners, and the scores on each dataset."""
    return "\n\n".join(
        [
            f"## {PARTS[part][0]}",
            f"{PARTS[part][1]} `koco sweep {part}` computes it.",
            *(f'<div class="diagram">{drawn(spec)}</div>' for _, spec in one.diagram.files()),
            _table(one.shown),
            markdown_of(f"{one.how} {one.meaning}"),
            "Error rate, or mean loss where labels are real numbers; the best in bold:",
            _table(scores_of(one), best=True),
        ]
    )


def _table(rows, best=False):
    """A table in Markdown; with `best`, the least number of each row is bold."""
    lines = [f"| {' | '.join(rows[0])} |", "| --- " * len(rows[0]) + "|"]
    for row in rows:
        numbers = [value for value in row.values() if isinstance(value, float)]
        least = min(numbers) if best and numbers else None
        cells = [
            f"**{_cell(value)}**" if value is not None and value == least else _cell(value)
            for value in row.values()
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value):
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number_text(value, 3) if isinstance(value, float) else markdown_of(value)


def _ranges():
    """From what each learner's parameters are drawn, and what is fixed, in each part."""
    rows = {}
    for part in PARTS:
        content = tomllib.loads((SWEEPS / f"{part}.toml").read_text(encoding="utf-8"))
        for table in content["learner"]:
            key = table["name"], _parameters(table)
            rows.setdefault(key, []).append(PARTS[part][0].lower())
    body = [
        {"learner": name, "parameters": text, "parts": "; ".join(where)}
        for (name, text), where in sorted(rows.items())
    ]
    return "Parameters:\n\n" + _table(body)


def _parameters(table):
    """The parameters of a learner's table in words."""
    return ", ".join(
        f"{name} {_drawn(value)}" if is_drawn(value) else f"{name} = {value}".replace("True", "yes")
        for name, value in table.items()
        if name != "name"
    )


def _drawn(value):
    """From what a parameter is drawn, in words."""
    ((kind, given),) = value.items()
    values = [str(one).lower() if isinstance(one, bool) else f"{one}" for one in given]
    if kind == "choice":
        return f"one of {', '.join(values)}"
    return f"from {values[0]} to {values[1]} ({kind.replace('_', '-')})"
