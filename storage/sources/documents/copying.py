"""Documents in folders, copied to one file in the order of their rows.

A compressed archive can only be read from its beginning, and its own order need not be that of the
rows: the first reading gives each document its place, the second puts it there.
"""

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash
from koco_stream.types import Array
from storage.sources.documents.trees import files_in
from storage.sources.source import PIECE_BYTES

MOST_DOCUMENT_BYTES = PIECE_BYTES
MOST_DOCUMENTS = 2_000_000  # their names are sorted in memory, in about 250 bytes each
ROW_BYTES = (
    64  # what a document counts for besides its text, so that a range of empty ones is bounded too
)


class Document(NamedTuple):
    """Where a document is. They sort as their rows do."""

    late: bool  # not of a split for training
    split: str
    group: str
    name: str


@dataclass
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
    identity: dict[str, str]

    def ranges(self, n_rows: int, most_bytes: int) -> Iterator[tuple[int, int]]:
        """The first `n_rows` rows as (first, row after the last), of about `most_bytes` of text and
        one row at least.
        """
        ends = self._ends()[: n_rows + 1] + ROW_BYTES * np.arange(n_rows + 1)
        first = 0
        while first < n_rows:
            stop = int(np.searchsorted(ends, ends[first] + most_bytes, side="right")) - 1
            stop = max(stop, first + 1)
            yield first, stop
            first = stop

    def texts(self, first: int, stop: int) -> Iterator[bytes]:
        """The texts of a range of rows."""
        ends = self._ends()[first : stop + 1].tolist()
        with (self.folder / "texts").open("rb") as handle:
            handle.seek(ends[0])
            for start, end in pairwise(ends):
                yield handle.read(end - start)

    def labels(self, first: int, stop: int) -> Array:
        """The number of the group, from 1, of each of a range of rows."""
        return np.load(self.folder / "labels.npy", mmap_mode="r")[first:stop].astype(np.float64)

    def text_bytes(self, first: int, stop: int) -> int:
        """The bytes of the texts of a range of rows."""
        ends = self._ends()
        return int(ends[stop] - ends[first])

    def _ends(self) -> Array:
        return np.load(self.folder / "ends.npy", mmap_mode="r")


def copy_documents(path: Path, folder: Path) -> Copy:
    """Copy the documents `<group>/<name>` or `<split>/<group>/<name>` at `path`, a folder or a .tar
    archive, to files in `folder`.

    Rows come by split (one whose name ends in "train" first, then by name), group and name, each in
    the order of its characters.

    Raises `WrongInput` as `files_in` does, and for no documents or too many, for files that lie
    elsewhere, for one that is there twice; `OSError` if the source changes while it is read.
    """
    documents, sizes = _listed(path)
    order = np.array(sorted(range(len(documents)), key=documents.__getitem__))
    documents.sort()
    for one, next_one in pairwise(documents):
        if one == next_one:
            raise WrongInput(
                f"{path}: {'/'.join(filter(None, one[1:]))} is there twice; remove one"
            )
    groups = sorted({document.group for document in documents})
    number = {group: k + 1 for k, group in enumerate(groups)}
    ends = np.concatenate([[0], np.cumsum(sizes[order])])
    np.save(folder / "ends.npy", ends)
    np.save(
        folder / "labels.npy",
        np.array([number[document.group] for document in documents], np.int32),
    )
    starts = np.empty(order.size, np.int64)
    starts[order] = ends[:-1]
    _copy(path, folder / "texts", starts, sizes)
    return Copy(
        folder,
        n_rows=len(documents),
        n_train=sum(not document.late for document in documents),
        n_bytes=int(ends[-1]),
        train=sorted({document.split for document in documents if not document.late}),
        groups=groups,
        identity=_identity(path, folder / "texts", documents, ends),
    )


def _listed(path: Path) -> tuple[list[Document], Array]:
    """The documents and their sizes, in the source's order."""
    documents, sizes = [], array("q")
    same: dict[str, str] = {}  # one text for each split and group, not one a document
    depth = 0
    for name, size, _ in files_in(path, MOST_DOCUMENT_BYTES, contents=False):
        parts = _parts(path, name)
        depth = depth or len(parts)
        if len(parts) != depth:
            raise WrongInput(
                f"{path}, {name!r}: {len(parts)} names deep where others are {depth}; arrange all"
                " files alike"
            )
        split, group = parts[0] if depth == 3 else "", parts[-2]
        documents.append(
            Document(
                not split.endswith("train"),
                same.setdefault(split, split),
                same.setdefault(group, group),
                parts[-1],
            )
        )
        sizes.append(size)
        if len(documents) > MOST_DOCUMENTS:
            raise WrongInput(
                f"{path}: more than {MOST_DOCUMENTS:,} documents; prepare them in parts"
            )
    if not documents:
        raise WrongInput(
            f"{path}: no documents; they are files in folders named for their groups: <group>/<id>"
            " or <split>/<group>/<id>"
        )
    return documents, np.array(sizes)


def _parts(path: Path, name: str) -> list[str]:
    parts = name.split("/")
    hidden = next((part for part in parts if part.startswith(".")), None)
    if hidden is not None:
        raise WrongInput(
            f"{path}, {name!r}: {hidden!r} is a hidden name, so this is no document; remove it"
        )
    if len(parts) == 1:
        raise WrongInput(
            f"{path}, {name!r}: a file at the top, where the folders of the groups are; put it into"
            " one, or remove it"
        )
    if len(parts) > 3:
        raise WrongInput(
            f"{path}, {name!r}: too deep; documents are <group>/<id> or <split>/<group>/<id>"
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise WrongInput(
            f"{path}, {name!r}: the name is not UTF-8; give the file another"
        ) from None
    return parts


def _copy(path: Path, target: Path, starts: Array, sizes: Array) -> None:
    """Write each document at its place; `starts` and `sizes` are in the source's order."""
    changed = OSError(f"{path}: changed while it was read; begin again")
    count = 0
    with target.open("wb") as handle:
        for file in files_in(path, MOST_DOCUMENT_BYTES):
            if count == starts.size or file.size != sizes[count] or len(file.content) != file.size:
                raise changed
            handle.seek(starts[count])
            handle.write(file.content)
            count += 1
    if count != starts.size:
        raise changed


def _identity(path: Path, texts: Path, documents: list[Document], ends: Array) -> dict[str, str]:
    """An archive by its hash; a folder by that of its names and sizes and then of its texts, in the
    order of the rows.
    """
    if not path.is_dir():
        return {"file": path.name, "sha256": file_hash(path)}
    digest = hashlib.sha256()
    for document, size in zip(documents, np.diff(ends).tolist(), strict=True):
        digest.update(f"{size} {'/'.join(document[1:])}\n".encode())
    digest.update(file_hash(texts).encode())
    return {"folder": path.name, "sha256": digest.hexdigest()}
