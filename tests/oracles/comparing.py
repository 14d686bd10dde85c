"""Statistics over blocks, written down as they are defined: by enumeration, with no shortcut."""

import itertools
from fractions import Fraction


def ranks(values):
    """1 plus the values below each, plus half of the others that are equal to it."""
    return [
        1 + sum(Fraction(other < one) for other in values) + Fraction(values.count(one) - 1, 2)
        for one in values
    ]


def wilcoxon(differences):
    """The share of all sign choices whose smaller sum of ranks is at most that of the differences.

    The ranks of zeros are given to both sides by halves.
    """
    among = ranks([abs(d) for d in differences])
    given = [rank for rank, d in zip(among, differences, strict=True) if d]
    if not given:
        return Fraction(1)

    def smaller(signs):
        sums = [sum(r for r, s in zip(given, signs, strict=True) if s == side) for side in (0, 1)]
        return min(sums)

    found = smaller([int(d > 0) for d in differences if d])
    every = list(itertools.product((0, 1), repeat=len(given)))
    return Fraction(sum(smaller(signs) <= found for signs in every), len(every))


def rejected_by_holm(p_values, alpha):
    """The hypotheses that Holm's procedure rejects, one after the other until one is kept."""
    left = sorted(range(len(p_values)), key=lambda which: p_values[which])
    found = set()
    while left and p_values[left[0]] * len(left) <= alpha:
        found.add(left.pop(0))
    return found
