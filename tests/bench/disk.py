"""What prepared datasets take on disk, beside their text and its .xz."""

import lzma
import os
import tempfile
from pathlib import Path

from click.testing import CliRunner

from flows.cli import koco
from koco_stream.streams.manifest import dataset_path, load_manifest
from tests.bench.measure import show
from tests.helpers.real_files import FILES


def disk() -> dict[str, float] | None:
    """Prepare every real file without a scale, print the sizes, and return Parquet over .xz by
    file; None without the files.
    """
    folder = Path(os.environ.get("KOCO_DATA", ""))
    if not os.environ.get("KOCO_DATA") or not folder.is_dir():
        print("\ndisk: skipped, KOCO_DATA is not set")
        return None
    ratios: dict[str, float] = {}
    lines: list[list[object]] = []
    with tempfile.TemporaryDirectory(prefix="koco-bench-") as store:
        for file, options, n, d in FILES:
            if file.endswith(".tar.xz"):
                continue  # documents: its counts are another of the files
            words = ["prepare", "x", "--from", str(folder / file), "--store", store, *options]
            CliRunner().invoke(koco, words, catch_exceptions=False)
            manifest = load_manifest(store, "x")
            parquet = sum(
                (Path(str(dataset_path(store, "x"))) / shard.path).stat().st_size
                for shard in manifest.shards
            )
            with lzma.open(folder / file) as handle:
                text = sum(
                    len(block) for block in iter(lambda handle=handle: handle.read(1 << 20), b"")
                )
            packed = (folder / file).stat().st_size
            ratios[file] = parquet / packed
            lines.append(
                [
                    file.removesuffix(".xz"),
                    n,
                    d,
                    text / 1000,
                    packed / 1000,
                    parquet / 1000,
                    parquet / packed,
                    parquet / text,
                ]
            )
    show(
        "Disk: prepared without a scale",
        [
            "file",
            "rows",
            "features",
            "text, kB",
            ".xz, kB",
            "Parquet, kB",
            "Parquet / .xz",
            "Parquet / text",
        ],
        lines,
    )
    return ratios
