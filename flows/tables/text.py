"""Tables as text, for terminals."""

from collections.abc import Sequence
from typing import Any


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lines of aligned columns under their names; floats have five digits.

    Booleans are yes or no, None is empty.
    """
    cells = [tuple(columns), *(tuple(map(_text, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
