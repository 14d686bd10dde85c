"""Reading .bz2 and .xz files of one or more members, one after the other.

Python's own openers take whatever does not begin as a member should for padding, and end there in
silence: of a file of many members (as the parallel compressors write them) one wrong byte would
lose all the rest.
"""

import io
from collections.abc import Callable
from typing import Any, BinaryIO

READ_BYTES = 1 << 16


class Members(io.RawIOBase):
    """The text of all members of `raw`; `new` makes a decompressor for each. Zeros between members
    are padding.

    Reading raises what the decompressor does for a member that is damaged, and `EOFError` for one
    that is cut short.
    """

    def __init__(self, raw: BinaryIO, new: Callable[[], Any]) -> None:
        self.raw, self.new = raw, new
        self.member = new()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read on; 0 at the end."""
        while True:
            data = b""
            if self.member.eof:
                data = self._next()
                if not data:
                    return 0
                self.member = self.new()
            elif self.member.needs_input:
                data = self.raw.read(READ_BYTES)
                if not data:
                    raise EOFError("it ends within its compressed text")
            text = self.member.decompress(data, len(buffer))
            if text:
                buffer[: len(text)] = text
                return len(text)

    def _next(self) -> bytes:
        """What comes after the present member, from where it is not padding; nothing at the file's
        end.
        """
        data: bytes = self.member.unused_data
        while not (data := data.lstrip(b"\0")):
            data = self.raw.read(READ_BYTES)
            if not data:
                break
        return data


def members(raw: BinaryIO, new: Callable[[], Any]) -> io.BufferedReader:
    """The text of a file as `Members` has it, buffered."""
    return io.BufferedReader(Members(raw, new))
