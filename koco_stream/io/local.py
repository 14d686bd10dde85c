"""Paths in a store: the abstract interface, and its implementation for local files."""

import shutil
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.io.files import file_hash, locked, written_atomically


class StorePath(ABC):
    """A file or folder in a store, local or in an object store; it need not exist.

    `str` of a path is the address as a user writes it, and `store_path` parses it back. Files are
    written atomically and replace existing ones. Folders exist as soon as they contain a file. A
    missing file raises `FileNotFoundError`; other failures of the disk or object store raise an
    `OSError`.
    """

    @abstractmethod
    def __truediv__(self, part: str) -> "StorePath":
        """The path `part` (names joined by /) below this one."""

    @property
    def name(self) -> str:
        """The last component of the path."""
        return str(self).rpartition("/")[2]

    @abstractmethod
    def is_file(self) -> bool:
        """Whether this path is an existing file."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the entries of this folder, sorted; empty if it does not exist.

        Raises `NotADirectoryError` for a local file.
        """

    def files(self, ending: str) -> "list[StorePath]":
        """The files directly in this folder whose names end with `ending`, sorted by name."""
        return [self / name for name in self.names() if name.endswith(ending)]

    def read_bytes(self) -> bytes:
        """The file's content as bytes."""
        with self.local() as path:
            return path.read_bytes()

    def read_text(self) -> str:
        """The file's content as UTF-8 text."""
        return self.read_bytes().decode("utf-8")

    @abstractmethod
    def read_table(
        self, columns: list[str] | None = None, only: pc.Expression | None = None
    ) -> pa.Table:
        """Read the Parquet file: the given columns (default all), and the rows that `only` selects.

        Raises `OSError` if a page checksum does not match.
        """

    def sha256(self) -> str:
        """The SHA-256 of the file's content, in hexadecimal."""
        with self.local() as path:
            return file_hash(path)

    @abstractmethod
    def local(self) -> AbstractContextManager[Path]:
        """Context manager that gives a local path to read from, perhaps a temporary copy."""

    @abstractmethod
    def written(self) -> AbstractContextManager[Path]:
        """Context manager that gives a temporary local path.

        On success its content becomes this file; on an exception this file is unchanged.
        """

    def write_bytes(self, content: bytes) -> None:
        """Write bytes to the file atomically."""
        with self.written() as temporary:
            temporary.write_bytes(content)

    def write_text(self, text: str) -> None:
        """Write UTF-8 text to the file atomically."""
        self.write_bytes(text.encode("utf-8"))

    def put(self, path: Path) -> None:
        """Copy the local file `path` to this path, atomically."""
        with self.written() as temporary:
            shutil.copyfile(path, temporary)

    @abstractmethod
    def remove(self) -> None:
        """Remove the file if it exists."""

    @abstractmethod
    def remove_tree(self) -> None:
        """Remove the folder and its content if it exists.

        Files are removed one by one, so a concurrent reader may still see some.
        """

    @abstractmethod
    def locked(self) -> AbstractContextManager[None]:
        """Context manager that holds the lock file at this path, waiting for another holder.

        Object stores have no locks: there nothing is held, and the work inside must be safe if
        several processes do it at once.
        """


@dataclass(frozen=True)
class LocalPath(StorePath):
    """A file or folder of a store on this machine's file system."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __truediv__(self, part: str) -> "LocalPath":
        return LocalPath(self.path / part)

    def is_file(self) -> bool:
        """Whether this path is an existing file."""
        return self.path.is_file()

    def names(self) -> list[str]:
        """The names of the entries of this folder, sorted; empty if it does not exist."""
        try:
            return sorted(inside.name for inside in self.path.iterdir())
        except FileNotFoundError:
            return []

    def read_table(
        self, columns: list[str] | None = None, only: pc.Expression | None = None
    ) -> pa.Table:
        """Read the Parquet file, or only some columns and rows of it.

        No partition columns are inferred from folder names.
        """
        if only is not None:
            return pq.read_table(
                self.path,
                columns=columns,
                filters=only,
                partitioning=None,
                page_checksum_verification=True,
            )
        # pq.read_table would import pandas, which takes a third of a second.
        with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
            missing = [name for name in columns or () if name not in file.schema_arrow.names]
            if missing:
                raise pa.ArrowInvalid(f"{self.path} has no column {missing[0]!r}")
            table = file.read(columns)
        return table if columns is None else table.select(columns)

    def local(self) -> AbstractContextManager[Path]:
        """Context manager that gives the path of the file itself, for reading."""
        return nullcontext(self.path)

    def written(self) -> AbstractContextManager[Path]:
        """Context manager that gives a temporary path beside this one.

        On success the file is synced and renamed.
        """
        return written_atomically(self.path)

    def remove(self) -> None:
        """Remove the file if it exists."""
        self.path.unlink(missing_ok=True)

    def remove_tree(self) -> None:
        """Remove the folder and its content if it exists."""
        if self.path.exists():
            shutil.rmtree(self.path)

    def locked(self) -> AbstractContextManager[None]:
        """Context manager that holds the lock file at this path.

        The lock is released when its holder dies.
        """
        return locked(self.path)
