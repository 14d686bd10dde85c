"""Synthetic datasets: the same rows however they are asked for, with the statistics that are
documented, and those of literal references; old ones keep their bytes. Concepts hold between the
rounds of change that the manifest lists. Section 6's adversary has the terms that it promises.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from flows.preparing.preparation import dataset_rows
from koco_stream import ONS
from koco_stream.streams.manifest import load_manifest
from storage.generated.generators import (
    GENERATORS,
    adversary,
    expected_values,
    prepare_synthetic,
    synthetic_name,
    synthetic_source,
)
from storage.generated.streams import BLOCK_ROWS
from storage.sources.source import concatenated
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import swept
from tests.helpers.wire import as_on_a_worker
from tests.oracles.theorems import gradient_term, newton_regret_bound

# of few values, so that blocks are quick to make
NARROW = {
    "sparse-text": {"n_features": 200, "mean_nonzeros": 2.0},
    "dense-stream": {"n_features": 5},
    "slice-like": {"n_features": 5, "n_factors": 3},
    "hyperplane": {"n_features": 4, "moving": 3},
    "sea": {},
    "swapped-dense": {"n_features": 4},
    "swapped-text": {"n_features": 50, "mean_nonzeros": 4},
}
CHANGING = ("hyperplane", "sea", "swapped-dense", "swapped-text")


def block_of(generator, **values):
    """One block of rows."""
    return synthetic_source(generator, {**values, "n_rows": BLOCK_ROWS}).read((0, BLOCK_ROWS))


def pieces_of(source):
    return list(source.pieces(Path()))


def bytes_of(piece):
    return [getattr(piece, what).tobytes() for what in ("labels", "indptr", "indices", "values")]


# The same rows however they are asked for, and for ever
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", NARROW)
@settings(max_examples=15)
@given(data=st.data())
def test_rows__are_the_same_in_a_longer_stream_in_any_pieces_and_on_a_worker(generator, data):
    given = {**NARROW[generator], "data_seed": data.draw(st.integers(1, 2**63 - 1))}
    if generator in CHANGING:
        given["every"] = data.draw(st.integers(10, 20_000))
        given["width"] = data.draw(st.integers(1, given["every"]))
    n = data.draw(st.integers(1, 20_000))
    more = 0 if generator == "slice-like" else data.draw(st.integers(0, 50_000))
    short = synthetic_source(generator, {**given, "n_rows": n})
    longer = synthetic_source(generator, {**given, "n_rows": n + more})
    assert list(longer.changes)[: len(short.changes)] == list(short.changes)
    assert [first for first, _ in pieces_of(short)] == list(range(0, n, BLOCK_ROWS))
    assert sum(short.piece_bytes(piece) for piece in pieces_of(short)) == short.n_bytes == n
    for first, size in reversed(pieces_of(short)):
        cut = data.draw(st.integers(0, size))
        parts = [as_on_a_worker(longer).read((first, cut)), longer.read((first + cut, size - cut))]
        assert bytes_of(concatenated(parts)) == bytes_of(short.read((first, size)))


TINY = {"n_rows": 300, "every": 70, "width": 20, "data_seed": 5}
LONG = {"n_rows": BLOCK_ROWS + 500, "every": 700, "width": 40, "noise": 0.2, "data_seed": 3}
PLANES = {**NARROW["hyperplane"], "step": 0.4}
CLASSES = {"task": "classification", "classes": [-1.0, 1.0]}
CHANGES = {**CLASSES, "changes": (70, 140, 210, 280)}
REAL = {"task": "regression", "classes": [], "layout": "dense", "changes": ()}


@pytest.mark.parametrize(
    ("generator", "values", "known", "expected"),
    [
        ("ill-conditioned", {"n_rows": 300, "n_features": 20}, "27cb2173a68696f3", CLASSES),
        (
            "ill-conditioned",
            {"n_rows": 300, "n_features": 20, "condition_number": 100.0, "data_seed": 2},
            "a3942d7e8d525a2c",
            {**CLASSES, "changes": ()},
        ),
        # though its labels are two
        (
            "adversary",
            {"n_rows": 6},
            "205c673b4d58d908",
            {**REAL, "name": "adversary,n_rows=6", "n_features": 1},
        ),
        ("adversary", {"n_rows": 301, "n_features": 3, "clip": 2.0}, "5b3ce10fd0b07177", REAL),
        ("slice-like", {"n_rows": 200, "n_features": 30, "data_seed": 3}, "54dd20f2d7f1f9df", REAL),
        (
            "dense-stream",
            {"n_rows": 500, "n_features": 4},
            "714476cfcc08794d",
            {**REAL, "n_values": 2000},
        ),
        (
            "sparse-text",
            {"n_rows": 500, "n_features": 400, "mean_nonzeros": 5.0, "scale": "none"},
            "f4c5b1f1660e221d",
            {
                **CLASSES,
                "name": "sparse-text,n_rows=500,n_features=400,mean_nonzeros=5,scale=none",
                "n_rows": 500,
                "n_features": 400,
                "layout": "sparse",
                "value_type": "float32",
            },
        ),
        (
            "sparse-text",
            {"n_rows": 500, "n_features": 400, "mean_nonzeros": 5.0, "data_seed": 2},
            "a3e87750b779f8cf",
            CLASSES,
        ),
        (
            "dense-stream",
            {
                "n_rows": 500,
                "n_features": 4,
                "noise": 0.1,
                "condition_number": 50.0,
                "data_seed": 2,
            },
            "252c82d0c33aa309",
            {"value_type": "float32"},
        ),
        ("hyperplane", {**NARROW["hyperplane"], **TINY}, "3d245aa92180dff1", CHANGES),
        ("sea", TINY, "624bf4d969367f5c", CHANGES),
        ("swapped-dense", {**NARROW["swapped-dense"], **TINY}, "72b25fa30114c57d", CHANGES),
        ("swapped-text", {**NARROW["swapped-text"], **TINY}, "e1e7137d921a6eb6", CHANGES),
        (
            "swapped-text",
            {**NARROW["swapped-text"], **TINY, "scale": "none"},
            "155c438bf088f8b2",
            CHANGES,
        ),
        ("swapped-text", {**LONG, **NARROW["swapped-text"]}, "97aa496740863d1e", {}),
        # over the end of a block; compared, when they were made, with a literal reference
        ("hyperplane", {**LONG, **PLANES, "concepts": 3}, "a506dba55bae21cb", {"n_rows": 16_884}),
        ("hyperplane", {**LONG, **PLANES, "width": 1, "noise": 0}, "727062950f52c8a5", {}),
        ("sea", LONG, "52dfb21f3b22f5da", {"n_rows": 16_884}),
        ("swapped-dense", {**LONG, "n_features": 4}, "500fa470079f5dac", {"n_rows": 16_884}),
        ("sea", {"n_rows": 100, "every": 100}, "4516df8ffa5b4942", {**CLASSES, "changes": ()}),
        (
            "hyperplane",
            {"n_rows": 100, "every": 10, "concepts": 1},
            "f34abd7170af1bf4",
            {"changes": ()},
        ),
    ],
)
def test_prepared__is_as_recorded_and_found_again(generator, values, known, expected, tmp_path):
    manifest = prepare_synthetic(tmp_path, generator, values)
    assert {name: getattr(manifest, name) for name in expected} == expected
    assert manifest.dataset_hash[:16] == known
    assert prepare_synthetic(tmp_path, generator, values) == manifest
    assert load_manifest(tmp_path, manifest.name) == manifest


# What the documentation says
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["unit-rows", "none"])
def test_sparse_text__has_the_documented_statistics(scale):
    piece = block_of("sparse-text", n_features=20_000, mean_nonzeros=60.0, scale=scale)
    sizes = np.diff(piece.indptr)
    assert sizes.mean() == pytest.approx(60.0, rel=0.02)
    assert abs(piece.labels.mean()) < 0.2
    norms = np.add.reduceat(piece.values.astype(float) ** 2, piece.indptr[:-1][sizes > 0])
    if scale == "unit-rows":
        assert norms == pytest.approx(1.0, abs=1e-6)
    else:
        assert (piece.values == np.rint(piece.values)).all()
        assert piece.values.min() == 1
    popular = np.sort(np.bincount(piece.indices, minlength=20_000))[::-1]
    assert popular[0] > 0.7 * BLOCK_ROWS  # in most rows
    assert popular[:2000].sum() > 0.5 * popular.sum()


def test_dense_stream__has_the_documented_statistics():
    piece = block_of("dense-stream", n_features=12, condition_number=50.0, noise=0.3)
    X = piece.values.reshape(BLOCK_ROWS, 12).astype(float)
    assert (X**2).sum(1).mean() == pytest.approx(1.0, rel=0.03)
    spectrum = np.sort(np.linalg.eigvalsh(X.T @ X / BLOCK_ROWS))[::-1]
    assert spectrum == pytest.approx(spectrum[0] * 50.0 ** -(np.arange(12) / 11), rel=0.1)
    s = 2.0 * piece.labels - 1.0
    u = s / (1.0 - np.abs(s))
    left = u - X @ np.linalg.lstsq(X, u, rcond=None)[0]
    assert (left**2).mean() == pytest.approx(0.3**2, rel=0.05)


# Manifests, sweeps, parameters
# --------------------------------------------------------------------------------------------------


def test_sweep__runs_on_them_with_grids_of_their_parameters(tmp_path):
    tables = [
        'name = "hyperplane"\nn_rows = 300\nevery = [100, 150]\nconcepts = 2',
        'name = "sea"\nn_rows = 300\nevery = 100\nwidth = [1, 50]\nnoise = 0\nscale = "unit-rows"',
        'name = "swapped-dense"\nn_rows = 300\nevery = 100',
        'name = "swapped-text"\nn_rows = 300\nn_features = 200\nmean_nonzeros = 5\nevery = 100',
    ]
    text = "".join(f"[[dataset]]\n{table}\n" for table in tables) + '[[learner]]\nname = "OGD"\n'
    runs = swept(tmp_path, text).select(["status", "rounds"]).to_pylist()
    assert runs == [{"status": "ok", "rounds": 300}] * 6
    listed = {row["name"]: row["prepared"] for row in dataset_rows(str(tmp_path / "store"))}
    assert {listed[name] for name in CHANGING} == {"on demand"}
    assert listed["sea,n_rows=300,every=100,width=50,noise=0,scale=unit-rows"] == "yes"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"data_seed": 1234567}, "data_seed=1234567"),
        ({"data_seed": 3.0, "condition_number": 10}, "condition_number=10,data_seed=3"),
        ({"condition_number": 1.23456789}, "condition_number=1.23456789"),
    ],
)
def test_name__tells_every_parameter(values, told):
    assert synthetic_name("ill-conditioned", values) == f"ill-conditioned,{told}"


@pytest.mark.parametrize(
    ("generator", "values", "told"),
    [
        ("sparse-text", {"scale": "minmax"}, "scale must be one of unit-rows, none, not 'minmax'"),
        ("sparse-text", {"scale": 1}, "scale must be one of"),
        ("sparse-text", {"noise": 0.7}, r"noise = 0\.7 .* at most 0\.5"),
        (
            "sparse-text",
            {"n_features": 100},
            "mean_nonzeros = 94 is more than half of n_features = 100",
        ),
        ("sparse-text", {"n_features": 2**31}, "n_features = 2147483648 is more than"),
        ("dense-stream", {"n_features": 10_000}, "n_features = 10000 is more than 4096"),
        ("dense-stream", {"n_rows": "many"}, "n_rows must be a positive whole number"),
        ("slice-like", {"n_rows": 10**9}, "are more than 500,000,000 values"),
        ("ill-conditioned", {"data_seed": float("inf")}, "data_seed"),
        ("ill-conditioned", {"data_seed": float("nan")}, "data_seed"),
        ("ill-conditioned", {"data_seed": 2**63}, "data_seed"),
        ("ill-conditioned", {"condition_number": float("nan")}, "condition_number"),
        ("ill-conditioned", {"condition_number": float("inf")}, "condition_number"),
        ("ill-conditioned", {"condition_number": 10**400}, "condition_number"),
        ("ill-conditioned", {"n_rows": 10**21}, "n_rows"),
        ("ill-conditioned", {"n_rows": 10**9}, "n_rows"),
        ("sea", {"width": 20_000}, "sea: width = 20000 is more than every = 15000.*at most 15000"),
        ("swapped-text", {"every": 5}, "swapped-text: n_rows = 100000 with every = 5.*every = 10 "),
        ("sea", {"n_rows": 10_001, "every": 1, "width": 1}, "more than 10,000.*give every = 2"),
        ("sea", {"every": 0}, "sea: every must be a positive whole number"),
        ("sea", {"every": 2.5}, "sea: every must be a positive whole number"),
        ("sea", {"n_features": 1}, "sea: n_features = 1, but the concepts need two; give 2"),
        ("sea", {"noise": 0.6}, r"sea: noise = 0\.6 .* at most 0\.5"),
        ("sea", {"noise": -0.1}, "sea: noise must be 0 or a positive number"),
        ("sea", {"noise": False}, "sea: noise must be 0 or a positive number"),
        ("sea", {"theta": 8}, "sea has no parameter 'theta'"),
        ("hyperplane", {"n_features": 3}, "moving = 5 is more than n_features = 3; give at most 3"),
        ("hyperplane", {"n_features": 1}, "hyperplane: n_features = 1, .* give 2"),
        ("hyperplane", {"n_features": 1001}, "n_features = 1001 is more than 1000.*swapped-text"),
        ("swapped-text", {"noise": 0.6}, r"swapped-text: noise = 0\.6"),
        ("swapped-text", {"n_features": 60}, "swapped-text: mean_nonzeros = 50 is more than half"),
        ("swapped-text", {"scale": "minmax"}, "swapped-text: scale must be one of unit-rows, none"),
    ],
)
def test_parameters_that_are_wrong__are_refused_before_anything_is_made(generator, values, told):
    refusal(told, synthetic_name, generator, values)


@pytest.mark.parametrize("generator", GENERATORS)
def test_expected_values__are_those_of_the_made_rows(generator):
    source = synthetic_source(generator, {"n_rows": 2000})
    made = sum(source.read(piece).values.size for piece in pieces_of(source))
    assert made == pytest.approx(expected_values(generator, {"n_rows": 2000}), rel=0.1)


# The adversary
# --------------------------------------------------------------------------------------------------


def test_adversary__gives_online_newton_the_stated_terms_above_the_printed_middle_one():
    T, C, alpha = 400, 2.0, 1.0
    sigma = 1 / (8 * C * C)
    rows = adversary(clip=C, n_rows=T, n_features=4)
    X, y = rows.values.reshape(T, 4), rows.labels
    assert (X == 0.5).all()  # unit vectors
    assert (y == np.tile([-C, C], T // 2)).all()
    predictions = ONS(alpha, clip=C).progressive(X, y)
    slopes = 2 * (predictions - y)
    R_G = gradient_term(X @ X.T, slopes, np.full(T, sigma), alpha)
    assert R_G == pytest.approx((slopes**2 / (alpha + sigma * np.cumsum(slopes**2))).sum())
    regret = ((predictions - y) ** 2).sum() - T * C * C
    assert 0 < regret <= newton_regret_bound(alpha, 0.0, R_G) <= 4 * C * C * np.log1p(2 * T / alpha)
    assert (C * C / (C * C * sigma * np.arange(1, T + 1) + alpha)).sum() < R_G
