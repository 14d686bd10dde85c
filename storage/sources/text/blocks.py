"""Text files cut into blocks of whole lines: by byte ranges if plain; unpacked into small files if
compressed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from storage.sources.compressed import DAMAGE, OPENERS, opened
from storage.sources.text.lines import BYTE_ORDER_MARK, refuse_damage

# read at once from an archive: how much text may be lost sight of when the rest is damaged
STEP = 1 << 16


@dataclass(frozen=True)
class TextFile:
    """A source file. Its rows begin after `begin` bytes of text, in line `line`; it has `n_bytes`
    bytes as it is stored.
    """

    path: Path
    begin: int
    line: int
    n_bytes: int


@dataclass(frozen=True)
class Block:
    """The lines that begin in bytes start to stop of the file `place`, which holds text of the
    source file `path`.

    line: the number of the first one, or None if it would have to be counted. n_bytes: what the
    block counts for in the progress.
    """

    path: Path
    place: Path
    start: int
    stop: int
    line: int | None
    n_bytes: int


def blocks_of(file: TextFile, scratch: Path, number: int, block_bytes: int) -> Iterator[Block]:
    """The blocks of a file, in order; those of an archive as files in `scratch`, whose names begin
    with `number`.
    """
    if file.path.suffix in OPENERS:
        yield from _unpacked(file, scratch, number, block_bytes)
        return
    for start in range(file.begin, file.n_bytes, block_bytes):
        stop = min(start + block_bytes, file.n_bytes)
        first = start == file.begin
        yield Block(
            file.path,
            file.path,
            start,
            stop,
            file.line if first else None,
            stop if first else stop - start,
        )


def _unpacked(file: TextFile, scratch: Path, number: int, block_bytes: int) -> Iterator[Block]:
    with opened(file.path) as (raw, text):
        text.read(file.begin)
        line, told = file.line, 0
        parts: list[bytes] = []
        more = True
        while more:
            try:
                step = text.read(min(STEP, block_bytes))
            except DAMAGE as error:
                refuse_damage(file.path, line - 1 + sum(part.count(b"\n") for part in parts), error)
            more = bool(step)
            parts.append(step)
            if more and (b"\n" not in step or sum(map(len, parts)) < block_bytes):
                continue
            whole = b"".join(parts)
            end = whole.rfind(b"\n") + 1 if more else len(whole)
            parts = [whole[end:]]
            if end:
                place = scratch / f"{number:04d}-{line:015d}.txt"
                place.write_bytes(whole[:end])
                now = raw.tell() if more else file.n_bytes
                yield Block(file.path, place, 0, end, line, now - told)
                line, told = line + whole.count(b"\n", 0, end), now


def text_of(block: Block) -> bytes:
    """The block's lines, each with a line end; without the mark that some editors write at a file's
    beginning.
    """
    with block.place.open("rb") as handle:
        start = _line_start(handle, block.start)
        stop = _line_start(handle, block.stop)
        handle.seek(start)
        text = handle.read(stop - start)
    if start == 0 and block.line == 1:
        text = text.removeprefix(BYTE_ORDER_MARK)
    return text + b"\n" if text and not text.endswith(b"\n") else text


def first_line(block: Block) -> int:
    """The number of the block's first line, counted if need be."""
    if block.line is not None:
        return block.line
    line = 1
    with block.place.open("rb") as handle:
        left = _line_start(handle, block.start)
        handle.seek(0)
        while left > 0 and (step := handle.read(min(left, STEP))):
            left -= len(step)
            line += step.count(b"\n")
    return line


def remove(block: Block) -> None:
    """Remove the file that was made for the block, if one was."""
    if block.place != block.path:
        block.place.unlink(missing_ok=True)


def _line_start(handle: BinaryIO, position: int) -> int:
    """The first beginning of a line at or after `position`, or the file's end."""
    if position == 0:
        return 0
    handle.seek(position - 1)
    handle.readline()
    return handle.tell()
