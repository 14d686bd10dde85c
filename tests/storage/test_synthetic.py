"""Synthetic datasets: the same rows however they are asked for, with the statistics that are
documented; the old ones keep their bytes. Section 6's adversary has the terms its docstring
promises.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import ONS, WrongInput
from koco_stream.streams.manifest import load_manifest
from storage.generated.blocks import BLOCK_ROWS
from storage.generated.generators import (
    GENERATORS,
    adversary,
    expected_values,
    prepare_synthetic,
    synthetic_name,
    synthetic_source,
)
from storage.sources.source import concatenated
from tests.helpers.wire import as_on_a_worker
from tests.oracles.theorems import gradient_term, newton_regret_bound

SMALL = {
    "sparse-text": {"n_rows": 40_000, "n_features": 3000, "mean_nonzeros": 20.0},
    "dense-stream": {"n_rows": 40_000, "n_features": 5},
    "slice-like": {"n_rows": 40_000, "n_features": 5, "n_factors": 3},
    "hyperplane": {"n_rows": 40_000, "every": 500, "width": 100},
    "sea": {"n_rows": 40_000},
    "swapped-dense": {"n_rows": 40_000},
    "swapped-text": {"n_rows": 40_000, "n_features": 300, "mean_nonzeros": 5.0},
}


def block_of(generator, **values):
    """One block of rows."""
    return synthetic_source(generator, {**values, "n_rows": BLOCK_ROWS}).read((0, BLOCK_ROWS))


def pieces_of(source):
    return list(source.pieces(Path()))


def bytes_of(piece):
    return [getattr(piece, what).tobytes() for what in ("labels", "indptr", "indices", "values")]


@pytest.mark.parametrize(
    ("generator", "values", "known"),
    [
        (
            "ill-conditioned",
            {"n_rows": 300, "n_features": 20},
            "0f6dbee573c4ac8340059047e9dd8f247904cd2f114b1a757897b2cdbec94fe7",
        ),
        (
            "ill-conditioned",
            {"n_rows": 300, "n_features": 20, "condition_number": 100.0, "data_seed": 2},
            "278c1508c8c5a97640c8a715323d8e3751706358d3d736aca03734ca34f3d7c3",
        ),
        (
            "adversary",
            {"n_rows": 301, "n_features": 3, "clip": 2.0},
            "6f14ce26fb75bc5be05ea7ac569e98578794519a71010ece209c8b21f249e174",
        ),
        (
            "slice-like",
            {"n_rows": 200, "n_features": 30, "data_seed": 3},
            "37ea48a112cd21b87ebe5f63cd5a3be229e0e801895484938556896f4fc291ea",
        ),
    ],
)
def test_tables__keep_the_values_they_had(generator, values, known):
    source = synthetic_source(generator, values)
    (piece,) = [source.read(piece) for piece in pieces_of(source)]
    assert hashlib.sha256(piece.labels.tobytes() + piece.values.tobytes()).hexdigest() == known


@pytest.mark.parametrize("generator", SMALL)
def test_pieces__are_all_rows_in_order_and_the_same_whenever_and_wherever_read(generator):
    source = synthetic_source(generator, SMALL[generator])
    pieces = pieces_of(source)
    assert [first for first, _ in pieces] == [0, BLOCK_ROWS, 2 * BLOCK_ROWS]
    assert sum(n for _, n in pieces) == 40_000
    assert sum(source.piece_bytes(piece) for piece in pieces) == source.n_bytes
    read = [bytes_of(source.read(piece)) for piece in pieces]
    elsewhere = as_on_a_worker(synthetic_source(generator, SMALL[generator]))
    assert [bytes_of(elsewhere.read(piece)) for piece in reversed(pieces)] == read[::-1]
    assert len({tuple(block) for block in read}) == 3  # no block comes twice


@pytest.mark.parametrize("generator", ["sparse-text", "dense-stream"])
@settings(max_examples=20)
@given(data=st.data())
def test_rows__are_the_same_in_a_longer_stream_and_in_any_pieces(generator, data):
    few = {"n_features": 200, "mean_nonzeros": 2.0} if generator == "sparse-text" else {}
    given = {**SMALL[generator], **few, "data_seed": data.draw(st.integers(1, 2**63 - 1))}
    n = data.draw(st.integers(1, 20_000))
    short = synthetic_source(generator, {**given, "n_rows": n})
    longer = synthetic_source(generator, {**given, "n_rows": n + data.draw(st.integers(0, 50_000))})
    for first, size in pieces_of(short):
        cut = data.draw(st.integers(0, size))
        parts = [longer.read((first, cut)), longer.read((first + cut, size - cut))]
        assert bytes_of(concatenated(parts)) == bytes_of(short.read((first, size)))


@pytest.mark.parametrize("generator", ["sparse-text", "dense-stream"])
def test_far_rows__are_as_near_as_the_first_and_another_seed_gives_others(generator):
    first = (10**12 - 10**12 % BLOCK_ROWS, 10)
    mine, other = (
        synthetic_source(generator, {**SMALL[generator], "n_rows": 10**12, "data_seed": seed})
        for seed in (1, 2)
    )
    assert mine.read(first).n_rows == 10
    assert bytes_of(mine.read(first)) != bytes_of(other.read(first))


@pytest.mark.parametrize("scale", ["unit-rows", "none"])
def test_sparse_text__has_the_documented_statistics(scale):
    piece = block_of("sparse-text", n_features=20_000, mean_nonzeros=60.0, scale=scale)
    sizes = np.diff(piece.indptr)
    assert sizes.mean() == pytest.approx(60.0, rel=0.02)
    assert (piece.indices.dtype, piece.values.dtype) == (np.int32, np.float32)
    assert 0 <= piece.indices.min() < piece.indices.max() < 20_000
    inside = np.ones(piece.indices.size, bool)
    inside[piece.indptr[:-1][sizes > 0]] = False
    assert (np.diff(piece.indices)[inside[1:]] > 0).all()  # canonical: increasing within each row
    assert set(np.unique(piece.labels)) == {-1.0, 1.0}
    assert abs(piece.labels.mean()) < 0.2
    norms = np.add.reduceat(piece.values.astype(float) ** 2, piece.indptr[:-1][sizes > 0])
    if scale == "unit-rows":
        assert norms == pytest.approx(1.0, abs=1e-6)
    else:
        assert (piece.values == np.rint(piece.values)).all()
        assert piece.values.min() == 1
    popular = np.sort(np.bincount(piece.indices, minlength=20_000))[::-1]
    assert popular[0] > 0.7 * BLOCK_ROWS  # in most rows
    assert popular[2000] < 0.05 * popular[0]
    assert popular[:2000].sum() > 0.5 * popular.sum()


def test_sparse_texts_labels__are_a_linear_rules_but_for_the_noise():
    values = {"n_features": 300, "mean_nonzeros": 20.0, "scale": "none", "noise": 0.05}
    piece = block_of("sparse-text", **values)
    X = np.zeros((BLOCK_ROWS, 300))
    X[np.repeat(np.arange(BLOCK_ROWS), np.diff(piece.indptr)), piece.indices] = piece.values
    w = np.linalg.lstsq(X[:8192], piece.labels[:8192], rcond=None)[0]
    error = (np.sign(X[8192:] @ w) != piece.labels[8192:]).mean()
    assert 0.03 < error < 0.15  # least squares, on rows it has not seen


def test_dense_stream__has_the_documented_statistics():
    piece = block_of("dense-stream", n_features=12, condition_number=50.0, noise=0.3)
    X = piece.values.reshape(BLOCK_ROWS, 12).astype(float)
    assert piece.values.dtype == np.float32
    assert (X**2).sum(1).mean() == pytest.approx(1.0, rel=0.03)
    spectrum = np.sort(np.linalg.eigvalsh(X.T @ X / BLOCK_ROWS))[::-1]
    assert spectrum == pytest.approx(spectrum[0] * 50.0 ** -(np.arange(12) / 11), rel=0.1)
    assert 0.0 <= piece.labels.min() <= piece.labels.max() <= 1.0
    s = 2.0 * piece.labels - 1.0
    u = s / (1.0 - np.abs(s))
    left = u - X @ np.linalg.lstsq(X, u, rcond=None)[0]
    assert (u**2).mean() == pytest.approx(1.0 + 0.3**2, rel=0.05)
    assert (left**2).mean() == pytest.approx(0.3**2, rel=0.05)


@pytest.mark.parametrize(
    ("generator", "values", "expected"),
    [
        (
            "sparse-text",
            {"n_rows": 500, "n_features": 400, "mean_nonzeros": 5.0, "scale": "none"},
            {
                "name": "sparse-text,n_rows=500,n_features=400,mean_nonzeros=5,scale=none",
                "n_rows": 500,
                "n_features": 400,
                "layout": "sparse",
                "value_type": "float32",
                "task": "classification",
                "classes": [-1.0, 1.0],
            },
        ),
        (
            "dense-stream",
            {"n_rows": 500, "n_features": 4},
            {"task": "regression", "layout": "dense", "n_values": 2000},
        ),
        (  # though its labels are two
            "adversary",
            {"n_rows": 6},
            {"name": "adversary,n_rows=6", "task": "regression", "classes": [], "n_features": 1},
        ),
    ],
)
def test_prepared__is_found_again_by_its_name(generator, values, expected, tmp_path):
    manifest = prepare_synthetic(tmp_path, generator, values)
    assert {name: getattr(manifest, name) for name in expected} == expected
    assert prepare_synthetic(tmp_path, generator, values) == manifest
    assert load_manifest(tmp_path, manifest.name) == manifest


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
    with pytest.raises(WrongInput, match=told):
        synthetic_name(generator, values)


@pytest.mark.parametrize("generator", GENERATORS)
def test_expected_values__are_those_of_the_made_rows(generator):
    source = synthetic_source(generator, {"n_rows": 2000})
    made = sum(source.read(piece).values.size for piece in pieces_of(source))
    assert made == pytest.approx(expected_values(generator, {"n_rows": 2000}), rel=0.1)


# The adversary
# --------------------------------------------------------------------------------------------------


def rows_of(table):
    return table.values.reshape(table.n_rows, -1), table.labels


def test_adversary__rows_are_one_unit_vector_and_labels_alternate_from_minus_c():
    X, y = rows_of(adversary(clip=2.5, n_rows=7, n_features=4))
    assert X.tolist() == [[0.5] * 4] * 7
    assert y.tolist() == [-2.5, 2.5, -2.5, 2.5, -2.5, 2.5, -2.5]


def test_adversary__gives_online_newton_the_stated_terms_above_the_printed_middle_one():
    T, C, alpha = 400, 2.0, 1.0
    sigma = 1 / (8 * C * C)
    X, y = rows_of(adversary(clip=C, n_rows=T))
    predictions = ONS(alpha, clip=C).progressive(X, y)
    slopes = 2 * (predictions - y)
    eta = np.full(T, sigma)
    R_G = gradient_term(X @ X.T, slopes, eta, alpha)
    assert R_G == pytest.approx((slopes**2 / (alpha + sigma * np.cumsum(slopes**2))).sum())
    regret = ((predictions - y) ** 2).sum() - T * C * C
    assert 0 < regret <= newton_regret_bound(alpha, 0.0, R_G) <= 4 * C * C * np.log1p(2 * T / alpha)
    assert (C * C / (C * C * sigma * np.arange(1, T + 1) + alpha)).sum() < R_G
