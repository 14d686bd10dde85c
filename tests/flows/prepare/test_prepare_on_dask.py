"""Preparing on a cluster gives what preparing in one process gives: the same manifest, the same
refusal.
"""

import json
from functools import partial

import numpy as np
import pytest

from cluster.local import local_cluster
from koco_stream import WrongInput
from koco_stream.streams.manifest import load_manifest
from storage.preparing.parallel import map_on_dask
from storage.preparing.prepare import Preparing, prepare_source
from storage.sources.reading import source_of
from storage.sources.source import Reading


@pytest.fixture(scope="module")
def on_dask():
    with local_cluster(2) as client:
        yield partial(map_on_dask, client)


def lines(n):
    draw = np.random.default_rng(3)
    for t in range(n):
        features = np.sort(draw.choice(60, draw.integers(0, 9), replace=False)) + 1
        yield f"{t % 3} " + " ".join(f"{j}:{draw.random():.3g}" for j in features) + "\n"


@pytest.mark.parametrize("scale", ["none", "minmax", "tf-idf", "unit-mean-square"])
def test_on_dask__the_same_bytes(scale, on_dask, tmp_path):
    (tmp_path / "a.svm").write_text("".join(lines(700)))
    source = source_of([tmp_path / "a.svm"], Reading(), block_bytes=900)
    manifests = [
        prepare_source(
            tmp_path / name,
            "x",
            source,
            Preparing(scale=scale, values_per_shard=400, parallel_map=how),
        )
        for name, how in (("one", map), ("two", on_dask))
    ]
    assert manifests[0] == manifests[1]
    assert len(manifests[0].shards) > 5


def test_on_dask__the_first_wrong_line_is_named_once(on_dask, tmp_path, capfd):
    text = list(lines(400))
    text[150], text[300] = "1 3:x\n", "1 4:y\n"
    (tmp_path / "a.svm").write_text("".join(text))
    source = source_of([tmp_path / "a.svm"], Reading(), block_bytes=500)
    for how in (map, on_dask):
        with pytest.raises(
            WrongInput, match=r"a\.svm, line 151, column 5: the value of feature 3 is 'x'"
        ):
            prepare_source(tmp_path / "store", "x", source, Preparing(parallel_map=how))
        assert not (tmp_path / "store").exists()
    assert "Traceback" not in capfd.readouterr().err  # from the workers


def test_verify__from_the_command_line(small_store, koco):
    verify = partial(koco, "verify", "--store", small_store)
    told = json.loads(verify("--json", status=0).stdout)
    assert {row["what"]: row["state"] for row in told} == {
        "dataset real": "ok",
        "dataset sparse": "ok",
        "results": "ok",
    }
    shard = small_store / "datasets" / "real" / load_manifest(small_store, "real").shards[0].path
    shard.write_bytes(shard.read_bytes()[:-1])
    assert str(shard) in verify(status=1).stdout
    verify("other", status=2)
