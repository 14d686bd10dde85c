"""Files that are wrong in one way each: name -> (file, its bytes, options of reading, what the
message must match).

The message names the file, the line and the column where it can, what is there, and what to do
about it.
"""

import bz2
import gzip
import io
import lzma
import random
import re
import tarfile

import pyarrow as pa


def zst(content):
    """Text as a .zst archive."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def put(path, content):
    """The path, where this is the content now."""
    path.write_bytes(content)
    return path


def tar_of(files, mode="w", kind=tarfile.REGTYPE):
    """A tar archive of files (name -> bytes), which say that they are of this kind."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = kind, len(content)
            entry.linkname = "" if kind == tarfile.REGTYPE else "/etc/passwd"
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zst}
ROWS = b"".join(
    b"1 %d:%d\n" % (1 + n % 97, random.Random(n).randrange(1, 1 << 62)) for n in range(9000)
)


def damaged(suffix):
    """An archive of `ROWS` with a few bytes in its middle inverted."""
    whole = bytearray(PACKED[suffix](ROWS))
    middle = len(whole) // 2
    whole[middle : middle + 64] = bytes(255 - byte for byte in whole[middle : middle + 64])
    return bytes(whole)


def two_streams(suffix):
    """`ROWS` as two archives one after the other, the second's first byte inverted."""
    first, second = PACKED[suffix](ROWS), PACKED[suffix](ROWS)
    return first + bytes([255 - second[0]]) + second[1:]


CUT = r"cut short or damaged after line \d+ \(.*; (fetch the file again|name it .* again)$"


def cases(file, table):
    """Cases of one file: name -> (its bytes, what the message must match after the file's name, and
    maybe the options of reading).
    """
    return {
        name: (
            file,
            content,
            options[0] if options else {},
            f"{re.escape(file)}, {message}" if message.startswith("line") else message,
        )
        for name, (content, message, *options) in table.items()
    }


SVM = {
    "bad value": (
        b"1 1:2\n-1 3:x\n",
        "line 2, column 6: the value of feature 3 is 'x'.*; correct it",
    ),
    "underscore": (
        b"1 1:1_000\n",
        "line 1, column 5: the value of feature 1 is '1_000'.*; write it with digits",
    ),
    "hexadecimal value": (
        b"1 1:1\n1 4:0x1f\n",
        "line 2, column 5: the value of feature 4 is '0x1f'.*; write it with digits",
    ),
    "hexadecimal index": (
        b"1 0x10:1\n",
        "line 1, column 3: '0x10:1' is not a feature; a feature is written index:value",
    ),
    "no value": (
        b"1 1:2\n-1 3: 4:1\n",
        "line 2, column 6: the value of feature 3 is ''.*fill the value in",
    ),
    "space before colon": (
        b"1 3 :2\n",
        "line 1, column 3: '3' is not a feature; a feature is written index:value",
    ),
    "space after colon": (
        b"1 3:1\n1 3:  2\n",
        "line 2, column 5: the value of feature 3 is ''.*fill the value in",
    ),
    "no index": (b"1 1:2\n1 :4\n", "line 2, column 3: ':4' is not a feature; a feature is written"),
    "two colons": (b"1 1:2:3\n", "line 1, column 5: the value of feature 1 is '2:3'.*; correct it"),
    "no colon": (
        b"1 1:2\n-1 3\n",
        "line 2, column 4: '3' is not a feature; a feature is written index:value",
    ),
    "two minuses": (
        b"1 1:--2\n",
        "line 1, column 5: the value of feature 1 is '--2'.*; correct it",
    ),
    "comma for a point": (
        b"1 1:2,5\n",
        "line 1, column 5: the value of feature 1 is '2,5'.*; write it with digits",
    ),
    "exponent without digits": (
        b"1 1:2e\n",
        "line 1, column 5: the value of feature 1 is '2e'.*; correct it",
    ),
    "nan": (b"1 1:2\n-1 3:nan\n", "line 2, column 6: .*'nan'.* remove the row or fill"),
    "infinite label": (b"1 1:2\ninf 3:1\n", "line 2, column 1: the label is 'inf'.*remove the row"),
    "overflow": (b"1 1:1e999\n", "line 1, column 5: .*'1e999'.*; correct it"),
    "duplicate": (
        b"1 3:2 1:1 3:1\n",
        "line 1, column 11: feature 3 is there twice; keep one of them",
    ),
    "zero index": (
        b"1 1:1\n1 0:2\n",
        "line 2, column 3: feature 0 in a file counted from 1; .*add --zero-based",
    ),
    "minus zero": (
        b"1 -0:2\n",
        "line 1, column 3: '-0:2' is not a feature; a feature is written",
        {"zero_based": True},
    ),
    "negative index": (
        b"1 -3:2\n",
        "line 1, column 3: '-3:2' is not a feature; a feature is written index:value",
    ),
    "positive index": (
        b"1 +3:2\n",
        r"line 1, column 3: '\+3:2' is not a feature; a feature is written index:value",
    ),
    "index overflow": (
        b"1 99999999999:2\n",
        "line 1, column 3: feature 99999999999 is beyond 2147483647; number the features anew",
    ),
    "one beyond": (
        b"1 2147483648:2\n",
        "line 1, column 3: feature 2147483648 is beyond 2147483647; number the features anew",
    ),
    "one beyond from 0": (
        b"1 2147483647:2\n",
        "line 1, column 3: feature 2147483647 is beyond 2147483646",
        {"zero_based": True},
    ),
    "beyond n-features": (
        b"1 1:1\n1 05:2\n",
        "line 2, column 3: feature 5 is beyond --n-features 4; give a larger",
        {"n_features": 4},
    ),
    "qid": (
        b"1 qid:3 1:2\n",
        "line 1, column 3: 'qid:3' is not a feature; query ids are not supported; remove them: sed",
    ),
    "text label": (
        b"1 1:1\nspam 1:2\n",
        "line 2, column 1: the label is 'spam'.*give its number, .* --labels spam=1",
    ),
    "no label": (
        b"1 1:2\n 2:4\n",
        "line 2, column 2: '2:4' is a feature, and there is no label; write one",
    ),
    "several labels": (
        b"1 1:2\n1,3 2:4\n",
        "line 2, column 1: the label is '1,3'.*digits.*or give the row one label, without commas",
    ),
    "label beyond the rule": (
        b"1 1:2\n3 2:4\n",
        "line 2, column 1: the label is .3., which --labels .*its number, .* --labels 1=1,2=-1,3=3",
        {"labels": "1=1,2=-1"},
    ),
    "nul": (b"1 1:2\n1 1:\x00\n", "line 2, column 5: a NUL byte, so this is a workbook"),
    "carriage return": (
        b"1 1:2\r1 1:3\n",
        "line 1, column 6: a carriage return within the line; save",
    ),
    "error after CRLF": (
        b"1 1:2\r\n\r\n-1 3:x\r\n",
        "line 3, column 6: the value of feature 3 is 'x'.*; correct it",
    ),
    "error after a BOM": (
        b"\xef\xbb\xbf1 1:x\n",
        "line 1, column 5: the value of feature 1 is 'x'.*; correct it",
    ),
    "BOM in the middle": (
        b"1 1:2\n\xef\xbb\xbf1 1:2\n",
        "line 2, column 1: the label is '.*give its number",
    ),
    "latin-1": (
        b"1 1:2\n1 2:\xe9\n",
        r"line 2, column 5: the value of feature 2 is '\ufffd'.*; correct it",
    ),
    "error in the last line, unended": (
        b"1 1:2\n-1 3:4 x",
        "line 2, column 8: 'x' is not a feature",
    ),
    "empty": (b"", r"a\.svm: the file holds no rows"),
    "only comments": (b"# a\n\n  # b\n", r"a\.svm: the file holds no rows", {"format": "libsvm"}),
}
CSV = {
    "blank": (b"\n\n", r"a\.csv: the file holds no rows"),
    "header only": (b"a,b\n", r"a\.csv: the file holds no rows"),
    "ragged": (
        b"a,b\n1,2\n1,2,3\n",
        "line 3: 3 columns where the first line has 2; correct or remove",
    ),
    "too few": (b"1,2,3\n1,2\n", "line 2: 2 columns where the first line has 3; correct or remove"),
    "csv nan": (b"a,b\n1,2\nNaN,3\n", "line 3: column 'a' is 'NaN'.*; fill the value in"),
    "csv infinity": (
        b"1,2\n-inf,3\n",
        "line 2: column 1 is '-inf'.*; remove the row or fill the value in",
    ),
    "csv overflow": (b"1,2\n1e400,3\n", "line 2: column 1 is '1e400'.*; correct it"),
    "csv underscore": (b"1,2\n1_0,3\n", "line 2: column 1 is '1_0'.*; write it with digits"),
    "csv hexadecimal": (b"1,2\n0x10,3\n", "line 2: column 1 is '0x10'.*; write it with digits"),
    "csv space in a number": (b"1,2\n1 0,3\n", "line 2: column 1 is '1 0'.*; correct it"),
    "csv missing": (b"1,2\n,3\n", "line 2: column 1 is ''.*; fill the value in"),
    "csv missing label": (b"1,2\n3,\n", "line 2: column 2 is ''.*; fill the value in"),
    "csv text label": (
        b"a,y\n1,2\n3,spam\n",
        "line 3: column 'y' is 'spam'.*correct it, or for classes add --categorical y",
    ),
    "csv quote": (
        b'a,b\n1,"2\n',
        r"line 2, column 3: a quoted field continues .*: .1,\"2.; close it",
    ),
    "line end in quotes": (
        b'a,b\n1,2\n1,"2\n3"\n',
        "line 3, column 3: a quoted field continues on the next line.*close",
    ),
    "text after a quote": (
        b'a,b\n1,"2"3\n',
        r"line 2, column 5: .*expected after.*1,\"2\"3.*; correct the quotes",
    ),
    "csv latin-1": (b"a,b\n1,\xff\n", "line 2, column 3: .*0xff.*; save the file as UTF-8"),
    "csv nul": (b"a,b\n1,2\n1,\x002\n", "line 3, column 3: a NUL byte, so this is a workbook"),
    "csv carriage return": (
        b"1,2\n3,4\r5,6\n",
        "line 2, column 4: a carriage return within the line; save",
    ),
    "row after a comment's mark": (b"#a,2,3\n4,5,6\n", "line 1: numbers and the text '#a'"),
    "only comments": (b"# a,b\n", r"a\.csv: the file holds no rows"),
    "row or column numbers": (b"0,1\n0.5,2\n", "line 1: 0, 1, … may be .*--header or --no-header"),
    "row or more column numbers": (
        b"0,1,2\n?,4,5\n",
        "line 1: 0, 1, … may be",
        {"missing": "mean"},
    ),
    "empty field or column numbers": (
        b",0,1\n5,2,1\n",
        "line 1: 0, 1, … may be .*--header or --no-header",
        {"missing": "mean"},
    ),
    "csv empty field in the first line": (
        b"1,,3\n4,5,6\n",
        "line 1: column 2 is ''.*--missing mean",
    ),
    "other notation among texts": (
        b'a,y\nred,1\n"1,234",2\n',
        "line 3: column 'a' is '1,234', not a finite number; write it with digits",
        {"one_hot": True},
    ),
    "other notation of a label": (
        b"1;3,14\n",
        "line 1: column 2 is '3,14'.*; write it with digits",
    ),
    "names or a row": (
        b"a,b,g\nc,d,b\n",
        "line 1: neither this line nor the next rows have a number; add --header if this line holds"
        " column names, otherwise --no-header",
        {"one_hot": True, "labels": "g=1,b=-1"},
    ),
    "csv error after CRLF": (
        b"1,2\r\n3,x\r\n",
        "line 2: column 2 is 'x'.*or for classes add --categorical 2",
    ),
    "csv error after a BOM": (
        b"\xef\xbb\xbf1,2\n3,x\n",
        "line 2: column 2 is 'x'.*or for classes add --categorical 2",
    ),
    "csv missing in the first line": (
        b"1,2,NA\n3,4,5\n",
        "line 1: column 3 is 'NA'.*; fill the value in or remove the row",
    ),
    "csv text feature": (
        b"1,2\nred,3\n",
        "line 2: column 1 is 'red'.*; correct it, or add --categorical 1 for .*, or --numeric 1",
    ),
    "csv same names": (
        b"a,b,a\n3,4,5\n",
        r"a\.csv: two columns are called .a.; rename one, or leave one out with --drop 3",
    ),
    "one column": (
        b"a\n1\n",
        "line 1: only one column; a row needs a target and at least one feature",
    ),
    "one-hot numbers": (
        b"?,1\n3,1\n",
        r"a\.csv, line 1: column 1 is '\?', not a finite number; fill the value in, or say what",
        {"one_hot": True},
    ),
    "one-hot, too many texts (of at most 3)": (
        b"a,1\nb,1\nc,1\nd,1\n",
        "column 1 holds more than 3 different texts; leave it out with --drop 1",
        {"one_hot": True},
    ),
    "one-hot missing": (
        b"3,a,1\n?,b,1\n",
        r"line 2: column 1 is '\?'.*; fill the value in, or say what to do",
        {"one_hot": True},
    ),
}
TXT = {
    "ragged spaces": (
        b"1 2 3\n1  2\n",
        "line 2: 2 columns where the first line has 3; correct or remove",
    ),
    "only carriage returns": (
        b"1 2 3\r4 5 6\r",
        "line 1, column 6: a carriage return within the line; save",
    ),
    "empty field between tabs": (
        b"1\t2\t3\n4\t\t6\n",
        "line 2: column 2 is ''.*fill the value in, or say .*--missing",
    ),
    "thousands between tabs": (
        b"1 234\t5\n",
        "line 1: column 1 is '1 234'.*; write it with digits",
    ),
    "matrix": (b"%%MatrixMarket x\n1 1 1\n1 1 1\n", "line 1: no table of rows; .* as LIBSVM"),
    "no format": (
        b"the quick brown fox\n",
        "line 1: neither LIBSVM, VW nor CSV.*name it with --format",
    ),
}
VW = {
    "vw namespaces": (
        b"1 |a 1:2 |b 3:1\n",
        "line 1, column 10: more than one namespace; merge them into one",
    ),
    "vw namespaces of two rows": (
        b"1 |\n1 |a 1:2\n1 |b 1:1\n",
        "line 3, column 4: namespace 'b', and 'a' in the first rows; .* number them in one",
    ),
    "vw tag for a label": (
        b"1 |a 1:2\n1|a 1:1\n",
        r"line 2, column 1: '1' right before '\|' is a tag, .*put a space before",
    ),
    "vw importance": (
        b"1 2.0 |a 1:2\n",
        r"line 1, column 1: '1 2.0' before '\|' is not one label; importance weights",
    ),
    "vw names": (
        b"1 |a cat:2\n",
        "line 1, column 6: feature 'cat' is not a number from 0 .*; number the features",
    ),
    "vw feature as namespace": (
        b"1 | 1:1\n1 |1:2 2:3\n",
        r"line 2, column 4: '1:2' right after '\|' is a namespace.*put a space",
    ),
    "vw number as namespace": (
        b"1 |7 2:3\n",
        r"line 1, column 4: '7' right after '\|'.*put a space",
    ),
    "vw namespace weight": (
        b"-1 |f:10 1:1\n",
        r"line 1, column 5: 'f:10' right after '\|' is a namespace, and weights.*put a space",
    ),
    "vw sum": (
        b"1 | 1:1e308 1:1e308\n",
        "line 1, column 13: the values of feature 1 add up to inf; make them smaller",
    ),
    "vw no bar": (
        b"1 |a 1:2\n1 1:2\n",
        r"line 2: no '\|' between .* in '1 1:2'; write label \| index:value",
    ),
    "vw zero index": (
        b"1 | 0:2\n",
        "line 1, column 5: feature 0 in a file counted from 1",
        {"zero_based": False},
    ),
    "vw bad value": (
        b"1 |f 1:2\n1 |f 1:2x\n",
        "line 2, column 8: the value of feature 1 is '2x'.*; correct it",
    ),
    "vw comment": (
        b"1 |f 1:2\n# |f\n",
        "line 2, column 1: the label is '#'.*give its number, .* --labels",
    ),
    "vw text label": (
        b"spam |f 1:2\n1 |f 1:2\n",
        "line 1, column 1: the label is 'spam'.*give its number, .* --labels",
    ),
}
MALFORMED: dict[str, tuple[str, bytes, dict, str]] = {
    **cases("a.svm", SVM),
    **cases("a", {"empty, format told": (b"", "a: the file holds no rows", {"format": "libsvm"})}),
    **cases("a.csv", CSV),
    **cases("a.txt", TXT),
    **cases("a.vw", VW),
    "long number": (
        "a.svm",
        b"1 " + b"9" * 5000 + b":1\n",
        {},
        r"a\.svm, line 1, column 3: feature 9{60} is beyond .*; number the features anew",
    ),
    "vw long number": (
        "a.vw",
        b"1 | " + b"9" * 5000 + b":1\n",
        {},
        r"a\.vw, line 1, column 5: feature 9{60} is beyond .*; number the features anew",
    ),
    **{
        f"damaged {suffix}": (f"a.svm{suffix}", damaged(suffix), {}, rf"a\.svm\{suffix}: {CUT}")
        for suffix in (".gz", ".bz2", ".xz")
    },
    **{
        f"not {suffix}": (
            f"a.svm{suffix}",
            b"1 1:2\n" * 9,
            {},
            r"0 \(.*; name it a\.svm if it is not",
        )
        for suffix in PACKED
        if suffix
    },
    "gz called xz": ("a.svm.xz", gzip.compress(ROWS), {}, rf"a\.svm\.xz: {CUT}"),
    "gz called nothing": (
        "a.svm",
        gzip.compress(ROWS, mtime=0),
        {},
        r"a\.svm, line 1, column \d+: a NUL byte, .*compressed under a wrong name",
    ),
    **{
        f"error amid many lines {suffix}": (
            f"a.svm{suffix}",
            PACKED[suffix](ROWS + b"1 7:y\n" + ROWS),
            {},
            rf"a\.svm{re.escape(suffix)}, line 9001, column 5: the value of feature 7 is 'y'",
        )
        for suffix in PACKED
    },
    "damaged second stream .gz": ("a.svm.gz", two_streams(".gz"), {}, CUT),
    "damaged second stream .bz2": ("a.svm.bz2", two_streams(".bz2"), {}, CUT),
    "damaged second stream .xz": ("a.svm.xz", two_streams(".xz"), {}, CUT),
    "damaged second stream .zst": ("a.svm.zst", two_streams(".zst"), {}, CUT),
}
