"""Download of files over HTTP, with resumption, checksums and reuse of files already fetched.

Checksums of fetched files are kept in the store (`sources.json`), so that a file that has changed
at its URL is detected.

Libraries such as pooch restart an interrupted download from the beginning, hence our own code.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import httpx

import koco_stream
from koco_stream.errors import WrongInput
from koco_stream.io.files import file_hash, locked, sync, write_text
from koco_stream.io.paths import AnyPath, StorePath, store_path
from storage.store import LOCK, check_store, open_store

TIMES = httpx.Timeout(60.0, connect=20.0)  # seconds without data, and to connect
TRIES = 5  # consecutive requests without new data
LONGEST_PAUSE = 30.0  # seconds between requests
NO_WAY = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
CHECKSUMS = "sources.json"
LOOPBACK = ("localhost", "127.0.0.1", "::1")

Progress = Callable[[int, int | None], object]


class Unreachable(ConnectionError):
    """No connection to the server can be made: no network, or no such server."""


class Gone(WrongInput):
    """The server answers but does not provide the file at this URL."""


class WrongChecksum(WrongInput):
    """The fetched file does not have the expected checksum."""


class _RetryableError(Exception):
    """A request failed in a way that may not recur, so it should be repeated."""


def fetch(
    address: str,
    expected_sha256: str | None,
    folder: Path,
    progress: Progress = lambda done, total: None,
    *,
    name: str | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> Path:
    """Fetch a file, unless an identical copy is there already.

    The data of an interrupted download is kept in NAME.part and resumed if the server confirms that
    the file has not changed.

    Parameters
    ----------
    address : str
        URL of the file.
    expected_sha256 : str, optional
        Checksum of the file, if known.
    folder : Path
        Folder for the file.
    progress : callable
        Called with the bytes so far and in total (None if the server does not say).
    name : str, optional
        Name of the file; by default the last component of the URL.
    pause : callable
        Waits the given number of seconds before the next request.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    Unreachable
        If no connection to the server can be made.
    Gone
        If the server does not provide the file.
    WrongChecksum
        If the file does not have the expected checksum.
    ConnectionError
        If the server fails repeatedly.
    WrongInput
        If the URL is neither https nor http on this machine.
    OSError
        If the file cannot be written.
    """
    check_address(address)
    name = name or unquote(PurePosixPath(httpx.URL(address).path).name)
    if not name or name != Path(name).name or name.startswith("."):
        raise WrongInput(f"{address} does not end in a file's name")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target, about = folder / name, folder / f"{name}.json"
    with locked(folder / f".{name}.lock"):
        noted = _read_note(about)
        if target.is_file() and noted.get("address") == address:
            sha256 = noted.get("sha256")
            if file_hash(target) == sha256 and expected_sha256 in (None, sha256):
                return target
        download = _Download(address, folder / f"{name}.part", progress, pause)
        resumed = download.run()
        found = file_hash(download.part)
        # the file may have changed between the requests without the server saying so
        if resumed and expected_sha256 not in (None, found):
            download.discard()
            download.run()
            found = file_hash(download.part)
        if expected_sha256 not in (None, found):
            download.discard()
            raise WrongChecksum(
                f"{address} gave a file with the sha256 {found}, and {expected_sha256} is expected"
            )
        sync(download.part)
        note = {"address": address, "sha256": found, "bytes": download.part.stat().st_size}
        write_text(about, json.dumps(note) + "\n")
        download.part.replace(target)
        download.discard()
        sync(folder)
    return target


def check_address(address: str) -> None:
    """Raise `WrongInput` for a URL that is neither https nor http on this machine."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise WrongInput(f"{address!r} is not an address: {error}") from None
    here = url.scheme == "http" and url.host in LOOPBACK
    if not url.host or not (url.scheme == "https" or here):
        raise WrongInput(f"{address!r} is not fetched: only https addresses are")


def _read_note(path: Path) -> dict[str, Any]:
    """Read a small JSON file written by this module; empty if it is missing or damaged.

    The file is then fetched again, which is the only loss.
    """
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


class _Download:
    """A download in progress.

    `part` is the file with the data so far, `note` a file that says of which version it is.
    """

    def __init__(
        self, address: str, part: Path, progress: Progress, pause: Callable[[float], object]
    ) -> None:
        self.address, self.part, self.progress, self.pause = address, part, progress, pause
        self.note = part.with_name(f"{part.name}.json")
        self.answered = False

    def run(self) -> bool:
        """Complete the download with as many requests as needed.

        Returns whether the file contains data of more than one request.
        """
        resumed, tries = False, 0
        headers = {
            "Accept-Encoding": "identity",
            "User-Agent": f"koco-stream/{koco_stream.__version__}",
        }
        with httpx.Client(
            timeout=TIMES,
            follow_redirects=True,
            headers=headers,
            trust_env=httpx.URL(self.address).host not in LOOPBACK,
            # check every URL, including those of redirections
            event_hooks={"request": [lambda request: check_address(str(request.url))]},
        ) as client:
            while True:
                before = self.bytes_here()
                try:
                    return self.request(client) or resumed
                except (_RetryableError, httpx.TransportError) as error:
                    why = str(error) or type(error).__name__
                    # without any answer so far, repeating the request is useless
                    if not self.answered and isinstance(error, NO_WAY):
                        raise Unreachable(f"no connection to {self.address} ({why})") from None
                    tries = 0 if self.bytes_here() > before else tries + 1
                    if tries == TRIES:
                        raise ConnectionError(
                            f"{self.address}: {why}, {TRIES} times in a row; what came is kept, try"
                            " again later"
                        ) from None
                    self.pause(min(2.0**tries, LONGEST_PAUSE))
                except httpx.TooManyRedirects as error:
                    raise Gone(f"{self.address}: {error}") from None
                resumed = True

    def bytes_here(self) -> int:
        """Number of bytes fetched so far."""
        return self.part.stat().st_size if self.part.is_file() else 0

    def discard(self) -> None:
        """Delete the data fetched so far."""
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def request(self, client: httpx.Client) -> bool:
        """Send one request and read its response to the end.

        Returns whether the response continued earlier data.
        """
        noted, here = _read_note(self.note), self.bytes_here()
        if noted.get("address") != self.address or not isinstance(noted.get("version"), str):
            here = 0  # it is unknown to which version of the file the data belongs
        # all data had arrived when the process was terminated
        elif here and here == noted.get("bytes"):
            return True
        headers = {"Range": f"bytes={here}-", "If-Range": noted["version"]} if here else {}
        with client.stream("GET", self.address, headers=headers) as answer:
            self.answered = True
            self.check_response(answer, here, noted.get("version"))
            goes_on = answer.status_code == 206
            if not goes_on:
                here = 0
                self.discard()
                self.part.touch()
                length = answer.headers.get("Content-Length", "")
                noted = {
                    "address": self.address,
                    "version": _version(answer),
                    "bytes": int(length) if length.isdigit() else None,
                }
                write_text(self.note, json.dumps(noted) + "\n")
            total = noted.get("bytes")
            # unbuffered, so that all data is in the file even if this process is terminated
            with self.part.open("ab", buffering=0) as handle:
                for chunk in answer.iter_raw():
                    handle.write(chunk)
                    here += len(chunk)
                    self.progress(here, total)
        if total is not None and here != total:
            if here > total:
                self.discard()
            raise _RetryableError(f"the server sent {here:,} of {total:,} bytes")
        return goes_on

    def check_response(self, answer: httpx.Response, here: int, version: str | None) -> None:
        """Check that a response holds the requested data of the file.

        `here` is the number of bytes fetched so far, and `version` the file's version then. A
        partial response (206) must start there and be of that version, because some servers ignore
        If-Range. Raises `Gone` if the file is not available, and `_RetryableError` if another
        request may succeed.
        """
        status = answer.status_code
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {here}-")
        goes_on = here > 0 and begins and _version(answer) in (None, version)
        if status == 416 or (status == 206 and not goes_on):
            self.discard()
            raise _RetryableError("the server's file is another one than before")
        if status == 429 or status >= 500:
            raise _RetryableError(f"the server says {status} {answer.reason_phrase}")
        if status not in (200, 206):
            raise Gone(f"{self.address}: the server says {status} {answer.reason_phrase}")
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            raise Gone(f"{self.address}: the server sends a web page, not the file")


def _version(answer: httpx.Response) -> str | None:
    """Identifier of the file's version: its strong ETag, else its modification date, else None."""
    etag = answer.headers.get("ETag", "")
    return etag if etag.startswith('"') else answer.headers.get("Last-Modified")


def recorded(store: AnyPath) -> dict[str, str]:
    """Recorded SHA-256 of each URL; empty if the store has none yet.

    Raises `WrongInput` if the record is damaged.
    """
    root = store_path(store)
    if not check_store(root):
        return {}
    known = _read_checksums(root / CHECKSUMS)
    return {address: noted["sha256"] for address, noted in known.items()}


def record(store: AnyPath, address: str, sha256: str, n_bytes: int) -> None:
    """Record checksum, size and time of the file at a URL, unless the URL is recorded already."""
    root = open_store(store)
    with (root / LOCK).locked():
        known = _read_checksums(root / CHECKSUMS)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        known.setdefault(address, {"sha256": sha256, "bytes": n_bytes, "when": when})
        (root / CHECKSUMS).write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def _read_checksums(path: StorePath) -> dict[str, dict[str, Any]]:
    try:
        known = json.loads(path.read_text())
        return {address: {**noted, "sha256": noted["sha256"]} for address, noted in known.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongInput(
            f"{path} is damaged ({error}); delete it, and the checksums are recorded anew"
        ) from None
