"""Pages: templates filled in as self-contained HTML and as Markdown."""

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

import koco_stream
from flows.report.drawing import Claim
from koco_stream.io.paths import AnyPath, StorePath, store_path

MISSING = "–"
CLAIM_COLUMNS = ("Holds", "The paper says", "Criterion", "Came out")
LONG = 40  # characters of a cell that gets room on a narrow screen, where tables scroll


def write_pages(store: AnyPath, name: str, template: str, **content: Any) -> StorePath:
    """Fill in a template, and write the page into the store's reports: as HTML, and as Markdown
    without plots beside it. Returns the HTML file's path.

    The HTML has its style and script in it. Its security policy lets only that script run, and
    nothing be loaded from anywhere.
    """
    folder, content = store_path(store) / "reports", {"version": koco_stream.__version__, **content}
    markdown = _environment(False).get_template(f"{template}.md").render(**content)
    (folder / f"{name}.md").write_text(re.sub(r"\n{3,}", "\n\n", markdown).strip() + "\n")
    environment = _environment(True)
    style, script = (environment.get_template(file).render() for file in ("style.css", "script.js"))
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template(f"{template}.html").render(
        style=style, script=script, script_hash=script_hash, **content
    )
    written = folder / f"{name}.html"
    written.write_text(page)
    return written


def _environment(html: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("flows", "templates"),
        autoescape=lambda name: html and str(name).endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=not html,
        keep_trailing_newline=True,
    )
    environment.globals.update(claim_columns=CLAIM_COLUMNS)
    environment.filters.update(
        cell=cell, soft=soft, text=text_of, md=markdown_of, fence=fence_for, claim_rows=claim_rows
    )
    return environment


def text_of(value: Any) -> str:
    """A table's cell as people read it: numbers to five digits, whole ones with commas, – for what
    is missing.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | int):
        return f"{value:.5g}" if isinstance(value, float) else f"{value:,}"
    return MISSING if value is None else str(value)


def cell(value: Any) -> Markup:
    """A table's cell in HTML. Where what is read is not the whole value, `data-v` has it: tables
    sort by it, and their CSV has it.
    """
    shown = escape(text_of(value))
    if isinstance(value, bool):
        return Markup(f'<td class="{shown}">{shown}</td>')
    if value is None:
        return Markup(f'<td data-v="">{shown}</td>')
    if isinstance(value, float | int):
        whole = "" if repr(value) == shown else f' data-v="{value!r}"'
        return Markup(f'<td class="n"{whole}>{shown}</td>')
    long = ' class="long"' if len(shown) > LONG else ""
    return Markup(f"<td{long}>{soft(value)}</td>")


def soft(value: object) -> Markup:
    """Text in HTML whose lines may break after a comma and an underscore: names of generated
    datasets are long.
    """
    return Markup(re.sub("(_|,(?=[a-z]))", r"\1<wbr>", str(escape(value))))


def markdown_of(value: object) -> str:
    """Text that Markdown shows as it is, on one line, in a table too."""
    text = re.sub(r"([\\`*|\[\]])", r"\\\1", str(value))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")


def claim_rows(claims: Sequence[Claim]) -> list[list[Any]]:
    """Claims as rows of `CLAIM_COLUMNS`."""
    return [[one.holds, one.claim, one.criterion, one.came_out] for one in claims]


def fence_for(text: str) -> str:
    """A fence of backticks that does not occur in the text."""
    return "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
