"""Taking one file out of an archive: zip, or tar compressed with gzip, or one inside the other."""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash, written_atomically

CHUNK = 1 << 20


def unpack(
    archive: Path,
    member: Sequence[str],
    target: Path,
    expected_sha256: str | None = None,
    skip_lines: int = 0,
) -> Path:
    """Write a member of `archive` to `target`, which is whole or as before. `member` is its name,
    after those of the archives around it.

    The archive's own checksums are verified, and `expected_sha256` if given; then the first
    `skip_lines` lines are left out. Raises `WrongInput` for a damaged archive, a member that is not
    there or not a file, a name that leads out of a folder, or another checksum.
    """
    for name in member:
        if (
            name.startswith(("/", "\\"))
            or ".." in Path(name.replace("\\", "/")).parts
            or ":" in name
        ):
            raise WrongInput(f"{archive}: {name!r} is not a safe name for a file of an archive")
    try:
        with written_atomically(target) as temporary:
            with (
                archive.open("rb") as handle,
                _opened(handle, archive.name, list(member)) as inside,
                temporary.open("wb") as out,
            ):
                shutil.copyfileobj(inside, out, CHUNK)
            found = file_hash(temporary) if expected_sha256 else None
            if found != expected_sha256:
                raise WrongInput(
                    f"{archive}: {'/'.join(member)} has the sha256 {found}, and {expected_sha256}"
                    " is expected"
                )
            if skip_lines:
                _skip(temporary, skip_lines)
    except KeyError:
        raise WrongInput(
            f"{archive} does not have the file {'/'.join(member)}; the archive is another version"
        ) from None
    # The last two are zipfile's own words for a compression that it does not know and for an
    # encrypted member.
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
def _opened(handle: IO[bytes], name: str, member: list[str]) -> Iterator[IO[bytes]]:
    """What lies inside, read to its end afterwards, because only there the archives compare their
    checksums.
    """
    if not member:
        yield handle
    elif name.endswith(".zip"):
        with zipfile.ZipFile(handle) as archive, archive.open(member[0]) as inside:
            with _opened(inside, member[0], member[1:]) as found:
                yield found
            _read_out(inside)
    else:
        with gzip.open(handle) as plain:
            with tarfile.open(fileobj=plain, mode="r|") as tar:
                item = next(
                    (
                        item
                        for item in tar
                        if item.name.removeprefix("./") == member[0] and item.isfile()
                    ),
                    None,
                )
                inside_tar = tar.extractfile(item) if item else None
                if inside_tar is None:
                    raise KeyError(member[0])
                with _opened(inside_tar, member[0], member[1:]) as found:
                    yield found
            _read_out(plain)


def _read_out(handle: Any) -> None:
    while handle.read(CHUNK):
        pass


def _skip(path: Path, lines: int) -> None:
    """Leave out the first lines of a file."""
    rest = path.with_name(f"{path.name}.rest")
    try:
        with path.open("rb") as whole, rest.open("wb") as out:
            for _ in range(lines):
                whole.readline()
            shutil.copyfileobj(whole, out, CHUNK)
        rest.replace(path)
    finally:
        rest.unlink(missing_ok=True)
