"""Extraction of one file from an archive: zip, gzip-compressed tar, or nested."""

import gzip
import hashlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from koco_stream.errors import WrongInput
from koco_stream.io.files import written_atomically

CHUNK = 1 << 20


def unpack(
    archive: Path,
    path_inside: Sequence[str],
    target: Path,
    expected_sha256: str | None = None,
    skip_lines: int = 0,
) -> Path:
    """Extract a file of an archive to a file, atomically, and verify the archive's checksums.

    Parameters
    ----------
    archive : Path
        The archive.
    path_inside : sequence of str
        Path of the file; with nested archives, the inner archives first.
    target : Path
        File to write; also returned.
    expected_sha256 : str, optional
        Checksum of the file, if known.
    skip_lines : int
        Number of leading lines that are left out.

    Raises
    ------
    WrongInput
        If the archive is damaged, if the file is missing, not a file or has an unsafe name, or if
        its checksum is wrong.
    """
    for name in path_inside:
        path = Path(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in name:
            raise WrongInput(f"{archive}: {name!r} is not a safe name for a file of an archive")
    digest = hashlib.sha256()
    try:
        with written_atomically(target) as temporary:
            with (
                archive.open("rb") as handle,
                _opened(handle, archive.name, list(path_inside)) as inside,
                temporary.open("wb") as out,
            ):
                for _ in range(skip_lines):
                    digest.update(inside.readline())
                while chunk := inside.read(CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
            if expected_sha256 not in (None, digest.hexdigest()):
                raise WrongInput(
                    f"{archive}: {'/'.join(path_inside)} has the sha256 {digest.hexdigest()}, but"
                    f" {expected_sha256} is expected"
                )
    except KeyError:
        raise WrongInput(
            f"{archive} does not have the file {'/'.join(path_inside)}; the archive is another"
            " version"
        ) from None
    # zipfile raises the last two for an unknown compression and for an encrypted file
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise WrongInput(
            f"{archive}: damaged, or not an archive that can be read ({error}); delete it and fetch"
            " it again"
        ) from None
    return target


@contextmanager
def _opened(handle: Any, name: str, path_inside: list[str]) -> Iterator[IO[bytes]]:
    """Open a file of an archive; on exit, read on to the end, where the checksum is verified.

    `path_inside` is the file's path within nested archives.
    """
    if not path_inside:
        yield handle
    elif name.endswith(".zip"):
        with zipfile.ZipFile(handle) as archive, archive.open(path_inside[0]) as inside:
            with _opened(inside, path_inside[0], path_inside[1:]) as found:
                yield found
            _read_out(inside)
    else:
        with gzip.open(handle) as plain:
            with tarfile.open(fileobj=plain, mode="r|") as tar:
                for item in tar:
                    if item.name.removeprefix("./") == path_inside[0] and item.isfile():
                        break
                else:
                    raise KeyError(path_inside[0])
                with _opened(tar.extractfile(item), path_inside[0], path_inside[1:]) as found:
                    yield found
            _read_out(plain)


def _read_out(handle: Any) -> None:
    while handle.read(CHUNK):
        pass
