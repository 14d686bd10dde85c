"""Object stores (S3, compatible servers, Google Cloud Storage): connections and their errors."""

import os
import re
from datetime import timedelta
from functools import cache

import pyarrow.fs

from koco_stream.errors import StoreUnavailable, refuse_first

SILENT_SECONDS = 20.0  # without a byte, after which the server counts as unreachable
ATTEMPTS = 3
KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE,",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
}

# Parts of the libraries' error texts, by meaning.
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


def connected(address: str) -> pyarrow.fs.FileSystem:
    """The file system of `s3://bucket/prefix` or `gs://bucket/prefix`."""
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
    if scheme == "s3":
        return _s3(names[0])
    return pyarrow.fs.GcsFileSystem(retry_time_limit=timedelta(seconds=SILENT_SECONDS))


def _s3(bucket: str) -> pyarrow.fs.FileSystem:
    """pyarrow's S3 filesystem, uncached: one alive at the program's end may hang it."""
    endpoint = _endpoint()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return pyarrow.fs.S3FileSystem(
        endpoint_override=endpoint,
        region=region or (None if endpoint else _region(bucket)),
        connect_timeout=5.0,
        request_timeout=SILENT_SECONDS,
        retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        allow_delayed_open=True,  # a small file then takes a single request
    )


@cache
def _region(bucket: str) -> str:
    try:
        return str(pyarrow.fs.resolve_s3_region(bucket))
    except OSError as error:
        raise StoreUnavailable(f"s3://{bucket}: {meaning_of('s3', str(error))}") from error


def _endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def meaning_of(scheme: str, said: str) -> str:
    """What an error of pyarrow's means, and the remedy."""
    where = (_endpoint() if scheme == "s3" else None) or "the object store"
    settings = ", AWS_ENDPOINT_URL (http://HOST:PORT) and AWS_REGION" if scheme == "s3" else ""
    known = {
        ("NO_SUCH_BUCKET", "not find region", "bucket does not exist"): (
            "there is no such bucket; create it, or choose another --store"
        ),
        REFUSED: (
            f"access is refused; set {KEYS[scheme]} to credentials that may list, read and write"
            " there"
        ),
        ("NETWORK_CONNECTION", "CURL error", "UNAVAILABLE"): (
            f"no answer from {where}; check the network{settings}"
        ),
    }
    found = [told for words, told in known.items() if any(word in said for word in words)]
    return found[0] if found else " ".join(said.split())
