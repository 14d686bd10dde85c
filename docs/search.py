"""The texts of the pages for the search, as a script: from disk a browser reads nothing else."""

import json
from pathlib import Path


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
