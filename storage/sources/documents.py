"""Source of documents: each document is a row of term counts, labelled by its group folder."""

import hashlib
import re
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Self

import numpy as np

from koco_stream.errors import WrongInput, nearest, refuse_first
from koco_stream.io.files import file_hash
from koco_stream.types import Array
from storage.sources.compressed import DAMAGE, opened, refuse_damage
from storage.sources.source import PIECE_BYTES, ParallelMap, Piece, Reading, Source

# what can be removed, in the order in which scikit-learn does, as its functions are called
STRIPS = {"headers": "header", "footers": "footer", "quotes": "quoting"}
MOST_TERMS = 3_000_000  # every process keeps all terms in memory, at about 150 bytes each
MOST_NAMES = 10_000  # limit on feature names in the manifest, to keep it small
ROW_BYTES = 64  # of a document in addition to its text
TEXTS, ROWS, TERMS = "texts", "rows.npy", "terms"  # files in the scratch folder


def documents_source(path: Path, reading: Reading) -> "Documents":
    """Open a folder or .tar archive of documents as a source of term counts."""
    refuse_first(
        (
            name not in STRIPS,
            f"--strip {name}: documents have no such section{nearest(name, list(STRIPS))}",
        )
        for name in reading.strip
    )
    return Documents(
        format="documents",
        layout="sparse",
        path=path,
        strip=tuple(name for name in STRIPS if name in reading.strip),
        n_features=reading.n_features,
    )


@dataclass(kw_only=True)
class Documents(Source):
    """A piece (3, n) has the text offset, text size and group number of its documents."""

    path: Path
    strip: tuple[str, ...]
    scratch: Path = Path()

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        documents = copy_documents(self.path, scratch / TEXTS)
        groups = sorted({document.group for document in documents})
        number = {group: k for k, group in enumerate(groups, 1)}
        rows = np.array([(one.start, one.size, number[one.group]) for one in documents]).T
        np.save(scratch / ROWS, rows)
        known = replace(self, scratch=scratch, n_bytes=int(rows[1].sum()))
        train = [document.split for document in documents if document.is_first]
        terms: set[str] = set()
        for found in parallel_map(known.terms, self.cut(rows[:, : len(train) or None])):
            terms |= found
            if len(terms) > MOST_TERMS:
                raise WrongInput(
                    f"{self.path}: more than {MOST_TERMS:,} terms; prepare fewer documents, or"
                    " count and hash them yourself"
                )
        stripped = " after --strip" if self.strip else ""
        d = self.n_features or len(terms)
        refuse_first(
            [
                (
                    not terms,
                    f"{self.path}: no document has a word of two letters{stripped}; see the files",
                ),
                (
                    d < len(terms),
                    f"{self.path}: {len(terms)} terms, more than --n-features {d}; give a larger"
                    " number",
                ),
            ]
        )
        names = sorted(terms)
        (scratch / TERMS).write_text("\n".join(names), encoding="utf-8")
        read_from = " and ".join(sorted(set(train))) or "all documents"
        return replace(
            known,
            n_features=d,
            class_names={float(k): group for group, k in number.items()},
            feature_names=names if len(names) == d <= MOST_NAMES else [],
            done=(
                *([f"{', '.join(self.strip)} taken away, as scikit-learn does"] * bool(self.strip)),
                f"terms counted by scikit-learn's CountVectorizer(): the {len(names)} of"
                f" {read_from}, by name in the order of characters",
                f"labels 1 to {len(groups)}: {', '.join(groups)}",
            ),
            origin={
                "format": self.format,
                "files": [identity_of(self.path, documents, scratch / TEXTS)],
                **({"strip": list(self.strip)} if self.strip else {}),
            },
        )

    def cut(self, rows: Array) -> list[Array]:
        window = np.cumsum(rows[1] + ROW_BYTES) // PIECE_BYTES
        return np.split(rows, np.flatnonzero(np.diff(window)) + 1, axis=1)

    def pieces(self, scratch: Path) -> Iterator[Array]:
        yield from self.cut(np.load(self.scratch / ROWS))

    def read(self, piece: Array) -> Piece:
        counts = _count_vectorizer(self.scratch / TERMS).transform(self._texts(piece))
        counts.sort_indices()
        return Piece(
            piece[2].astype(np.float64),
            counts.indptr.astype(np.int64),
            counts.indices.astype(np.int32),
            counts.data.astype(np.float64),
        )

    def piece_bytes(self, piece: Array) -> int:
        return int(piece[1].sum())

    def terms(self, piece: Array) -> set[str]:
        from sklearn.feature_extraction.text import CountVectorizer

        analyse = CountVectorizer().build_analyzer()
        return {term for text in self._texts(piece) for term in analyse(text)}

    def _texts(self, piece: Array) -> Iterator[str]:
        # only these functions make the numbers that others publish, and their module is private
        from sklearn.datasets import _twenty_newsgroups as newsgroups

        strips = [getattr(newsgroups, f"strip_newsgroup_{STRIPS[name]}") for name in self.strip]
        with (self.scratch / TEXTS).open("rb") as handle:
            for start, size in piece[:2].T.tolist():
                handle.seek(start)
                text = _decoded(handle.read(size))
                yield reduce(lambda text, strip: strip(text), strips, text)


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return text.decode("latin-1")


@lru_cache(maxsize=1)
def _count_vectorizer(vocabulary: Path) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(
        vocabulary={
            term: k for k, term in enumerate(vocabulary.read_text(encoding="utf-8").split("\n"))
        }
    )


MOST_DOCUMENT_BYTES = PIECE_BYTES
MOST_DOCUMENTS = 2_000_000  # names are sorted in memory, at about 250 bytes each
MOST_TOLD = 100  # strays named in a message


class Document(NamedTuple):
    split: str
    group: str
    name: str
    start: int
    size: int

    @property
    def is_first(self) -> bool:
        """Rows of a training split come first."""
        return self.split.endswith("train")

    @property
    def path(self) -> str:
        return "/".join(filter(None, self[:3]))


def copy_documents(path: Path, target: Path) -> list[Document]:
    """Write all texts of a collection to `target`, and return the documents in row order."""
    documents: list[Document] = []
    strays: dict[str, str] = {}
    start = 0
    with target.open("wb") as handle:
        files = _files_below(path, "") if path.is_dir() else _files_in_archive(path)
        for file_name, content, why in files:
            if why:
                # what a hidden folder holds is not told
                strays[re.sub(r"((?:^|/)\.[^/]*)/.*", r"\1", file_name)] = why
                continue
            # all documents of a group share one string
            split, group, name = map(sys.intern, ["", *file_name.split("/")][-3:])
            documents.append(Document(split, group, name, start, len(content)))
            start += handle.write(content)
            if len(documents) > MOST_DOCUMENTS:
                raise WrongInput(
                    f"{path}: more than {MOST_DOCUMENTS:,} documents; prepare fewer at a time"
                )
    have_split = 2 * sum(bool(one.split) for one in documents) > len(documents)
    strays |= {
        one.path: f"most are {'<split>/' * have_split}<group>/<id>"
        for one in documents
        if bool(one.split) != have_split
    }
    told = [f"{name!r} ({why})" for name, why in strays.items()]
    documents.sort(key=lambda one: (not one.is_first, one))
    twice = next((one for one, other in pairwise(documents) if one[:3] == other[:3]), None)
    refuse_first(
        [
            (
                bool(told),
                f"{path}: {len(told):,} of its files are no documents, which are <group>/<id> or"
                f" <split>/<group>/<id>; move or remove {', '.join(told[:MOST_TOLD])}",
            ),
            (
                not documents,
                f"{path}: no documents; they are files in folders named after their groups:"
                " <group>/<id> or <split>/<group>/<id>",
            ),
            (twice is not None, f"{path}: {twice and twice.path} occurs twice; remove one"),
        ]
    )
    return documents


def _stray(name: str, size: int | None) -> str | None:
    """Why a file is no document, if it is none; only a plain file has a size."""
    depth = name.count("/") + 1
    reasons = [
        (re.search(r"(^|/)\.", name), "hidden"),
        (depth == 1, "at the top level"),
        (depth > 3, "too deep"),
        (name.encode(errors="ignore").decode() != name, "the name is not UTF-8"),
        (size is None, "not a plain file"),
        (
            (size or 0) > MOST_DOCUMENT_BYTES,
            f"{size or 0:,} bytes, more than the {MOST_DOCUMENT_BYTES:,} that a document may have",
        ),
    ]
    return next((why for is_there, why in reasons if is_there), None)


def identity_of(path: Path, documents: list[Document], texts: Path) -> dict[str, str]:
    """A folder is hashed by the size, name and text of each document, in row order."""
    if not path.is_dir():
        return {"file": path.name, "sha256": file_hash(path)}
    content = hashlib.sha256()
    with texts.open("rb") as handle:
        for *name, start, size in documents:
            handle.seek(start)
            content.update(f"{size} {'/'.join(name)}\n".encode() + handle.read(size))
    return {"folder": path.name, "sha256": content.hexdigest()}


def _files_below(folder: Path, prefix: str) -> Iterator[tuple[str, bytes, str | None]]:
    """Path, content, and why it is no document, of each file."""
    for path in sorted(folder.iterdir()):
        name = prefix + path.name
        if path.is_dir() and not path.name.startswith("."):
            yield from _files_below(path, f"{name}/")
        else:
            why = _stray(name, path.stat().st_size if path.is_file() else None)
            yield name, b"" if why else path.read_bytes(), why


def _files_in_archive(path: Path) -> Iterator[tuple[str, bytes, str | None]]:
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
                    member = "/".join(names)
                    why = _stray(member, entry.size if entry.isfile() else None)
                    content = None if why else tar.extractfile(entry)
                    yield member, content.read() if content else b"", why
            # read to the end of a compressed file, where its checksum is verified
            while handle.read(1 << 20):
                pass
    except (tarfile.TarError, *DAMAGE) as error:
        refuse_damage(path, name, error)


class _Member(tarfile.TarInfo):
    """A tar header; a damaged one raises an error, where `tarfile` would stop reading."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None
