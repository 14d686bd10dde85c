"""Copying of a document collection into one file, with an index of the documents in row order.

A compressed archive can only be read from its beginning, and its order need not be the row order,
so the copy keeps the archive's order. The archive is read as a stream and never unpacked under its
own file names. `tarfile` stops silently at a damaged header or a truncated archive and keeps every
member in memory; here damage raises an error, and members are not kept.
"""

import gzip
import hashlib
import lzma
import sys
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash
from koco_stream.types import Array
from storage.sources.compressed import OPENERS
from storage.sources.source import PIECE_BYTES, refuse_first

DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
MOST_DOCUMENT_BYTES = PIECE_BYTES
MOST_DOCUMENTS = 2_000_000  # names are sorted in memory, at about 250 bytes each
# size counted per document in addition to its text, so that ranges of empty documents are bounded
ROW_BYTES = 64


class Document(NamedTuple):
    """Name of a document and position of its text in the copy. Documents sort in row order."""

    late: bool  # whether it is outside the training splits
    split: str
    group: str
    name: str
    start: int
    size: int


@dataclass(frozen=True)
class Copy:
    """Copy of a document collection on disk.

    Attributes
    ----------
    folder : Path
        Folder with the files `texts` and `rows.npy`.
    n_rows, n_train : int
        Number of documents, and of those in training splits, which come first.
    n_bytes : int
        Size of all texts.
    train : list of str
        Names of the training splits; empty if there are none.
    groups : list of str
        Sorted group names; the label k is that of the k-th group.
    """

    folder: Path
    n_rows: int
    n_train: int
    n_bytes: int
    train: list[str]
    groups: list[str]

    def ranges(self, n_rows: int, most_bytes: int) -> Iterator[tuple[int, int]]:
        """Split the first `n_rows` rows into (first, end) ranges of about `most_bytes` of text.

        Each range has at least one row; the end row is exclusive.
        """
        ends = np.cumsum([0, *(self._rows()[1, :n_rows] + ROW_BYTES)])
        first = 0
        while first < n_rows:
            stop = int(np.searchsorted(ends, ends[first] + most_bytes, side="right")) - 1
            stop = max(stop, first + 1)
            yield first, stop
            first = stop

    def texts(self, first: int, stop: int) -> Iterator[bytes]:
        """Texts of the documents in rows `first` to `stop` (exclusive)."""
        starts, sizes, _ = self._rows()[:, first:stop].tolist()
        with (self.folder / "texts").open("rb") as handle:
            for start, size in zip(starts, sizes, strict=True):
                handle.seek(start)
                yield handle.read(size)

    def labels(self, first: int, stop: int) -> Array:
        """Labels of rows `first` to `stop` (exclusive): group numbers, counted from 1."""
        return self._rows()[2, first:stop].astype(np.float64)

    def text_bytes(self, first: int, stop: int) -> int:
        """Total text size in bytes of rows `first` to `stop` (exclusive)."""
        return int(self._rows()[1, first:stop].sum())

    def _rows(self) -> Array:
        """Index of the copy, (3, n): text offset, text size and group number of each row."""
        return np.load(self.folder / "rows.npy", mmap_mode="r")


# placeholder until a source of documents is surveyed
NOTHING = Copy(Path(), n_rows=0, n_train=0, n_bytes=0, train=[], groups=[])


def copy_documents(path: Path, folder: Path) -> tuple[Copy, dict[str, str]]:
    """Copy a document collection into files in `folder`.

    Rows are ordered by split (names that end in "train" first, then by name), group and name,
    compared by code point.

    Parameters
    ----------
    path : Path
        A folder or .tar archive of documents `<group>/<name>` or `<split>/<group>/<name>`.
    folder : Path
        Existing folder for the copy.

    Returns
    -------
    tuple of (Copy, dict)
        The copy, and the manifest entry on the origin of the documents.

    Raises
    ------
    WrongInput
        If there are no documents, too many, too large ones or duplicates, if a file is misplaced,
        or if the archive is damaged.
    """
    documents = sorted(_copy_texts(path, folder / "texts"))
    for one, next_one in pairwise(documents):
        if one[:4] == next_one[:4]:
            raise WrongInput(
                f"{path}: {'/'.join(filter(None, one[1:4]))} is there twice; remove one"
            )
    groups = sorted({document.group for document in documents})
    number = {group: k + 1 for k, group in enumerate(groups)}
    rows = [(document.start, document.size, number[document.group]) for document in documents]
    np.save(folder / "rows.npy", np.array(rows, np.int64).T)
    copy = Copy(
        folder,
        n_rows=len(documents),
        n_train=sum(not document.late for document in documents),
        n_bytes=sum(document.size for document in documents),
        train=sorted({document.split for document in documents if not document.late}),
        groups=groups,
    )
    return copy, _identity(path, copy, documents)


def _copy_texts(path: Path, target: Path) -> list[Document]:
    """Write all texts to `target` and return the documents, both in the order of the source."""
    documents: list[Document] = []
    depth = start = 0
    with target.open("wb") as handle:
        for file_name, content in (
            _files_below(path, "") if path.is_dir() else _files_in_archive(path)
        ):
            names = _path_components(path, file_name)
            depth = depth or len(names)
            if len(names) != depth:
                raise WrongInput(
                    f"{path}, {file_name!r}: {len(names)} names deep where others are {depth};"
                    " arrange all files alike"
                )
            split, group, name = ["", *names][-3:]
            late = not split.endswith("train")
            # all documents of a group share one string
            split, group = sys.intern(split), sys.intern(group)
            documents.append(Document(late, split, group, name, start, len(content)))
            start += handle.write(content)
            if len(documents) > MOST_DOCUMENTS:
                raise WrongInput(
                    f"{path}: more than {MOST_DOCUMENTS:,} documents; prepare them in parts"
                )
    if not documents:
        raise WrongInput(
            f"{path}: no documents; they are files in folders named for their groups: <group>/<id>"
            " or <split>/<group>/<id>"
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
            (hidden is not None, f"{hidden!r} is a hidden name, so this is no document; remove it"),
            (
                len(names) == 1,
                "a file at the top, where the folders of the groups are; put it into one, or remove"
                " it",
            ),
            (len(names) > 3, "too deep; documents are <group>/<id> or <split>/<group>/<id>"),
        ]
    )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise WrongInput(
            f"{path}, {name!r}: the name is not UTF-8; give the file another"
        ) from None
    return names


def _identity(path: Path, copy: Copy, documents: list[Document]) -> dict[str, str]:
    """Manifest entry that identifies a collection by its SHA-256.

    An archive is hashed as a file; for a folder, the hash covers names and sizes and then the
    texts, in row order.
    """
    if not path.is_dir():
        return {"file": path.name, "sha256": file_hash(path)}
    digest, texts = hashlib.sha256(), hashlib.sha256()
    for document, text in zip(documents, copy.texts(0, copy.n_rows), strict=True):
        names = "/".join((document.split, document.group, document.name))
        digest.update(f"{document.size} {names}\n".encode())
        texts.update(text)
    digest.update(texts.hexdigest().encode())
    return {"folder": path.name, "sha256": digest.hexdigest()}


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
                    _check_size(f"{path}, {name!r}", member.size)
                    extracted = tar.extractfile(member)
                    assert extracted is not None, "a plain file"
                    yield "/".join(parts), extracted.read()
            # read to the end of a compressed file, where its checksum is verified
            while handle.read(1 << 20):
                pass
    except DAMAGED as error:
        raise WrongInput(
            f"{path}: no tar archive, or damaged or cut short after {name} ({error}); fetch it"
            " again"
        ) from None
    except OSError as error:
        # bz2 raises OSError without a number for bad data; errors of the system have a number
        if error.errno is None:
            raise WrongInput(f"{path}: damaged after {name} ({error}); fetch it again") from None
        raise


def _check_size(file: str, size: int) -> None:
    if size > MOST_DOCUMENT_BYTES:
        raise WrongInput(
            f"{file}: {size:,} bytes, more than the {MOST_DOCUMENT_BYTES:,} that a document may"
            " have; cut it or leave it out"
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
