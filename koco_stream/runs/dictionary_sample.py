"""The expected growth of dictionaries, estimated from a few hundred of a dataset's rows.

A row that comes after t others joins with a probability that depends on what they do not explain of
it. Of two estimates, both rather too large, the smaller counts:

- m < t of the rows with the ridge γm/t, exact if the rows lie in few directions;
- the nearest neighbours, exact if other kernel values are 0.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath
from koco_stream.learners import Growth, Sampling
from koco_stream.learners.spec import real
from koco_stream.runs.cost_model import DataSize
from koco_stream.runs.run import Run
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from koco_stream.types import Array

QUERIES = 48  # rows whose probabilities are estimated
NEIGHBOURS = 48  # the nearest earlier rows of each
CENTRES = 256  # earlier rows that stand for all
EARLIER = 8192  # the most earlier rows among which neighbours are found
ROUNDS = 10  # at which the probabilities are estimated
# The square of the loss's slope where the earlier rows explain all of a row, as a share of that
# where they explain nothing.
SMALLEST_SLOPE = 0.35
JITTER = 1e-12  # relative to the kernel matrix's diagonal
# A dictionary that takes more than this share of the rows, and more than so many points, is
# reported before the sweep.
LARGE_SHARE = 0.4
LARGE_POINTS = 400


class DictionarySample:
    """Sampled rows X (n, d), in random order, to estimate how dictionaries grow."""

    def __init__(self, X: Any, rounds: int) -> None:
        if X.shape[0] < 2:
            raise ArithmeticError("there is no row before another")
        queries = max(1, min(QUERIES, X.shape[0] // 3))
        self.queries, self.earlier, self.rounds = X[:queries], X[queries:], rounds
        self.query_norms, self.norms = squares(self.queries), squares(self.earlier)
        self.products = dense(self.queries @ self.earlier.T)
        centres = self.earlier[:CENTRES]
        self.among_centres = dense(centres @ centres.T)
        self.at = np.unique(np.round(np.geomspace(1, max(rounds, 1), ROUNDS))).astype(np.int64)

    @property
    def distances(self) -> Array:
        """Squared distances (queries, n) of queries and earlier rows."""
        squared = self.query_norms[:, None] + self.norms[None, :] - 2.0 * self.products
        return np.maximum(squared, 0.0)

    @property
    def median_distance(self) -> float:
        """The median distance of two rows."""
        return float(np.sqrt(np.median(self.distances)))

    @cached_property
    def neighbours(self) -> dict[int, tuple[Array, Array]]:
        """Squared distances (queries, k) to neighbours, and between these, by number of earlier
        rows.
        """
        found = {}
        for t in {min(int(t), self.norms.size) for t in self.at}:
            k = min(NEIGHBOURS, t)
            nearest = np.argpartition(self.distances[:, :t], k - 1, axis=1)[:, :k]
            among = np.empty((len(nearest), k, k))
            for i, these in enumerate(nearest):
                rows = self.earlier[these]
                norms = self.norms[these]
                among[i] = norms[:, None] + norms[None, :] - 2.0 * dense(rows @ rows.T)
            found[t] = np.take_along_axis(self.distances, nearest, 1), np.maximum(among, 0.0)
        return found

    def growth(self, sampling: Sampling) -> Growth:
        """The expected growth of a dictionary."""
        if sampling.floor >= 1.0:
            return all_join(self.rounds)
        own = kernel_values(sampling, self.query_norms, self.query_norms, self.query_norms)
        n = self.among_centres.shape[0]
        norms = self.norms[:n]
        among = kernel_values(sampling, self.among_centres, norms[:, None], norms[None, :])
        with_queries = kernel_values(
            sampling, self.products[:, :n], self.query_norms[:, None], norms[None, :]
        )
        rates = []
        for t in self.at:
            m = min(int(t), n)
            left = unexplained(
                among[None, :m, :m], with_queries[None, :, :m], own[None], sampling.ridge * m / t
            )[0]
            if t > m and sampling.kernel == "gaussian":
                known = min(int(t), self.norms.size)
                to_query, between = self.neighbours[known]
                scale = -0.5 / max(sampling.bandwidth**2, 1e-300)
                near = unexplained(
                    np.exp(scale * between),
                    np.exp(scale * to_query)[:, None, :],
                    own[:, None],
                    sampling.ridge * known / t,
                )[:, 0]
                left = np.minimum(left, near)
            if sampling.of_gradients:
                unknown = left / np.maximum(own, 1e-300)
                left = left * (SMALLEST_SLOPE + (1.0 - SMALLEST_SLOPE) * unknown**2)
            if sampling.threshold is None:
                p = np.minimum(sampling.factor * left / (sampling.ridge + left), 1.0)
            else:
                p = left > sampling.threshold * own
            rates.append(max(float(p.mean()), sampling.floor))
        rounds = np.concatenate(([0.0], self.at))
        points = np.cumsum(np.diff(rounds) * (np.array([rates[0], *rates[:-1]]) + rates) / 2.0)
        if not np.isfinite(points).all():
            raise ArithmeticError("kernel values overflow")
        grown = Growth(tuple(rounds.tolist()), (0.0, *points.tolist()))
        return grown.up_to(sampling.most)


def all_join(rounds: int) -> Growth:
    """A dictionary that all rows join."""
    return Growth((0.0, float(rounds)), (0.0, float(rounds)))


def kernel_values(sampling: Sampling, products: Array, left: Array, right: Array) -> Array:
    """Kernel values from inner products and square norms."""
    if sampling.kernel == "gaussian":
        scale = -0.5 / max(sampling.bandwidth**2, 1e-300)
        return np.exp(scale * np.maximum(left + right - 2.0 * products, 0.0))
    products = products + sampling.intercept
    return products if sampling.kernel == "linear" else (products + 1.0) ** sampling.degree


def unexplained(among: Array, values: Array, own: Array, ridge: float) -> Array:
    """k(x, x) − kᵀ(K + ridge·I)⁻¹k of rows x, (b, n), for K (b, k, k) and k (b, n, k)."""
    k = among.shape[-1]
    diagonal = np.diagonal(among, axis1=1, axis2=2).max()
    shifted = among + (ridge + JITTER * k * diagonal) * np.eye(k)
    solved = np.linalg.solve(shifted, values.transpose(0, 2, 1))
    return np.maximum(own - np.einsum("bnk,bkn->bn", values, solved), 0.0)


def squares(X: Any) -> Array:
    """The square norms (n,) of rows (n, d)."""
    return np.asarray((X * X).sum(axis=1)).reshape(-1)


def dense(products: Any) -> Array:
    """A product of matrices as an array."""
    return products if isinstance(products, np.ndarray) else products.toarray()


def sampled_rows(store: AnyPath, stream: Stream) -> Any:
    """Rows (n, d) of at most three shards, in random order."""
    stored = replace(Stream(stream.dataset, stream.dataset_hash), positive_class=None)
    reader = StreamReader(store, stored)
    draw = np.random.default_rng(0)
    shards = sorted({0, len(reader.firsts) // 2 - 1, len(reader.firsts) - 2} - {-1})
    most = (EARLIER + QUERIES) // len(shards)
    numbers = np.concatenate(
        [
            draw.choice(size, min(size, most), replace=False) + reader.firsts[k]
            for k in shards
            if (size := int(reader.firsts[k + 1] - reader.firsts[k]))
        ]
    )
    X = reader.rows_at(draw.permutation(numbers)).rows.to_scipy().astype(np.float64)
    return X.toarray() if X.nnz > 0.3 * X.shape[0] * X.shape[1] else X


def with_growths(
    store: AnyPath, sizes: dict[str, DataSize], runs: Iterable[Run]
) -> dict[str, DataSize]:
    """The sizes with the expected growth of the runs' dictionaries; a failed estimate warns."""
    asked: dict[str, dict[tuple[Sampling, int], Stream]] = {}
    for run in runs:
        sampling = run.learner_class.sampling(run.params)
        identity = run.stream.dataset_hash
        if sampling is not None:
            key = sampling, sizes[identity].rounds(run.stream)
            asked.setdefault(identity, {}).setdefault(key, run.stream)
    known = dict(sizes)
    for identity, samplings in asked.items():
        stream = next(iter(samplings.values()))
        distance = math.nan
        try:
            X = sampled_rows(store, stream)
            with np.errstate(all="ignore"):  # what is not finite is refused
                samples = {rounds: DictionarySample(X, rounds) for _, rounds in samplings}
                growths = {key: samples[key[1]].growth(key[0]) for key in samplings}
                distance = next(iter(samples.values())).median_distance
        except WrongInput:  # it is not prepared yet, or damaged: the run will say so
            continue
        except Exception as error:  # an estimate ends no sweep
            warnings.warn(
                f"how dictionaries grow on {stream.dataset} cannot be estimated"
                f" ({error or type(error).__name__}); it is planned as if all rows joined",
                stacklevel=2,
            )
            growths = {key: all_join(key[1]).up_to(key[0].most) for key in samplings}
        known[identity] = replace(sizes[identity], growths=growths, median_distance=distance)
    return known


def large_dictionaries(runs: Iterable[Run], sizes: dict[str, DataSize]) -> list[str]:
    """Warnings of dictionaries with a large share of the rows, by learner and dataset."""
    largest: dict[tuple[str, str], tuple[float, Run, float]] = {}
    for run in runs:
        seen = sizes[run.stream.dataset_hash].seen_by(run)
        sampling = run.learner_class.sampling(run.params)
        if seen.growth is not None and sampling is not None and sampling.floor < 1.0:
            key = (run.learner, run.stream.dataset)
            share = seen.growth.last / max(seen.rounds, 1)
            estimated = not math.isnan(sizes[run.stream.dataset_hash].median_distance)
            if estimated and seen.growth.last > LARGE_POINTS and share > LARGE_SHARE:
                largest[key] = max(
                    largest.get(key, (0.0, run, 0.0)),
                    (share, run, seen.growth.last),
                    key=lambda one: one[0],
                )
    found = []
    for (learner, dataset), (_, run, points) in largest.items():
        size = sizes[run.stream.dataset_hash]
        public = run.learner_class.refilled(run.params)
        rows = size.rounds(run.stream)
        distance = size.median_distance
        if public["kernel"] == "gaussian":
            given = f" with bandwidth {public['bandwidth']:g}"
            remedy = (
                f"two rows are {distance:.3g} apart (median), so give a bandwidth of that size, or"
                " scale the features"
                if real(public, "bandwidth") < distance
                else f"a larger {'ridge' if 'ridge' in public else 'alpha'} makes it smaller"
            )
        else:
            given = f" with the {public['kernel']} kernel"
            remedy = "scale the features"
        limit = "" if "max_dictionary" not in public else ", or give max_dictionary"
        other = " (BKONS has max_dictionary)" if not limit and "ridge" in public else ""
        found.append(
            f"{learner} on {dataset}{given}: about {points:,.0f} of {rows:,} rows will join the"
            f" dictionary, and a round takes time in proportion to its square; {remedy}{limit}"
            f"{other}"
        )
    return found
