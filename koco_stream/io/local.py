"""Files and folders in a store: those on this machine."""

import errno
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.io.files import file_hash, locked, written_atomically

T = TypeVar("T")


@dataclass(frozen=True)
class StorePath:
    """A file or folder in a store, which need not exist; this class reads and writes local ones."""

    address: str
    is_local: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Self:
        return replace(self, address=f"{self.address.rstrip('/')}/{name}")

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
            return self.path.is_file()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return False
            raise

    def names(self) -> list[str]:
        """The sorted names of this folder's entries, if it exists."""
        try:
            return sorted(inside.name for inside in self.path.iterdir())
        except FileNotFoundError:
            return []

    def files(self, ending: str) -> list[Self]:
        """This folder's files whose names end with `ending`, sorted."""
        return [self / name for name in self.names() if name.endswith(ending)]

    def read_bytes(self) -> bytes:
        """The file's bytes."""
        with self.local() as path:
            return path.read_bytes()

    def read_text(self) -> str:
        """The file's text in UTF-8."""
        return self.read_bytes().decode("utf-8")

    def read_table(self) -> pa.Table:
        """Read a Parquet file that is no table file, and verify its page checksums."""
        return self.reading(partial(pq.read_table, page_checksum_verification=True))

    def reading(self, read: Callable[[pa.NativeFile], T]) -> T:
        """The result of `read` on the opened file."""
        with pa.OSFile(self.address) as handle:
            return read(handle)

    def sizes(self) -> list[int]:
        """Bytes of each file below this folder, or of this file."""
        if self.path.is_file():
            return [self.path.stat().st_size]
        return [path.stat().st_size for path in sorted(self.path.rglob("*")) if path.is_file()]

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
        """Remove the file if it exists."""
        self.path.unlink(missing_ok=True)

    def remove_tree(self) -> None:
        """Remove the folder if it exists."""
        if self.path.exists():
            shutil.rmtree(self.path)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock file at this path."""
        return locked(self.path)
