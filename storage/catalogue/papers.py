"""The catalogue: the datasets of the papers, which files they are, where these come from and how they are prepared.

A literal table. An entry has editions, the whole one first: the same data may be known as other files, or as a part. An address stands
here only where the publisher is known to have the file under it; where there is none, the source is named in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koco_stream.errors import WrongInput, nearest
from storage.sources.compressed import OPENERS

SON = "SON 2016"
PROS = "PROS-N-KONS 2017"

LIBSVM = "LIBSVM data sets, binary classification"
LIBSVM_REGRESSION = "LIBSVM data sets, regression"
LIBSVM_MULTI = "LIBSVM data sets, multi-class classification"
UCI = "UCI Machine Learning Repository"
LIBSVM_FILES = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI_FILES = "https://archive.ics.uci.edu/static/public/"


@dataclass(frozen=True)
class Address:
    """Where a file is published. `member` is its name in the archive that the address gives, after those of the archives between.

    sha256: of the file as published, where that is known. skip_lines: lines at its beginning that are no rows, left out after fetching.
    suffix: the file's compression (".gz") if its name does not say it.
    """

    url: str
    member: tuple[str, ...] = ()
    sha256: str | None = None
    skip_lines: int = 0
    suffix: str | None = None

    def name_of(self, file: str) -> str:
        """The name that an edition's `file` has on disk once fetched: with the suffix of its compression."""
        if self.suffix is not None:
            return file + self.suffix
        published = Path(self.member[-1] if self.member else self.url).suffix
        return file + published if published in OPENERS else file

    def text(self) -> str:
        """The address, and what to take out of the archive there."""
        inside = f" (in it {', in that '.join(self.member)})" if self.member else ""
        left_out = f", without its first {'line' if self.skip_lines == 1 else f'{self.skip_lines} lines'}" if self.skip_lines else ""
        return f"{self.url}{inside}{left_out}"


@dataclass(frozen=True)
class Edition:
    """Files that make a dataset when read in order, and what comes out: n rows of d features (after one-hot; None if not known).

    `part` says what of the whole it is, if it is not the whole. `tested`: this project has the files and its tests prepare them.
    `options` are those of `prepare_file`. `addresses` are the files' in their order, or none: then they cannot be fetched.
    """

    files: tuple[str, ...]
    n_rows: int
    n_features: int | None
    options: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    tested: bool = True
    addresses: tuple[Address, ...] = ()


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
        whole = [edition for edition in self.editions if edition.part is None]
        return None if any(edition.tested for edition in whole) else next((e.part for e in self.editions if e.tested), None)

    @property
    def fetchable(self) -> Edition | None:
        """The first edition whose files have addresses; None if they must be brought along."""
        return next((edition for edition in self.editions if edition.addresses), None)


def _of(
    *files: str,
    n: int,
    d: int | None,
    at: tuple[Address, ...] = (),
    part: str | None = None,
    tested: bool = True,
    **options: Any,
) -> Edition:
    return Edition(files, n, d, options, part, tested, at)


def _libsvm(*paths: str, sha256: tuple[str | None, ...] = ()) -> tuple[Address, ...]:
    return tuple(Address(LIBSVM_FILES + path, sha256=known) for path, known in zip(paths, sha256 or (None,) * len(paths), strict=True))


def _uci(archive: str, *member: str, sha256: str | None = None, skip_lines: int = 0) -> Address:
    return Address(UCI_FILES + archive, member, sha256, skip_lines)


DENSE: dict[str, Any] = {"layout": "dense", "scale": "minmax"}
RAW_CSV: dict[str, Any] = {"scale": "minmax", "header": False}
ADULT: dict[str, Any] = {"labels": "<=50K=-1,>50K=1", "one_hot": True, "header": False, "scale": "minmax"}
BREAST_CANCER = "2=-1,4=1,-1=-1,1=1"  # benign and malignant: LIBSVM has 2 and 4, other copies −1 and +1
CENSUS: dict[str, Any] = {"labels": "- 50000.=-1,50000+.=1", "one_hot": True, "header": False, "scale": "minmax"}
NEWS: dict[str, Any] = {"format": "documents", "strip": ("headers", "footers", "quotes"), "scale": "unit-rows"}
PIXELS: dict[str, Any] = {"layout": "sparse", "scale": "minmax", "task": "classification"}

A9A = _libsvm(
    "binary/a9a",
    "binary/a9a.t",
    sha256=(
        "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
        "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    ),
)
ADULT_FILES = (
    _uci("2/adult.zip", "adult.data", sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    _uci("2/adult.zip", "adult.test", sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05", skip_lines=1),
)
CENSUS_FILES = tuple(_uci("117/census+income+kdd.zip", "census.tar.gz", name) for name in ("census-income.data", "census-income.test"))
COVTYPE = _uci("31/covertype.zip", "covtype.data.gz", sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771")
IONOSPHERE = _uci("52/ionosphere.zip", "ionosphere.data", sha256="46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd")
LETTER = _uci(
    "59/letter+recognition.zip", "letter-recognition.data", sha256="2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"
)
NEWS_ARCHIVE = Address(  # scikit-learn's copy of 20news-bydate.tar.gz: qwone.com does not offer https
    "https://ndownloader.figshare.com/files/5975967",
    sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    suffix=".gz",
)
PARKINSONS = _uci(
    "189/parkinsons+telemonitoring.zip",
    "parkinsons_updrs.data",
    sha256="f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
)
SLICE = _uci("206/relative+location+of+ct+slices+on+axial+axis.zip", "slice_localization_data.csv")

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "20news",
        (SON,),
        "20 classes",
        "20 Newsgroups, 20news-bydate (qwone.com/~jason/20Newsgroups): the messages, or the counts of their words as LIBSVM text, both "
        "without headers, footers and quotes",
        (
            _of("20news_bow_counts.svm", n=18846, d=101631, scale="unit-rows"),
            _of("20news-bydate.tar", n=18846, d=101631, at=(NEWS_ARCHIVE,), tested=False, **NEWS),
        ),
        positive_class=8,  # rec.autos
    ),
    Entry("a9a", (SON,), "binary", f"{LIBSVM}: a9a", (_of("a9a", "a9a.t", n=48842, d=123, at=A9A, n_features=123),)),
    Entry(
        "acoustic",
        (SON,),
        "3 classes",
        f"{LIBSVM_MULTI}: SensIT Vehicle (acoustic)",
        (
            _of(
                "acoustic",
                "acoustic.t",
                n=98528,
                d=50,
                at=_libsvm("multiclass/vehicle/acoustic.bz2", "multiclass/vehicle/acoustic.t.bz2"),
                layout="dense",
                tested=False,
            ),
        ),
        positive_class=3,
    ),
    Entry("adult", (SON,), "binary", f"{UCI}: Adult", (_of("adult.data", "adult.test", n=48842, d=108, at=ADULT_FILES, **ADULT),)),
    Entry(
        "australian", (SON,), "binary", f"{LIBSVM}: australian", (_of("australian", n=690, d=14, at=_libsvm("binary/australian"), **DENSE),)
    ),
    Entry(
        "breast-cancer",
        (SON,),
        "binary",
        f"{LIBSVM}: breast-cancer",
        (_of("breast-cancer_scale", n=683, d=10, at=_libsvm("binary/breast-cancer_scale"), labels=BREAST_CANCER, layout="dense"),),
    ),
    Entry(
        "census",
        (SON,),
        "binary",
        f"{UCI}: Census-Income (KDD)",
        (
            _of("census-income.data", "census-income.test", n=299285, d=None, at=CENSUS_FILES, tested=False, **CENSUS),
            _of("census-income.test", n=99762, d=408, part="the test file, a third of the rows", **CENSUS),
        ),
    ),
    Entry(
        "cod-rna",
        (SON, PROS),
        "binary",
        f"{LIBSVM}: cod-rna",
        (
            _of("cod-rna.t", n=271617, d=8, at=_libsvm("binary/cod-rna.t"), tested=False, **DENSE),
            _of("cod-rna.train", n=59535, d=8, part="the training file; the papers have cod-rna.t", target="1", scale="minmax"),
        ),
    ),
    Entry(
        "covtype",
        (SON,),
        "7 classes",
        f"{UCI}: Covertype",
        (
            _of("covtype.data", n=581012, d=54, at=(COVTYPE,), tested=False, scale="minmax"),
            _of("covtype.20k.data", n=20000, d=54, part="20,000 of 581,012 rows", scale="minmax"),
        ),
        positive_class=2,  # lodgepole pine, about half of all rows
    ),
    Entry("diabetes", (SON,), "binary", f"{LIBSVM}: diabetes", (_of("diabetes", n=768, d=8, at=_libsvm("binary/diabetes"), **DENSE),)),
    Entry(
        "gisette",
        (SON,),
        "binary",
        f"{LIBSVM}: gisette",
        (
            _of(
                "gisette_scale",
                "gisette_scale.t",
                n=7000,
                d=5000,
                at=_libsvm("binary/gisette_scale.bz2", "binary/gisette_scale.t.bz2"),
                n_features=5000,
                layout="dense",
                tested=False,
            ),
        ),
    ),
    Entry(
        "heart", (SON,), "binary", f"{LIBSVM}: heart", (_of("heart_scale", n=270, d=13, at=_libsvm("binary/heart_scale"), layout="dense"),)
    ),
    Entry(
        "ijcnn1",
        (SON, PROS),
        "binary",
        f"{LIBSVM}: ijcnn1",
        (_of("ijcnn1", "ijcnn1.t", n=141691, d=22, at=_libsvm("binary/ijcnn1.bz2", "binary/ijcnn1.t.bz2"), **DENSE),),
    ),
    Entry(
        "ionosphere",
        (SON,),
        "binary",
        f"{UCI}: Ionosphere",
        (_of("ionosphere.data", n=351, d=34, at=(IONOSPHERE,), labels="g=1,b=-1", **RAW_CSV),),
    ),
    Entry(
        "letter",
        (SON,),
        "26 classes",
        f"{UCI}: Letter Recognition",
        (_of("letter-recognition.data", n=20000, d=16, at=(LETTER,), target="1", labels="letters", task="classification", **RAW_CSV),),
        positive_class=1,  # A
    ),
    Entry(
        "magic04",
        (SON,),
        "binary",
        f"{UCI}: MAGIC Gamma Telescope",
        (_of("magic04.data", n=19020, d=10, at=(_uci("159/magic+gamma+telescope.zip", "magic04.data"),), labels="g=1,h=-1", **RAW_CSV),),
    ),
    Entry(
        "mnist",
        (SON,),
        "10 classes",
        "OpenML (openml.org, data set 554): mnist_784, as CSV with the digit last",
        (
            _of("mnist_784.csv", n=70000, d=784, tested=False, **PIXELS),
            _of("mnist_test.csv", n=10000, d=784, part="the 10,000 test digits of 70,000", **PIXELS),
        ),
        positive_class=8,
    ),
    Entry(
        "mushrooms",
        (SON,),
        "binary",
        f"{LIBSVM}: mushrooms",
        (_of("mushrooms", n=8124, d=112, at=_libsvm("binary/mushrooms"), labels="1=1,2=-1"),),
    ),
    Entry(
        "rcv1",
        (SON,),
        "binary",
        f"{LIBSVM}: rcv1.binary",
        (
            _of(
                "rcv1_train.binary",
                "rcv1_test.binary",
                n=697641,
                d=47236,
                at=_libsvm("binary/rcv1_train.binary.bz2", "binary/rcv1_test.binary.bz2"),
                n_features=47236,
                tested=False,
            ),
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
    Entry(
        "real-sim",
        (SON,),
        "binary",
        f"{LIBSVM}: real-sim",
        (_of("real-sim", n=72309, d=20958, at=_libsvm("binary/real-sim.bz2"), tested=False),),
    ),
    Entry(
        "splice",
        (SON,),
        "binary",
        f"{LIBSVM}: splice",
        (
            _of("splice", "splice.t", n=3175, d=60, at=_libsvm("binary/splice", "binary/splice.t"), tested=False, **DENSE),
            _of("splice.txt", n=3175, d=60, **DENSE),
        ),
    ),
    Entry("w1a", (SON,), "binary", f"{LIBSVM}: w1a", (_of("w1a", n=2477, d=300, at=_libsvm("binary/w1a"), n_features=300),)),
    Entry(
        "w8a",
        (SON,),
        "binary",
        f"{LIBSVM}: w8a",
        (_of("w8a", "w8a.t", n=64700, d=300, at=_libsvm("binary/w8a", "binary/w8a.t"), n_features=300),),
    ),
    Entry(
        "cadata",
        (PROS,),
        "regression",
        f"StatLib: California housing, as CSV with a header; or {LIBSVM_REGRESSION}: cadata",
        (
            _of("cal_housing.csv", n=20640, d=8, target="median_house_value", scale="minmax"),
            _of("cadata", n=20640, d=8, at=_libsvm("regression/cadata"), tested=False, task="regression", **DENSE),
        ),
    ),
    Entry(
        "casp",
        (PROS,),
        "regression",
        f"{UCI}: Physicochemical Properties of Protein Tertiary Structure",
        (
            _of(
                "CASP.csv",
                n=45730,
                d=9,
                at=(_uci("265/physicochemical+properties+of+protein+tertiary+structure.zip", "CASP.csv"),),
                target="RMSD",
                scale="minmax",
            ),
        ),
    ),
    Entry(
        "cpusmall",
        (PROS,),
        "regression",
        f"Delve: comp-activ, the small variant, as CSV with a header; or {LIBSVM_REGRESSION}: cpusmall",
        (
            _of("cpu.small.csv", n=8192, d=12, target="usr", scale="minmax"),
            _of("cpusmall", n=8192, d=12, at=_libsvm("regression/cpusmall"), tested=False, task="regression", **DENSE),
        ),
    ),
    Entry(
        "parkinsons",
        (PROS,),
        "regression",
        f"{UCI}: Parkinsons Telemonitoring",
        (_of("parkinsons_updrs.data", n=5875, d=20, at=(PARKINSONS,), target="total_UPDRS", drop=("motor_UPDRS",), scale="minmax"),),
    ),
    Entry(
        "slice",
        (PROS,),
        "regression",
        f"{UCI}: Relative location of CT slices on axial axis",
        (
            _of(
                "slice_localization_data.csv",
                n=53500,
                d=384,
                at=(SLICE,),
                target="reference",
                drop=("patientId",),
                scale="minmax",
                tested=False,
            ),
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
            _of(
                "YearPredictionMSD.txt",
                n=515345,
                d=90,
                at=(_uci("203/yearpredictionmsd.zip", "YearPredictionMSD.txt"),),
                target="1",
                scale="minmax",
                tested=False,
            ),
            _of("millionsong.txt", n=6719, d=12, part="a teaching subset: 6,719 rows of 12 features", target="1", scale="minmax"),
        ),
    ),
    Entry(
        "german", (), "binary", f"{LIBSVM}: german.numer", (_of("german.numer", n=1000, d=24, at=_libsvm("binary/german.numer"), **DENSE),)
    ),
    Entry(
        "sector",
        (),
        "105 classes",
        f"{LIBSVM_MULTI}: sector",
        (
            _of(
                "sector.scale",
                "sector.t.scale",
                n=9619,
                d=55197,
                at=_libsvm("multiclass/sector/sector.scale.bz2", "multiclass/sector/sector.t.scale.bz2"),
                n_features=55197,
                scale="unit-rows",
            ),
        ),
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
    lines += addresses_of(entry.editions[0])
    for edition in entry.editions[1:]:
        lines += [f"  or {edition_text(edition)}", *addresses_of(edition)]
    lines.append("  plain, .gz, .bz2, .xz or .zst, in a folder of your choice or in its subfolder named like the dataset; then")
    lines.append(f"  koco prepare {entry.name} --from FOLDER")
    return "\n".join(lines)


def addresses_of(edition: Edition) -> list[str]:
    """Where an edition's files are, each on a line; none if the source is known in words only."""
    return [f"    {address.text()}" for address in edition.addresses]


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
