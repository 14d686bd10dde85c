"""Files that are written whole or not at all."""

import os
from pathlib import Path

from koco_stream.io.files import write_text


def test_file__is_on_the_disk_before_it_has_its_name__and_then_the_name_is(tmp_path, monkeypatch):
    """Else a power failure leaves the name without the content."""
    done, sync, rename = [], os.fsync, Path.replace

    def synced(handle):
        done.append(Path(f"/proc/self/fd/{handle}").readlink())
        sync(handle)

    def renamed(old, new):
        done.append((old, new))
        return rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    write_text(tmp_path / "a", "x")
    temporary = done[0]
    assert done == [temporary, (temporary, tmp_path / "a"), tmp_path]
