"""Opening of source files of any format: text (plain or compressed), Parquet, and documents."""

from collections.abc import Sequence
from pathlib import Path

from koco_stream.errors import WrongInput, refuse_first
from storage.sources.compressed import OPENERS
from storage.sources.documents import documents_source
from storage.sources.numbers import at, shown
from storage.sources.parquet.source import parquet_source
from storage.sources.source import MISSING_CHOICES, OF_COLUMNS, PIECE_BYTES, Reading, Source
from storage.sources.text.arff import arff_source
from storage.sources.text.columns import column_source
from storage.sources.text.source import format_of, top_of
from storage.sources.text.sparse import sparse_source

FORMATS = ("libsvm", "vw", "csv", "space", "arff", "parquet", "documents")
ARCHIVES = (".tar", *(f".tar{ending}" for ending in OPENERS))

AS_SEEN = Reading()
SPARSE = {"documents": ("strip",), "the columns of a CSV file": (*OF_COLUMNS, "header")}
DENSE = {"documents": ("strip",), "LIBSVM and VW files": ("n_features", "zero_based")}
# for each format, the fields of `Reading` that do not apply to it, grouped by what they apply to
REFUSED: dict[str, dict[str, tuple[str, ...]]] = {
    "libsvm": SPARSE,
    "vw": SPARSE,
    "csv": DENSE,
    "space": DENSE,
    "arff": {**DENSE, "text without names": ("header",)},
    "parquet": {"documents": ("strip",), "text": ("header", "zero_based")},
    "documents": {"files of rows": (*OF_COLUMNS, "header", "zero_based", "labels")},
}
# options that are not named like their field of `Reading`
FLAGS = {"header": "header or --no-header", "zero_based": "zero-based or --one-based"}


def source_of(
    paths: Sequence[Path], reading: Reading = AS_SEEN, block_bytes: int = PIECE_BYTES
) -> Source:
    """Open files of one format as one source, not surveyed yet; their rows follow in order."""
    paths = unfolded(paths, reading.format)
    refuse_first(
        problem
        for number, path in enumerate(paths)
        for problem in (
            (
                not (path.is_file() or (path.is_dir() and reading.format == "documents")),
                f"{path}: no such file, or a folder without Parquet files; give the source with"
                " --from FILE, and for a folder of documents add --format documents",
            ),
            (
                path in paths[:number],
                f"{path}: given twice, so its rows would count twice; give it once",
            ),
        )
    )
    forms = [reading.format or guess_format(path) for path in paths]
    form = forms[0]
    refuse_first(
        [
            *(
                (
                    other != form,
                    f"{path} is {other} and {paths[0]} is {form}; prepare them as two datasets,"
                    " or if both have one format, name it with --format",
                )
                for path, other in zip(paths, forms, strict=True)
            ),
            (form not in FORMATS, f"--format {form} is not one of {', '.join(FORMATS)}"),
            (
                reading.missing not in (None, *MISSING_CHOICES),
                f"--missing {reading.missing} is not one of {', '.join(MISSING_CHOICES)}",
            ),
            *(
                (
                    name in reading.given(),
                    f"{paths[0]}: --{FLAGS.get(name, name.replace('_', '-'))} is for {what_for},"
                    f" and this file is {form}; leave it out",
                )
                for what_for, names in REFUSED.get(form, {}).items()
                for name in names
            ),
            (
                form == "documents" and len(paths) > 1,
                f"{paths[-1]}: documents are one folder or one archive; give only that",
            ),
        ]
    )
    if form == "documents":
        return documents_source(paths[0], reading)
    if form == "parquet":
        return parquet_source(paths, reading)
    read = {"csv": column_source, "space": column_source, "arff": arff_source}
    return read.get(form, sparse_source)(paths, form, reading, block_bytes)


def unfolded(paths: Sequence[Path], form: str | None) -> list[Path]:
    """Files, with the sorted Parquet files of a folder instead of the folder."""
    found = []
    for path in paths:
        is_folder = path.is_dir() and form in (None, "parquet")
        refuse_first(
            (
                True,
                f"{file}: a folder within {path} may hold a column in its name, which is not read;"
                " write whole rows to files of one folder",
            )
            for file in (path.glob("[!._]*/**/[!._]*.parquet") if is_folder else ())
        )
        found += sorted(path.glob("[!._]*.parquet") if is_folder else []) or [path]
    return found


def guess_format(path: Path) -> str:
    if path.is_dir() or path.name.lower().endswith(ARCHIVES):
        return "documents"
    with path.open("rb") as handle:
        # also by name, so that a damaged Parquet file is reported as damaged
        if handle.read(4) == b"PAR1" or path.suffix.lower() == ".parquet":
            return "parquet"
    _, number, line = top_of(path)
    form = format_of(path, line)
    if form is None:
        raise WrongInput(
            f"{at(path, number)}: neither LIBSVM, VW nor CSV: {shown(line)}; "
            + (
                "if blanks separate columns, name it with --format space"
                if b" " in line.strip()
                else "write a row a line, with commas between its columns"
            )
        )
    return form
