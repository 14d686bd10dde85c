"""LIBSVM text of any size, written fast: one block of rows is formatted once, and written again and
again with new labels and values.
"""

from pathlib import Path

import numpy as np

from storage.generated.generators import synthetic_source

ROWS = 4096  # of the block: about 5 MB of text
DIGITS = np.array([list(b"%04d" % k) for k in range(10_000)], np.uint8)


def write_libsvm(path: Path, n_bytes: int, seed: int) -> tuple[int, int]:
    """Write rows of 94 non-zeros on average of 101,631 features to `path`, as many as fit into
    `n_bytes` (one at least); returns how many rows, and how many values. Labels are +1 or -1,
    values 0.0001 to 0.9999; the rows' features come again every `ROWS` rows.
    """
    block = synthetic_source(
        "sparse-text", {"n_rows": ROWS, "data_seed": seed, "scale": "none"}
    ).read((0, ROWS))
    lines = []
    for a, b in zip(block.indptr[:-1], block.indptr[1:], strict=True):
        lines.append(
            b"+1 " + b" ".join(b"%d:0.0000" % (index + 1) for index in block.indices[a:b]) + b"\n"
        )
    text = np.frombuffer(b"".join(lines), np.uint8).copy()
    ends = np.flatnonzero(text == ord("\n")) + 1
    signs = np.concatenate([[0], ends[:-1]])
    points = np.flatnonzero(text == ord("."))
    columns = points[:, None] + np.arange(1, 5)
    draw = np.random.default_rng(seed)
    n_rows = n_values = written = 0
    with path.open("wb") as out:
        while True:
            text[signs] = np.frombuffer(b"+-", np.uint8)[draw.integers(0, 2, signs.size)]
            text[columns] = DIGITS[draw.integers(1, 10_000, points.size)]
            n = int(np.searchsorted(ends, n_bytes - written, side="right"))
            n = max(n, 1) if not n_rows else n
            size = int(ends[n - 1]) if n else 0
            out.write(text[:size])
            n_rows, n_values, written = (
                n_rows + n,
                n_values + int(np.searchsorted(points, size)),
                written + size,
            )
            if n < ROWS:
                return n_rows, n_values
