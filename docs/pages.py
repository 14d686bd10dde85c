"""Writes what the documentation takes from the code: whole pages, and parts of hand-written ones.

`python -m docs.pages` names what is not current, and `python -m docs.pages --write` writes it.
"""

import ast
import inspect
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import cache
from html import escape

import click

from docs.measured import ROOT, benchmark_page, item, measured_part, paragraph, speed_part
from flows.cli import COMMANDS, koco
from koco_stream.learners import LEARNERS, record
from koco_stream.learners.spec import SEED, SHARED
from koco_stream.metrics import METRICS
from koco_stream.runs import schemas as records
from koco_stream.runs.schemas import ASKED, PARAMETER_COLUMNS


def named(names):
    """The names, as code."""
    return ", ".join(f"`{name}`" for name in names)


def first_sentence(text):
    """The first sentence of a docstring or of a section of one."""
    return re.split(r"(?<=\.)(?<!al\.)\s", " ".join(text.split()))[0]


# -------------------------------------------------------------------------------- commands


def commands_page():
    """Every command: what it does, and its options."""
    every = [*commands_below(koco, "koco")]
    often = [
        option
        for option in dict.fromkeys(text for _, one in every for text in options_of(one))
        if sum(option in options_of(one) for _, one in every) > 1
    ]
    sections = [
        "# The koco command",
        *map(paragraph, escape(help_of(koco), quote=False).split("\n\n")[:3]),
        "## Options of several commands",
        "\n".join(item(option) for option in often),
    ]
    for path, command in every:
        options = options_of(command)
        lines = [item(option) for option in options if option not in often]
        sections += [
            f"## {path}",
            paragraph(escape(first_sentence(help_of(command)), quote=False)),
            "\n".join(lines),
        ]
    return sections


def commands_below(group, path):
    """(`koco NAME`, the command) of all below the group: those of each day first."""
    ordered = [one for several in COMMANDS.values() for one in several]
    for command in ordered if group is koco else group.commands.values():
        if isinstance(command, click.Group):
            yield from commands_below(command, f"{path} {command.name}")
        else:
            yield f"{path} {command.name}", command


def help_of(command):
    """The help, without its example."""
    return inspect.cleandoc(command.help).partition("\b\nExample:\n")[0].strip()


def options_of(command):
    """What is said of each option, without the range of its numbers."""
    context = click.Context(command)
    options = [q for q in command.params if isinstance(q, click.Option)]
    shown = [option.get_help_record(context) for option in options]
    ranges = r"\s*\[[^\[]*[<>]=?[^\[]*\]|; [^\[;]*<=?x<=?\d+(?=\])"
    return [
        " ".join(f"`{names.removesuffix(' RANGE')}`: {re.sub(ranges, '', text)}".split())
        for names, text in shown
    ]


# ---------------------------------------------------------------------------------- tables


def tables_page():
    """The columns of the result tables."""
    measured = [c for c in records.RUNS if c not in PARAMETER_COLUMNS and c.name not in METRICS]
    place = measured.index(next(c for c in measured if c.name == "numbers_version"))
    after_loss = 1 + [c.name for c in measured].index("error_rate")
    asked = item(f"{named(METRICS)} (double): [metrics](#metrics); null if not asked for")
    parameters = item(
        f"`{PARAMETER_COLUMNS[0].name}` to `{PARAMETER_COLUMNS[-1].name}`: the learner's"
        " [parameters](learners.md#parameters); null where it has none of this name"
    )
    windows = columns_of(c for c in records.WINDOWS if c.name in ("run_id", "first", "last"))
    return [
        "# Tables",
        paragraph(
            "The result tables are Parquet files in the store, joined by `run_id`;"
            " [Results](results.md) reads them. Columns with † may differ from one execution to the"
            " next (times, hosts, cohorts). All others are the same bit for bit, in the same code"
            " and environment. The files' schemas have these meanings too."
        ),
        "## runs",
        "`store/results/runs/*.parquet`: a row for each run.",
        "\n".join(
            [
                *columns_of(measured[:place]),
                parameters,
                *columns_of(measured[place:after_loss]),
                asked,
                *columns_of(measured[after_loss:]),
            ]
        ),
        "## curves",
        paragraph(
            "`store/results/curves/*.parquet`: each run at rounds that are evenly spaced in log t,"
            " and at half its rounds."
        ),
        "\n".join(columns_of(records.CURVES)),
        "## windows",
        "`store/results/windows/*.parquet`: each window, if a sweep asks for windows.",
        "\n".join([*windows, item("`mean_loss`, `error_rate` and metrics: those of its rounds")]),
        "## predictions",
        "`store/results/predictions/*.parquet`: each round, if a sweep keeps predictions.",
        "\n".join(columns_of(records.PREDICTIONS)),
        "## metrics",
        "\n".join(
            item(
                f"`{q.name}` ({q.task}{', two classes' * q.of_two}; {q.low:g} to {q.high:g},"
                f" {q.better} is better): {q.meaning}"
            )
            for q in ASKED
        ),
        "## record",
        paragraph(
            "In Python, `record` of a learner gives an Arrow table with `t` (the round, from 1),"
            f" `prediction` and `loss`. Some learners add {named(record.COUNTED)}: counts up to the"
            " round. Those with a dictionary, or members, add"
            f" {named(record.RECORDED)}: after the round."
        ),
    ]


def columns_of(columns):
    """Declared columns, an item each."""
    return [
        item(f"`{c.name}`{' †' * c.measured} ({str(c.type).partition('[')[0]}): {c.meaning}")
        for c in columns
    ]


# -------------------------------------------------------------------------------- learners


def learners_page():
    """Every parameter, then every learner with its own."""
    shared = (*SHARED, SEED)
    meanings, defaults = {}, {"seed": ["0"]}
    for name, learner in LEARNERS.items():
        for q in learner.parameters:
            defaults.setdefault(q.name, []).append(default_text(learner.defaults()[q.name]))
            if q.name not in [one.name for one in SHARED]:
                key = replace(q, matters_if=None, note="")
                meanings.setdefault(q.name, {}).setdefault(key, (meant(q), []))[1].append(name)
    usual = {name: max(values, key=values.count) for name, values in defaults.items()}
    sections = [
        "# Learners",
        paragraph(
            "Names and defaults are those of sweep files and of Python. A learner's own default"
            " stands beside the name. [Choosing](choosing.md) says which to try and how large"
            " parameters should be, and [Python](api.md#learners) has each class in full. s is the"
            " number of a row's non-zeros, d of features, m of the sketch's rows, B and J of the"
            " points kept."
        ),
        "## Shared parameters",
        "\n".join(item(f"`{q.name}` {usual[q.name]}: {meant(q)}") for q in shared),
        paragraph("A sweep file has `learner_seeds`, for all learners, instead of `seed`."),
        "## Parameters",
        "\n".join(
            item(f"`{name}` {usual[name]}: {'; or '.join(meaning_of_some(found.values()))}")
            for name, found in sorted(meanings.items())
        ),
    ]
    for name, learner in LEARNERS.items():
        own = {q.name: default_text(learner.defaults()[q.name]) for q in learner.parameters}
        given = ", ".join(
            f"`{q}`" if value == usual[q] else f"`{q}` {value}"
            for q, value in own.items()
            if q not in [one.name for one in SHARED]
        )
        sections += [f"## {name}", about(learner), item(given) if given else ""]
    return sections


def meaning_of_some(found):
    """The meanings of a name, those of most learners first, and the others with their learners."""
    (most, _), *others = sorted(found, key=lambda one: -len(one[1]))
    return [most, *(f"for {' and '.join(names)}, {text}" for text, names in others)]


def about(cls):
    """What a learner is and costs, and its source: the docstring's first sentences."""
    text = inspect.cleandoc(cls.__doc__)
    [source] = re.findall(r"^Notes\n-+\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    said = f"{text.partition(chr(10) * 2)[0]} {first_sentence(source)}"
    return paragraph(re.sub(r"docs/([\w-]+\.md)", r"[errata](\1)", said))


def meant(parameter):
    """The values that a parameter may have, and what it means."""
    words = [f"`{choice}`" for choice in parameter.choices]
    if parameter.kind is bool:
        words = ["true or false", *words]
    allowed = ", ".join([*words, *filter(None, [parameter.range_words])])
    return f"{parameter.meaning} ({allowed})" if allowed else parameter.meaning


def default_text(value):
    """A default, as a sweep file has it."""
    return json.dumps(value) if not isinstance(value, str) and value is not None else f"{value}"


def learners_part():
    """Every learner's class, for the site to show."""
    return [f"::: {learner.__module__}.{name}" for name, learner in LEARNERS.items()]


# ---------------------------------------------------------------------------- architecture


def rooms_part():
    """The rooms of each package, layer above layer, as the contracts of the imports have them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = {c["containers"][0]: c["layers"] for c in contracts["contracts"] if "containers" in c}
    lines = []
    for package in ("flows", "storage", "cluster", "koco_stream"):
        first, *others = layers.get(package, [""])
        lines += [f"{package:13}{first}".rstrip(), *(f"{'':13}{row}" for row in others), ""]
    return ["\n".join(["```", *lines[:-1], "```"])]


ALGORITHMS = r"Algorithm \d+|Poster|KORS|Sketched-KONS"
LINE = re.compile(rf"(({ALGORITHMS}), lines? (\d+)(?:(?:, | and | to )\d+)*)[:, ]")


def lines_part():
    """The functions whose docstrings begin with lines of a paper's algorithm, by these lines."""
    functions = {}
    for file in sorted((ROOT / "koco_stream" / "learners").glob("*/*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            text = isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
            if text and (line := LINE.match(text)):
                place = line[2], int(line[3]), line[1]
                functions.setdefault(place, []).append(f"`{file.stem}.{node.name}`")
    return [
        "\n".join(f"- {line}: {', '.join(functions[*by, line])}" for *by, line in sorted(functions))
    ]


@cache
def walks():
    """The lists of docs/walk.py, in a process in which nothing is compiled."""
    words = [sys.executable, str(ROOT / "docs" / "walk.py")]
    return json.loads(subprocess.check_output(words, cwd=ROOT, text=True))


# ----------------------------------------------------------------------------------- files

PAGES = {
    "commands.md": commands_page,
    "tables.md": tables_page,
    "learners.md": learners_page,
    "benchmark.md": benchmark_page,
}
# parts of hand-written pages, each between two comments of its name
INSIDE = {
    "../README.md": {"measured": measured_part},
    "api.md": {"learners": learners_part},
    "costs.md": {"speed": speed_part},
    "architecture.md": {
        "rooms": rooms_part,
        "lines": lines_part,
        **{name: lambda name=name: [walks()[name]] for name in ("row", "sweep")},
    },
}
MADE = "<!-- made by docs/pages.py -->"


def written(page):
    """The text that a page should have."""
    if page in PAGES:
        title, *sections = PAGES[page]()
        return "\n\n".join([title, MADE, *filter(None, sections)]) + "\n"
    text = (ROOT / "docs" / page).read_text()
    for name, part in INSIDE[page].items():
        between = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)", re.S)
        inner = "\n\n".join(part())
        text, n = between.subn(lambda m, inner=inner: f"{m[1]}\n{inner}\n\n{m[2]}", text)
        assert n == 1, f"docs/{page} lacks the comments around its part {name}"
    return text


def main():
    """Write what is not current, or name it and end with status 1."""
    stale = []
    for page in (*PAGES, *INSIDE):
        file, text = ROOT / "docs" / page, written(page)
        if not file.exists() or file.read_text() != text:
            stale.append(f"docs/{page}")
            if "--write" in sys.argv:
                file.write_text(text)
    if stale and "--write" not in sys.argv:
        sys.exit(f"not current: {', '.join(stale)}; write them by python -m docs.pages --write")


if __name__ == "__main__":
    main()
