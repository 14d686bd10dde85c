"""Fetching a file: it goes on where it was cut, its checksum is verified, and a file that is there
already is not asked for again.

What an address gave once, it must give again: the checksums of fetched files are kept in the store
(`sources.json`).

This is our own code because libraries such as pooch fetch a file that was cut from its beginning.
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
from koco_stream.io.files import file_hash, locked, sync_file, sync_folder, write_text
from koco_stream.io.paths import AnyPath, StorePath, store_path
from storage.store import LOCK, check_store, open_store

TIMES = httpx.Timeout(60.0, connect=20.0)  # seconds without a byte
TRIES = 5  # in a row that bring nothing new
LONGEST_PAUSE = 30.0
NO_WAY = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
CHECKSUMS = "sources.json"
LOOPBACK = ("localhost", "127.0.0.1", "::1")

Progress = Callable[[int, int | None], object]


class Unreachable(ConnectionError):
    """There is no connection to the server at all: no network, or no such server."""


class Gone(WrongInput):
    """The server answers, and does not give the file under this address."""


class WrongChecksum(WrongInput):
    """The file that came is not the one that is expected."""


class _Again(Exception):
    """This request failed in a way that the next one may not."""


def fetch(
    address: str,
    expected_sha256: str | None,
    folder: Path,
    progress: Progress = lambda done, total: None,
    *,
    name: str | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> Path:
    """Fetch a file, unless it is there as expected.

    What came before a cut is kept in NAME.part and asked for no second time, if the server says
    that the file is still the same one.

    Parameters
    ----------
    address
        Where the file is.
    expected_sha256
        Its checksum, if it is known.
    folder
        Where it is put.
    progress
        Is told the bytes so far and in all (None if the server does not say).
    name
        The file's name there; without it the address's last part.
    pause
        Waits for so many seconds before the next request.

    Returns
    -------
    The path of the file.

    Raises
    ------
    Unreachable
        If there is no connection to the server.
    Gone
        If the server does not give the file.
    WrongChecksum
        If it is another file than expected.
    ConnectionError
        If the server fails again and again.
    WrongInput
        For an address that is not https, nor http on this machine.
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
        # two files may have been put together: a server that does not say so
        if resumed and expected_sha256 not in (None, found):
            download.forget()
            download.run()
            found = file_hash(download.part)
        if expected_sha256 not in (None, found):
            download.forget()
            raise WrongChecksum(
                f"{address} gave a file with the sha256 {found}, and {expected_sha256} is expected"
            )
        sync_file(download.part)
        note = {"address": address, "sha256": found, "bytes": download.part.stat().st_size}
        write_text(about, json.dumps(note) + "\n")
        download.part.replace(target)
        download.forget()
        sync_folder(folder)
    return target


def check_address(address: str) -> None:
    """Refuse what is not an https address, nor http on this machine. Raises `WrongInput`."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise WrongInput(f"{address!r} is not an address: {error}") from None
    here = url.scheme == "http" and url.host in LOOPBACK
    if not url.host or not (url.scheme == "https" or here):
        raise WrongInput(f"{address!r} is not fetched: only https addresses are")


def _read_note(path: Path) -> dict[str, Any]:
    """A small JSON file of ours; empty if it is not there or damaged, which costs no more than
    fetching again.
    """
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


class _Download:
    """One file on its way: the bytes that are here (`part`), and which version of the file they are
    of (`note`).
    """

    def __init__(
        self, address: str, part: Path, progress: Progress, pause: Callable[[float], object]
    ) -> None:
        self.address, self.part, self.progress, self.pause = address, part, progress, pause
        self.note = part.with_name(f"{part.name}.json")
        self.answered = False

    def run(self) -> bool:
        """Bring the file to its end, with as many requests as it takes; whether bytes of an earlier
        request are in it.
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
            # every address on the way, redirections too
            event_hooks={"request": [lambda request: check_address(str(request.url))]},
        ) as client:
            while True:
                before = self.here()
                try:
                    return self.ask(client) or resumed
                except (_Again, httpx.TransportError) as error:
                    why = str(error) or type(error).__name__
                    if not self.answered and isinstance(error, NO_WAY):  # told at once
                        raise Unreachable(f"no connection to {self.address} ({why})") from None
                    tries = 0 if self.here() > before else tries + 1
                    if tries == TRIES:
                        raise ConnectionError(
                            f"{self.address}: {why}, {TRIES} times in a row; what came is kept, try"
                            " again later"
                        ) from None
                    self.pause(min(2.0**tries, LONGEST_PAUSE))
                except httpx.TooManyRedirects as error:
                    raise Gone(f"{self.address}: {error}") from None
                resumed = True

    def here(self) -> int:
        """How many bytes there are."""
        return self.part.stat().st_size if self.part.is_file() else 0

    def forget(self) -> None:
        """Begin from nothing the next time."""
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def ask(self, client: httpx.Client) -> bool:
        """One request, to the file's end; whether it went on from bytes that were here."""
        noted, here = _read_note(self.note), self.here()
        if noted.get("address") != self.address or not isinstance(noted.get("version"), str):
            here = 0  # nothing says which file these bytes are of
        elif here and here == noted.get("bytes"):  # the process ended before it could say so
            return True
        headers = {"Range": f"bytes={here}-", "If-Range": noted["version"]} if here else {}
        with client.stream("GET", self.address, headers=headers) as answer:
            self.answered = True
            self.check(answer, here, noted.get("version"))
            goes_on = answer.status_code == 206
            if not goes_on:
                here = 0
                self.forget()
                self.part.touch()
                length = answer.headers.get("Content-Length", "")
                noted = {
                    "address": self.address,
                    "version": _version(answer),
                    "bytes": int(length) if length.isdigit() else None,
                }
                write_text(self.note, json.dumps(noted) + "\n")
            total = noted.get("bytes")
            # unbuffered: what came is in the file, whatever happens to this process
            with self.part.open("ab", buffering=0) as handle:
                for chunk in answer.iter_raw():
                    handle.write(chunk)
                    here += len(chunk)
                    self.progress(here, total)
        if total is not None and here != total:
            if here > total:
                self.forget()
            raise _Again(f"the server sent {here:,} of {total:,} bytes")
        return goes_on

    def check(self, answer: httpx.Response, here: int, version: str | None) -> None:
        """Whether the answer holds bytes of the file.

        A part of it (206) must begin where ours ends, and be of the same version: not every server
        heeds If-Range. Raises `Gone` if not, `_Again` if the next answer may.
        """
        status = answer.status_code
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {here}-")
        goes_on = here > 0 and begins and _version(answer) in (None, version)
        if status == 416 or (status == 206 and not goes_on):
            self.forget()
            raise _Again("the server's file is another one than before")
        if status == 429 or status >= 500:
            raise _Again(f"the server says {status} {answer.reason_phrase}")
        if status not in (200, 206):
            raise Gone(f"{self.address}: the server says {status} {answer.reason_phrase}")
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            raise Gone(f"{self.address}: the server sends a web page, not the file")


def _version(answer: httpx.Response) -> str | None:
    """What tells this version of the file from others: its strong ETag, else its date; None if the
    server says neither.
    """
    etag = answer.headers.get("ETag", "")
    return etag if etag.startswith('"') else answer.headers.get("Last-Modified")


def recorded(store: AnyPath) -> dict[str, str]:
    """The SHA-256 by address; empty if the store has none yet.

    Raises `WrongInput` if the file is damaged.
    """
    root = store_path(store)
    if not check_store(root):
        return {}
    known = _read_checksums(root / CHECKSUMS)
    return {address: noted["sha256"] for address, noted in known.items()}


def record(store: AnyPath, address: str, sha256: str, n_bytes: int) -> None:
    """Record what `address` gave, and when, unless it is there already."""
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
