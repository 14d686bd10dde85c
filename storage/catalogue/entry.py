"""What the catalogue says of a dataset: its editions, their files, and the addresses of these."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage.sources.compressed import OPENERS


@dataclass(frozen=True)
class Address:
    """Where a file is published. `member` is its name in the archive that the address gives, after
    those of the archives between.

    sha256: of the file as published, where that is known. skip_lines: lines at its beginning that
    are no rows, left out after fetching. suffix: the file's compression (".gz") if its name does
    not say it.
    """

    url: str
    member: tuple[str, ...] = ()
    sha256: str | None = None
    skip_lines: int = 0
    suffix: str | None = None

    def name_of(self, file: str) -> str:
        """The name that an edition's `file` has on disk once fetched: with the suffix of its
        compression.
        """
        if self.suffix is not None:
            return file + self.suffix
        published = Path(self.member[-1] if self.member else self.url).suffix
        return file + published if published in OPENERS else file

    def text(self) -> str:
        """The address, and what to take out of the archive there."""
        inside = f" (in it {', in that '.join(self.member)})" if self.member else ""
        left_out = (
            f", without its first {'line' if self.skip_lines == 1 else f'{self.skip_lines} lines'}"
            if self.skip_lines
            else ""
        )
        return f"{self.url}{inside}{left_out}"


@dataclass(frozen=True)
class Edition:
    """Files that make a dataset when read in order, and what comes out: n rows of d features (after
    one-hot; None if not known).

    `part` says what of the whole it is, if it is not the whole. `tested`: this project has the
    files and its tests prepare them. `options` are those of `prepare_file`. `addresses` are the
    files' in their order, or none: then they cannot be fetched.
    """

    files: tuple[str, ...]
    n_rows: int
    n_features: int | None
    options: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    tested: bool = True
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A dataset of the papers: its name there, what its labels are, its official source by name,
    and its editions, the whole one first.

    `positive_class` is the class that this project's sweeps set against the rest, None if the
    labels are two classes or real numbers.
    """

    name: str
    papers: tuple[str, ...]
    task: str
    source: str
    editions: tuple[Edition, ...]
    positive_class: float | None = None

    @property
    def absent(self) -> bool:
        """Whether this project has no copy at all: the entry's numbers are the publisher's, and no
        test prepares it.
        """
        return not any(edition.tested for edition in self.editions)

    @property
    def partial(self) -> str | None:
        """What part this project has, if it has no copy of the whole."""
        whole = [edition for edition in self.editions if edition.part is None]
        return (
            None
            if any(edition.tested for edition in whole)
            else next((e.part for e in self.editions if e.tested), None)
        )

    @property
    def fetchable(self) -> Edition | None:
        """The first edition whose files have addresses; None if they must be brought along."""
        return next((edition for edition in self.editions if edition.addresses), None)
