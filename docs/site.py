"""What the site does otherwise than GitHub: links to files beside the pages' folder, which it does
not have, the search, whose texts are a script, since from disk a browser reads nothing else, and
the docstrings of learners, which Python completes.
"""

import inspect
import json
import pydoc
import re
from pathlib import Path

import griffe


class Completed(griffe.Extension):
    """Reads the docstrings of learners from the classes, and not from the files."""

    def on_class(self, *, cls, **others):
        """The reader calls this with each class."""
        if cls.docstring and cls.path.startswith("koco_stream.learners."):
            cls.docstring.value = inspect.getdoc(pydoc.locate(cls.path))


def on_page_markdown(markdown, page, config, files):
    """The builder calls this with the text of each page."""
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", r"\1 (`\2`)", markdown)


def on_post_build(config):
    """The builder calls this when the site is built."""
    folder = Path(config.site_dir, "search")
    index = json.loads((folder / "search_index.json").read_text())
    sections = [[one["location"], one] for one in sections_of(index["docs"])]
    (folder / "pages.js").write_text(f"const searchPages = new Map({json.dumps(sections)});\n")
    for unused in ("search_index.json", "worker.js"):
        (folder / unused).unlink()


def sections_of(found):
    """The sections of the pages, with the title of the page. The builder has whole pages, too."""
    titles = {one["location"]: one["title"] for one in found if "#" not in one["location"]}
    for one in found:
        page, anchor, _ = one["location"].partition("#")
        if anchor:
            named = [one["title"], titles[page]]
            yield one | {"title": " – ".join(dict.fromkeys(named))}
