"""Finding the files of a dataset of the catalogue, and what to tell the user of them."""

from pathlib import Path

from koco_stream.errors import WrongInput, nearest
from storage.catalogue.papers import CATALOGUE, Edition, Entry
from storage.sources.compressed import OPENERS


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
