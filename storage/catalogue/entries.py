"""The catalogue of the papers' datasets (`papers.toml`), and the search for their files."""

import shlex
import tomllib
from pathlib import Path

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from koco_stream.errors import WrongInput, nearest
from storage.sources.compressed import OPENERS

SON = "SON 2016"
CHECKED = ConfigDict(extra="forbid")  # an unknown key or a value of another type is an error


@dataclass(frozen=True, config=CHECKED)
class Address:
    """The address at which a file is published.

    Parameters
    ----------
    url : str
        URL of the file, or of the archive that holds it.
    path_inside : str
        Path of the file in the archive, a zip file; empty if it is not in one.
    sha256 : str, optional
        Hash of the file as published, where known.
    skip_lines : int
        Number of leading lines that are not rows; they are removed after fetching.
    suffix : str, optional
        Suffix of the file's compression (".gz"), if its name does not have it.
    """

    url: str
    path_inside: str = ""
    sha256: str | None = None
    skip_lines: int = 0
    suffix: str | None = None

    def name_of(self, file: str) -> str:
        """Name on disk of an edition's `file`, with the suffix of its compression."""
        published = Path(self.path_inside or self.url).suffix
        suffix = published if self.suffix is None else self.suffix
        return file + suffix if suffix in OPENERS else file

    def text(self) -> str:
        """The URL, with the path of the file if it is in an archive, for messages."""
        inside = f" (in it {self.path_inside})" if self.path_inside else ""
        lines = "line" if self.skip_lines == 1 else f"{self.skip_lines} lines"
        return f"{self.url}{inside}" + (f", without its first {lines}" if self.skip_lines else "")


@dataclass(frozen=True, config=CHECKED)
class Edition:
    """Files that form a dataset, or a subset of it, when read in order.

    Parameters
    ----------
    files : tuple of str
        File names, without a suffix for compression.
    n_rows, n_features : int
        Size of the prepared dataset, after one-hot encoding; `n_features` None if unknown.
    options : dict
        Options for `storage.preparing.prepare.prepare_file`.
    subset : str, optional
        Description of the subset, if the files are not the whole dataset.
    tested : bool
        Whether the project has the files and prepares them in its tests.
    addresses : tuple of Address
        One per file, in order; empty if the files cannot be fetched.
    """

    files: tuple[str, ...]
    n_rows: int
    n_features: int | None = None
    options: dict[str, bool | int | str | tuple[str, ...]] = Field(default_factory=dict)
    subset: str | None = None
    tested: bool = True
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True, config=CHECKED)
class Entry:
    """A dataset of the papers.

    Parameters
    ----------
    name : str
        Name in the papers.
    task : str
        `binary`, `regression`, or the number of classes: `7 classes`.
    source : str
        Description of the publisher.
    editions : tuple of Edition
        Alternative sets of files; the whole dataset comes first if it is published.
    papers : tuple of str
        Papers that use the dataset.
    positive_class : int, optional
        Class that the project's sweeps separate from the others; None for two classes or
        regression.
    """

    name: str
    task: str
    source: str
    editions: tuple[Edition, ...]
    papers: tuple[str, ...] = ()
    positive_class: int | None = None

    @property
    def absent(self) -> bool:
        """Whether the project has no copy of the dataset.

        Sizes are then those stated by the publisher, and no test checks them.
        """
        return not any(edition.tested for edition in self.editions)

    @property
    def partial(self) -> str | None:
        """Description of the subset that the project has; None if it has the whole dataset or
        nothing.
        """
        tested = [edition.subset for edition in self.editions if edition.tested]
        return tested[0] if tested and None not in tested else None

    @property
    def fetchable(self) -> Edition | None:
        """First edition whose files can be fetched; None if the user must provide them."""
        return next((edition for edition in self.editions if edition.addresses), None)


_PAPERS = tomllib.loads(Path(__file__).with_name("papers.toml").read_text(encoding="utf-8"))
CATALOGUE: dict[str, Entry] = {name: Entry(name, **entry) for name, entry in _PAPERS.items()}


def entry_named(name: str) -> Entry:
    """Catalogue entry of a dataset, by its name on the command line.

    Raises `WrongInput` with the nearest name if there is none, or if a file is meant.
    """
    if name not in CATALOGUE:
        if Path(name).is_file():
            raise WrongInput(
                f"{name} is a file; the dataset's name comes first: koco prepare NAME --from"
                f" {shlex.quote(name)}"
            )
        raise WrongInput(
            f"koco prepare {name} --from FILE needs a file, because the catalogue does not have"
            f" {name!r}{nearest(name, list(CATALOGUE))}"
        )
    return CATALOGUE[name]


def how_to_get(entry: Entry) -> str:
    """Instructions for the user: files of a dataset, their sources, and the command to prepare
    them.
    """
    texts = [
        "\n    ".join([edition_text(edition), *(address.text() for address in edition.addresses)])
        for edition in entry.editions
    ]
    first, *addresses = texts[0].split("\n")
    return "\n".join(
        [
            f"{entry.name}: get {first} from {entry.source}",
            *addresses,
            *(f"  or {text}" for text in texts[1:]),
            "  plain, .gz, .bz2, .xz or .zst, in a folder of your choice or in its subfolder named"
            " like the dataset; then",
            f"  koco prepare {entry.name} --from FOLDER",
        ]
    )


def edition_text(edition: Edition) -> str:
    """Description of an edition, such as `a9a and a9a.t (48,842 rows, 123 features)`."""
    features = f", {edition.n_features:,} features" if edition.n_features else ""
    size = edition.subset or f"{edition.n_rows:,} rows{features}"
    return f"{' and '.join(edition.files)} ({size})"


def find_edition(entry: Entry, folder: Path) -> tuple[Edition, list[Path]]:
    """Find the first edition whose files are all in `folder` or its subfolder `entry.name`.

    Returns
    -------
    tuple of (Edition, list of Path)
        The edition, and its files in order.

    Raises
    ------
    WrongInput
        If there is none, with the missing files and their sources.
    """
    found = {
        name: base / (name + suffix)
        for edition in entry.editions
        for name in edition.files
        # of several files of a name, the last one is taken
        for base in (folder / entry.name, folder)
        for suffix in (*reversed(OPENERS), "")
        if (base / (name + suffix)).is_file()
    }
    for edition in entry.editions:
        if all(name in found for name in edition.files):
            return edition, [found[name] for name in edition.files]
    there = f" (only {', '.join(sorted(found))})" if found else ""
    raise WrongInput(
        f"{folder} does not have the files of {entry.name}{there}. {how_to_get(entry)}"
    )


def remarks(entry: Entry, edition: Edition, n_rows: int, n_features: int) -> list[str]:
    """Warnings about a prepared dataset: that it is a subset, or that its size is unexpected.

    Parameters
    ----------
    entry, edition : Entry, Edition
        Catalogue entry, and the edition that was prepared.
    n_rows, n_features : int
        Size of the prepared dataset.
    """
    expected = (edition.n_rows, edition.n_features or n_features)
    said = [
        (
            edition.subset is not None,
            f"this is only a part of {entry.name}: {edition.subset}. The whole:"
            f" {edition_text(entry.editions[0])}, from {entry.source}",
        ),
        (
            (n_rows, n_features) != expected,
            f"{' and '.join(edition.files)} gave {n_rows:,} rows of {n_features:,} features where"
            f" the catalogue has {expected[0]:,} of {expected[1]:,}: the file may be cut, or"
            " another version; results are not comparable with the papers'",
        ),
    ]
    return [remark for is_there, remark in said if is_there]
