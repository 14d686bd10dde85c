"""Random Fourier features of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²)).

They are cos uᵀx and sin uᵀx with u ~ N(0, I/bandwidth²) (Rahimi and Recht, 2007). With n
frequencies, Σ (cos uᵀx cos uᵀx' + sin uᵀx sin uᵀx')/n has the kernel as its mean.

The entries of u_1, …, u_n that belong to a feature are drawn when the feature occurs, so time and
memory do not depend on the number of features d. A feature that occurs a second time gets a line of
a table, as long as there are lines: most features of a very wide stream occur once, and writing
their entries to memory would take as long as drawing them. Entries without a line are drawn again
each time. This changes no number, since they depend only on the seed.
"""

from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.feature_lines import aligned_zeros
from koco_stream.numerics.llvm.point_panels import add_lines, room_for, waves
from koco_stream.numerics.random import normals
from koco_stream.types import Array

# Line numbers in a learner's table for the current row: uᵀx, cos uᵀx, sin uᵀx.
PROJECTIONS, COSINES, SINES = range(3)

GROUP = 16  # features of a row whose entries are found, then multiplied; an even number
HELD = 1 << 25  # the most numbers in the table, 256 MiB
PAGES = 1 << 19  # numbers by which the system may round up the memory of the table and `line_of`
OCCURRED = -1


class Frequencies(NamedTuple):
    """The frequencies, as far as they have been drawn. They are never saved.

    seed, scale (): entry j of u_i is `scale` times the normal number of `seed` at 2³²·i + j, so it
    depends neither on d nor on n. line_of (d,): the line of each feature, 0 if it has not occurred,
    OCCURRED if it has. used (): lines in use. table (lines, room): the entries of a feature in each
    line; the first GROUP lines are of features without a line. lines (GROUP,), sums (2, room): the
    lines of some features of the current row, and sums over its even and odd positions. rare (n,):
    scratch of `normals`.
    """

    seed: Array
    scale: Array
    line_of: Array
    used: Array
    table: Array
    lines: Array
    sums: Array
    rare: Array


def frequencies(d: int, n: int, bandwidth: float, seed: int) -> Frequencies:
    """n frequencies for d features, none of them drawn."""
    return Frequencies(
        seed=np.array(seed, np.uint64),
        scale=np.array(1.0 / bandwidth),
        line_of=np.zeros(d, np.int32),
        used=np.array(GROUP),
        table=aligned_zeros(GROUP + most_lines(d, n), room_for(n)),
        lines=np.zeros(GROUP, np.int32),
        sums=aligned_zeros(2, room_for(n)),
        rare=np.zeros(n, np.int64),
    )


def most_lines(d: int, n: int) -> int:
    """The number of features that can have a line."""
    return min(d, max(HELD // room_for(n), 1))


FARTHEST = 1e7  # bandwidths: beyond, cosines have fewer than eight digits


@inlined
def too_far(n2: float, bandwidth: float) -> bool:
    """Whether the cosines of a row of square norm n2 have lost too many digits.

    The error of a cosine is that of its argument, which is of the order of ‖x‖/bandwidth.
    """
    return n2 > FARTHEST * FARTHEST * bandwidth * bandwidth


@inlined
def fourier_row(u: Frequencies, idx: Array, val: Array, n: int, out: Array) -> None:
    """Compute the projections uᵀx, their cosines and sines for the row x = (idx, val).

    They are written to the lines PROJECTIONS, COSINES and SINES of `out` (lines, room), with zeros
    beyond n.
    """
    room = out.shape[1]
    for p in range(room):
        u.sums[0, p] = u.sums[1, p] = 0.0
    for begin in range(0, idx.size, GROUP):
        end = min(begin + GROUP, idx.size)
        find_lines(u, idx, begin, end, n)
        add_lines(u.table, u.lines, val, begin, end, n, u.sums)
    for p in range(room):
        out[PROJECTIONS, p] = u.sums[0, p] + u.sums[1, p]
    waves(out, PROJECTIONS * room, n, COSINES * room, SINES * room)


@jit
def find_lines(u: Frequencies, idx: Array, begin: int, end: int, n: int) -> None:
    """Fill `lines` for at most GROUP features of a row, drawing the entries that are not held."""
    # All are looked up before the first is drawn: drawing would wait for each one's memory.
    for i in range(begin, end):
        u.lines[i - begin] = u.line_of[idx[i]]
    for k in range(end - begin):
        line: Any = np.int64(u.lines[k])
        if line <= 0:
            j, used = np.int64(idx[begin + k]), u.used[()]
            held = line == OCCURRED and used < u.table.shape[0]
            line = used if held else k
            normals(u.seed[()], j, n, u.scale[()], u.table[line], u.rare)
            u.line_of[j] = line if held else OCCURRED
            u.used[()] = used + held
            u.lines[k] = line


def fourier_floats(d: int, occur: int, n: int) -> int:
    """The memory of n frequencies if so many of d features occur, and of three lines, in 8-byte
    numbers.
    """
    lines = most_lines(d, n)
    table = min(lines, occur) * room_for(n) + (PAGES if occur < lines else 0)
    return min(table, lines * room_for(n)) + (GROUP + 5) * room_for(n) + d // 2 + 16
