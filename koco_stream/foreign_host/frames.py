"""Frames: how a foreign learner's process and the one that started it talk.

A frame is a line of JSON, the header, and then the bytes of its arrays. The header's `arrays` are
their types and sizes.
"""

import json
from typing import Any, BinaryIO

import numpy as np

from koco_stream.io.files import canonical_json
from koco_stream.types import Array


def frame(header: dict[str, Any], *arrays: Array) -> list[memoryview]:
    """A frame's bytes, in pieces. Arrays are not copied if they are contiguous."""
    described = [[array.dtype.str, array.size] for array in arrays]
    line = canonical_json({**header, "arrays": described}).encode() + b"\n"
    content = [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays]
    return [memoryview(line), *content]


def content_bytes(header: dict[str, Any]) -> int:
    """The bytes that follow a header."""
    return sum(np.dtype(kind).itemsize * size for kind, size in header["arrays"])


def arrays_of(header: dict[str, Any], content: Any) -> list[Array]:
    """The arrays of a frame, as views of its bytes."""
    arrays, at = [], 0
    for kind, size in header["arrays"]:
        arrays.append(np.frombuffer(content, kind, size, at))
        at += arrays[-1].nbytes
    return arrays


def next_frame(stream: BinaryIO) -> tuple[dict[str, Any], list[Array]] | None:
    """The next frame of a stream, with arrays that may be written to; None at its end."""
    line = stream.readline()
    if not line:
        return None
    header = json.loads(line)
    content = np.empty(content_bytes(header), np.uint8)
    if stream.readinto(content.data) < content.size:  # type: ignore[attr-defined]
        return None
    return header, arrays_of(header, content)


def answer_in(received: bytearray) -> tuple[dict[str, Any], list[Array]] | None:
    """The frame that was received, if it is whole."""
    line, newline, content = bytes(received).partition(b"\n")
    if not newline:
        return None
    header = json.loads(line)
    return (header, arrays_of(header, content)) if len(content) >= content_bytes(header) else None
