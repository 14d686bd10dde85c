"""Copying of a document collection into one file, with the documents in row order.

A compressed archive can only be read from its beginning, and its order need not be the row order,
so the copy keeps the archive's order. The archive is read as a stream and never unpacked under its
own file names. `tarfile` stops silently at a damaged header or a truncated archive and keeps every
entry in memory; here damage raises an error, and entries are not kept.
"""

import hashlib
import sys
import tarfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash
from storage.sources.compressed import DAMAGE, opened, refuse_damage
from storage.sources.source import PIECE_BYTES, refuse_first

MOST_DOCUMENT_BYTES = PIECE_BYTES
MOST_DOCUMENTS = 2_000_000  # names are sorted in memory, at about 250 bytes each


class Document(NamedTuple):
    """Name of a document and position of its text in the copy. Documents sort in row order."""

    late: bool  # whether it is outside the training splits
    split: str
    group: str
    name: str
    start: int
    size: int


def copy_documents(path: Path, target: Path) -> list[Document]:
    """Write all texts of a collection to `target`, and return the documents in row order.

    `path` is a folder or .tar archive of documents `<group>/<name>` or `<split>/<group>/<name>`.
    Rows are ordered by split (names that end in "train" first, then by name), group and name,
    compared by code point. Raises `WrongInput` if there are no documents, too many, too large ones
    or duplicates, if a file is misplaced, or if the archive is damaged.
    """
    documents: list[Document] = []
    depth = start = 0
    with target.open("wb") as handle:
        files = _files_below(path, "") if path.is_dir() else _files_in_archive(path)
        for file_name, content in files:
            names = _path_components(path, file_name)
            depth = depth or len(names)
            if len(names) != depth:
                raise WrongInput(
                    f"{path}, {file_name!r}: {len(names)} levels deep, but others are {depth};"
                    " put all files at the same depth"
                )
            # all documents of a group share one string
            split, group, name = map(sys.intern, ["", *names][-3:])
            late = not split.endswith("train")
            documents.append(Document(late, split, group, name, start, len(content)))
            start += handle.write(content)
            if len(documents) > MOST_DOCUMENTS:
                raise WrongInput(
                    f"{path}: more than {MOST_DOCUMENTS:,} documents; prepare fewer at a time"
                )
    documents.sort()
    twice = next((one for one, other in pairwise(documents) if one[:4] == other[:4]), None)
    refuse_first(
        [
            (
                not documents,
                f"{path}: no documents; they are files in folders named after their groups:"
                " <group>/<id> or <split>/<group>/<id>",
            ),
            (
                twice is not None,
                f"{path}: {'/'.join(filter(None, (twice or ())[1:4]))} occurs twice; remove one",
            ),
        ]
    )
    return documents


def _path_components(path: Path, name: str) -> list[str]:
    """Path components of a document.

    Raises `WrongInput` if the path is hidden, misplaced or not UTF-8.
    """
    names = name.split("/")
    hidden = next((one for one in names if one.startswith(".")), None)
    refuse_first(
        (is_there, f"{path}, {name!r}: {message}")
        for is_there, message in [
            (
                hidden is not None,
                f"{hidden!r} is a hidden name, so this is not a document; remove it",
            ),
            (
                len(names) == 1,
                "a file at the top level, which has only the folders of groups; move it into one,"
                " or remove it",
            ),
            (len(names) > 3, "too deep; documents are <group>/<id> or <split>/<group>/<id>"),
        ]
    )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise WrongInput(f"{path}, {name!r}: the name is not UTF-8; rename the file") from None
    return names


def identity_of(path: Path, documents: list[Document], texts: Path) -> dict[str, str]:
    """Manifest entry that identifies a collection by its SHA-256.

    An archive is hashed as a file; for a folder, the hash covers names and sizes and then the
    texts, in row order.
    """
    if not path.is_dir():
        return {"file": path.name, "sha256": file_hash(path)}
    names, content = hashlib.sha256(), hashlib.sha256()
    with texts.open("rb") as handle:
        for _, *name, start, size in documents:
            names.update(f"{size} {'/'.join(name)}\n".encode())
            handle.seek(start)
            content.update(handle.read(size))
    names.update(content.hexdigest().encode())
    return {"folder": path.name, "sha256": names.hexdigest()}


def _files_below(folder: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Files below a folder as (`prefix` and path with slashes, content).

    Raises `WrongInput` for a file that is too large, or for an entry that is neither file nor
    folder.
    """
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _files_below(path, f"{prefix}{path.name}/")
        else:
            if not path.is_file():
                raise WrongInput(f"{path}: neither a file nor a folder; remove it")
            _check_size(str(path), path.stat().st_size)
            yield prefix + path.name, path.read_bytes()


def _files_in_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    """Files of a plain or compressed .tar archive as (path with slashes, content).

    Raises `WrongInput` for a damaged archive, a path that leads out of it, a link, or a file that
    is too large.
    """
    name = "its beginning, or no tar archive"
    try:
        with opened(path) as (_, handle):
            with tarfile.open(fileobj=handle, mode="r|", tarinfo=_Member) as tar:
                while (entry := tar.next()) is not None:
                    tar.members.clear()  # type: ignore[attr-defined]
                    name = entry.name
                    names = PurePosixPath(name).parts
                    if name.startswith("/") or ".." in names:
                        raise WrongInput(
                            f"{path}, {name!r}: a name that points outside the archive; do not"
                            " trust this archive, create it again"
                        )
                    if entry.isdir():
                        continue
                    extracted = tar.extractfile(entry) if entry.isfile() else None
                    if extracted is None:
                        raise WrongInput(
                            f"{path}, {name!r}: a link or a device; create the archive again with"
                            " plain files only (tar -h)"
                        )
                    _check_size(f"{path}, {name!r}", entry.size)
                    yield "/".join(names), extracted.read()
            # read to the end of a compressed file, where its checksum is verified
            while handle.read(1 << 20):
                pass
    except (tarfile.TarError, *DAMAGE) as error:
        refuse_damage(path, name, error)


def _check_size(file: str, size: int) -> None:
    if size > MOST_DOCUMENT_BYTES:
        raise WrongInput(
            f"{file}: {size:,} bytes, more than the {MOST_DOCUMENT_BYTES:,} that a document may"
            " have; shorten it or leave it out"
        )


class _Member(tarfile.TarInfo):
    """Tar header that raises an error if it is damaged, where `tarfile` would stop reading.

    Only the zero blocks at the end of an archive end it.
    """

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
