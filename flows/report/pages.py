"""Pages from templates, as self-contained HTML and as Markdown."""

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

import koco_stream
from flows.charts import library
from flows.report.content import Page
from koco_stream.io.paths import AnyPath, StorePath, store_path

MISSING = "–"
CLAIM_COLUMNS = ("Claim", "Criterion", "Came out", "Holds")  # the fields of a `Claim`
# Control characters, on which a terminal acts that shows the Markdown, and those that turn the
# direction in which a text is read.
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LONG = 40  # longer cells get a minimum width, because tables scroll on narrow screens


def write_page(store: AnyPath, name: str, page: Page) -> StorePath:
    """Write a page into the store's reports: as HTML, and as Markdown without charts.

    Its security policy allows only the two scripts in it, and no loading of other files. Returns
    the path of the HTML file.
    """
    folder, content = store_path(store) / "reports", {"page": page, "name": name}
    markdown = re.sub(r"\n{3,}", "\n\n", rendered("page.md", **content)).strip()
    (folder / f"{name}.md").write_text(f"{markdown}\n")
    style, script = rendered("style.css"), rendered("script.js")
    scripts = [library(), script] if page.has_charts else [script]
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    written = folder / f"{name}.html"
    whole = rendered("page.html", style=style, hashes=hashes, **content)
    # last, for what is unseen in a library is part of it
    told = "".join(f"<script>{one}</script>\n" for one in scripts)
    written.write_text(whole.replace("<!-- scripts -->", told))
    return written


def rendered(template: str, **content: Any) -> str:
    """Fill in a template, whose name has its ending."""
    html = template.endswith(".html")
    environment = Environment(
        loader=PackageLoader("flows", "templates"),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=not html,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        claim_columns=CLAIM_COLUMNS, without_empty=without_empty, version=koco_stream.__version__
    )
    environment.filters.update(
        cell=cell,
        soft=soft,
        text=text_of,
        md=markdown_of,
        # backticks that do not occur in a text, for a Markdown code block
        fence=lambda text: "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))]),
    )
    return UNSEEN.sub(" ", environment.get_template(template).render(**content))


def text_of(value: Any) -> str:
    """Text of a table cell: floats with three digits, integers with commas, – for None.

    Zeros at the end are kept, so that numbers of a column have equal digits, and the minus is a
    minus sign.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return _float_text(value).replace("-", "−")
    return MISSING if value is None else str(value)


def _float_text(value: float) -> str:
    size = abs(value)
    if 999.5 <= size < 1e6:
        return f"{value:,.0f}"
    if size == 0 or not math.isfinite(value):
        return f"{value:g}"
    # small ones that a column may have beside others are not written with an exponent
    return f"{value:.6f}" if 1e-5 <= size < 1e-4 else f"{value:#.3g}".removesuffix(".")


class Shown(NamedTuple):
    """A table as it is shown: its columns, each with whether it holds numbers, and its rows."""

    columns: list[tuple[str, bool]]
    rows: list[list[Any]]


def without_empty(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Shown:
    """A table without the columns that hold nothing in all rows."""
    values = [[row[k] for row in rows if row[k] is not None] for k in range(len(columns))]
    kept = [k for k, found in enumerate(values) if found or not rows]
    numeric = [
        all(isinstance(one, float | int) and not isinstance(one, bool) for one in found)
        for found in values
    ]
    return Shown([(columns[k], numeric[k]) for k in kept], [[row[k] for k in kept] for row in rows])


def cell(value: Any, is_number: bool = False) -> Markup:
    """HTML of a table cell. Its attribute `data-v` has the exact value, for sorting and CSV.

    `is_number` says whether its column holds numbers, among which what is missing stands.
    """
    shown = escape(text_of(value))
    if isinstance(value, bool):
        return Markup(f'<td class="{shown}">{shown}</td>')
    if value is None:
        kind = ' class="n"' if is_number else ""
        return Markup(f'<td{kind} data-v="">{shown}</td>')
    if isinstance(value, float | int):
        whole = "" if repr(value) == shown else f' data-v="{value!r}"'
        return Markup(f'<td class="n"{whole}>{shown}</td>')
    long = ' class="long"' if len(shown) > LONG else ""
    return Markup(f"<td{long}>{soft(value)}</td>")


def soft(value: object) -> Markup:
    """HTML of a text that may break after commas and underscores, for long dataset names."""
    return Markup(re.sub("(_|,(?=[a-z]))", r"\1<wbr>", str(escape(value))))


def markdown_of(value: object) -> str:
    """Escape a text for one line of Markdown, also within a table."""
    return (
        re.sub(r"([\\`*|\[\]])", r"\\\1", str(value))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace("\n", " ")
    )
