"""Download of the files of a catalogue dataset into the cache folder, with progress on stderr.

The checksums of downloaded files are recorded in the store.
"""

from functools import partial
from pathlib import Path

from flows.runtime.bytes_progress import BytesProgress
from flows.runtime.console import say
from koco_stream.errors import WrongInput
from koco_stream.io.cache import private_folder
from koco_stream.io.files import file_hash
from koco_stream.io.paths import store_path
from storage.catalogue.entries import Address, Edition, Entry, how_to_get
from storage.catalogue.fetch import (
    CHECKSUMS,
    Gone,
    Unreachable,
    WrongChecksum,
    fetch,
    record,
    recorded,
    unpack,
)


def fetch_edition(store: str, entry: Entry) -> tuple[Edition, list[Path], dict[str, Path]]:
    """Download the files of a catalogue entry.

    Parameters
    ----------
    store : str
        Store with the checksums of earlier downloads.
    entry : Entry
        Entry of the catalogue; its edition that has addresses is used.

    Returns
    -------
    edition : Edition
        The edition that was downloaded.
    paths : list of Path
        Its files, in order.
    came : dict of str to Path
        What was downloaded from each address.

    Raises
    ------
    WrongInput
        If there is no address, no network, or a file differs from the expected one. The message
        names the files, their addresses, and how to pass them.
    OSError
        If the server keeps failing, or the cache cannot be written.
    """
    edition = entry.fetchable
    if edition is None:
        raise WrongInput(f"{entry.name} has no download address. {how_to_get(entry)}")
    folder = private_folder("sources", entry.name)
    known = recorded(store)
    came: dict[str, Path] = {}
    paths = []
    for file, address in zip(edition.files, edition.addresses, strict=True):
        if address.url not in came:
            came[address.url] = _fetch(store, entry, file, address, known.get(address.url), folder)
        path = came[address.url]
        if address.path_inside:
            path = unpack(
                path,
                address.path_inside,
                folder / address.name_of(file),
                address.sha256,
                address.skip_lines,
            )
        paths.append(path)
    return edition, paths, came


def record_edition(store: str, came: dict[str, Path]) -> None:
    """Record the checksums of downloaded files, by address.

    Call it after the dataset was prepared, so that no checksum of a faulty file is recorded.
    """
    for url, path in came.items():
        record(store, url, file_hash(path), path.stat().st_size)


def _fetch(
    store: str, entry: Entry, file: str, address: Address, recorded_sha256: str | None, folder: Path
) -> Path:
    """Download the file at one address; errors are raised with their remedy."""
    expected = recorded_sha256 if address.path_inside else address.sha256 or recorded_sha256
    name = None if address.path_inside else address.name_of(file)
    say(f"downloading {address.url}")
    try:
        with BytesProgress("downloading") as progress:
            return fetch(
                address.url, expected, folder, partial(progress.step, "downloading"), name=name
            )
    except Unreachable as error:
        raise WrongInput(f"{error}. {how_to_get(entry)}") from None
    except Gone as error:
        raise WrongInput(
            f"{error}; the address has moved. Find the file and pass it with --from."
            f" {how_to_get(entry)}"
        ) from None
    except WrongChecksum as error:
        if expected == recorded_sha256:
            since = f"the checksum was recorded when {entry.name} was first downloaded into {store}"
            remedy = (
                "if you trust the new file, delete the address in"
                f" {store_path(store) / CHECKSUMS}; otherwise pass the old one with --from"
            )
        else:
            since, remedy = (
                "the checksum is that of the published file",
                "get the published file and pass it with --from",
            )
        raise WrongInput(f"{error}: {since}. Nothing was prepared; {remedy}") from None
