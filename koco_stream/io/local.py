"""Paths in a store: what one is, and those on this machine."""

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
    """A folder or file of a store; it need not exist. `str` of it is what a user would write, and
    `store_path` gives it back.

    Every file is written whole or not at all, and replaces what was there. A folder is there as
    soon as a file is in it. What is missing raises `FileNotFoundError`; another failure of the disk
    or of the object store an `OSError`.
    """

    @abstractmethod
    def __truediv__(self, part: str) -> "StorePath":
        """The path `part` (names joined by /) below this one."""

    @property
    def name(self) -> str:
        """The last part."""
        return str(self).rpartition("/")[2]

    @abstractmethod
    def is_file(self) -> bool:
        """Whether a file is here."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of what is directly inside, sorted; none if nothing is here. Raises
        `NotADirectoryError` on a local file.
        """

    def files(self, ending: str) -> "list[StorePath]":
        """The files directly inside whose names have this ending, by name."""
        return [self / name for name in self.names() if name.endswith(ending)]

    def read_bytes(self) -> bytes:
        """What the file holds."""
        with self.local() as path:
            return path.read_bytes()

    def read_text(self) -> str:
        """What the file holds, as UTF-8."""
        return self.read_bytes().decode("utf-8")

    @abstractmethod
    def read_table(
        self, columns: list[str] | None = None, only: pc.Expression | None = None
    ) -> pa.Table:
        """The Parquet file, or only these of its columns, and the rows that `only` keeps. Raises
        `OSError` if it has checksums and they are not its content's.
        """

    def sha256(self) -> str:
        """The SHA-256 of the file."""
        with self.local() as path:
            return file_hash(path)

    @abstractmethod
    def local(self) -> AbstractContextManager[Path]:
        """The file as one on this machine, to be read only: itself, or a copy that is removed at
        the end.
        """

    @abstractmethod
    def written(self) -> AbstractContextManager[Path]:
        """A temporary path on this machine: what it holds when the block ends well becomes this
        file. If the block fails nothing does.
        """

    def write_bytes(self, content: bytes) -> None:
        """Make this the file's content."""
        with self.written() as temporary:
            temporary.write_bytes(content)

    def write_text(self, text: str) -> None:
        """Make this, as UTF-8, the file's content."""
        self.write_bytes(text.encode("utf-8"))

    def put(self, path: Path) -> None:
        """Make the content of the local file `path` this file's."""
        with self.written() as temporary:
            shutil.copyfile(path, temporary)

    @abstractmethod
    def remove(self) -> None:
        """Remove the file, if it is there."""

    @abstractmethod
    def remove_tree(self) -> None:
        """Remove the folder and all that is in it, if it is there. Files go one by one: a reader
        may meet some of them.
        """

    @abstractmethod
    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock file that is here, waiting for whoever has it. An object store has no
        locks: there nothing is held, and what is done inside must be right when several do it at
        once.
        """


@dataclass(frozen=True)
class LocalPath(StorePath):
    """A path on this machine."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __truediv__(self, part: str) -> "LocalPath":
        return LocalPath(self.path / part)

    def is_file(self) -> bool:
        """Whether a file is here."""
        return self.path.is_file()

    def names(self) -> list[str]:
        """The names of what is directly inside, sorted."""
        try:
            return sorted(inside.name for inside in self.path.iterdir())
        except FileNotFoundError:
            return []

    def read_table(
        self, columns: list[str] | None = None, only: pc.Expression | None = None
    ) -> pa.Table:
        """The Parquet file; nothing is read into the names of its folders."""
        if only is not None:
            return pq.read_table(
                self.path,
                columns=columns,
                filters=only,
                partitioning=None,
                page_checksum_verification=True,
            )
        # pq.read_table would import pandas: a third of a second.
        with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
            missing = [name for name in columns or () if name not in file.schema_arrow.names]
            if missing:
                raise pa.ArrowInvalid(f"{self.path} has no column {missing[0]!r}")
            table = file.read(columns)
        return table if columns is None else table.select(columns)

    def local(self) -> AbstractContextManager[Path]:
        """The file itself."""
        return nullcontext(self.path)

    def written(self) -> AbstractContextManager[Path]:
        """A path beside this one; it is synced and renamed at the end."""
        return written_atomically(self.path)

    def remove(self) -> None:
        """Remove the file, if it is there."""
        self.path.unlink(missing_ok=True)

    def remove_tree(self) -> None:
        """Remove the folder and all that is in it, if it is there."""
        if self.path.exists():
            shutil.rmtree(self.path)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the lock file; it is free again when its holder dies."""
        return locked(self.path)
