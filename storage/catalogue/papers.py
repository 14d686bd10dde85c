"""The datasets of the papers: what the catalogue says of each, read from `papers.toml`."""

import tomllib
from pathlib import Path

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from storage.sources.compressed import OPENERS

SON = "SON 2016"
PROS = "PROS-N-KONS 2017"
CHECKED = ConfigDict(extra="forbid")  # an unknown key or a value of another type is an error


@dataclass(frozen=True, config=CHECKED)
class Address:
    """Where a file is published.

    Parameters
    ----------
    url
        Of the file, or of the archive that holds it.
    member
        The file's name in the archive, after those of the archives between.
    sha256
        Of the file as published, where that is known.
    skip_lines
        How many lines at its beginning are no rows. They are left out after fetching.
    suffix
        Of the file's compression (".gz"), if its name does not say it.
    """

    url: str
    member: tuple[str, ...] = ()
    sha256: str | None = None
    skip_lines: int = 0
    suffix: str | None = None

    def name_of(self, file: str) -> str:
        """The name that an edition's `file` has on disk once fetched.

        It ends in the suffix of its compression.
        """
        if self.suffix is not None:
            return file + self.suffix
        published = Path((self.url, *self.member)[-1]).suffix
        return file + published if published in OPENERS else file

    def text(self) -> str:
        """The address, and what to take out of the archive there."""
        inside = f" (in it {', in that '.join(self.member)})" if self.member else ""
        if not self.skip_lines:
            return self.url + inside
        lines = "line" if self.skip_lines == 1 else f"{self.skip_lines} lines"
        return f"{self.url}{inside}, without its first {lines}"


@dataclass(frozen=True, config=CHECKED)
class Edition:
    """Files that make a dataset when they are read in order.

    Parameters
    ----------
    files
        Their names, without a suffix for compression.
    n_rows, n_features
        What comes out, features after one-hot encoding; None if that is not known.
    options
        How the files are prepared: those of `storage.preparing.prepare.prepare_file`.
    part
        What it is of the whole dataset, if it is not the whole.
    tested
        Whether this project has the files, and its tests prepare them.
    addresses
        One for each file, in order; none if they cannot be fetched.
    """

    files: tuple[str, ...]
    n_rows: int
    n_features: int | None = None
    options: dict[str, bool | int | str | tuple[str, ...]] = Field(default_factory=dict)
    part: str | None = None
    tested: bool = True
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True, config=CHECKED)
class Entry:
    """A dataset of the papers.

    Parameters
    ----------
    name
        Its name in the papers.
    task
        `binary`, `regression`, or how many classes: `7 classes`.
    source
        Who publishes it, by name.
    editions
        Its files. The whole dataset is first, if it is published.
    papers
        Those that use it.
    positive_class
        The class that this project's sweeps set against the rest; None if the labels are two
        classes or real numbers.
    """

    name: str
    task: str
    source: str
    editions: tuple[Edition, ...]
    papers: tuple[str, ...] = ()
    positive_class: int | None = None

    @property
    def absent(self) -> bool:
        """Whether this project has no copy: the numbers are the publisher's, and no test checks
        them.
        """
        return not any(edition.tested for edition in self.editions)

    @property
    def partial(self) -> str | None:
        """What part this project has; None if it has the whole, or nothing."""
        tested = [edition.part for edition in self.editions if edition.tested]
        return tested[0] if tested and None not in tested else None

    @property
    def fetchable(self) -> Edition | None:
        """The first edition whose files have addresses; None if they must be brought along."""
        return next((edition for edition in self.editions if edition.addresses), None)


def _read() -> dict[str, Entry]:
    """The entries of `papers.toml` by name."""
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: Entry(name, **entry) for name, entry in content.items()}


CATALOGUE: dict[str, Entry] = _read()
