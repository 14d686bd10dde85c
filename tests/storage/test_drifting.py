"""Streams that change: every row is that of a literal reference, concepts hold between the rounds
of change that the manifest lists, and a change takes over as it is documented.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.prepare.preparation import dataset_rows
from koco_stream.streams.manifest import load_manifest
from storage.generated.blocks import BLOCK_ROWS, MODEL, draw_of
from storage.generated.drifting import DRIFTING
from storage.generated.generators import prepare_synthetic, synthetic_source
from tests.helpers.sweeps import checked
from tests.helpers.swept import swept

DENSE = ("hyperplane", "sea", "swapped-dense")
ALL = (*DENSE, "swapped-text")
# of few values, so that blocks are quick to make
NARROW = {
    "hyperplane": {"n_features": 4, "moving": 3},
    "sea": {},
    "swapped-dense": {"n_features": 4},
    "swapped-text": {"n_features": 50, "mean_nonzeros": 4},
}


def rows_of(generator, **values):
    """Features and labels of all rows, dense."""
    source = synthetic_source(generator, {**NARROW[generator], **values})
    pieces = [source.read(piece) for piece in source.pieces(Path())]
    X = np.zeros((sum(piece.n_rows for piece in pieces), source.n_features))
    first = 0
    for piece in pieces:
        rows = first + np.repeat(np.arange(piece.n_rows), np.diff(piece.indptr))
        features = piece.indices if source.layout == "sparse" else np.arange(piece.values.size)
        X[rows, features % source.n_features] = piece.values
        first += piece.n_rows
    return X, np.concatenate([piece.labels for piece in pieces])


# The literal reference
# --------------------------------------------------------------------------------------------------


def hyperplanes(n_features, moving, step, data_seed, n_concepts):
    """The weights of one hyperplane after the other: those that move bounce off 0 and 1."""
    draw = draw_of(data_seed, DRIFTING, MODEL)
    weights, direction = draw.random(n_features).tolist(), [1] * moving
    turns = draw.random((n_concepts - 1, moving))
    planes = [list(weights)]
    for t in range(n_concepts - 1):
        for j in range(moving):
            if turns[t, j] < 0.1:
                direction[j] = -direction[j]
            weights[j] += direction[j] * step
            if weights[j] > 1:
                weights[j], direction[j] = 2 - weights[j], -direction[j]
            if weights[j] < 0:
                weights[j], direction[j] = -weights[j], -direction[j]
        planes.append(list(weights))
    return planes


def is_positive(generator, concept, x, planes, w):
    """Whether a concept's rule gives the row x the label +1."""
    if generator == "hyperplane":
        plane = planes[concept]
        return sum(a * b for a, b in zip(plane, x, strict=True)) >= sum(plane) / 2
    if generator == "sea":
        return x[0] + x[1] <= (8, 9, 7, 9.5)[concept]
    product = sum(a * b for a, b in zip(w, x, strict=True))
    return product >= 0 if concept == 0 else product < 0


def literal(generator, n_rows, n_features, every, width, noise, data_seed, concepts, moving, step):
    """Features and labels of dense rows, one row after the other."""
    ends = {"hyperplane": (0, 1), "sea": (0, 10), "swapped-dense": (-1, 1)}[generator]
    planes = hyperplanes(n_features, moving, step, data_seed, min(concepts, 1 + n_rows // every))
    cycle = {"hyperplane": concepts, "sea": 4, "swapped-dense": 2}[generator]
    w = [2 * u - 1 for u in draw_of(data_seed, DRIFTING, MODEL).random(n_features).tolist()]
    X, y = [], []
    for t in range(n_rows):
        number, at = divmod(t, BLOCK_ROWS)
        if at == 0:
            draw = draw_of(data_seed, DRIFTING, number)
            U = draw.random((BLOCK_ROWS, n_features), np.float32)
            chance, flip = draw.random((2, BLOCK_ROWS))
        x = np.float32(ends[0]) + np.float32(ends[1] - ends[0]) * U[at]
        concept, since = divmod(t, every)
        if concept > 0 and chance[at] >= (since + 1) / width:
            concept -= 1
        label = 1 if is_positive(generator, concept % cycle, x.tolist(), planes, w) else -1
        X.append(x)
        y.append(-label if flip[at] < noise else label)
    return np.array(X), np.array(y)


@pytest.mark.parametrize("generator", DENSE)
@pytest.mark.parametrize(("width", "noise", "concepts"), [(1, 0, 10_000), (40, 0.2, 3)])
def test_dense_rows__are_those_of_the_literal_reference(generator, width, noise, concepts):
    n_rows = BLOCK_ROWS + 500
    values = {"n_rows": n_rows, "every": 700, "width": width, "noise": noise, "data_seed": 3}
    of_planes = {"concepts": concepts, "moving": 3, "step": 0.4}
    mine = of_planes if generator == "hyperplane" else {}
    X, y = rows_of(generator, **values, **mine)
    expected = literal(generator, n_features=X.shape[1], **values, **of_planes)
    assert X.astype(np.float32).tobytes() == expected[0].tobytes()
    assert y.tolist() == expected[1].tolist()
    assert set(y) == {-1, 1}


@pytest.mark.parametrize("scale", ["unit-rows", "none"])
def test_swapped_text__is_sparse_text_with_labels_swapped_at_each_change(scale):
    values = {**NARROW["swapped-text"], "n_rows": 40_000, "noise": 0.1, "scale": scale}
    swapped = synthetic_source("swapped-text", {**values, "every": 3000})
    text = synthetic_source("sparse-text", values)
    pieces = list(text.pieces(Path()))
    assert list(swapped.pieces(Path())) == pieces
    for first, n in pieces:
        mine, known = swapped.read((first, n)), text.read((first, n))
        for what in ("indptr", "indices", "values"):
            assert getattr(mine, what).tobytes() == getattr(known, what).tobytes()
        swaps = (first + np.arange(n)) // 3000
        assert (mine.labels == known.labels * (-1.0) ** swaps).all()


# What the documentation says
# --------------------------------------------------------------------------------------------------


def test_gradual_change_and_noise__are_as_documented():
    """On rows whose reference is not the literal one."""
    values = {"n_rows": 200_000, "every": 1000}
    X, first = rows_of("swapped-text", **values, noise=0, width=1)
    _, y = rows_of("swapped-text", **values, noise=0, width=400)
    # one row a change, in which the new labels have been swapped
    is_new = (first == y).reshape(200, 1000)
    assert is_new[0].all()
    assert is_new[:, 399:].all()
    for k in range(0, 400, 50):
        share = (k + 1 + np.arange(50)).mean() / 400
        deviation = np.sqrt(share * (1 - share) / (199 * 50))
        assert is_new[1:, k : k + 50].mean() == pytest.approx(share, abs=5 * deviation)
    again, noisy = rows_of("swapped-text", **values, noise=0.2, width=400)
    assert (again == X).all()
    assert (noisy != y).mean() == pytest.approx(0.2, abs=0.01)


# The same rows however they are asked for
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", ALL)
@settings(max_examples=20)
@given(data=st.data())
def test_rows__are_the_same_in_a_longer_stream_and_in_any_pieces(generator, data):
    every = data.draw(st.integers(10, 20_000))
    given = {
        **NARROW[generator],
        "every": every,
        "width": data.draw(st.integers(1, every)),
        "data_seed": data.draw(st.integers(1, 2**63 - 1)),
    }
    n = data.draw(st.integers(1, 20_000))
    short = synthetic_source(generator, {**given, "n_rows": n})
    longer = synthetic_source(generator, {**given, "n_rows": n + data.draw(st.integers(0, 50_000))})
    assert list(longer.changes)[: len(short.changes)] == list(short.changes)
    for first, size in short.pieces(Path()):
        cut = data.draw(st.integers(0, size))
        whole = short.read((first, size))
        a, b = longer.read((first, cut)), longer.read((first + cut, size - cut))
        assert (np.concatenate([a.labels, b.labels]) == whole.labels).all()
        assert (np.concatenate([a.values, b.values]) == whole.values).all()
        assert (np.concatenate([a.indices, b.indices]) == whole.indices).all()


@pytest.mark.parametrize(
    ("generator", "known"),
    [
        ("hyperplane", "3d245aa92180dff1"),
        ("sea", "624bf4d969367f5c"),
        ("swapped-dense", "72b25fa30114c57d"),
        ("swapped-text", "e1e7137d921a6eb6"),
    ],
)
def test_identity__is_the_recorded_one(generator, known, tmp_path):
    given = {**NARROW[generator], "n_rows": 300, "every": 70, "width": 20, "data_seed": 5}
    manifest = prepare_synthetic(tmp_path, generator, given)
    assert manifest.dataset_hash[:16] == known
    assert load_manifest(tmp_path, manifest.name) == manifest
    assert manifest.changes == (70, 140, 210, 280)
    assert (manifest.task, manifest.classes) == ("classification", [-1.0, 1.0])


# The manifest, sweeps
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generator", "values"),
    [
        ("sea", {"n_rows": 100, "every": 100}),
        ("hyperplane", {"n_rows": 100, "every": 10, "concepts": 1}),
        ("adversary", {"n_rows": 10}),
    ],
)
def test_streams_without_a_change__have_none_in_the_manifest(generator, values, tmp_path):
    manifest = prepare_synthetic(tmp_path, generator, values)
    assert manifest.changes == load_manifest(tmp_path, manifest.name).changes == ()


def test_sweep__runs_on_them_with_grids_of_their_parameters(tmp_path):
    tables = [
        'name = "hyperplane"\nn_rows = 300\nevery = [100, 150]\nconcepts = 2',
        'name = "sea"\nn_rows = 300\nevery = 100\nwidth = [1, 50]\nnoise = 0\nscale = "unit-rows"',
        'name = "swapped-dense"\nn_rows = 300\nevery = 100',
        'name = "swapped-text"\nn_rows = 300\nn_features = 200\nmean_nonzeros = 5\nevery = 100',
    ]
    text = "".join(f"[[dataset]]\n{table}\n" for table in tables) + '[[learner]]\nname = "OGD"\n'
    (tmp_path / "s.toml").write_text('name = "s"\n' + text)
    sweep = checked(tmp_path / "s.toml", tmp_path / "store")
    expected = [3000, 3000, 900, 900, 3000, 1500]
    assert [use.size(None).n_values for use in sweep.sweep.datasets] == expected
    runs = swept(tmp_path, text).to_pylist()
    assert [(run["status"], run["rounds"]) for run in runs] == [("ok", 300)] * 6
    listed = {row["name"]: row["prepared"] for row in dataset_rows(str(tmp_path / "store"))}
    assert {listed[name] for name in ALL} == {"on demand"}
    assert listed["sea,n_rows=300,every=100,width=50,noise=0,scale=unit-rows"] == "yes"
