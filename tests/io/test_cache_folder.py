"""What another user could put into the cache folder would be executed: whatever the umask, nobody
else can write anywhere in it.
"""

import os
import pwd
import tempfile

import pytest

from koco_stream.errors import WrongInput
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
    with pytest.raises(PermissionError, match="set KOCO_CACHE"):
        private_folder("compiled")


def test_cache_folder__that_cannot_be_made_is_refused_with_what_to_set(monkeypatch):
    monkeypatch.setenv("KOCO_CACHE", "/dev/null/x")
    with pytest.raises(WrongInput, match=r"/dev/null/x cannot be made .*; set KOCO_CACHE"):
        private_folder("compiled")
