"""Legal files with a few bytes changed at random: they are read as Python itself reads the numbers,
or refused with file and line.
"""

import csv
import random
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from koco_stream import WrongInput
from storage.sources.problems import Malformed
from storage.sources.reading import TEXTS, source_of
from storage.sources.source import Reading
from tests.helpers.malformed import PACKED, put
from tests.helpers.tables import listed

TEXT = {
    "libsvm": (
        b"+1 1:0.5 3:-2e-3 12:1e5\n-1 2:1 7:.25\n1\n# note\n2.5 1:1 10:3.\n-1 7:0 8:1.75 # why\n1"
        b" 1:-0.1 2:22 3:333 4:4e44\n"
    ),
    "vw": b"1 |f 0:0.5 2:2 30:1e-7\n-1 |f 3 1:2 1:1\n1 |f\n1 'tag |f 4:1 5:.5\n-2.5 |f 1:1 2:2\n",
    "csv": b'1,2,3.5\n4, "5",-6\n\n7,8e-1,"-9"\n0,+.5,1.\n1,22,333\n1e5,2,4\n',
    "space": b"-1 5\t 6\n 1  7 8.5 \n\n1 0 -0\n+2 .5 1e5\n10 200 3000\n",
}
SPECIAL = [
    b"\n",
    b" ",
    b":",
    b",",
    b'"',
    b"#",
    b"|",
    b"\r",
    b"\0",
    b"-",
    b"+",
    b"e",
    b"_",
    b"x",
    b"\t",
    b"\xef\xbb\xbf",
    b"\xff",
    b"nan",
    b"9" * 20,
]


def mutated(text, draw):
    """The text after one or two changes: bytes replaced, inserted or left out, slices copied
    elsewhere.
    """
    for _ in range(draw.randint(1, 2)):
        at, to = sorted(draw.randint(0, len(text)) for _ in range(2))
        digit, byte = b"%d" % draw.randrange(10), bytes([draw.randrange(256)])
        piece = draw.choice(
            [digit, digit, byte, draw.choice(SPECIAL), text[at : at + draw.randint(0, 9)]]
        )
        text = draw.choice(
            [
                text[:at] + piece + text[at + len(piece) :],
                text[:at] + piece + text[at:],
                text[:at] + text[at + draw.randint(1, 9) :],
                text[:at] + text[at:to] + text[at:],
            ]
        )
    return text


def as_python_reads(text, source):
    """[(label, {feature number: value})] by the plainest means; zeros left out of sparse rows."""
    lines = [
        line.removesuffix("\r")
        for line in text.decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n")
    ]
    if source.format in ("csv", "space"):
        head = sum(file.line - 1 for file in source.files)
        rows = (
            [line.split() for line in lines[head:]]
            if source.format == "space"
            else csv.reader(lines[head:], skipinitialspace=True)
        )
        stripped = [[text.strip() for text in row] for row in rows]
        return [
            (float(row[-1]), dict(enumerate(map(float, row[:-1]))))
            for row in stripped
            if row and row != [""]
        ]
    found = []
    for line in lines:
        if source.format == "libsvm":
            line = line.split("#")[0]
            head, *features = line.split() or [""]
        else:
            head, _, body = line.partition("|")
            features = body.split() if body[:1].isspace() else body.split()[1:]
        if head.strip():
            row = {}
            for feature in features:
                number, _, value = feature.partition(":")
                row[int(number) - source.first] = row.get(int(number) - source.first, 0.0) + float(
                    value or 1
                )
            found.append((float(head.split()[0]), {k: v for k, v in row.items() if v}))
    return found


def rows_or_none(path, block_bytes, **reading):
    """The source and its rows as we read them, which leaves nothing behind; None for `WrongInput`,
    which names file and line. Nothing else may be raised.
    """
    scratch = Path(tempfile.mkdtemp(dir=path.parent))
    try:
        source = source_of([path], Reading(**reading), block_bytes).surveyed(map, scratch)
        rows = listed(source, scratch)
        assert list(scratch.iterdir()) == []
        return source, rows
    except Malformed as error:
        messages = [problem.message for problem in error.problems]
    except WrongInput as error:
        messages = [str(error)]
    assert all(message.startswith(str(path)) for message in messages), path.read_bytes()
    # the line, unless the file as a whole is wrong
    line = r"line \d+|holds no rows|two columns are called"
    assert any(re.search(line, message) for message in messages), (path.read_bytes(), messages)
    return None


@pytest.mark.parametrize("form", TEXTS)
def test_changed_text__is_read_as_python_reads_it_or_refused_with_its_place(form, tmp_path):
    draw = random.Random(form)
    refused = 0
    for _ in range(700):
        text = mutated(TEXT[form], draw)
        suffix = draw.choice(["", "", "", *PACKED])
        path = put(tmp_path / f"a{suffix}", PACKED[suffix](text))
        told = draw.choice([None, form, form, form])
        read = rows_or_none(path, draw.choice([1 << 20, 64, 7, 1]), format=told)
        if read is None:
            refused += 1
        else:
            source, found = read
            assert found == as_python_reads(text, source), text
            assert all(np.isfinite([label, *row.values()]).all() for label, row in found), text
    assert 90 < refused < 630
