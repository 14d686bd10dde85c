"""Messages between a foreign learner's process and the one that started it."""

import json
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from koco_stream.io.files import canonical_json
from koco_stream.types import Array

Message = tuple[dict[str, Any], list[Array]]


def send(connection: Connection, header: dict[str, Any], arrays: list[Array]) -> None:
    """Send a message, with contiguous arrays uncopied."""
    described = {**header, "arrays": [array.dtype.str for array in arrays]}
    connection.send_bytes(canonical_json(described).encode())
    for array in arrays:
        connection.send_bytes(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def receive(connection: Connection) -> Message:
    """The next message, with writable arrays; `EOFError` at the end."""
    header = json.loads(connection.recv_bytes())
    contents = [bytearray(connection.recv_bytes()) for _ in header["arrays"]]
    kinds = zip(contents, header["arrays"], strict=True)
    return header, [np.frombuffer(content, kind) for content, kind in kinds]
