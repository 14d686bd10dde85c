"""The files of a folder or of a tar archive, one after the other, in an order that is the same at
every reading.

An archive is read as a stream, never unpacked by its own names. tarfile ends quietly where a header
is damaged or the archive is cut short, and keeps every member in memory; here the first is an error
and the second is not done.
"""

import gzip
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self

from koco_stream.errors import WrongInput
from storage.sources.compressed import OPENERS

DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


class File(NamedTuple):
    """name: its path below the folder, with slashes. size: in bytes. content: empty if only names
    were asked for.
    """

    name: str
    size: int
    content: bytes


def files_in(path: Path, most_bytes: int, contents: bool = True) -> Iterator[File]:
    """The files below a folder, or in a .tar archive, plain or compressed; `contents` False saves
    reading them.

    Raises `WrongInput` naming the file and the remedy: no folder or archive, a file of more than
    `most_bytes`, what is neither file nor folder, a damaged archive, one with names that lead out
    of it.
    """
    if path.is_dir():
        return _below(path, "", most_bytes, contents)
    if not path.exists():
        raise WrongInput(f"{path}: no such folder or archive; give it with --from")
    return _archived(path, most_bytes, contents)


def _below(folder: Path, prefix: str, most_bytes: int, contents: bool) -> Iterator[File]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        name, place = prefix + entry.name, Path(entry.path)
        if entry.is_dir():
            yield from _below(place, f"{name}/", most_bytes, contents)
        elif not entry.is_file():
            raise WrongInput(f"{place}: neither a file nor a folder; remove it")
        else:
            size = entry.stat().st_size
            _check_size(str(place), size, most_bytes)
            yield File(name, size, place.read_bytes() if contents else b"")


def _archived(path: Path, most_bytes: int, contents: bool) -> Iterator[File]:
    name = "its beginning"
    try:
        with (
            path.open("rb") as raw,
            OPENERS[path.suffix](raw) if path.suffix in OPENERS else nullcontext(raw) as handle,
        ):
            with tarfile.open(fileobj=handle, mode="r|", tarinfo=_Member) as tar:
                while (member := tar.next()) is not None:
                    tar.members.clear()  # type: ignore[attr-defined]
                    name = member.name
                    parts = PurePosixPath(name).parts
                    if name.startswith("/") or ".." in parts:
                        raise WrongInput(
                            f"{path}, {name!r}: a name that leads out of the archive; do not trust"
                            " it, make it again"
                        )
                    if member.isdir():
                        continue
                    if not member.isfile():
                        raise WrongInput(
                            f"{path}, {name!r}: a link or a device; make the archive again with"
                            " plain files only (tar -h)"
                        )
                    _check_size(f"{path}, {name!r}", member.size, most_bytes)
                    extracted = tar.extractfile(member) if contents else None
                    yield File("/".join(parts), member.size, extracted.read() if extracted else b"")
            while handle.read(1 << 20):  # to the end, where the checksum of compressed files is
                pass
    except DAMAGED as error:
        raise WrongInput(
            f"{path}: no tar archive, or damaged or cut short after {name} ({error}); fetch it"
            " again"
        ) from None
    except OSError as error:
        if (
            error.errno is None
        ):  # bz2 says so of data that is none; what the system says has a number
            raise WrongInput(f"{path}: damaged after {name} ({error}); fetch it again") from None
        raise


def _check_size(place: str, size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise WrongInput(
            f"{place}: {size:,} bytes, more than the {most_bytes:,} that a document may have; cut"
            " it or leave it out"
        )


class _Member(tarfile.TarInfo):
    """A member whose header is right: only the blocks of zeros that end an archive end it."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
