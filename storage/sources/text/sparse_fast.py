"""LIBSVM and VW text by pyarrow's CSV reader: many lines at once, if every one of them is as plain
as can be.

A line `L i:v i:v` is read as three of a CSV file with the delimiter ':', namely `:L`, `i:v` and
`i:v`: the rows without a first field are the labels. What the reader forgives and `sparse_lines`
does not is looked for here; so is what it gives wrong.
"""

import re

import numpy as np
import pyarrow as pa
from pyarrow import csv

from koco_stream.types import Array
from storage.sources.numbers import LabelRule
from storage.sources.source import Piece
from storage.sources.text.sparse_lines import LARGEST_INDEX

CACHED = 1 << 20  # the reader's block: larger ones are slower, not being in the processor's cache
TO_LINES = bytes.maketrans(b" \t|", b"\n\n\n")
VW_HEAD = re.compile(rb"[^\s|]+( \|[A-Za-z]* )")


def sparse_fast(
    text: bytes, form: str, rule: LabelRule, first: int, n_features: int | None
) -> Piece | None:
    """The rows of lines of LIBSVM or VW text, or None if `sparse_lines` has to look at them."""
    lines = text.count(b"\n")
    returns = text.count(b"\r")
    if returns and returns != text.count(b"\r\n"):
        return None
    if returns:
        text = text.translate(None, b"\r")
    if form == "vw":
        headed = with_bars(text, lines)
        if headed is None:
            return None
        text = headed
    elif b"|" in text:
        return None
    text = b":" + text[:-1].replace(b"\n", b"\n:").translate(TO_LINES)
    read = _read(text)
    if read is None:
        return None
    features, values = read
    starts = np.flatnonzero(features < 0)
    ascending = (features[1:] > features[:-1]) | (features[1:] < 0)
    bound = LARGEST_INDEX + 1 if n_features is None else n_features
    if (
        starts.size != lines
        or not ascending.all()
        or not np.isfinite(values).all()
        or int(features.max()) - first >= bound
    ):
        return None
    labels = labels_by(rule, values[starts])
    if labels is None:
        return None
    if (features == 0).any() and (first == 1 or b"\n-" in text):  # -0 would be taken for 0
        return None
    kept = (features >= 0) & (values != 0.0)
    indices = features[kept] - np.int32(first)
    indptr = np.append(np.cumsum(kept)[starts], indices.size)
    return Piece(labels, indptr, indices, values[kept])


def with_bars(text: bytes, lines: int) -> bytes | None:
    """VW lines with '|' alone for what is between the label and the features, if that is the same
    in all `lines` of them.
    """
    text = text.replace(b"\t", b" ")
    match = VW_HEAD.match(text)
    if match is None:
        return None
    head, empty = match[1], match[1].rstrip() + b"\n"  # of rows, and of rows without features
    heads = text.count(head)
    if heads + (text.count(empty) if heads < lines else 0) != lines:
        return None
    text = text.replace(head, b"|")
    if heads < lines:
        text = text.replace(empty, b"|\n")
    codes = np.frombuffer(text, np.uint8)
    breaks = codes[(codes == 0x0A) | (codes == 0x20) | (codes == 0x7C)]
    after_label = breaks == 0x7C
    if not after_label[0] or (breaks[:-1][after_label[1:]] != 0x0A).any():
        return None
    return text


def labels_by(rule: LabelRule, labels: Array) -> Array | None:
    """The labels by the rule, if it is one for numbers that has them all."""
    if rule.text is None:
        return labels
    if not rule.one_text_a_number:
        return None
    distinct, place = np.unique(labels, return_inverse=True)
    ruled = [rule.numbers.get(label) for label in distinct.tolist()]
    return None if None in ruled else np.array(ruled, dtype=np.float64)[place]


def _read(text: bytes) -> tuple[Array, Array] | None:
    """Numbers before the ':' of each line, -1 if there is none, and after it, NaN if there is none;
    None if a line is something else.
    """
    if b"x" in text or b"X" in text:  # the reader takes hexadecimal numbers
        return None
    try:
        table = csv.read_csv(
            pa.py_buffer(text),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=CACHED, column_names=["feature", "value"]
            ),
            parse_options=csv.ParseOptions(delimiter=":", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types={"feature": pa.int32(), "value": pa.float64()},
                null_values=[""],
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    features, values = table.columns
    return features.fill_null(-1).to_numpy(), values.to_numpy()
