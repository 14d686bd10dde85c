"""The tables of a page, read from its HTML as a machine would."""

from html.parser import HTMLParser


class _Tables(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.rows, self.cell, self.whole = {}, None, None, None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "table":
            self.rows = self.tables.setdefault(given["data-name"], [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.cell, self.whole = "", given.get("data-v")

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self.rows[-1].append(self.cell if self.whole is None else self.whole)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


def tables_of(path):
    """The tables of a page by name: rows as dictionaries, with each cell's whole value as text."""
    reader = _Tables()
    reader.feed(path.read_text(encoding="utf-8"))
    return {
        name: [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        for name, rows in reader.tables.items()
    }
