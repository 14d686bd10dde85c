"""Files that are written whole or not at all: arrays, JSON, and a cache folder that nobody else can
write in.
"""

import math
import os
import pwd
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from koco_stream.io import array_file
from koco_stream.io.array_file import opened_arrays, write_arrays
from koco_stream.io.cache import private_folder
from koco_stream.io.files import canonical_json, finite, json_text, write_text
from koco_stream.io.paths import store_path
from tests.helpers.in_process import strict
from tests.helpers.project import ROOT
from tests.helpers.refusal import refusal


def test_file__is_on_the_disk_before_it_has_its_name__and_then_the_name_is(tmp_path, monkeypatch):
    """Else a power failure leaves the name without the content."""
    done = []
    synced = "/proc/self/fd/{}".format
    monkeypatch.setattr(os, "fsync", lambda file: done.append(Path(synced(file)).readlink()))
    monkeypatch.setattr(Path, "replace", lambda old, new: done.append((old, new)))
    write_text(tmp_path / "a", "x")
    temporary = done[0]
    assert done == [temporary, (temporary, tmp_path / "a"), tmp_path]


DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "u1", "?", "<c16", "S3", "S8")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return store_path(tmp_path_factory.mktemp("arrays")) / "a.koco"


@st.composite
def any_array(draw):
    """Arrays of any type and shape, with any bytes: negative zeros and all NaNs are among them."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 9), min_size=0, max_size=3))
    n_bytes = int(np.prod(shape, dtype=int)) * dtype.itemsize
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    content = random.integers(0, 2 if dtype == np.bool_ else 256, n_bytes, np.uint8)
    array = content.view(dtype).reshape(shape)
    return array.T if draw(st.booleans()) else array


@given(st.lists(any_array(), max_size=4), st.integers(1, 300))
def test_any_arrays__are_restored_to_the_bit_from_pieces_of_any_size(file, arrays, piece):
    named = {f"{k}.a": array for k, array in enumerate([*arrays, *arrays[:1]])}
    header = {"of": "me", "clip": np.inf, "seed": np.int64(7), "rate": np.float32(0.5)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(array_file, "PIECE", piece)
        write_arrays(file, header, named)
        with opened_arrays(file) as (found, restored):
            assert found == {"of": "me", "clip": np.inf, "seed": 7, "rate": 0.5}
            assert set(restored) == set(named)
            for name, array in named.items():
                assert (restored[name].dtype, restored[name].shape) == (array.dtype, array.shape)
                assert restored[name].tobytes() == array.tobytes()
            if arrays:
                assert restored.place("0.a") == restored.place(f"{len(arrays)}.a")


def test_mostly_zero__takes_little_room_and_an_array_of_two_names_is_there_once(file):
    """A state has numbers for every feature, most of which no row has had."""
    array = np.zeros((100_000, 8))
    array[::10] = np.random.default_rng(0).standard_normal(8)
    write_arrays(file, {}, {"0.a": array, "1.a": array})
    (size,) = file.sizes()
    assert size < array.nbytes // 10


def test_pieces__are_in_memory_one_at_a_time(file, monkeypatch):
    """A worker that resumes has its states and little more."""
    monkeypatch.setattr(array_file, "PIECE", 1 << 18)
    large = np.random.default_rng(0).standard_normal((20, 1 << 16))
    write_arrays(file, {}, {str(k): array for k, array in enumerate(large)})
    before = pa.total_allocated_bytes()
    with opened_arrays(file) as (_, arrays):
        for name in arrays:
            assert np.array_equal(arrays[name], large[int(name)])
            assert pa.total_allocated_bytes() - before < large.nbytes // 4


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    """The umask of this process during a test."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def writable_by_others(folder):
    return [path for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o022]


@pytest.mark.parametrize("there", [None, 0o700, 0o755])
def test_cache_folder__is_writable_by_nobody_else_whatever_the_umask(
    there, umask, tmp_path, monkeypatch
):
    cache = tmp_path / "new" / "cache"
    monkeypatch.setenv("KOCO_CACHE", str(cache))
    if there is not None:
        cache.parent.mkdir(0o700)
        cache.mkdir()
        cache.chmod(there)
    assert private_folder("compiled", "code", "file") == cache / "compiled" / "code" / "file"
    assert private_folder("compiled", "code", "file").is_dir()
    assert writable_by_others(cache.parent) == []


@pytest.mark.parametrize("open_folder", ["", "compiled", "compiled/code"])
def test_cache_folder__is_refused_where_others_can_write(open_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("KOCO_CACHE", str(tmp_path / "cache"))
    private_folder("compiled", "code", "file")
    (tmp_path / "cache" / open_folder).chmod(0o777)
    refusal(
        f"chmod 700 {tmp_path / 'cache' / open_folder} ",
        private_folder,
        "compiled",
        "code",
        "file",
        by=PermissionError,
    )


@pytest.mark.parametrize("home", [None, "/dev/null", "/proc/nobody", "a file"])
@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME"])
def test_cache_folder__without_a_home_to_write_to_is_a_private_one_in_the_temporary_directory(
    name, home, tmp_path, monkeypatch, capsys
):
    def unknown(uid):
        raise KeyError(uid)

    (tmp_path / "a file").touch()
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for variable in ("KOCO_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, "")  # so that it is restored at the end
        monkeypatch.delenv(variable)
    if home:
        monkeypatch.setenv(name, str(tmp_path / home))
    folder = tmp_path / f"koco-stream-{os.getuid()}"
    for _ in range(2):
        assert private_folder("compiled") == folder / "compiled"
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "compiled")] == [0o700] * 2
    assert capsys.readouterr().err.count(str(folder)) == 1
    assert os.environ["KOCO_CACHE"] == str(folder)
    folder.chmod(0o777)
    refusal("set KOCO_CACHE", private_folder, "compiled", by=PermissionError)


def test_cache_folder__that_cannot_be_made_is_refused_with_what_to_set(monkeypatch):
    monkeypatch.setenv("KOCO_CACHE", "/dev/null/x")
    refusal(r"/dev/null/x cannot be made .*; set KOCO_CACHE", private_folder, "compiled")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    )
)
def test_text__is_strict_json_of_the_value_with_null_for_what_is_not_finite(value):
    assert strict(json_text(value)) == finite(value)
    assert strict(canonical_json(finite(value))) == finite(value)


def test_numbers_that_are_not_finite__are_null_wherever_they_stand():
    nan, inf = math.nan, math.inf
    given = {"a": nan, "b": [inf, (1.5, -inf)], "c": datetime(2026, 1, 1, tzinfo=UTC)}
    found = {"a": None, "b": [None, [1.5, None]], "c": "2026-01-01 00:00:00+00:00"}
    assert strict(json_text(given)) == found
    refusal("not JSON compliant", canonical_json, given["b"], by=ValueError)


def test_nothing_else__writes_json():
    packages = ("koco_stream", "storage", "cluster", "flows")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    files.append(ROOT / "tests" / "bench" / "claims.py")  # of the speeds in the documentation
    writing = [file for file in files if re.search(r"\bjson\.dumps?\b", file.read_text())]
    assert [str(file.relative_to(ROOT)) for file in writing] == ["koco_stream/io/files.py"]
