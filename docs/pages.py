"""Pages of the site that are made from the code when it is built, so that they cannot be out of
date: commands, tables, learners.
"""

import html
import inspect
import json
import math
import re
from pathlib import Path

import click
from properdocs.structure.files import File

from flows.cli import koco
from koco_stream.learners import LEARNERS, record
from koco_stream.learners.base import Learner
from koco_stream.learners.spec import SEED, SHARED
from koco_stream.metrics import METRICS
from koco_stream.runs import schemas as records


def on_files(files, config):
    """The builder calls this with the files that it has found."""
    for name, page in MADE.items():
        files.append(File.generated(config, name, content=page()))
    return files


def commands_page():
    """Every subcommand of koco: its usage, help, options and example."""
    sections = [
        "# The koco command",
        f"    {usage(koco, 'koco')}",
        help_of(koco),
        *options_of(koco),
    ]
    for path, command in subcommands(koco, "koco"):
        sections += [
            f"## {path}",
            f"    {usage(command, path)}",
            help_of(command),
            *options_of(command),
        ]
    return "\n\n".join(sections) + "\n"


def subcommands(group, path):
    """(`koco NAME`, the command) of all below the group, a group before those in it."""
    for name, command in sorted(group.commands.items()):
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from subcommands(command, f"{path} {name}")


def usage(command, path):
    """The usage in a line."""
    return " ".join([path, *command.collect_usage_pieces(click.Context(command, info_name=path))])


def help_of(command):
    """The help in Markdown: what stands below \\b, the example, is code."""
    text, _, example = inspect.cleandoc(command.help or "").partition("\b\nExample:\n")
    text = re.sub(
        r"[*_<>|]",
        lambda found: (
            "\\" + found.group() if found.group() in "*_|" else html.escape(found.group())
        ),
        text.strip(),
    )
    text = re.sub(r"docs/([\w-]+\.md)", r"[docs/\1](\1)", text)
    return f"{text}\n\n```sh\n{inspect.cleandoc(example)}\n```" if example else text


def options_of(command):
    """The options, one a line."""
    context = click.Context(command)
    shown = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    lines = [
        f"- `{names}`: {html.escape(text, quote=False)}"
        for names, text in filter(None, shown)
        if text and names != "--help"
    ]
    return ["\n".join(lines)] if lines else []


def tables_page():
    """The columns of the result tables."""
    sections = [
        "# Tables",
        (
            "This page is the reference for the result tables. They are Parquet files in the store,"
            " and are joined by `run_id`; [Read results](read-results.md) has examples. Columns"
            " marked † may differ from one execution to the next (times, hosts, cohorts). All other"
            " columns are the same bit for bit if code and environment are the same. The schemas of"
            " the files also contain meanings and units."
        ),
        "## runs",
        "`store/results/runs/*.parquet`: one row per run.",
        columns_of(records.RUNS),
        "## curves",
        (
            "`store/results/curves/*.parquet`: each run at rounds that are evenly spaced in log t,"
            " and at half its rounds. Runs stored by earlier versions have no point there."
        ),
        columns_of(records.CURVES),
        "## windows",
        (
            "`store/results/windows/*.parquet`: the [metrics](metrics.md) of each window, if a"
            " sweep asks for windows."
        ),
        columns_of(records.WINDOWS),
        "## predictions",
        "`store/results/predictions/*.parquet`: one row per round, if a sweep keeps predictions.",
        columns_of(records.PREDICTIONS),
        "## metrics",
        metrics_table(),
        "## record",
        (
            "In Python, `record` of a learner returns an Arrow table with `t` (the round, from 1),"
            f" `prediction` and `loss`. Some learners add {words(record.COUNTED)} (counts up to the"
            f" round). Learners with a dictionary add {words(record.RECORDED)} (after the round)."
        ),
    ]
    return "\n\n".join(sections) + "\n"


def metrics_table():
    """The declared metrics as a table."""
    lines = ["| metric | labels | range | better | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| `{q.name}` | {q.task}{', two classes' * q.of_two} | {q.low:g} to {q.high:g} |"
        f" {q.better} | {q.meaning} |"
        for q in METRICS.values()
    ]
    return "\n".join(lines)


def columns_of(columns):
    """Declared columns as a table."""
    lines = ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{c.name}`{' †' * c.measured} | {c.type} | {c.unit} |"
        f" {c.meaning.replace('|', chr(92) + '|')} |"
        for c in columns
    ]
    return "\n".join(lines)


def learners_page():
    """Every learner: what it is, its parameters, what can be read from it."""
    shared = ", ".join(f"[`{q.name}`](#shared)" for q in SHARED)
    sections = [
        "# Learners",
        (
            "This page is the reference for all learners and their parameters. Sweep files use the"
            " same names. In Python, the parameters are"
            f" arguments of the class. All learners also take {shared}. [Python](python.md)"
            " describes the methods that they share."
        ),
        "## Shared",
        parameters_of((*SHARED, SEED), {**next(iter(LEARNERS.values())).defaults(), "seed": 0}),
        (
            "`seed` is an argument in Python. In a sweep file it is `learner_seeds`, for all"
            " learners at once."
        ),
    ]
    for name, learner in LEARNERS.items():
        own = tuple(q for q in learner.parameters if q not in SHARED)
        sections += [
            f"## {name}",
            about(learner),
            parameters_of(own, learner.defaults()) if own else "",
            attributes_of(learner),
        ]
    return "\n\n".join(section for section in sections if section) + "\n"


def about(cls):
    """The class's docstring, its mentions of pages as links."""
    return re.sub(r"docs/([\w-]+\.md)", r"[docs/\1](\1)", inspect.cleandoc(cls.__doc__))


def parameters_of(parameters, defaults):
    """Declared parameters as a table."""
    lines = [
        "| parameter | type | default | allowed | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    return "\n".join(
        [
            *lines,
            *(
                f"| `{q.name}` | {q.kind.__name__} | `{defaults[q.name]!r}` | {allowed(q)} |"
                f" {q.meaning} |"
                for q in parameters
            ),
        ]
    )


def allowed(parameter):
    """The values that a parameter may have, in words."""
    if parameter.choices:
        return ", ".join(f"`{choice}`" for choice in parameter.choices)
    if parameter.kind is bool:
        return ""
    low = (
        ""
        if math.isinf(parameter.low)
        else f"{'above' if parameter.above else 'from'} {parameter.low:g}"
    )
    high = "" if math.isinf(parameter.high) else f"to {parameter.high:g}"
    return " ".join(word for word in (low, high, "or None" * parameter.optional) if word)


def attributes_of(cls):
    """What can be read from a learner, or done with it, beside what all have."""
    own = [
        (n, v)
        for c in cls.__mro__[: cls.__mro__.index(Learner)]
        for n, v in vars(c).items()
        if not n.startswith("_")
        and (isinstance(v, property) or inspect.isfunction(v))
        and n not in vars(Learner)
    ]
    lines = []
    for name, value in dict(reversed(own)).items():
        call = (
            ""
            if isinstance(value, property)
            else str(inspect.signature(value))
            .split(" ->")[0]
            .replace("(self, ", "(")
            .replace("'", "")
        )
        lines.append(f"- `{name}{call}`: {' '.join(inspect.cleandoc(value.__doc__).split())}")
    return "\n".join(lines)


def speed_page():
    """The claims of the benchmark, as its last whole run on one machine had them."""
    found = json.loads((Path(__file__).parent / "speed.json").read_text())
    sections = [
        "# Measured speed",
        (
            "`make bench` runs the learners beside Vowpal Wabbit and NumPy, in turn, on one core,"
            " and sweeps on two, beside joblib and Optuna. Here is each of its claims,"
            f" as measured on one machine ({found['machine']}). They are ratios of medians, so"
            " that they mean something on yours too; `python -m tests.bench --json FILE` writes"
            " them. What does not hold is an aim that is not reached. It is called disturbed if the"
            " repetitions lie far apart, as they do beside other work."
        ),
        claims_table(found["claims"]),
    ]
    return "\n\n".join(sections) + "\n"


def claims_table(claims):
    """Claims of the benchmark as a table."""
    lines = ["| claim | required | measured | holds |", "| --- | --- | --- | --- |"]
    for found in claims:
        bound, measured, holds = (found[name] for name in ("bound", "measured", "holds"))
        required = "" if bound is None else f"at {'least' if bound > 0 else 'most'} {abs(bound):g}"
        shown = "not measured" if measured is None else f"{measured:.4g}"
        said = {True: "yes", False: "disturbed" if found["disturbed"] else "no", None: ""}[holds]
        lines.append(f"| {found['claim']} | {required} | {shown} | {said} |")
    return "\n".join(lines)


def words(names):
    """The names, as code."""
    return ", ".join(f"`{name}`" for name in names)


MADE = {
    "commands.md": commands_page,
    "tables.md": tables_page,
    "learners.md": learners_page,
    "speed.md": speed_page,
}
