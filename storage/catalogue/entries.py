"""The catalogue: the datasets of the papers, read from `papers.toml`; finding their files, and what
a user is told of them.
"""

import tomllib
from pathlib import Path

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from koco_stream.errors import WrongInput, nearest
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
    content = tomllib.loads(Path(__file__).with_name("papers.toml").read_text(encoding="utf-8"))
    return {name: Entry(name, **entry) for name, entry in content.items()}


CATALOGUE: dict[str, Entry] = _read()


def entry_named(name: str) -> Entry:
    """The entry of a dataset. Raises `WrongInput` with the nearest name if there is none."""
    if name not in CATALOGUE:
        raise WrongInput(
            f"koco prepare {name} --from FILE needs a file, because the catalogue does not have"
            f" {name!r}{nearest(name, list(CATALOGUE))}"
        )
    return CATALOGUE[name]


def how_to_get(entry: Entry) -> str:
    """Which files an entry needs, where they come from, and how they are passed."""
    lines = []
    for edition in entry.editions:
        lines.append(f"  or {edition_text(edition)}")
        lines += [f"    {address.text()}" for address in edition.addresses]
    lines[0] = f"{entry.name}: get {edition_text(entry.editions[0])} from {entry.source}"
    lines.append(
        "  plain, .gz, .bz2, .xz or .zst, in a folder of your choice or in its subfolder named like"
        " the dataset; then"
    )
    lines.append(f"  koco prepare {entry.name} --from FOLDER")
    return "\n".join(lines)


def edition_text(edition: Edition) -> str:
    """`a9a and a9a.t (48,842 rows, 123 features)`."""
    size = f"{edition.n_rows:,} rows"
    if edition.n_features:
        size += f", {edition.n_features:,} features"
    return f"{' and '.join(edition.files)} ({edition.part or size})"


def find_edition(entry: Entry, folder: Path) -> tuple[Edition, list[Path]]:
    """The first edition whose files are all in `folder` or its subfolder `entry.name`.

    Returns
    -------
    The edition, and the paths of its files in order.

    Raises
    ------
    WrongInput
        If there is none; it says what is missing and where to get it.
    """
    found: dict[str, Path] = {}
    for edition in entry.editions:
        for name in edition.files:
            candidates = [
                base / (name + suffix)
                for base in (folder, folder / entry.name)
                for suffix in ("", *OPENERS)
            ]
            path = next(filter(Path.is_file, candidates), None)
            if path is not None:
                found[name] = path
        if all(name in found for name in edition.files):
            return edition, [found[name] for name in edition.files]
    there = f" (only {', '.join(sorted(found))})" if found else ""
    raise WrongInput(
        f"{folder} does not have the files of {entry.name}{there}. {how_to_get(entry)}"
    )


def remarks(entry: Entry, edition: Edition, n_rows: int, n_features: int) -> list[str]:
    """What a user must know of a dataset with so many rows and features, made from `edition`: that
    it is a part, or not what the catalogue expects.
    """
    said = []
    if edition.part:
        said.append(
            f"this is a part of {entry.name}: {edition.part}. The whole:"
            f" {edition_text(entry.editions[0])}, from {entry.source}"
        )
    expected = (edition.n_rows, edition.n_features or n_features)
    if (n_rows, n_features) != expected:
        said.append(
            f"{' and '.join(edition.files)} gave {n_rows:,} rows of {n_features:,} features where"
            f" the catalogue has {expected[0]:,} of {expected[1]:,}: the file may be cut, or"
            " another version; results are not comparable with the papers'"
        )
    return said
