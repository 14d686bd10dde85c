"""Scores of runs: their means, when two are equal, and statistics of learners over blocks.

A mean is that of the exact sum, in 12 significant digits: scores that are equal but for their last
bits are equal wherever they are compared. In statistics, `scores` (n_blocks, k) are lower where
better, and infinity for a learner that failed. Sources: Demšar, JMLR 7, 2006, and those there.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from koco_stream.types import Array

DIGITS = 12  # significant digits of what is compared
KNOWN = 15  # of a sum; more of them depend on how its terms have been rounded
LEAST, MOST = 1e-290, 1e308  # smaller and larger numbers stay as they are
EXACT = 22  # larger powers of ten, and negative ones, are no doubles
RESAMPLES = 2000  # of the bootstrap
SEED = 0  # of the bootstrap, so that the same results have the same interval
POWER = 0.8  # at the resolution
# The scale of n values from the normal distribution has n − 1 degrees of freedom, of Laplace's
# about 40 % of that. Differences between datasets lie between, those between orders are nearer to
# the first.
OF_BLOCKS, OF_REPEATS = 0.6, 0.8
TENS = np.array([float(f"1e{k}") for k in range(-300, 309)])


def rounded(values: ArrayLike, sizes: ArrayLike | None = None, *, digits: int = DIGITS) -> Array:
    """The doubles nearest to numbers in the significant digits of `sizes`, by default their own."""
    given = np.asarray(values, dtype=float)
    size = np.abs(given if sizes is None else np.asarray(sizes, dtype=float))
    usable = np.isfinite(given) & (size > LEAST) & (size < MOST)
    places = digits - 1 - np.floor(np.log10(np.where(usable, size, 1.0))).astype(int)
    steps = np.rint(np.where(usable, given, 0.0) * TENS[places + 300])
    found = np.where(usable, steps / TENS[places + 300], given)
    odd = usable & ((places < 0) | (places > EXACT))
    decimals = zip(steps[odd], places[odd], strict=True)
    found[odd] = [float(f"{step:.0f}e{-place}") for step, place in decimals]
    return found + 0.0  # no zero has a sign


def exact_means(rows: Iterable[Sequence[float] | Array]) -> Array:
    """Means of rows, with differences as exact as the numbers; infinite if empty or not finite."""
    found = []
    for row in rows:
        n, whole = len(row), min(row, default=0.0) >= 0.0  # no number is negative
        try:
            size = (math.fsum(row) if whole else math.fsum(map(abs, row))) / n if n else math.inf
        except OverflowError:
            n, row = 1, [value / n for value in row]
            size = math.fsum(map(abs, row))
            whole = False
        known = size < math.inf  # it may be NaN
        total = size if whole else math.fsum(row) / n if known else math.inf
        found.append((total, size) if known else (math.inf, math.inf))
    return rounded(*np.array(found).reshape(-1, 2).T, digits=KNOWN)


def means(rows: Iterable[Sequence[float] | Array]) -> Array:
    """Mean of each row of numbers, rounded: what is compared and shown."""
    return rounded(exact_means(rows))


def mean(values: Iterable[float]) -> float | None:
    return known_of(means([list(values)]))[0]


def differences_of(ones: Array, others: Array) -> pa.Array:
    """How far means are above others: 0 where they are equal, null where one is not finite."""
    found = rounded(ones - others, np.maximum(np.abs(ones), np.abs(others)))
    return pa.array(known_of(found), pa.float64())


def known_of(values: Array) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def deviations(rows: Sequence[Sequence[float]]) -> Array:
    """Sample standard deviation of each row, rounded; infinite where its mean is, and for one."""
    exact = exact_means(rows)
    found = [
        math.hypot(*sorted(value - mean for value in row)) / math.sqrt(len(row) - 1)
        if len(row) > 1
        else math.inf
        for row, mean in zip(rows, exact.tolist(), strict=True)
    ]
    return rounded(found, exact)


def of_lists(numbers: Callable[[list[list[float]]], Array], lists: pa.ChunkedArray) -> pa.Array:
    """`means` or `deviations` of lists, for DuckDB; null where they are not finite."""
    ends = np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy()).tolist()
    flat = pc.list_flatten(lists)
    if flat.null_count == len(flat):
        return pa.nulls(len(ends), pa.float64())
    values = flat.to_numpy().tolist()  # a null is NaN
    rows = [values[first:last] for first, last in zip([0, *ends], ends, strict=False)]
    return pa.array(known_of(numbers(rows)), pa.float64())


class Friedman(NamedTuple):
    """Friedman's chi-square, and the F of Iman and Davenport with its p-value."""

    chi_square: float
    f: float
    p: float


def ranks_of(values: Array) -> Array:
    """Ranks (..., k) from 1 for the least; equal values have their mean rank."""
    one = values[..., :, None]
    other = values[..., None, :]
    return (one > other).sum(axis=-1) + ((one == other).sum(axis=-1) + 1) / 2.0


def friedman(scores: Array) -> Friedman:
    """Friedman's test. Its chi-square is Demšar's, without SciPy's correction for ties."""
    from scipy.special import fdtrc  # its import takes half a second

    n, k = scores.shape
    spread = np.sum(ranks_of(scores).mean(axis=0) ** 2) - k * (k + 1) ** 2 / 4.0
    chi_square = float(max(12.0 * n / (k * (k + 1)) * spread, 0.0))  # rounding may make it negative
    left = n * (k - 1) - chi_square
    # all blocks may have the same order of learners: then nothing is left
    f = (n - 1) * chi_square / left if left > 1e-9 * n else math.inf
    p = 0.0 if math.isinf(f) else float(fdtrc(k - 1, (k - 1) * (n - 1), f))
    return Friedman(chi_square, float(f), p)


def wilcoxon(differences: Array) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test of paired differences (n,).

    Exact also with ties, unlike SciPy's. Differences of 0 count half for each side, as in Demšar's
    paper.
    """
    known = differences[~np.isnan(differences)]
    coarse = rounded(known, np.abs(known[np.isfinite(known)]).max(initial=0.0))  # so ties are equal
    given = np.where(coarse == 0.0, known, coarse)
    doubled = np.rint(2.0 * ranks_of(np.abs(given))).astype(int)
    signed = doubled[given != 0.0]
    if not signed.size:
        return 1.0
    positive = int(doubled[given > 0.0].sum())
    tail = sign_sums(signed)[: min(positive, int(signed.sum()) - positive) + 1].sum()
    return float(min(1.0, 2.0 * tail))


def sign_sums(ranks: Sequence[int] | Array) -> Array:
    """Shares of the choices of signs by the sum of positive ranks, from 0."""
    shares = np.zeros(int(sum(ranks)) + 1)
    shares[0] = 1.0
    for rank in ranks:
        shares = (shares + np.roll(shares, rank)) / 2.0  # the last `rank` of them are still 0
    return shares


def microseconds(seconds: Sequence[float | None]) -> float | None:
    logs = [math.log(one) for one in seconds if one and 0.0 < one < math.inf]
    return 1e6 * math.exp(math.fsum(logs) / len(logs)) if len(logs) == len(seconds) else None


def least_p(n: int) -> float:
    return min(1.0, 2.0 ** (1 - n))


def holm(p_values: Sequence[float]) -> list[float]:
    steps = [(p, min(1.0, p * sum(other >= p for other in p_values))) for p in p_values]
    return [max(step for other, step in steps if other <= p) for p in p_values]


def critical_difference(k: int, n: int, alpha: float) -> float:
    """Nemenyi's: mean ranks of `k` learners over `n` blocks that are so far apart do differ."""
    from scipy.stats import studentized_range  # its import takes a second

    q = float(studentized_range.ppf(1.0 - alpha, k, np.inf)) / math.sqrt(2.0)
    return q * math.sqrt(k * (k + 1) / (6.0 * n))


def differences(scores: Array, best: Array, relative: bool) -> Array:
    """Differences of exact means (..., k) to those of one learner (...,)."""
    other = np.asarray(best)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = scores - other
        sizes = np.maximum(np.abs(scores), np.abs(other))
        if relative:
            found = 2.0 * found / (np.abs(scores) + np.abs(other))
            sizes = np.ones_like(sizes)
        found = rounded(found, sizes, digits=KNOWN)
    failed = np.where(np.isinf(scores), np.inf, -np.inf)
    found = np.where(np.isinf(scores) | np.isinf(other), failed, found)
    return np.where(rounded(scores) == rounded(other), 0.0, found)


def bootstrap(
    repeats: Sequence[Array], best: int, relative: bool, alpha: float
) -> list[tuple[float | None, ...]]:
    """Mean difference of each learner to the learner `best`, and both ends of its interval, or
    None.

    `repeats` has scores (n_repeats, k) of each block. Percentiles of resampled blocks and, within
    them, repeats.
    """
    draw = np.random.default_rng(SEED)
    n = len(repeats)
    whole = np.array([exact_means(block.T) for block in repeats])
    exact = differences(whole, whole[:, best], relative)
    chosen = draw.integers(n, size=(RESAMPLES if n > 1 or len(repeats[0]) > 1 else 0, n))
    found = np.empty((*chosen.shape, repeats[0].shape[1]))
    for number, block in enumerate(repeats):
        here = chosen == number
        picked = draw.integers(len(block), size=(int(here.sum()), len(block)))
        resampled = block[picked].mean(axis=1)
        found[here] = differences(resampled, resampled[:, best], relative)
    return [
        (mean(mine[np.isfinite(mine)]), *_interval(found[:, :, one], alpha))
        for one, mine in enumerate(exact.T)
    ]


def _interval(resampled: Array, alpha: float) -> tuple[float | None, float | None]:
    finite = np.isfinite(resampled)
    counts = finite.sum(axis=1)
    every = np.where(finite, resampled, 0.0)
    sums = rounded(every.sum(axis=1), np.abs(every).sum(axis=1))
    drawn = sums[counts > 0] / counts[counts > 0]
    if not drawn.size:
        return None, None
    low, high = np.quantile(drawn, [alpha / 2.0, 1.0 - alpha / 2.0])
    return float(low), float(high)


def resolution(
    differences: Array, repeats: Iterable[Array], level: float
) -> tuple[float | None, str | None]:
    """The least difference that would have been called at a level with power 0.8, and over what.

    Over blocks if Wilcoxon's test of their differences can reach the level, else over each block's
    repeats; None where there is one. Differences are centred, resampled and shifted; infinite ones
    and NaN are left out.
    """
    is_tested = least_p(int(np.isfinite(differences).sum())) <= level
    finite = [one[np.isfinite(one)] for one in ([differences] if is_tested else repeats)]
    groups = [one for one in finite if one.size]
    if min(map(len, groups), default=0) < 2:
        return None, None
    draw = np.random.default_rng(SEED)
    least = _by_wilcoxon(groups[0], level, draw) if is_tested else _by_interval(groups, level, draw)
    # in digits that the values have: 0 where only rounding makes them unequal
    found = rounded(max(0.0, np.quantile(least, POWER)), np.abs(np.concatenate(groups)).max())
    return float(found), "blocks" if is_tested else "repeats"


def _by_wilcoxon(values: Array, level: float, draw: np.random.Generator) -> Array:
    """Least shifts with which resamples are called, in the direction of the mean."""
    n = len(values)
    most = int((2.0 * sign_sums(range(1, n + 1)).cumsum() <= level).sum()) - 1
    # The negative rank sum is the number of negative means of two values, or of one twice (Tukey
    # 1949); a sample is called if it is at most `most`.
    one, other = np.triu_indices(n)
    centred = (values - values.mean()) * (1.0 if values.sum() >= 0.0 else -1.0)
    # noise of the mean's standard error gives resamples the variance of their population
    noise = draw.standard_normal((1 + 10 * RESAMPLES // n, n)) * centred.std(ddof=1) / math.sqrt(n)
    drawn = centred[draw.integers(n, size=noise.shape)] + noise
    # without a scale as unsure as n values leave it, resamples of few would be too narrow
    freedom = OF_BLOCKS * (n - 1)
    drawn *= np.sqrt(freedom / draw.chisquare(freedom, (len(drawn), 1)))
    means = (np.take(drawn, one, axis=1) + np.take(drawn, other, axis=1)) / 2.0
    return -np.partition(means, most)[:, most]


def _by_interval(groups: Sequence[Array], level: float, draw: np.random.Generator) -> Array:
    """Least means of groups that have a t interval (Satterthwaite 1946) above 0."""
    from scipy.special import stdtrit  # its import takes half a second

    variances = np.array([one.var(ddof=1) / len(one) for one in groups])
    if not variances.any():
        return variances
    shares = variances / variances.sum()
    freedom = 1.0 / sum(shares**2 / [len(one) - 1 for one in groups])
    freedoms = freedom * np.array([[1.0], [OF_REPEATS]])
    theirs, found = np.sqrt(draw.chisquare(freedoms, (2, RESAMPLES)) / freedoms)
    least = (stdtrit(freedom, 1.0 - level / 2.0) * theirs + draw.standard_normal(RESAMPLES)) / found
    return least * math.sqrt(variances.sum()) / len(groups)
