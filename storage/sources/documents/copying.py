"""Documents in folders, copied to one file, and where each is found there in the order of the rows.

A compressed archive can only be read from its beginning, and its own order need not be that of the
rows: the copy is in the archive's order. The archive is read as a stream, never unpacked by its own
names. tarfile ends quietly where a header is damaged or the archive is cut short, and keeps every
member in memory; here the first is an error and the second is not done.
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
MOST_DOCUMENTS = 2_000_000  # their names are sorted in memory, in about 250 bytes each
# what a document counts for besides its text, so that a range of empty ones is bounded too
ROW_BYTES = 64


class Document(NamedTuple):
    """Where a document is: its name, and where its text begins in the copy. They sort as their rows
    do.
    """

    late: bool  # not of a split for training
    split: str
    group: str
    name: str
    start: int
    size: int


@dataclass(frozen=True)
class Copy:
    """The copy in `folder`: rows of documents, the first `n_train` of them those of the splits
    `train`, if there are any.
    """

    folder: Path
    n_rows: int
    n_train: int
    n_bytes: int
    train: list[str]
    groups: list[str]

    def ranges(self, n_rows: int, most_bytes: int) -> Iterator[tuple[int, int]]:
        """The first `n_rows` rows as (first, row after the last), of about `most_bytes` of text and
        one row at least.
        """
        ends = np.cumsum([0, *(self._rows()[1, :n_rows] + ROW_BYTES)])
        first = 0
        while first < n_rows:
            stop = int(np.searchsorted(ends, ends[first] + most_bytes, side="right")) - 1
            stop = max(stop, first + 1)
            yield first, stop
            first = stop

    def texts(self, first: int, stop: int) -> Iterator[bytes]:
        """The texts of a range of rows."""
        starts, sizes, _ = self._rows()[:, first:stop].tolist()
        with (self.folder / "texts").open("rb") as handle:
            for start, size in zip(starts, sizes, strict=True):
                handle.seek(start)
                yield handle.read(size)

    def labels(self, first: int, stop: int) -> Array:
        """The number of the group, from 1, of each of a range of rows."""
        return self._rows()[2, first:stop].astype(np.float64)

    def text_bytes(self, first: int, stop: int) -> int:
        """The bytes of the texts of a range of rows."""
        return int(self._rows()[1, first:stop].sum())

    def _rows(self) -> Array:
        """Where each row's text begins, its size, and the number of its group, (3, n)."""
        return np.load(self.folder / "rows.npy", mmap_mode="r")


# before a source of documents is surveyed
NOTHING = Copy(Path(), n_rows=0, n_train=0, n_bytes=0, train=[], groups=[])


def copy_documents(path: Path, folder: Path) -> tuple[Copy, dict[str, str]]:
    """Copy the documents `<group>/<name>` or `<split>/<group>/<name>` at `path`, a folder or a .tar
    archive, to files in `folder`; the copy, and what the manifest says of where it came from.

    Rows come by split (one whose name ends in "train" first, then by name), group and name, each in
    the order of its characters.

    Raises `WrongInput` as `_below` and `_archived` do, and for no documents or too many, for files
    that lie elsewhere, and for one that is there twice.
    """
    documents = sorted(_copied(path, folder / "texts"))
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


def _copied(path: Path, target: Path) -> list[Document]:
    """The documents, in the source's order, which is that of their texts in the file `target`."""
    documents: list[Document] = []
    depth = start = 0
    with target.open("wb") as handle:
        for file_name, content in _below(path, "") if path.is_dir() else _archived(path):
            names = _names(path, file_name)
            depth = depth or len(names)
            if len(names) != depth:
                raise WrongInput(
                    f"{path}, {file_name!r}: {len(names)} names deep where others are {depth};"
                    " arrange all files alike"
                )
            split, group, name = ["", *names][-3:]
            late = not split.endswith("train")
            split, group = sys.intern(split), sys.intern(group)  # not one text a document
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


def _names(path: Path, name: str) -> list[str]:
    """The names of the folders of a document, and its own. Raises `WrongInput`."""
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
    """An archive by its hash; a folder by that of its names and sizes and then of its texts, in the
    order of the rows.
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


def _below(folder: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    """(its path, after `prefix`, with slashes; its content) of each file below a folder. Raises
    `WrongInput` for one that is too large, and for what is neither file nor folder.
    """
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from _below(path, f"{prefix}{path.name}/")
        else:
            if not path.is_file():
                raise WrongInput(f"{path}: neither a file nor a folder; remove it")
            _check_size(str(path), path.stat().st_size)
            yield prefix + path.name, path.read_bytes()


def _archived(path: Path) -> Iterator[tuple[str, bytes]]:
    """The same of a .tar archive, plain or compressed. Raises `WrongInput` also for a damaged one,
    and for names that lead out of it.
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
            while handle.read(1 << 20):  # to the end, where the checksum of compressed files is
                pass
    except DAMAGED as error:
        raise WrongInput(
            f"{path}: no tar archive, or damaged or cut short after {name} ({error}); fetch it"
            " again"
        ) from None
    except OSError as error:
        # bz2 says so of data that is none; what the system says has a number
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
    """A member whose header is right: only the blocks of zeros that end an archive end it."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
