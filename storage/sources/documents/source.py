"""Source of documents: each document is a row of term counts, labelled by its group folder.

Terms are counted by scikit-learn's CountVectorizer.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from koco_stream.errors import WrongInput, nearest
from storage.sources.documents.copying import NOTHING, Copy, copy_documents
from storage.sources.source import PIECE_BYTES, ParallelMap, Piece, Reading, Source, refuse_first

STRIPS = ("headers", "footers", "quotes")  # in the order in which scikit-learn removes them
MOST_TERMS = 3_000_000  # every process keeps all terms in memory, at about 150 bytes each
MOST_NAMES = 10_000  # limit on feature names in the manifest, to keep it small


def documents_source(path: Path, reading: Reading) -> "Documents":
    """Open a folder or .tar archive of documents as a source of term counts.

    Rows are ordered by split (names that end in "train" first), group and name. Labels are 1 to k
    for the sorted groups. Features are the sorted terms of the training split, or of all documents
    if there is none. Texts are decoded as latin-1.

    Parameters
    ----------
    path : Path
        Collection of documents `<group>/<id>` or `<split>/<group>/<id>`.
    reading : Reading
        `n_features` sets d if it is to exceed the number of terms; `strip` names what is removed
        from each text: "headers", "footers", "quotes".

    Raises
    ------
    WrongInput
        If `strip` has another name.
    """
    refuse_first(
        (
            name not in STRIPS,
            f"--strip {name}: no such part of a document{nearest(name, list(STRIPS))}",
        )
        for name in reading.strip
    )
    strip = tuple(name for name in STRIPS if name in reading.strip)
    return Documents(
        format="documents", layout="sparse", path=path, strip=strip, n_features=reading.n_features
    )


@dataclass(kw_only=True)
class Documents(Source):
    """Source of term counts. Before `surveyed`, only the path and the options are known.

    A piece is (first row, end row).

    Attributes
    ----------
    path : Path
        Folder or archive of the documents.
    strip : tuple of str
        What is removed from each text.
    bytes_per_piece : int
        Approximate text size of a piece.
    copy : Copy
        The copied documents.
    vocabulary : Path
        File of the terms, one per line.
    """

    path: Path
    strip: tuple[str, ...]
    bytes_per_piece: int = PIECE_BYTES
    copy: Copy = NOTHING
    vocabulary: Path = Path()

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        """Copy of this source with its vocabulary, collected from texts copied to `scratch`.

        Raises `WrongInput` as `copy_documents` does, and if there are no terms, too many, or more
        than `n_features`.
        """
        copy, identity = copy_documents(self.path, scratch)
        known = replace(self, copy=copy, n_bytes=copy.n_bytes)
        terms: set[str] = set()
        n_rows = copy.n_train or copy.n_rows
        for found in parallel_map(known.terms, copy.ranges(n_rows, self.bytes_per_piece)):
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
                    f"{self.path}: no document has a word of two letters{stripped}; look at the"
                    " files",
                ),
                (
                    d < len(terms),
                    f"{self.path}: {len(terms)} terms, which --n-features {d} does not hold; give a"
                    " larger number",
                ),
            ]
        )
        names = sorted(terms)
        read_from = " and ".join(copy.train) or "all documents"
        done = [
            f"terms counted by scikit-learn's CountVectorizer(): the {len(names)} of {read_from},"
            " by name in the order of characters",
            f"labels 1 to {len(copy.groups)}: {', '.join(copy.groups)}",
        ]
        origin: dict[str, Any] = {"format": self.format, "files": [identity]}
        if self.strip:
            done.insert(0, f"{', '.join(self.strip)} taken away, as scikit-learn does")
            origin["strip"] = list(self.strip)
        return replace(
            known,
            vocabulary=_write_terms(names, scratch),
            n_features=d,
            feature_names=names if len(names) == d <= MOST_NAMES else [],
            done=tuple(done),
            origin=origin,
        )

    def pieces(self, scratch: Path) -> Iterator[tuple[int, int]]:
        """Row ranges of about `bytes_per_piece` of text, each with at least one row."""
        return self.copy.ranges(self.copy.n_rows, self.bytes_per_piece)

    def read(self, piece: tuple[int, int]) -> Piece:
        """Term counts of a range of documents; a document without known terms is an empty row."""
        counts = _count_vectorizer(self.vocabulary).transform(self._texts(piece))
        counts.sort_indices()
        return Piece(
            self.copy.labels(*piece),
            counts.indptr.astype(np.int64),
            counts.indices.astype(np.int32),
            counts.data.astype(np.float64),
        )

    def piece_bytes(self, piece: tuple[int, int]) -> int:
        """Text size in bytes of a range of documents."""
        return self.copy.text_bytes(*piece)

    def terms(self, piece: tuple[int, int]) -> set[str]:
        """Distinct terms of a range of documents."""
        from sklearn.feature_extraction.text import CountVectorizer

        analyse = CountVectorizer().build_analyzer()
        return {term for text in self._texts(piece) for term in analyse(text)}

    def _texts(self, piece: tuple[int, int]) -> Iterator[str]:
        strippers = _strippers(self.strip)
        for content in self.copy.texts(*piece):
            text = content.decode("latin-1")
            for stripped in strippers:
                text = stripped(text)
            yield text


def _strippers(strip: tuple[str, ...]) -> list[Callable[[str], str]]:
    from sklearn.datasets import _twenty_newsgroups as newsgroups

    functions = {
        "headers": newsgroups.strip_newsgroup_header,
        "footers": newsgroups.strip_newsgroup_footer,
        "quotes": newsgroups.strip_newsgroup_quoting,
    }
    return [functions[name] for name in strip]


def _write_terms(names: list[str], scratch: Path) -> Path:
    """Write the terms to a file named by their hash, and return its path.

    The name makes it safe to cache the vocabulary by path in every process.
    """
    text = "\n".join(names)
    path = scratch / f"terms-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    path.write_text(text, encoding="utf-8")
    return path


@lru_cache(maxsize=1)
def _count_vectorizer(vocabulary: Path) -> Any:
    """CountVectorizer with the terms of a vocabulary file; each process reads the file once."""
    from sklearn.feature_extraction.text import CountVectorizer

    terms = vocabulary.read_text(encoding="utf-8").split("\n")
    return CountVectorizer(vocabulary={term: k for k, term in enumerate(terms)})
