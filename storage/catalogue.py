"""The catalogue: the datasets of the papers, which files they are, where these come from and how they are prepared.

A literal table; nothing is fetched. An entry has editions, the whole one first: the same data may be known as other files, or as a part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput, nearest
from storage.text import OPENERS

SON = "SON 2016"
PROS = "PROS-N-KONS 2017"

LIBSVM = "LIBSVM data sets, binary classification"
LIBSVM_MULTI = "LIBSVM data sets, multi-class classification"
UCI = "UCI Machine Learning Repository"


@dataclass(frozen=True)
class Edition:
    """Files that make a dataset when read in order, and what comes out: n rows of d features (after one-hot; None if not known).

    `part` says what of the whole it is, if it is not the whole. `tested`: this project has the files and its tests prepare them.
    `options` are those of `prepare_file`.
    """

    files: tuple[str, ...]
    n_rows: int
    n_features: int | None
    options: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    tested: bool = True


@dataclass(frozen=True)
class Entry:
    """A dataset of the papers: its name there, what its labels are, its official source by name, and its editions, the whole one first.

    `positive_class` is the class that this project's sweeps set against the rest, None if the labels are two classes or real numbers.
    """

    name: str
    papers: tuple[str, ...]
    task: str
    source: str
    editions: tuple[Edition, ...]
    positive_class: float | None = None

    @property
    def absent(self) -> bool:
        """Whether this project has no copy at all: the entry's numbers are the publisher's, and no test prepares it."""
        return not any(edition.tested for edition in self.editions)

    @property
    def partial(self) -> str | None:
        """What part this project has, if it has no copy of the whole."""
        return None if self.editions[0].tested else next((e.part for e in self.editions if e.tested), None)


def _of(*files: str, n: int, d: int | None, part: str | None = None, tested: bool = True, **options: Any) -> Edition:
    return Edition(files, n, d, options, part, tested)


DENSE: dict[str, Any] = {"layout": "dense", "scale": "minmax"}
RAW_CSV: dict[str, Any] = {"scale": "minmax", "header": False}
ADULT: dict[str, Any] = {"labels": "<=50K=-1,>50K=1", "one_hot": True, "header": False, "scale": "minmax"}
CENSUS: dict[str, Any] = {"labels": "- 50000.=-1,50000+.=1", "one_hot": True, "header": False, "scale": "minmax"}
PIXELS: dict[str, Any] = {"layout": "sparse", "scale": "minmax", "task": "classification"}

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "20news",
        (SON,),
        "20 classes",
        "20 Newsgroups, 20news-bydate: the term counts of all messages without headers, footers and quotes, as LIBSVM text",
        (_of("20news_bow_counts.svm", n=18846, d=101631, scale="unit-rows"),),
        positive_class=8,  # rec.autos
    ),
    Entry("a9a", (SON,), "binary", f"{LIBSVM}: a9a", (_of("a9a", "a9a.t", n=48842, d=123, n_features=123),)),
    Entry(
        "acoustic",
        (SON,),
        "3 classes",
        f"{LIBSVM_MULTI}: SensIT Vehicle (acoustic)",
        (_of("acoustic", "acoustic.t", n=98528, d=50, layout="dense", tested=False),),
        positive_class=3,
    ),
    Entry("adult", (SON,), "binary", f"{UCI}: Adult", (_of("adult.data", "adult.test", n=48842, d=108, **ADULT),)),
    Entry("australian", (SON,), "binary", f"{LIBSVM}: australian", (_of("australian", n=690, d=14, **DENSE),)),
    Entry("breast-cancer", (SON,), "binary", f"{LIBSVM}: breast-cancer", (_of("breast-cancer_scale", n=683, d=10, layout="dense"),)),
    Entry(
        "census",
        (SON,),
        "binary",
        f"{UCI}: Census-Income (KDD)",
        (
            _of("census-income.data", "census-income.test", n=299285, d=None, tested=False, **CENSUS),
            _of("census-income.test", n=99762, d=408, part="the test file, a third of the rows", **CENSUS),
        ),
    ),
    Entry(
        "cod-rna",
        (SON, PROS),
        "binary",
        f"{LIBSVM}: cod-rna",
        (
            _of("cod-rna.t", n=271617, d=8, tested=False, **DENSE),
            _of("cod-rna.train", n=59535, d=8, part="the training file; the papers have cod-rna.t", target="1", scale="minmax"),
        ),
    ),
    Entry(
        "covtype",
        (SON,),
        "7 classes",
        f"{UCI}: Covertype",
        (
            _of("covtype.data", n=581012, d=54, tested=False, scale="minmax"),
            _of("covtype.20k.data", n=20000, d=54, part="20,000 of 581,012 rows", scale="minmax"),
        ),
        positive_class=2,  # lodgepole pine, about half of all rows
    ),
    Entry("diabetes", (SON,), "binary", f"{LIBSVM}: diabetes", (_of("diabetes", n=768, d=8, **DENSE),)),
    Entry(
        "gisette",
        (SON,),
        "binary",
        f"{LIBSVM}: gisette",
        (_of("gisette_scale", "gisette_scale.t", n=7000, d=5000, n_features=5000, layout="dense", tested=False),),
    ),
    Entry("heart", (SON,), "binary", f"{LIBSVM}: heart", (_of("heart_scale", n=270, d=13, layout="dense"),)),
    Entry("ijcnn1", (SON, PROS), "binary", f"{LIBSVM}: ijcnn1", (_of("ijcnn1", "ijcnn1.t", n=141691, d=22, **DENSE),)),
    Entry("ionosphere", (SON,), "binary", f"{UCI}: Ionosphere", (_of("ionosphere.data", n=351, d=34, labels="g=1,b=-1", **RAW_CSV),)),
    Entry(
        "letter",
        (SON,),
        "26 classes",
        f"{UCI}: Letter Recognition",
        (_of("letter-recognition.data", n=20000, d=16, target="1", labels="letters", task="classification", **RAW_CSV),),
        positive_class=1,  # A
    ),
    Entry(
        "magic04", (SON,), "binary", f"{UCI}: MAGIC Gamma Telescope", (_of("magic04.data", n=19020, d=10, labels="g=1,h=-1", **RAW_CSV),)
    ),
    Entry(
        "mnist",
        (SON,),
        "10 classes",
        "OpenML: mnist_784, as CSV with the digit last",
        (
            _of("mnist_784.csv", n=70000, d=784, tested=False, **PIXELS),
            _of("mnist_test.csv", n=10000, d=784, part="the 10,000 test digits of 70,000", **PIXELS),
        ),
        positive_class=8,
    ),
    Entry("mushrooms", (SON,), "binary", f"{LIBSVM}: mushrooms", (_of("mushrooms", n=8124, d=112, labels="1=1,2=-1"),)),
    Entry(
        "rcv1",
        (SON,),
        "binary",
        f"{LIBSVM}: rcv1.binary",
        (
            _of("rcv1_train.binary", "rcv1_test.binary", n=697641, d=47236, n_features=47236, tested=False),
            _of(
                "rcv1_small.dat",
                "rcv1_small_test.data",
                n=1500,
                d=47236,
                part="1,500 rows, as in Vowpal Wabbit's own tests",
                zero_based=False,
                n_features=47236,
            ),
        ),
    ),
    Entry("real-sim", (SON,), "binary", f"{LIBSVM}: real-sim", (_of("real-sim", n=72309, d=20958, tested=False),)),
    Entry(
        "splice",
        (SON,),
        "binary",
        f"{LIBSVM}: splice",
        (_of("splice", "splice.t", n=3175, d=60, tested=False, **DENSE), _of("splice.txt", n=3175, d=60, **DENSE)),
    ),
    Entry("w1a", (SON,), "binary", f"{LIBSVM}: w1a", (_of("w1a", n=2477, d=300, n_features=300),)),
    Entry("w8a", (SON,), "binary", f"{LIBSVM}: w8a", (_of("w8a", "w8a.t", n=64700, d=300, n_features=300),)),
    Entry(
        "cadata",
        (PROS,),
        "regression",
        "StatLib: California housing, as CSV with a header",
        (_of("cal_housing.csv", n=20640, d=8, target="median_house_value", scale="minmax"),),
    ),
    Entry(
        "casp",
        (PROS,),
        "regression",
        f"{UCI}: Physicochemical Properties of Protein Tertiary Structure",
        (_of("CASP.csv", n=45730, d=9, target="RMSD", scale="minmax"),),
    ),
    Entry(
        "cpusmall",
        (PROS,),
        "regression",
        "Delve: comp-activ, the small variant, as CSV with a header",
        (_of("cpu.small.csv", n=8192, d=12, target="usr", scale="minmax"),),
    ),
    Entry(
        "parkinsons",
        (PROS,),
        "regression",
        f"{UCI}: Parkinsons Telemonitoring",
        (_of("parkinsons_updrs.data", n=5875, d=20, target="total_UPDRS", drop=("motor_UPDRS",), scale="minmax"),),
    ),
    Entry(
        "slice",
        (PROS,),
        "regression",
        f"{UCI}: Relative location of CT slices on axial axis",
        (
            _of("slice_localization_data.csv", n=53500, d=384, target="reference", drop=("patientId",), scale="minmax", tested=False),
            _of(
                "slice_localization_data.first682.csv",
                n=682,
                d=384,
                part="the first 682 of 53,500 rows",
                target="reference",
                drop=("patientId",),
                scale="minmax",
            ),
        ),
    ),
    Entry(
        "year",
        (PROS,),
        "regression",
        f"{UCI}: YearPredictionMSD",
        (
            _of("YearPredictionMSD.txt", n=515345, d=90, target="1", scale="minmax", tested=False),
            _of("millionsong.txt", n=6719, d=12, part="a teaching subset: 6,719 rows of 12 features", target="1", scale="minmax"),
        ),
    ),
    Entry("german", (), "binary", f"{LIBSVM}: german.numer", (_of("german.numer", n=1000, d=24, **DENSE),)),
    Entry(
        "sector",
        (),
        "105 classes",
        f"{LIBSVM_MULTI}: sector",
        (_of("sector.scale", "sector.t.scale", n=9619, d=55197, n_features=55197, scale="unit-rows"),),
        positive_class=1,
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}


def entry_named(name: str) -> Entry:
    """The entry of a dataset. Raises `WrongInput` with the nearest name if there is none."""
    if name not in CATALOGUE:
        raise WrongInput(
            f"koco prepare {name} --from FILE needs a file, because the catalogue does not have {name!r}{nearest(name, list(CATALOGUE))}"
        )
    return CATALOGUE[name]


def how_to_get(entry: Entry) -> str:
    """Which files an entry needs, where they come from, and how they are passed."""
    lines = [f"{entry.name}: get {edition_text(entry.editions[0])} from {entry.source}"]
    lines += [f"  or {edition_text(edition)}" for edition in entry.editions[1:]]
    lines.append("  plain, .gz, .bz2 or .xz, in a folder of your choice or in its subfolder named like the dataset; then")
    lines.append(f"  koco prepare {entry.name} --from FOLDER")
    return "\n".join(lines)


def edition_text(edition: Edition) -> str:
    """`a9a and a9a.t (48,842 rows, 123 features)`."""
    size = f"{edition.n_rows:,} rows, {edition.n_features:,} features" if edition.n_features else f"{edition.n_rows:,} rows"
    return f"{' and '.join(edition.files)} ({edition.part or size})"


def find_edition(entry: Entry, folder: Path) -> tuple[Edition, list[Path]]:
    """The first edition whose files are all in `folder` or its subfolder `entry.name`, and the files' paths in order.

    Raises `WrongInput` saying what is missing and where to get it.
    """
    found: dict[str, Path] = {}
    for edition in entry.editions:
        for name in edition.files:
            places = [base / (name + suffix) for base in (folder, folder / entry.name) for suffix in ("", *OPENERS)]
            path = next((place for place in places if place.is_file()), None)
            if path is not None:
                found[name] = path
        if all(name in found for name in edition.files):
            return edition, [found[name] for name in edition.files]
    there = f" (only {', '.join(sorted(found))})" if found else ""
    raise WrongInput(f"{folder} does not have the files of {entry.name}{there}. {how_to_get(entry)}")


def remarks(entry: Entry, edition: Edition, n_rows: int, n_features: int) -> list[str]:
    """What a user must know of a dataset that was prepared from `edition`: that it is a part, or not what the catalogue expects."""
    said = []
    if edition.part:
        said.append(f"this is a part of {entry.name}: {edition.part}. The whole: {edition_text(entry.editions[0])}, from {entry.source}")
    expected = (edition.n_rows, edition.n_features or n_features)
    if (n_rows, n_features) != expected:
        said.append(
            f"{' and '.join(edition.files)} gave {n_rows:,} rows of {n_features:,} features where the catalogue has {expected[0]:,} of "
            f"{expected[1]:,}: the file may be cut, or another version; results are not comparable with the papers'"
        )
    return said
