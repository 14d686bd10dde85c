"""What another user could put into the cache folder would be executed: whatever the umask, nobody
else can write anywhere in it.
"""

import os

import pytest

from koco_stream.io.cache import private_folder


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
    with pytest.raises(PermissionError, match=f"chmod 700 {tmp_path / 'cache' / open_folder} "):
        private_folder("compiled", "code", "file")
