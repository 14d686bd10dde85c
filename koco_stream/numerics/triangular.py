"""Forward substitution with a lower triangular matrix that gains rows, stored in panels.

A panel (room, 16) holds sixteen rows by columns, as in `koco_stream.numerics.llvm.point_panels`.
Unlike a product with the inverse, a substitution has the exact result for a matrix within rounding
of the stored one, however ill-conditioned it is.
"""

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.types import Array


@jit
def substitute(L: Array, n: int, right: Array, out: Array) -> None:
    """Solve Lx = `right` (n,) into `out`, with zeros up to the end of the last panel.

    Sixteen entries are computed side by side; each is one sum, in order.
    """
    for panel in range((n + BLOCK - 1) // BLOCK):
        first = panel * BLOCK
        end = min(first + BLOCK, n)
        x, lines = out[first : first + BLOCK], L[panel]
        for i in range(BLOCK):
            x[i] = right[first + i] if first + i < n else 0.0
        for j in range(first):
            for i in range(BLOCK):
                x[i] -= lines[j, i] * out[j]
        for j in range(first, end):
            x[j - first] /= lines[j, j - first]
            for i in range(j - first + 1, end - first):
                x[i] -= lines[j, i] * x[j - first]


@inlined
def append_row(L: Array, n: int, row: Array, pivot: float) -> None:
    """Append `row` (n,) and the diagonal entry `pivot`."""
    for j in range(n):
        L[n // BLOCK, j, n % BLOCK] = row[j]
    L[n // BLOCK, n, n % BLOCK] = pivot
