"""The catalogue of the papers' datasets (`papers.toml`), and the search for their files."""

import shlex
import tomllib
from pathlib import Path

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from koco_stream.errors import WrongInput, nearest
from storage.sources.compressed import OPENERS

CHECKED = ConfigDict(extra="forbid")  # an unknown key or a value of another type is an error


@dataclass(frozen=True, config=CHECKED)
class Address:
    """The address of a published file, or, with `path_inside`, of a zip archive that has it."""

    url: str
    path_inside: str = ""
    sha256: str | None = None
    skip_lines: int = 0
    suffix: str | None = None

    def name_of(self, file: str) -> str:
        suffix = Path(self.path_inside or self.url).suffix if self.suffix is None else self.suffix
        return file + suffix if suffix in OPENERS else file

    def text(self) -> str:
        inside = f" (in it {self.path_inside})" if self.path_inside else ""
        lines = "line" if self.skip_lines == 1 else f"{self.skip_lines} lines"
        return f"{self.url}{inside}" + (f", without its first {lines}" if self.skip_lines else "")


@dataclass(frozen=True, config=CHECKED)
class Edition:
    """Files that form a dataset, or a subset of it, when read in order."""

    files: tuple[str, ...]
    n_rows: int
    n_features: int | None = None
    options: dict[str, bool | int | str | tuple[str, ...]] = Field(default_factory=dict)
    subset: str | None = None
    tested: bool = True
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True, config=CHECKED)
class Entry:
    """A dataset of the papers; the whole one is the first of the `editions`, if published."""

    name: str
    task: str
    source: str
    editions: tuple[Edition, ...]
    papers: tuple[str, ...] = ()
    positive_class: int | None = None

    @property
    def absent(self) -> bool:
        """Sizes are then those stated by the publisher, and no test checks them."""
        return not any(edition.tested for edition in self.editions)

    @property
    def partial(self) -> str | None:
        """The subset that the project has; None if it has the whole dataset or nothing."""
        tested = [edition.subset for edition in self.editions if edition.tested]
        return tested[0] if tested and None not in tested else None

    @property
    def fetchable(self) -> Edition | None:
        return next((edition for edition in self.editions if edition.addresses), None)


PAPERS = Path(__file__).with_name("papers.toml").read_text(encoding="utf-8")
CATALOGUE = {name: Entry(name, **entry) for name, entry in tomllib.loads(PAPERS).items()}


def entry_named(name: str) -> Entry:
    if name not in CATALOGUE:
        raise WrongInput(
            f"{name} is a file; the dataset's name comes first: koco prepare NAME --from"
            f" {shlex.quote(name)}"
            if Path(name).is_file()
            else f"koco prepare {name} --from FILE needs a file, because the catalogue does not"
            f" have {name!r}{nearest(name, list(CATALOGUE))}"
        )
    return CATALOGUE[name]


def how_to_get(entry: Entry) -> str:
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
    """For example `a9a and a9a.t (48,842 rows, 123 features)`."""
    features = f", {edition.n_features:,} features" if edition.n_features else ""
    size = edition.subset or f"{edition.n_rows:,} rows{features}"
    return f"{' and '.join(edition.files)} ({size})"


def find_edition(entry: Entry, folder: Path) -> tuple[Edition, list[Path]]:
    """The files are in `folder` or its subfolder `entry.name`, or `WrongInput` is raised."""
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
