"""Files that are wrong in one way each: name -> (file, its bytes, options of reading, what the
message must match).

The message names the file, the line and the column where it can, what is there, and what to do
about it.
"""

import bz2
import gzip
import lzma
import random

import pyarrow as pa


def zst(content):
    """Text as a .zst archive."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


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


def two_members(suffix):
    """`ROWS` as two archives one after the other, the second's first byte inverted."""
    first, second = PACKED[suffix](ROWS), PACKED[suffix](ROWS)
    return first + bytes([255 - second[0]]) + second[1:]


CUT = r"cut short or damaged after line \d+ \(.*; fetch the file again"

MALFORMED: dict[str, tuple[str, bytes, dict, str]] = {
    # LIBSVM
    "bad value": (
        "a.svm",
        b"1 1:2\n-1 3:x\n",
        {},
        r"a\.svm, line 2, column 6: the value of feature 3 is 'x'.*; correct it",
    ),
    "underscore": (
        "a.svm",
        b"1 1:1_000\n",
        {},
        r"a\.svm, line 1, column 5: the value of feature 1 is '1_000'.*; correct it",
    ),
    "hexadecimal value": (
        "a.svm",
        b"1 1:1\n1 4:0x1f\n",
        {},
        r"a\.svm, line 2, column 5: the value of feature 4 is '0x1f'.*; correct it",
    ),
    "hexadecimal index": (
        "a.svm",
        b"1 0x10:1\n",
        {},
        r"a\.svm, line 1, column 3: '0x10:1' is not a feature; a feature is written index:value",
    ),
    "no value": (
        "a.svm",
        b"1 1:2\n-1 3: 4:1\n",
        {},
        r"a\.svm, line 2, column 6: the value of feature 3 is ''.*fill the value in",
    ),
    "space before colon": (
        "a.svm",
        b"1 3 :2\n",
        {},
        r"a\.svm, line 1, column 3: '3' is not a feature; a feature is written index:value",
    ),
    "space after colon": (
        "a.svm",
        b"1 3:1\n1 3:  2\n",
        {},
        r"a\.svm, line 2, column 5: the value of feature 3 is ''.*fill the value in",
    ),
    "no index": (
        "a.svm",
        b"1 1:2\n1 :4\n",
        {},
        r"a\.svm, line 2, column 3: ':4' is not a feature; a feature is written",
    ),
    "two colons": (
        "a.svm",
        b"1 1:2:3\n",
        {},
        r"a\.svm, line 1, column 5: the value of feature 1 is '2:3'.*; correct it",
    ),
    "no colon": (
        "a.svm",
        b"1 1:2\n-1 3\n",
        {},
        r"a\.svm, line 2, column 4: '3' is not a feature; a feature is written index:value",
    ),
    "two minuses": (
        "a.svm",
        b"1 1:--2\n",
        {},
        r"a\.svm, line 1, column 5: the value of feature 1 is '--2'.*; correct it",
    ),
    "comma for a point": (
        "a.svm",
        b"1 1:2,5\n",
        {},
        r"a\.svm, line 1, column 5: the value of feature 1 is '2,5'.*; correct it",
    ),
    "exponent without digits": (
        "a.svm",
        b"1 1:2e\n",
        {},
        r"a\.svm, line 1, column 5: the value of feature 1 is '2e'.*; correct it",
    ),
    "nan": (
        "a.svm",
        b"1 1:2\n-1 3:nan\n",
        {},
        r"a\.svm, line 2, column 6: .*'nan'.* remove the row or fill",
    ),
    "infinite label": (
        "a.svm",
        b"1 1:2\ninf 3:1\n",
        {},
        r"a\.svm, line 2, column 1: the label is 'inf'.*remove the row",
    ),
    "overflow": ("a.svm", b"1 1:1e999\n", {}, r"a\.svm, line 1, column 5: .*'1e999'.*; correct it"),
    "descending": (
        "a.svm",
        b"1 3:2 2:1\n",
        {},
        r"a\.svm, line 1, column 7: feature 2 comes after 3; sort each line",
    ),
    "duplicate": (
        "a.svm",
        b"1 3:2 3:1\n",
        {},
        (
            r"a\.svm, line 1, column 7: feature 3 comes after 3; sort each line by feature, each"
            r" one once"
        ),
    ),
    "zero index": (
        "a.svm",
        b"1 1:1\n1 0:2\n",
        {},
        r"a\.svm, line 2, column 3: feature 0 in a file counted from 1; .*add --zero-based",
    ),
    "minus zero": (
        "a.svm",
        b"1 -0:2\n",
        {"zero_based": True},
        r"a\.svm, line 1, column 3: '-0:2' is not a feature; a feature is written",
    ),
    "negative index": (
        "a.svm",
        b"1 -3:2\n",
        {},
        r"a\.svm, line 1, column 3: '-3:2' is not a feature; a feature is written index:value",
    ),
    "positive index": (
        "a.svm",
        b"1 +3:2\n",
        {},
        r"a\.svm, line 1, column 3: '\+3:2' is not a feature; a feature is written index:value",
    ),
    "index overflow": (
        "a.svm",
        b"1 99999999999:2\n",
        {},
        r"a\.svm, line 1, column 3: feature 99999999999 is beyond 2147483647; hash",
    ),
    "one beyond": (
        "a.svm",
        b"1 2147483648:2\n",
        {},
        r"a\.svm, line 1, column 3: feature 2147483648 is beyond 2147483647; hash",
    ),
    "one beyond from 0": (
        "a.svm",
        b"1 2147483647:2\n",
        {"zero_based": True},
        r"line 1, column 3: feature 2147483647 is beyond 2147483646",
    ),
    "beyond n-features": (
        "a.svm",
        b"1 1:1\n1 05:2\n",
        {"n_features": 4},
        r"line 2, column 3: feature 5 is beyond --n-features 4; give a larger",
    ),
    "long number": (
        "a.svm",
        b"1 " + b"9" * 5000 + b":1\n",
        {},
        r"a\.svm, line 1, column 3: feature 9{60} is beyond .*; hash",
    ),
    "qid": (
        "a.svm",
        b"1 qid:3 1:2\n",
        {},
        (
            r"a\.svm, line 1, column 3: 'qid:3' is not a feature; query ids are not supported,"
            r" remove them"
        ),
    ),
    "text label": (
        "a.svm",
        b"spam 1:2\n",
        {},
        r"a\.svm, line 1, column 1: the label is 'spam'.*give its number with --labels",
    ),
    "no label": (
        "a.svm",
        b"1 1:2\n 2:4\n",
        {},
        r"a\.svm, line 2, column 2: the label is '2:4'.*give its number with --labels",
    ),
    "several labels": (
        "a.svm",
        b"1 1:2\n1,3 2:4\n",
        {},
        r"a\.svm, line 2, column 1: the label is '1,3'.*give its number with --labels",
    ),
    "label beyond the rule": (
        "a.svm",
        b"1 1:2\n3 2:4\n",
        {"labels": "1=1,2=-1"},
        r"line 2, column 1: the label is '3', which --labels .*add it",
    ),
    "nul": (
        "a.svm",
        b"1 1:2\n1 1:\x00\n",
        {},
        r"a\.svm, line 2, column 5: a NUL byte; this is not text, or it is compressed",
    ),
    "carriage return": (
        "a.svm",
        b"1 1:2\r1 1:3\n",
        {},
        r"a\.svm, line 1, column 6: a carriage return within the line; save",
    ),
    "error after CRLF": (
        "a.svm",
        b"1 1:2\r\n\r\n-1 3:x\r\n",
        {},
        r"a\.svm, line 3, column 6: the value of feature 3 is 'x'.*; correct it",
    ),
    "error after a BOM": (
        "a.svm",
        b"\xef\xbb\xbf1 1:x\n",
        {},
        r"a\.svm, line 1, column 5: the value of feature 1 is 'x'.*; correct it",
    ),
    "BOM in the middle": (
        "a.svm",
        b"1 1:2\n\xef\xbb\xbf1 1:2\n",
        {},
        r"a\.svm, line 2, column 1: the label is '.*give its number",
    ),
    "latin-1": (
        "a.svm",
        b"1 1:2\n1 2:\xe9\n",
        {},
        r"a\.svm, line 2, column 5: the value of feature 2 is '\ufffd'.*; correct it",
    ),
    "error in the last line, unended": (
        "a.svm",
        b"1 1:2\n-1 3:4 x",
        {},
        r"a\.svm, line 2, column 8: 'x' is not a feature",
    ),
    "empty": ("a.svm", b"", {}, r"a\.svm: the file holds no rows"),
    "empty, format told": ("a", b"", {"format": "libsvm"}, r"a: the file holds no rows"),
    "only comments": (
        "a.svm",
        b"# a\n\n  # b\n",
        {"format": "libsvm"},
        r"a\.svm: the file holds no rows",
    ),
    # CSV and space-separated text
    "blank": ("a.csv", b"\n\n", {}, r"a\.csv: the file holds no rows"),
    "header only": ("a.csv", b"a,b\n", {}, r"a\.csv: the file holds no rows"),
    "ragged": (
        "a.csv",
        b"a,b\n1,2\n1,2,3\n",
        {},
        r"a\.csv, line 3: 3 columns where the first line has 2; correct or remove",
    ),
    "too few": (
        "a.csv",
        b"1,2,3\n1,2\n",
        {},
        r"a\.csv, line 2: 2 columns where the first line has 3; correct or remove",
    ),
    "ragged spaces": (
        "a.txt",
        b"1 2 3\n1  2\n",
        {},
        r"a\.txt, line 2: 2 columns where the first line has 3; correct or remove",
    ),
    "csv nan": (
        "a.csv",
        b"a,b\n1,2\nNaN,3\n",
        {},
        r"a\.csv, line 3: column 'a' is 'NaN'.*; remove the row or fill the value in",
    ),
    "csv infinity": (
        "a.csv",
        b"1,2\n-inf,3\n",
        {},
        r"a\.csv, line 2: column 1 is '-inf'.*; remove the row or fill the value in",
    ),
    "csv overflow": (
        "a.csv",
        b"1,2\n1e400,3\n",
        {},
        r"a\.csv, line 2: column 1 is '1e400'.*; correct it",
    ),
    "csv underscore": (
        "a.csv",
        b"1,2\n1_0,3\n",
        {},
        r"a\.csv, line 2: column 1 is '1_0'.*; correct it",
    ),
    "csv hexadecimal": (
        "a.csv",
        b"1,2\n0x10,3\n",
        {},
        r"a\.csv, line 2: column 1 is '0x10'.*; correct it",
    ),
    "csv space in a number": (
        "a.csv",
        b"1,2\n1 0,3\n",
        {},
        r"a\.csv, line 2: column 1 is '1 0'.*; correct it",
    ),
    "csv missing": (
        "a.csv",
        b"1,2\n,3\n",
        {},
        r"a\.csv, line 2: column 1 is ''.*; remove the row or fill the value in",
    ),
    "csv missing label": (
        "a.csv",
        b"1,2\n3,\n",
        {},
        r"a\.csv, line 2: column 2 is ''.*; remove the row or fill the value in",
    ),
    "csv text label": (
        "a.csv",
        b"a,y\n1,2\n3,spam\n",
        {},
        r"a\.csv, line 3: column 'y' is 'spam'.*give its number with --labels",
    ),
    "csv quote": (
        "a.csv",
        b'a,b\n1,"2\n',
        {},
        r"a\.csv, line 2, column 3: a quoted field goes on .*: '1,\"2'; close it",
    ),
    "line end in quotes": (
        "a.csv",
        b'a,b\n1,2\n1,"2\n3"\n',
        {},
        r"a\.csv, line 3, column 3: a quoted field goes on in the next line.*close",
    ),
    "text after a quote": (
        "a.csv",
        b'a,b\n1,"2"3\n',
        {},
        r"a\.csv, line 2, column 5: .*expected after.*1,\"2\"3.*; correct the quotes",
    ),
    "csv latin-1": (
        "a.csv",
        b"a,b\n1,\xff\n",
        {},
        r"a\.csv, line 2, column 3: .*0xff.*; save the file as UTF-8",
    ),
    "csv nul": (
        "a.csv",
        b"a,b\n1,2\n1,\x002\n",
        {},
        r"a\.csv, line 3, column 3: a NUL byte; this is not text",
    ),
    "csv carriage return": (
        "a.csv",
        b"1,2\n3,4\r5,6\n",
        {},
        r"a\.csv, line 2, column 4: a carriage return within the line; save",
    ),
    "only carriage returns": (
        "a.txt",
        b"1 2 3\r4 5 6\r",
        {},
        r"a\.txt, line 1, column 6: a carriage return within the line; save",
    ),
    "row after a comment's mark": (
        "a.csv",
        b"#1,2,3\n4,5,6\n",
        {},
        r"a\.csv, line 1: a # before a row; remove the line .* --no-header",
    ),
    "names or a row": (
        "a.csv",
        b"a,b,g\nc,d,b\n",
        {"one_hot": True, "labels": "g=1,b=-1"},
        (
            r"a\.csv, line 1: neither it nor the next row has a number; add --header if it holds"
            r" names, else --no-header"
        ),
    ),
    "csv error after CRLF": (
        "a.csv",
        b"1,2\r\n3,x\r\n",
        {},
        r"a\.csv, line 2: column 2 is 'x'.*give its number with --labels",
    ),
    "csv error after a BOM": (
        "a.csv",
        b"\xef\xbb\xbf1,2\n3,x\n",
        {},
        r"a\.csv, line 2: column 2 is 'x'.*give its number with --labels",
    ),
    "csv missing in the first line": (
        "a.csv",
        b"1,2,NA\n3,4,5\n",
        {},
        r"line 1: numbers, and text 'NA': .*add --header.*fill the value in",
    ),
    "csv text feature": (
        "a.csv",
        b"1,2\nred,3\n",
        {},
        r"a\.csv, line 2: column 1 is 'red'.*; correct it, or declare .*--one-hot",
    ),
    "csv same names": (
        "a.csv",
        b"a,b,a\n3,4,5\n",
        {},
        r"a\.csv: two columns are called .a.; give each a name of its own",
    ),
    "one column": (
        "a.csv",
        b"a\n1\n",
        {},
        r"a\.csv, line 1: one column only; a row needs a target and at least one feature",
    ),
    "one-hot numbers": (
        "a.csv",
        b"?,1\n3,1\n",
        {"one_hot": True},
        r"column 1 holds numbers, and '\?' in its first row; fill the value in",
    ),
    "one-hot missing": (
        "a.csv",
        b"3,a,1\n?,b,1\n",
        {"one_hot": True},
        r"a\.csv, line 2: column 1 is '\?'.*; remove the row or fill",
    ),
    # VW
    "vw namespaces": (
        "a.vw",
        b"1 |a 1:2 |b 3:1\n",
        {},
        r"a\.vw, line 1, column 10: more than one namespace; merge them into one",
    ),
    "vw importance": (
        "a.vw",
        b"1 2.0 |a 1:2\n",
        {},
        r"a\.vw, line 1, column 1: '1 2.0' before '\|' is not one label; importance weights",
    ),
    "vw names": (
        "a.vw",
        b"1 |a cat:2\n",
        {},
        r"a\.vw, line 1, column 6: feature 'cat' is not a number from 0 .*; number the features",
    ),
    "vw feature as namespace": (
        "a.vw",
        b"1 | 1:1\n1 |1:2 2:3\n",
        {},
        r"line 2, column 4: '1:2' right after '\|' is a namespace.*put a space",
    ),
    "vw number as namespace": (
        "a.vw",
        b"1 |7 2:3\n",
        {},
        r"a\.vw, line 1, column 4: '7' right after '\|'.*put a space",
    ),
    "vw namespace weight": (
        "a.vw",
        b"-1 |f:10 1:1\n",
        {},
        r"line 1, column 5: 'f:10' right after '\|' is a namespace, a weight.*put a space",
    ),
    "vw sum": (
        "a.vw",
        b"1 | 1:1e308 1:1e308\n",
        {},
        r"a\.vw, line 1, column 13: the values of feature 1 add up to inf; make them smaller",
    ),
    "vw long number": (
        "a.vw",
        b"1 | " + b"9" * 5000 + b":1\n",
        {},
        r"a\.vw, line 1, column 5: feature 9{60} is beyond .*; hash",
    ),
    "vw no bar": (
        "a.vw",
        b"1 |a 1:2\n1 1:2\n",
        {},
        r"a\.vw, line 2: no '\|' between .* in '1 1:2'; write label \| index:value",
    ),
    "vw zero index": (
        "a.vw",
        b"1 | 0:2\n",
        {"zero_based": False},
        r"a\.vw, line 1, column 5: feature 0 in a file counted from 1",
    ),
    "vw bad value": (
        "a.vw",
        b"1 |f 1:2\n1 |f 1:2x\n",
        {},
        r"a\.vw, line 2, column 8: the value of feature 1 is '2x'.*; correct it",
    ),
    "vw comment": (
        "a.vw",
        b"1 |f 1:2\n# |f\n",
        {},
        r"a\.vw, line 2, column 1: the label is '#'.*give its number with --labels",
    ),
    "vw text label": (
        "a.vw",
        b"spam |f 1:2\n",
        {},
        r"a\.vw, line 1, column 1: the label is 'spam'.*give its number with --labels",
    ),
    # whatever it was meant to be
    "no format": (
        "a.txt",
        b"the quick brown fox\n",
        {},
        r"a\.txt, line 1: neither LIBSVM, VW nor CSV.*name it with --format",
    ),
    **{
        f"truncated {suffix}": (
            f"a.svm{suffix}",
            PACKED[suffix](ROWS)[:-40],
            {},
            rf"a\.svm\{suffix}: {CUT}",
        )
        for suffix in PACKED
        if suffix
    },
    **{
        f"damaged {suffix}": (f"a.svm{suffix}", damaged(suffix), {}, rf"a\.svm\{suffix}: {CUT}")
        for suffix in (".gz", ".bz2", ".xz")
    },
    **{
        f"not {suffix}": (f"a.svm{suffix}", b"1 1:2\n" * 9, {}, rf"a\.svm\{suffix}: {CUT}")
        for suffix in PACKED
        if suffix
    },
    "gz called xz": ("a.svm.xz", gzip.compress(ROWS), {}, rf"a\.svm\.xz: {CUT}"),
    "gz called nothing": (
        "a.svm",
        gzip.compress(ROWS, mtime=0),
        {},
        r"a\.svm, line 1, column \d+: a NUL byte; .*compressed under a wrong name",
    ),
    "error in an archive": (
        "a.svm.gz",
        gzip.compress(ROWS + b"1 7:y\n"),
        {},
        r"a\.svm\.gz, line 9001, column 5: the value of feature 7 is 'y'",
    ),
    "damaged second member .gz": ("a.svm.gz", two_members(".gz"), {}, CUT),
    "damaged second member .bz2": ("a.svm.bz2", two_members(".bz2"), {}, CUT),
    "damaged second member .xz": ("a.svm.xz", two_members(".xz"), {}, CUT),
    "damaged second member .zst": ("a.svm.zst", two_members(".zst"), {}, CUT),
}
