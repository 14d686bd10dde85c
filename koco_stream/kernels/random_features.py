"""Random Fourier features of the Gaussian kernel exp(−‖x − x'‖²/(2·bandwidth²)).

They are cos uᵀx and sin uᵀx with u ~ N(0, I/bandwidth²) (Rahimi and Recht, 2007), whose entries are
levels of koco_stream.numerics.random. With n frequencies, Σ (cos uᵀx cos uᵀx' + sin uᵀx sin uᵀx')/n
has the kernel as its mean, within m·2·10⁻⁵ for rows that differ in m features by at most 12
bandwidths each.

A feature's entries are drawn when it occurs, so nothing costs O(d). Only the first features are
kept: drawing is faster than memory outside the caches.
"""

from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import aligned_zeros
from koco_stream.numerics.instructions.point_panels import add_lines, room_for, waves
from koco_stream.numerics.random import AT_ONCE, LEVELS_OF_A_WORD, draw_levels, level_pairs
from koco_stream.types import Array

# Line numbers in a learner's table for the current row: uᵀx, cos uᵀx, sin uᵀx.
PROJECTIONS, COSINES, SINES = range(3)

GROUP = 32  # features of a row whose entries are found, then multiplied; an even number
HELD = 1 << 21  # the most numbers in the table, 4 MiB


class Frequencies(NamedTuple):
    """The frequencies, as far as they have been drawn. They are never saved.

    seed, scale (), pairs: entry j of u_i is `scale` times level i that `draw_levels` draws at
    position j. line_of (d,): each feature's line, or 0. used (): lines in use. table (lines, room):
    levels, after GROUP lines of features without one. lines (GROUP,), sums (2, room): of the
    current row.
    """

    seed: Array
    scale: Array
    pairs: Array
    line_of: Array
    used: Array
    table: Array
    lines: Array
    sums: Array
    words: Array


def frequencies(d: int, n: int, bandwidth: float, seed: int) -> Frequencies:
    """n frequencies for d features, none of them drawn."""
    pairs, rms = level_pairs()
    words = AT_ONCE * -(-n // (LEVELS_OF_A_WORD * AT_ONCE))
    return Frequencies(
        seed=np.array(seed, np.uint64),
        scale=np.array(1.0 / bandwidth / rms),
        pairs=pairs,
        line_of=np.zeros(d, np.int16),
        used=np.array(GROUP),
        table=aligned_zeros(GROUP + most_lines(d, n), room_for(n), np.int16),
        lines=np.zeros(GROUP, np.int32),
        sums=aligned_zeros(2, room_for(n)),
        words=np.zeros(words, np.uint64),
    )


def most_lines(d: int, n: int) -> int:
    """The number of features that can have a line."""
    return min(d, HELD // room_for(n), np.iinfo(np.int16).max - GROUP)


FARTHEST = 1e9  # bandwidths: beyond, cosines have fewer than seven digits


@inlined
def count_far(s: Any, n2: float, bandwidth: float) -> None:
    """Count a round as doubtful if this row or an earlier one is too far away.

    Cosines have the errors of uᵀx, about 10⁻¹⁶ ‖x‖/bandwidth.
    """
    far = not n2 <= FARTHEST * FARTHEST * bandwidth * bandwidth
    s.doubtful_rounds[()] += far or s.doubtful_rounds[()] > 0


@inlined
def fourier_row(u: Frequencies, idx: Array, val: Array, n: int, out: Array) -> None:
    """Write uᵀx, cos uᵀx and sin uᵀx for x = (idx, val) to lines of `out` (lines, room)."""
    room = out.shape[1]
    for p in range(room):
        u.sums[0, p] = u.sums[1, p] = 0.0
    for begin in range(0, idx.size, GROUP):
        end = min(begin + GROUP, idx.size)
        find_lines(u, idx, begin, end, n)
        add_lines(u.table, u.lines, val, begin, end, n, u.sums)
    for p in range(room):
        out[PROJECTIONS, p] = (u.sums[0, p] + u.sums[1, p]) * u.scale[()]
    waves(out, PROJECTIONS * room, n, COSINES * room, SINES * room)


@jit
def find_lines(u: Frequencies, idx: Array, begin: int, end: int, n: int) -> None:
    """Fill `lines` for at most GROUP features of a row, drawing what is not held."""
    # All are looked up before the first is drawn: drawing would wait for each one's memory.
    for i in range(begin, end):
        u.lines[i - begin] = u.line_of[idx[i]]
    even = n + n % 2
    for k in range(end - begin):
        if u.lines[k] == 0:
            line, j = k, np.int64(idx[begin + k])
            if u.used[()] < u.table.shape[0]:
                line = int(u.used[()])
                u.line_of[j] = line
                u.used[()] += 1
            draw_levels(u.seed[()], j, u.pairs, u.words, u.table[line, :even])
            u.lines[k] = line


def fourier_floats(d: int, n: int) -> int:
    """The memory of n frequencies and three lines, in 8-byte numbers."""
    return (GROUP + most_lines(d, n)) * room_for(n) // 4 + 6 * room_for(n) + d // 4 + 48
