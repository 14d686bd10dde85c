"""Files and folders in a store: on this machine, or in an object store."""

import errno
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, LocalFileSystem

from koco_stream.errors import StoreUnavailable, WrongInput
from koco_stream.io.cache import private_folder
from koco_stream.io.files import file_hash, locked, written_atomically
from koco_stream.io.object_store import connected, meaning_of

READINGS = 20
READ_BYTES = 16 << 20  # the most that one request fetches of an object that is read from end to end
T = TypeVar("T")


@dataclass(frozen=True)
class StorePath:
    """A file or folder in a store, which need not exist; this class writes local ones."""

    address: str
    filesystem: FileSystem = field(default_factory=LocalFileSystem, repr=False, compare=False)
    is_local: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Self:
        return replace(self, address=f"{self.address.rstrip('/')}/{name}")

    @property
    def key(self) -> str:
        """The path, or bucket and key, for pyarrow."""
        return self.address.rpartition("://")[2]

    @property
    def path(self) -> Path:
        """The path on this machine."""
        return Path(self.address)

    @property
    def name(self) -> str:
        """The last component."""
        return self.address.rpartition("/")[2]

    def is_file(self) -> bool:
        """Whether the file exists."""
        try:
            with self.explained():
                return bool(self.filesystem.get_file_info(self.key).is_file)
        except (OSError, ValueError) as error:
            # no file can have such a name
            if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
                return False
            raise

    def names(self) -> list[str]:
        """The sorted names of this folder's entries, if it exists."""
        with self.explained(), suppress(FileNotFoundError):
            found = self.filesystem.get_file_info(FileSelector(self.key))
            return sorted({info.base_name for info in found})
        return []

    def files(self, ending: str) -> list[Self]:
        """This folder's files whose names end with `ending`, sorted."""
        return [self / name for name in self.names() if name.endswith(ending)]

    def sizes(self) -> list[int]:
        """Bytes of each file below this folder, or of this file."""
        below = FileSelector(self.key, allow_not_found=True, recursive=True)
        with self.explained():
            this = self.filesystem.get_file_info(self.key)
            found = [this] if this.is_file else self.filesystem.get_file_info(below)
        return [info.size for info in found if info.is_file]

    def reading(self, read: Callable[[pa.NativeFile], T]) -> T:
        """The result of `read` on the opened file."""
        with self.filesystem.open_input_file(self.key) as handle:
            return read(handle)

    def read_bytes(self) -> bytes:
        """The file's bytes."""
        return self.reading(lambda handle: handle.read())

    def read_text(self) -> str:
        """The file's text in UTF-8."""
        return self.read_bytes().decode("utf-8")

    def read_table(self) -> pa.Table:
        """Read a Parquet file that is no table file, and verify its page checksums."""
        return self.reading(partial(pq.read_table, page_checksum_verification=True))

    def sha256(self) -> str:
        """The file's SHA-256 in hexadecimal."""
        with self.local() as path:
            return file_hash(path)

    def local(self) -> AbstractContextManager[Path]:
        """Give a local path, perhaps a temporary copy."""
        return nullcontext(self.path)

    def written(self) -> AbstractContextManager[Path]:
        """Give a temporary path, which becomes this file on success."""
        return written_atomically(self.path)

    def write_bytes(self, content: bytes) -> None:
        """Write bytes to the file."""
        with self.written() as temporary:
            temporary.write_bytes(content)

    def write_text(self, text: str) -> None:
        """Write text to the file in UTF-8."""
        self.write_bytes(text.encode("utf-8"))

    def put(self, path: Path) -> None:
        """Copy a local file to this path."""
        with self.written() as temporary:
            shutil.copyfile(path, temporary)

    def remove(self) -> None:
        """Remove the file if it exists; no listing here shows the object that pyarrow leaves."""
        with self.explained(), suppress(FileNotFoundError):
            self.filesystem.delete_file(self.key)

    def remove_tree(self) -> None:
        """Remove all that is below this folder."""
        with self.explained(), suppress(FileNotFoundError):
            self.filesystem.delete_dir(self.key)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock file at this path; an object store has no locks."""
        return locked(self.path) if self.is_local else nullcontext()

    def explained(self) -> AbstractContextManager[None]:
        """Context in which the file system's errors say what to do."""
        return nullcontext()


@dataclass(frozen=True)
class ObjectPath(StorePath):
    """A file or folder in an object store, such as `s3://bucket/prefix`.

    An object is replaced atomically, so no rename is needed. A read takes several requests, so it
    counts only if the object is still the same afterwards.
    """

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
                f"{self}: {meaning_of(self.address.partition(':')[0], said)}"
            ) from error


AnyPath = str | Path | StorePath


def store_path(where: AnyPath) -> StorePath:
    """Parse a store's address: a folder, `s3://bucket/prefix` or `gs://bucket/prefix`."""
    if isinstance(where, StorePath):
        return where
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", where) if isinstance(where, str) else None
    if scheme is None:
        return StorePath(str(Path(where).expanduser().absolute()))
    if scheme[1] not in ("s3", "gs"):
        raise WrongInput(
            "a store is a folder, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX, not an address of"
            f" {scheme[1]}://"
        )
    return ObjectPath(str(where).rstrip("/"), connected(str(where)))


@contextmanager
def _temporary(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=private_folder("transfers")) as folder:
        yield Path(folder) / name
