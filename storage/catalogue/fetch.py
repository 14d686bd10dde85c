"""Download of files over HTTP, with checksums and reuse of files already fetched."""

import hashlib
import json
import shutil
import time
import zipfile
import zlib
from collections.abc import Callable
from io import SEEK_END, FileIO
from itertools import count
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import httpx

import koco_stream
from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash, json_text, remove_unfinished, written_atomically
from koco_stream.io.paths import AnyPath, store_path
from storage.store import LOCK, check_store, open_store

TIMES = httpx.Timeout(60.0, connect=20.0)  # seconds without data, and to connect
TRIES = 5  # consecutive requests without new data
LEFT_SECONDS = 86_400.0  # age from which an unfinished file counts as abandoned
LONGEST_PAUSE = 30.0  # seconds between requests
NO_WAY = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
CHECKSUMS = "sources.json"
LOOPBACK = ("localhost", "127.0.0.1", "::1")

Progress = Callable[[int, int | None], object]


class Gone(WrongInput):
    """There is no network or no such server, or it does not provide the file at this URL."""


class WrongChecksum(WrongInput):
    """The fetched file does not have the expected checksum."""


def fetch(
    address: str,
    expected_sha256: str | None,
    folder: Path,
    progress: Progress = lambda done, total: None,
    *,
    name: str | None = None,
) -> Path:
    """Fetch a file into a folder, unless the expected one is there already."""
    name = name or unquote(PurePosixPath(httpx.URL(address).path).name)
    target = folder / name
    if expected_sha256 and target.is_file() and file_hash(target) == expected_sha256:
        return target
    remove_unfinished(folder, LEFT_SECONDS)
    with written_atomically(target) as temporary:
        # unbuffered, so that its size says how much has come
        with temporary.open("ab", buffering=0) as handle:
            _download(address, handle, progress)
        found = file_hash(temporary)
        if expected_sha256 not in (None, found):
            raise WrongChecksum(
                f"{address} gave a file with the sha256 {found}, but {expected_sha256} is expected"
            )
    return target


def check_address(address: str) -> None:
    """Only https addresses can be fetched, and http ones of this machine."""
    url = httpx.URL(address)
    is_here = url.scheme == "http" and url.host in LOOPBACK
    if not url.host or not (url.scheme == "https" or is_here):
        raise WrongInput(f"{address!r} cannot be fetched: only https addresses can")


def _download(address: str, partial: FileIO, progress: Progress) -> None:
    """After a cut it goes on where it was, if the server has the same version."""
    version = {"If-Range": ""}
    headers = {
        "Accept-Encoding": "identity",
        "User-Agent": f"koco-stream/{koco_stream.__version__}",
    }
    with httpx.Client(
        timeout=TIMES,
        follow_redirects=True,
        headers=headers,
        trust_env=httpx.URL(address).host not in LOOPBACK,
        # check every URL, including those of redirections
        event_hooks={"request": [lambda request: check_address(str(request.url))]},
    ) as client:
        tries = 0
        for request in count():
            before = partial.seek(0, SEEK_END)
            try:
                return _request(client, address, partial, version, progress)
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
                # without any answer so far, repeating the request is useless
                if request == 0 and isinstance(error, NO_WAY):
                    raise Gone(f"no connection to {address} ({why})") from None
                tries = 0 if partial.seek(0, SEEK_END) > before else tries + 1
                if tries == TRIES:
                    raise ConnectionError(
                        f"{address}: {why}, {TRIES} times in a row; try again later"
                    ) from None
                time.sleep(min(2.0**tries, LONGEST_PAUSE))
            except httpx.TooManyRedirects as error:
                raise Gone(f"{address}: {error}") from None


def _request(
    client: httpx.Client, address: str, partial: FileIO, version: dict[str, str], progress: Progress
) -> None:
    here = partial.seek(0, SEEK_END) if version["If-Range"] else 0
    headers = {"Range": f"bytes={here}-", **version} if here else {}
    with client.stream("GET", address, headers=headers) as answer:
        status = answer.status_code
        says = f"the server says {status} {answer.reason_phrase}"
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {here}-")
        # a partial answer is checked, because some servers ignore If-Range
        goes_on = here > 0 and begins and _version(answer) in ("", version["If-Range"])
        changed = status == 416 or (status == 206 and not goes_on)
        is_page = answer.headers.get("Content-Type", "").startswith("text/html")
        if changed or status == 200:
            here = partial.truncate(0)
        refused = [
            (changed, httpx.TransportError("the file on the server has changed")),
            (status == 429 or status >= 500, httpx.TransportError(says)),
            (status not in (200, 206), Gone(f"{address}: {says}")),
            (is_page, Gone(f"{address}: the server sends a web page, not the file")),
        ]
        for is_there, error in refused:
            if is_there:
                raise error
        if status == 200:
            version["If-Range"] = _version(answer)
        length = answer.headers.get("Content-Length", "")
        total = here + int(length) if length.isdigit() else None
        for chunk in answer.iter_raw():
            partial.write(chunk)
            here += len(chunk)
            progress(here, total)
    if total not in (None, here):
        raise httpx.TransportError(f"the server sent {here:,} of {total:,} bytes")


def _version(answer: httpx.Response) -> str:
    etag: str = answer.headers.get("ETag", "")
    return etag if etag.startswith('"') else answer.headers.get("Last-Modified", "")


def recorded(store: AnyPath) -> dict[str, str]:
    """SHA-256 that the file at each URL had when the store first used it."""
    check_store(store)
    path = store_path(store) / CHECKSUMS
    try:
        return {address: noted["sha256"] for address, noted in json.loads(path.read_text()).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongInput(
            f"{path} is damaged ({error}); delete it, and the checksums are recorded again"
        ) from None


def record(store: AnyPath, address: str, sha256: str) -> None:
    """A URL that is recorded already keeps its checksum."""
    root = open_store(store)
    with (root / LOCK).locked():
        known = {url: {"sha256": of} for url, of in {address: sha256, **recorded(store)}.items()}
        (root / CHECKSUMS).write_text(json_text(known, indent=1, sort_keys=True) + "\n")


# zipfile raises the last two for an unknown compression and for an encrypted file
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def unpack(
    archive: Path, name: str, target: Path, expected_sha256: str | None = None, skip_lines: int = 0
) -> Path:
    try:
        with (
            written_atomically(target) as temporary,
            zipfile.ZipFile(archive) as opened,
            opened.open(name) as inside,
            temporary.open("wb") as out,
        ):
            found = hashlib.file_digest(inside, "sha256").hexdigest()  # type: ignore[arg-type]
            if expected_sha256 not in (None, found):
                raise WrongInput(
                    f"{archive}: {name} has the sha256 {found}, but {expected_sha256} is expected"
                )
            inside.seek(0)
            for _ in range(skip_lines):
                inside.readline()
            shutil.copyfileobj(inside, out)
    except KeyError:
        raise WrongInput(
            f"{archive} does not have the file {name}; the archive is another version"
        ) from None
    except DAMAGE as error:
        raise WrongInput(
            f"{archive}: damaged, or not an archive that can be read ({error}); delete it and fetch"
            " it again"
        ) from None
    return target
