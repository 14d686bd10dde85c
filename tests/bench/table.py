"""Plain text tables."""

from collections.abc import Sequence


def show(
    title: str, columns: Sequence[str], lines: Sequence[Sequence[object]], *notes: str
) -> None:
    """Print a table: the first column to the left, the others to the right, then the notes."""
    cells = [list(columns), *[[text(value) for value in line] for line in lines]]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    print(f"\n{title}")
    for number, line in enumerate(cells):
        print(
            "  "
            + "  ".join(
                c.ljust(w) if k == 0 else c.rjust(w)
                for k, (c, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
        )
        if number == 0:
            print("  " + "  ".join("-" * w for w in widths))
    for note in notes:
        print(f"  {note}")
    print(end="", flush=True)


def text(value: object) -> str:
    """A number with about three digits, thousands separated; None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return (
            f"{value:,.0f}"
            if abs(value) >= 1000
            else f"{value:.3g}"
            if abs(value) >= 0.001 or value == 0
            else f"{value:.1e}"
        )
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
