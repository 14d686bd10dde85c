"""Paths in an object store (S3, compatible servers, Google Cloud Storage), through pyarrow.

An object is replaced atomically, so no rename is needed. A read takes several requests, so it
counts only if the object is still the same afterwards.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.fs

from koco_stream.errors import StoreUnavailable, refuse_first
from koco_stream.io.cache import private_folder
from koco_stream.io.paths import StorePath, T

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 20.0  # without a byte, after which the server counts as unreachable
ATTEMPTS = 3
READINGS = 20
READ_BYTES = 16 << 20  # the most that one request fetches of an object that is read from end to end
KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE,",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
}

# Parts of the libraries' error texts, by meaning.
NO_BUCKET = ("NO_SUCH_BUCKET", "not find region", "bucket does not exist")
REFUSED = (
    "ACCESS_DENIED",
    "SIGNATURE_DOES_NOT_MATCH",
    "INVALID_ACCESS_KEY_ID",
    "EXPIRED_TOKEN",
    "HTTP status 403",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "OAuth2 access token",
)
NO_ANSWER = ("NETWORK_CONNECTION", "CURL error", "UNAVAILABLE")


@dataclass(frozen=True)
class ObjectPath(StorePath):
    """A file or folder in an object store, such as `s3://bucket/prefix`."""

    is_local: ClassVar[bool] = False

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Give a temporary copy."""

        def copy(handle: pa.NativeFile) -> None:
            with path.open("wb") as out:
                shutil.copyfileobj(handle, out, READ_BYTES)

        with _temporary(self.name) as path:
            self.reading(copy)
            yield path

    @contextmanager
    def written(self) -> Iterator[Path]:
        """Give a temporary path, which is uploaded on success."""
        with _temporary(self.name) as path:
            yield path
            self.put(path)

    def put(self, path: Path) -> None:
        """Upload a local file, in a thread, which no exception interrupts.

        pyarrow completes an object even after an exception, and its `copy_files` does not report
        failures.
        """
        with self.explained(), ThreadPoolExecutor(1) as thread:
            thread.submit(self._upload, path).result()

    def _upload(self, path: Path) -> None:
        with path.open("rb") as source, self.filesystem.open_output_stream(self.key) as target:
            shutil.copyfileobj(source, target, READ_BYTES)

    def reading(self, read: Callable[[pa.NativeFile], T]) -> T:
        """The result of `read` on the opened object, repeated if that was replaced meanwhile."""
        for _ in range(READINGS):
            with self.explained():
                with self.filesystem.open_input_file(self.key) as handle:
                    version = handle.metadata()
                    try:
                        found, failure = read(handle), None
                    # The content may be mixed from two versions of the object.
                    except (OSError, pa.ArrowInvalid) as error:
                        failure = error
                with self.filesystem.open_input_file(self.key) as handle:
                    unchanged = handle.metadata() == version
                if unchanged and failure:
                    raise failure
            if unchanged:
                return found
        raise StoreUnavailable(
            f"{self}: it changed each of {READINGS} times that it was read; try again when it is"
            " written less often"
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Context in which pyarrow's errors say what to do."""
        try:
            yield
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno is not None:
                raise
            said = str(error)
            if "NO_SUCH_KEY" in said:  # removed while it was read
                raise FileNotFoundError(f"{self}: removed while it was read") from error
            raise StoreUnavailable(
                f"{self}: {_explained(self.address.partition(':')[0], said)}"
            ) from error


def object_path(address: str) -> ObjectPath:
    """Parse `s3://bucket/prefix` or `gs://bucket/prefix`."""
    scheme, _, key = address.partition("://")
    names = key.rstrip("/").split("/")
    refuse_first(
        [
            (
                "@" in names[0],  # not repeated in the message: it may be a secret
                f"{scheme}://: a store's address has no credentials in it; give them in the"
                " environment, see the README",
            ),
            (
                not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]+", names[0])
                or any(p in ("", ".", "..") or set(p) & set("?#\\") for p in names),
                f"{address!r} is not a store's address; write {scheme}://BUCKET/PREFIX, without ?,"
                " # and empty names",
            ),
        ]
    )
    filesystem = (
        _s3(names[0])
        if scheme == "s3"
        else pyarrow.fs.GcsFileSystem(retry_time_limit=timedelta(seconds=SILENT_SECONDS))
    )
    return ObjectPath(f"{scheme}://{'/'.join(names)}", filesystem)


def _s3(bucket: str) -> pyarrow.fs.FileSystem:
    """pyarrow's S3 filesystem, uncached: one alive at the program's end may hang it."""
    endpoint = _endpoint()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return pyarrow.fs.S3FileSystem(
        endpoint_override=endpoint,
        region=region or (None if endpoint else _region(bucket)),
        connect_timeout=CONNECT_SECONDS,
        request_timeout=SILENT_SECONDS,
        retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        allow_delayed_open=True,  # a small file then takes a single request
    )


@cache
def _region(bucket: str) -> str:
    try:
        return str(pyarrow.fs.resolve_s3_region(bucket))
    except OSError as error:
        raise StoreUnavailable(f"s3://{bucket}: {_explained('s3', str(error))}") from error


def _endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _explained(scheme: str, said: str) -> str:
    where = (_endpoint() if scheme == "s3" else None) or "the object store"
    settings = ", AWS_ENDPOINT_URL (http://HOST:PORT) and AWS_REGION" if scheme == "s3" else ""
    known = {
        NO_BUCKET: "there is no such bucket; create it, or choose another --store",
        REFUSED: (
            f"access is refused; set {KEYS[scheme]} to credentials that may list, read and write"
            " there"
        ),
        NO_ANSWER: f"no answer from {where}; check the network{settings}",
    }
    found = [told for words, told in known.items() if any(word in said for word in words)]
    return found[0] if found else " ".join(said.split())


@contextmanager
def _temporary(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=private_folder("transfers")) as folder:
        yield Path(folder) / name
