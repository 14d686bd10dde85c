"""Pages: what they are made of, and how templates make self-contained HTML and Markdown of it."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

import koco_stream
from flows.charts import Chart, Row, library
from flows.tables.text import with_minus
from koco_stream.io.paths import AnyPath, StorePath, store_path

# Control characters, on which a terminal acts that shows the Markdown, and those that turn the
# direction in which a text is read.
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LONG = 40  # longer cells get a minimum width, because tables scroll on narrow screens


@dataclass(frozen=True)
class Figure:
    """A section of a page."""

    title: str
    charts: Sequence[Chart] = ()
    claims: Sequence[Row] = ()
    rows: Sequence[Row] = ()
    note: str = ""
    finding: str = ""

    @property
    def verdict(self) -> str:
        judged = [one["holds"] for one in self.claims if one["holds"] is not None]
        held = f"{sum(judged)} of {len(judged)} claims hold" * bool(judged)
        return "; ".join(filter(None, [held, self.finding]))


@dataclass(frozen=True)
class Page(Figure):
    """A page: a figure, which is its first screen, and others, which are folded."""

    facts: Sequence[str] = ()
    flags: Sequence[str] = ()
    next_run: str = ""
    figures: Sequence[Figure] = ()
    file: str = ""
    links: Sequence[str] = ()

    @property
    def all_charts(self) -> list[Chart]:
        return [chart for figure in (self, *self.figures) for chart in figure.charts]


def write_page(store: AnyPath, name: str, page: Page) -> StorePath:
    """Write a page into the store's reports, as HTML and, without charts, as Markdown."""
    folder = store_path(store) / "reports"
    content = {"page": page, "name": name}
    markdown = re.sub(r"\n{3,}", "\n\n", rendered("page.md", **content)).strip()
    (folder / f"{name}.md").write_text(f"{markdown}\n")
    scripts = [*([library()] if page.all_charts else []), rendered("script.js")]
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    whole = rendered("page.html", style=rendered("style.css"), hashes=hashes, **content)
    written = folder / f"{name}.html"
    # last, for what is unseen in a library is part of it
    told = "".join(f"<script>{one}</script>\n" for one in scripts)
    written.write_text(whole.replace("<!-- scripts -->", told))
    return written


def rendered(template: str, **content: Any) -> str:
    html = template.endswith(".html")
    environment = Environment(
        loader=PackageLoader("flows", "templates"),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=not html,
        keep_trailing_newline=True,
    )
    environment.globals.update(columns_of=columns_of, version=koco_stream.__version__)
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
    """Text of a cell: floats have three digits, integers commas, and None is –."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return with_minus(value, 3)
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return "–" if value is None else str(value)


def columns_of(rows: Sequence[Row]) -> dict[str, bool]:
    """The columns that have anything in some row, and whether that is numbers."""
    values = {name: [row[name] for row in rows if row[name] is not None] for name in rows[0]}
    return {
        name: all(isinstance(one, float | int) and not isinstance(one, bool) for one in found)
        for name, found in values.items()
        if found
    }


def cell(value: Any, is_number: bool = False) -> Markup:
    """HTML of a cell. Its attribute `data-v` has the exact value, for sorting and CSV."""
    shown = escape(text_of(value))
    if isinstance(value, bool):
        return Markup(f'<td class="{shown}">{shown}</td>')
    if value is None or isinstance(value, float | int):
        exact = "" if value is None else repr(value)
        kind = ' class="n"' if is_number or exact else ""
        whole = "" if exact == shown else f' data-v="{exact}"'
        return Markup(f"<td{kind}{whole}>{shown}</td>")
    long = ' class="long"' if len(shown) > LONG else ""
    return Markup(f"<td{long}>{soft(value)}</td>")


def soft(value: object) -> Markup:
    return Markup(re.sub("(_|,(?=[a-z]))", r"\1<wbr>", str(escape(value))))


def markdown_of(value: object) -> str:
    return (
        re.sub(r"([\\`*|\[\]])", r"\\\1", str(value))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace("\n", " ")
    )
