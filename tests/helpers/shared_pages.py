"""What two processes that stream the same dataset hold in memory, by Linux's own account."""

import re
import subprocess
import sys
from pathlib import Path

from koco_stream.streams.stream import Stream
from tests.helpers.project import environment

READER = """
import re, sys
from koco_stream.streams.stream import Stream
from koco_stream.streams.reader import StreamReader
def kilobytes(field, of):
    maps = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read())
    found = "".join(one for one in maps if of in one.split("\\n")[0])
    return sum(map(int, re.findall(rf"(?m)^{field}: +(\\d+) kB", found)))
before = kilobytes("Anonymous", "")
blocks = list(StreamReader(sys.argv[1], Stream(*sys.argv[2:])).blocks())
sums = [rows.values.sum() + rows.indices.sum() for rows, _ in blocks]
print("ready", flush=True)
input()
own = kilobytes("Anonymous", "") - before
print(kilobytes("Rss", ".arrow"), kilobytes("Pss", ".arrow"), own, flush=True)
input()
"""


def held_by_two(store: Path, stream: Stream) -> tuple[float, float, float]:
    """KiB of two processes that have read the stream and hold it, the larger of each: of the copy
    mapped, of that their share, and what they have of their own more than before.
    """
    words = [sys.executable, "-c", READER, str(store), stream.dataset, stream.dataset_hash]
    both = [
        subprocess.Popen(
            words, text=True, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    found = []
    for one in both:
        print(file=one.stdin, flush=True)
        found.append([int(n) for n in re.findall(r"-?\d+", one.stdout.readline())])
    for one in both:
        one.communicate("\n")
    return tuple(float(max(column)) for column in zip(*found, strict=True))
