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
from koco_stream.types import Array
from storage.sources.documents.copying import copy_documents, identity_of
from storage.sources.source import PIECE_BYTES, ParallelMap, Piece, Reading, Source, refuse_first

STRIPS = ("headers", "footers", "quotes")  # in the order in which scikit-learn removes them
MOST_TERMS = 3_000_000  # every process keeps all terms in memory, at about 150 bytes each
MOST_NAMES = 10_000  # limit on feature names in the manifest, to keep it small
# size counted per document in addition to its text, so that pieces of empty documents are bounded
ROW_BYTES = 64


def documents_source(path: Path, reading: Reading) -> "Documents":
    """Open a folder or .tar archive of documents as a source of term counts.

    Rows are ordered as `copy_documents` says. Labels are 1 to k for the sorted groups. Features are
    the sorted terms of the training split, or of all documents if there is none; `n_features` sets
    d if it is to exceed their number. Texts are decoded as latin-1. `strip` names what is removed
    from each text. Raises `WrongInput` if it has another name than "headers", "footers", "quotes".
    """
    refuse_first(
        (
            name not in STRIPS,
            f"--strip {name}: documents have no such section{nearest(name, list(STRIPS))}",
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

    A piece (3, n) has the text offset, text size and group number of each of its documents.

    Attributes
    ----------
    path : Path
        Folder or archive of the documents.
    strip : tuple of str
        What is removed from each text.
    bytes_per_piece : int
        Approximate text size of a piece.
    texts, rows, vocabulary : Path
        Files of all texts, of all rows of the pieces, and of the terms, one per line.
    """

    path: Path
    strip: tuple[str, ...]
    bytes_per_piece: int = PIECE_BYTES
    texts: Path = Path()
    rows: Path = Path()
    vocabulary: Path = Path()

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        """Copy of this source with its vocabulary, collected from texts copied to `scratch`.

        Raises `WrongInput` as `copy_documents` does, and if there are no terms, too many, or more
        than `n_features`.
        """
        texts, rows_file = scratch / "texts", scratch / "rows.npy"
        documents = copy_documents(self.path, texts)
        groups = sorted({document.group for document in documents})
        number = {group: k for k, group in enumerate(groups, 1)}
        rows = np.array([(one.start, one.size, number[one.group]) for one in documents]).T
        np.save(rows_file, rows)
        known = replace(self, texts=texts, rows=rows_file, n_bytes=int(rows[1].sum()))
        train = [document.split for document in documents if not document.late]
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
        read_from = " and ".join(sorted(set(train))) or "all documents"
        done = [
            f"terms counted by scikit-learn's CountVectorizer(): the {len(names)} of {read_from},"
            " by name in the order of characters",
            f"labels 1 to {len(groups)}: {', '.join(groups)}",
        ]
        identity = identity_of(self.path, documents, texts)
        origin: dict[str, Any] = {"format": self.format, "files": [identity]}
        if self.strip:
            done.insert(0, f"{', '.join(self.strip)} taken away, as scikit-learn does")
            origin["strip"] = list(self.strip)
        # named by its hash, so that every process may keep the vocabulary of this path
        lines = "\n".join(names).encode()
        vocabulary = scratch / f"terms-{hashlib.sha256(lines).hexdigest()[:32]}"
        vocabulary.write_bytes(lines)
        return replace(
            known,
            vocabulary=vocabulary,
            n_features=d,
            feature_names=names if len(names) == d <= MOST_NAMES else [],
            done=tuple(done),
            origin=origin,
        )

    def cut(self, rows: Array) -> Iterator[Array]:
        """Cut rows (3, n) into pieces of about `bytes_per_piece` of text, and at least one row."""
        ends = np.cumsum([0, *(rows[1] + ROW_BYTES)])
        first = 0
        while first < rows.shape[1]:
            stop = int(np.searchsorted(ends, ends[first] + self.bytes_per_piece, side="right")) - 1
            yield rows[:, first : max(stop, first + 1)]
            first = max(stop, first + 1)

    def pieces(self, scratch: Path) -> Iterator[Array]:
        """Pieces of all rows."""
        return self.cut(np.load(self.rows))

    def read(self, piece: Array) -> Piece:
        """Term counts of a range of documents; a document without known terms is an empty row."""
        counts = _count_vectorizer(self.vocabulary).transform(self._texts(piece))
        counts.sort_indices()
        return Piece(
            piece[2].astype(np.float64),
            counts.indptr.astype(np.int64),
            counts.indices.astype(np.int32),
            counts.data.astype(np.float64),
        )

    def piece_bytes(self, piece: Array) -> int:
        """Text size in bytes of a range of documents."""
        return int(piece[1].sum())

    def terms(self, piece: Array) -> set[str]:
        """Distinct terms of a range of documents."""
        from sklearn.feature_extraction.text import CountVectorizer

        analyse = CountVectorizer().build_analyzer()
        return {term for text in self._texts(piece) for term in analyse(text)}

    def _texts(self, piece: Array) -> Iterator[str]:
        functions = _stripping() if self.strip else {}
        with self.texts.open("rb") as handle:
            for start, size in piece[:2].T.tolist():
                handle.seek(start)
                text = handle.read(size).decode("latin-1")
                for name in self.strip:
                    text = functions[name](text)
                yield text


def _stripping() -> dict[str, Callable[[str], str]]:
    """The functions of `fetch_20newsgroups(remove=...)` by name.

    Only they make the numbers that others publish, and scikit-learn keeps them in a module of a
    private name. Raises `WrongInput` if it does not any more.
    """
    try:
        from sklearn.datasets import _twenty_newsgroups as newsgroups
    except ImportError as error:
        if error.name == "sklearn":
            raise
        raise WrongInput(
            "this version of scikit-learn has no functions to strip headers, footers and quotes"
            f" ({error}); prepare without them, or install the version in constraints.txt"
        ) from error
    return {
        "headers": newsgroups.strip_newsgroup_header,
        "footers": newsgroups.strip_newsgroup_footer,
        "quotes": newsgroups.strip_newsgroup_quoting,
    }


@lru_cache(maxsize=1)
def _count_vectorizer(vocabulary: Path) -> Any:
    """CountVectorizer with the terms of a vocabulary file; each process reads the file once."""
    from sklearn.feature_extraction.text import CountVectorizer

    terms = vocabulary.read_text(encoding="utf-8").split("\n")
    return CountVectorizer(vocabulary={term: k for k, term in enumerate(terms)})
