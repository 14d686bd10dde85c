"""Transformations of a source's values, which belong to the dataset's identity."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from koco_stream.errors import refuse_first
from koco_stream.types import Array
from storage.sources.source import Piece, dense_piece

LAYOUTS = ("dense", "sparse")
SCALES = ("none", "minmax", "unit-rows", "unit-mean-square", "tf-idf")
BY_FEATURE = ("minmax", "tf-idf")  # scales with statistics of each feature
MOST_BITS = 30  # feature numbers are int32, and the top bit of the hash is the sign
MOST_DENSE_VALUES = 500_000_000
MOST_TIMES_DENSER = 50
MOST_KNOWN_FEATURES = 1 << 24  # two numbers per feature (256 MB), or a dense row, fit in memory
ONLY_COUNTS = "--scale tf-idf takes counts: a sparse file without negative values"


def check_choices(
    source_layout: str,
    layout: str | None,
    scale: str,
    bits: int | None,
    scale_rows: int | None = None,
    missing: str | None = None,
) -> None:
    kept = layout or source_layout
    refuse_first(
        [
            (scale not in SCALES, f"--scale {scale} is not one of {', '.join(SCALES)}"),
            (
                layout not in (None, *LAYOUTS),
                f"--layout {layout} is not one of {', '.join(LAYOUTS)}",
            ),
            (scale == "tf-idf" and kept == "dense", ONLY_COUNTS),
            (
                bits is not None and not 1 <= bits <= MOST_BITS,
                f"--hash-bits {bits}: give 1 to {MOST_BITS}; features are hashed to 2^bits",
            ),
            (
                bits is not None and kept == "dense",
                "--hash-bits is for sparse rows; add --layout sparse",
            ),
            (
                scale_rows is not None and scale_rows < 1,
                f"--scale-rows {scale_rows}: give the number of first rows, at least 1",
            ),
            (
                scale_rows is not None
                and scale in ("none", "unit-rows")
                and missing in (None, "drop"),
                f"--scale-rows says from which rows a scale is computed, and --scale {scale} is"
                " computed from no other rows; leave it out",
            ),
        ]
    )


@dataclass(frozen=True)
class Shape:
    n_rows: int
    n_features: int
    n_values: int
    layout: str
    least: float
    label_min: float
    label_max: float


def fits_dense(shape: Shape) -> bool:
    most_values = max(MOST_DENSE_VALUES, MOST_TIMES_DENSER * shape.n_values)
    return shape.n_rows * shape.n_features <= most_values


@lru_cache(maxsize=1)
def _mapped(file: Path) -> Array:
    return np.load(file, mmap_mode="r")


@dataclass(frozen=True)
class Transformation:
    """Transformation of every row of a source with this shape.

    `root` is the root mean square norm of rows multiplied by 2^-exponent, and the file `facts` has
    the array of `range_facts`.
    """

    shape: Shape
    layout: str | None = None
    scale: str = "none"
    bits: int | None = None
    task: str = "classification"
    scale_rows: int | None = None
    exponent: int = 0
    root: float = 1.0
    facts: Path | None = None

    def __post_init__(self) -> None:
        n = self.shape.n_rows
        d = self.shape.n_features
        negative = self.shape.least < 0
        densified = self.kept == "dense" and self.shape.layout == "sparse"
        refuse_first(
            [
                (
                    d < 1,
                    "all values are zero, so the number of features is unknown; give it with"
                    " --n-features",
                ),
                (
                    self.scale in BY_FEATURE and d > MOST_KNOWN_FEATURES,
                    f"--scale {self.scale} holds numbers for every feature in memory, so it takes"
                    f" at most {MOST_KNOWN_FEATURES:,} features, and there are {d:,}; use --scale"
                    " unit-rows",
                ),
                (
                    densified and not fits_dense(self.shape),
                    f"--layout dense would hold {n:,} x {d:,} values, {8 * n * d / 2**30:.0f} GiB;"
                    " keep this source sparse",
                ),
                (
                    densified and d > MOST_KNOWN_FEATURES,
                    f"--layout dense takes at most {MOST_KNOWN_FEATURES:,} features, and there are"
                    f" {d:,}; keep this source sparse",
                ),
                (self.scale == "tf-idf" and negative, ONLY_COUNTS),
                (
                    self.scale == "minmax" and self.kept == "sparse" and negative,
                    "--scale minmax would make every row of this sparse source dense, because it"
                    " has negative values; add --layout dense, or use --scale unit-rows",
                ),
            ]
        )

    @property
    def kept(self) -> str:
        return self.layout or self.shape.layout

    @property
    def n_features(self) -> int:
        return self.shape.n_features if self.bits is None else 2**self.bits

    @property
    def scales_labels(self) -> bool:
        return self.scale == "minmax" and self.task == "regression"

    @property
    def label_range(self) -> tuple[float, float]:
        ends = (self.shape.label_min, self.shape.label_max)
        low, high = self._scaled_labels(np.array(ends)).tolist()
        return low, high

    def laid_out(self, rows: Piece) -> Piece:
        rows = replace(rows, values=rows.values.astype(np.float64, copy=False))
        if self.kept == self.shape.layout:
            return rows
        n = rows.n_rows
        d = self.shape.n_features
        if self.kept == "sparse":
            return without_zeros(replace(rows, indices=np.tile(np.arange(d, dtype=np.int32), n)))
        matrix = np.zeros((n, d))
        matrix[row_numbers(rows), rows.indices] = rows.values
        return dense_piece(rows.labels, matrix)

    def __call__(self, rows: Piece) -> Piece:
        rows = self.laid_out(rows)
        # values that overflow are rejected when the shard is written
        with np.errstate(over="ignore", invalid="ignore"):
            if self.facts is not None:
                rows = self._by_facts(rows, _mapped(self.facts))
            elif self.scale == "unit-rows":
                rows = _unit_rows(rows)
            elif self.scale == "unit-mean-square":
                values = np.ldexp(rows.values, -self.exponent) / self.root
                rows = without_zeros(replace(rows, values=values))
        if self.bits is not None:
            rows = hashed(rows, self.bits)
        return rows

    @property
    def done(self) -> list[str]:
        divisor = self.root * 2.0 ** min(self.exponent, 1023)
        low, high = _mapped(self.facts)[:2, -1].tolist() if self.facts else (0.0, 0.0)
        over = "" if self.scale_rows is None else f" over the first {self.scale_rows} rows"
        all_said = [
            (self.kept != self.shape.layout, f"rows kept {self.kept}"),
            (
                self.scale == "minmax",
                f"each feature to [0, 1]{over or ' over the file'}: (value - min)/(max - min), 0 if"
                " constant",
            ),
            (self.scales_labels, f"the target to [0, 1]: (y - {low!r})/{high - low!r}"),
            (
                self.scale == "tf-idf",
                "tf-idf: value times log((1 + n)/(1 + rows with the feature)) + 1"
                + ("," * bool(over) + over),
            ),
            (self.scale == "tf-idf", "unit rows"),
            (self.scale == "unit-rows", "each row divided by its Euclidean norm"),
            (
                self.scale == "unit-mean-square",
                f"all rows divided by {divisor!r}: mean square norm 1{over}",
            ),
            (
                self.bits is not None,
                f"features hashed to 2^{self.bits}: murmur3 of the feature's number, with signs",
            ),
        ]
        return [words for was_done, words in all_said if was_done]

    def _scaled_labels(self, labels: Array) -> Array:
        if not self.scales_labels or self.facts is None:
            return labels
        return to_unit(labels, *_mapped(self.facts)[:2, -1])

    def _by_facts(self, rows: Piece, facts: Array) -> Piece:
        if self.scale == "tf-idf":
            idf = np.log((1 + (self.scale_rows or self.shape.n_rows)) / (1 + facts[2, :-1])) + 1
            return _unit_rows(replace(rows, values=rows.values * idf[rows.indices]))
        values = (
            to_unit(rows.values.reshape(rows.n_rows, -1), *facts[:2, :-1]).reshape(-1)
            if self.kept == "dense"
            else to_unit(rows.values, *facts[:2, rows.indices])
        )
        return without_zeros(replace(rows, labels=self._scaled_labels(rows.labels), values=values))


def row_numbers(rows: Piece) -> Array:
    return np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))


def square_norms(rows: Piece) -> Array:
    """Summed in the order of a row's values."""
    return np.bincount(
        row_numbers(rows),
        weights=rows.values.astype(np.float64, copy=False) ** 2,
        minlength=rows.n_rows,
    )


def without_zeros(rows: Piece) -> Piece:
    """Dense rows are returned unchanged."""
    kept = rows.values != 0.0
    if kept.all() or not rows.indices.size:
        return rows
    sizes = np.bincount(row_numbers(rows)[kept], minlength=rows.n_rows)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return Piece(rows.labels, indptr, rows.indices[kept], rows.values[kept])


def to_unit(values: Array, low: Array, high: Array) -> Array:
    """Map [low, high] to [0, 1], and all to 0 if low equals high; wide ranges do not overflow."""
    with np.errstate(over="ignore"):
        half = np.where(np.isfinite(high - low), 1.0, 0.5)
    span = np.where(high > low, high * half - low * half, 1.0)
    return np.where(high > low, (values * half - low * half) / span, 0.0)


def _unit_rows(rows: Piece) -> Piece:
    """Rows are first scaled by a power of two, so that squares do not over- or underflow."""
    numbers = row_numbers(rows)
    filled = np.diff(rows.indptr) > 0
    largest = np.zeros(rows.n_rows)
    if filled.any():
        largest[filled] = np.maximum.reduceat(np.abs(rows.values), rows.indptr[:-1][filled])
    values = np.ldexp(rows.values, -np.frexp(largest)[1][numbers])
    norms = np.sqrt(square_norms(replace(rows, values=values)))
    values = values / np.where(norms > 0.0, norms, 1.0)[numbers]
    return without_zeros(replace(rows, values=values))


def hashed(rows: Piece, bits: int) -> Piece:
    """Hash the features of sparse rows to 2^bits features (Weinberger et al. 2009)."""
    from sklearn.utils import murmurhash3_32

    code = murmurhash3_32(np.ascontiguousarray(rows.indices, np.int32), positive=True)
    signed = np.where(code >> 31, -1.0, 1.0) * rows.values
    key = row_numbers(rows) << bits | (code & (2**bits - 1)).astype(np.int64)
    order = np.argsort(key, kind="stable")
    key = key[order]
    new = np.diff(key, prepend=-1) > 0
    key = key[new]
    # bincount adds from left to right; reduceat would add pairwise
    total = np.bincount(np.cumsum(new) - 1, weights=signed[order]).astype(np.float64)
    kept = total != 0.0
    features = (key[kept] & (2**bits - 1)).astype(np.int32)
    sizes = np.bincount(key[kept] >> bits, minlength=rows.n_rows)
    return Piece(rows.labels, np.append(0, np.cumsum(sizes)), features, total[kept])
