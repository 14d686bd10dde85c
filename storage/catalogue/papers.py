"""The catalogue: the datasets of the papers, which files they are, where these come from and how
they are prepared.

A literal table. An entry has editions, the whole one first: the same data may be known as other
files, or as a part. An address stands here only where the publisher is known to have the file under
it; where there is none, the source is named in words.
"""

from typing import Any

from storage.catalogue.entry import Address, Edition, Entry

SON = "SON 2016"
PROS = "PROS-N-KONS 2017"

LIBSVM = "LIBSVM data sets, binary classification"
LIBSVM_REGRESSION = "LIBSVM data sets, regression"
LIBSVM_MULTI = "LIBSVM data sets, multi-class classification"
UCI = "UCI Machine Learning Repository"
LIBSVM_FILES = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI_FILES = "https://archive.ics.uci.edu/static/public/"


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
    return tuple(
        Address(LIBSVM_FILES + path, sha256=known)
        for path, known in zip(paths, sha256 or (None,) * len(paths), strict=True)
    )


def _uci(archive: str, *member: str, sha256: str | None = None, skip_lines: int = 0) -> Address:
    return Address(UCI_FILES + archive, member, sha256, skip_lines)


DENSE: dict[str, Any] = {"layout": "dense", "scale": "minmax"}
RAW_CSV: dict[str, Any] = {"scale": "minmax", "header": False}
ADULT: dict[str, Any] = {
    "labels": "<=50K=-1,>50K=1",
    "one_hot": True,
    "header": False,
    "scale": "minmax",
}
BREAST_CANCER = (  # benign and malignant: LIBSVM has 2 and 4, other copies −1 and +1
    "2=-1,4=1,-1=-1,1=1"
)
CENSUS: dict[str, Any] = {
    "labels": "- 50000.=-1,50000+.=1",
    "one_hot": True,
    "header": False,
    "scale": "minmax",
}
NEWS: dict[str, Any] = {
    "format": "documents",
    "strip": ("headers", "footers", "quotes"),
    "scale": "unit-rows",
}
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
    _uci(
        "2/adult.zip",
        "adult.data",
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    _uci(
        "2/adult.zip",
        "adult.test",
        sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        skip_lines=1,
    ),
)
CENSUS_FILES = tuple(
    _uci("117/census+income+kdd.zip", "census.tar.gz", name)
    for name in ("census-income.data", "census-income.test")
)
COVTYPE = _uci(
    "31/covertype.zip",
    "covtype.data.gz",
    sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
)
IONOSPHERE = _uci(
    "52/ionosphere.zip",
    "ionosphere.data",
    sha256="46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd",
)
LETTER = _uci(
    "59/letter+recognition.zip",
    "letter-recognition.data",
    sha256="2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2",
)
NEWS_ARCHIVE = (
    Address(  # scikit-learn's copy of 20news-bydate.tar.gz: qwone.com does not offer https
        "https://ndownloader.figshare.com/files/5975967",
        sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        suffix=".gz",
    )
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
        "20 Newsgroups, 20news-bydate (qwone.com/~jason/20Newsgroups): the messages, or the counts"
        " of their words as LIBSVM text, both without headers, footers and quotes",
        (
            _of("20news_bow_counts.svm", n=18846, d=101631, scale="unit-rows"),
            _of("20news-bydate.tar", n=18846, d=101631, at=(NEWS_ARCHIVE,), tested=False, **NEWS),
        ),
        positive_class=8,  # rec.autos
    ),
    Entry(
        "a9a",
        (SON,),
        "binary",
        f"{LIBSVM}: a9a",
        (_of("a9a", "a9a.t", n=48842, d=123, at=A9A, n_features=123),),
    ),
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
    Entry(
        "adult",
        (SON,),
        "binary",
        f"{UCI}: Adult",
        (_of("adult.data", "adult.test", n=48842, d=108, at=ADULT_FILES, **ADULT),),
    ),
    Entry(
        "australian",
        (SON,),
        "binary",
        f"{LIBSVM}: australian",
        (_of("australian", n=690, d=14, at=_libsvm("binary/australian"), **DENSE),),
    ),
    Entry(
        "breast-cancer",
        (SON,),
        "binary",
        f"{LIBSVM}: breast-cancer",
        (
            _of(
                "breast-cancer_scale",
                n=683,
                d=10,
                at=_libsvm("binary/breast-cancer_scale"),
                labels=BREAST_CANCER,
                layout="dense",
            ),
        ),
    ),
    Entry(
        "census",
        (SON,),
        "binary",
        f"{UCI}: Census-Income (KDD)",
        (
            _of(
                "census-income.data",
                "census-income.test",
                n=299285,
                d=None,
                at=CENSUS_FILES,
                tested=False,
                **CENSUS,
            ),
            _of(
                "census-income.test",
                n=99762,
                d=408,
                part="the test file, a third of the rows",
                **CENSUS,
            ),
        ),
    ),
    Entry(
        "cod-rna",
        (SON, PROS),
        "binary",
        f"{LIBSVM}: cod-rna",
        (
            _of("cod-rna.t", n=271617, d=8, at=_libsvm("binary/cod-rna.t"), tested=False, **DENSE),
            _of(
                "cod-rna.train",
                n=59535,
                d=8,
                part="the training file; the papers have cod-rna.t",
                target="1",
                scale="minmax",
            ),
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
    Entry(
        "diabetes",
        (SON,),
        "binary",
        f"{LIBSVM}: diabetes",
        (_of("diabetes", n=768, d=8, at=_libsvm("binary/diabetes"), **DENSE),),
    ),
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
        "heart",
        (SON,),
        "binary",
        f"{LIBSVM}: heart",
        (_of("heart_scale", n=270, d=13, at=_libsvm("binary/heart_scale"), layout="dense"),),
    ),
    Entry(
        "ijcnn1",
        (SON, PROS),
        "binary",
        f"{LIBSVM}: ijcnn1",
        (
            _of(
                "ijcnn1",
                "ijcnn1.t",
                n=141691,
                d=22,
                at=_libsvm("binary/ijcnn1.bz2", "binary/ijcnn1.t.bz2"),
                **DENSE,
            ),
        ),
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
        (
            _of(
                "letter-recognition.data",
                n=20000,
                d=16,
                at=(LETTER,),
                target="1",
                labels="letters",
                task="classification",
                **RAW_CSV,
            ),
        ),
        positive_class=1,  # A
    ),
    Entry(
        "magic04",
        (SON,),
        "binary",
        f"{UCI}: MAGIC Gamma Telescope",
        (
            _of(
                "magic04.data",
                n=19020,
                d=10,
                at=(_uci("159/magic+gamma+telescope.zip", "magic04.data"),),
                labels="g=1,h=-1",
                **RAW_CSV,
            ),
        ),
    ),
    Entry(
        "mnist",
        (SON,),
        "10 classes",
        "OpenML (openml.org, data set 554): mnist_784, as CSV with the digit last",
        (
            _of("mnist_784.csv", n=70000, d=784, tested=False, **PIXELS),
            _of(
                "mnist_test.csv", n=10000, d=784, part="the 10,000 test digits of 70,000", **PIXELS
            ),
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
            _of(
                "splice",
                "splice.t",
                n=3175,
                d=60,
                at=_libsvm("binary/splice", "binary/splice.t"),
                tested=False,
                **DENSE,
            ),
            _of("splice.txt", n=3175, d=60, **DENSE),
        ),
    ),
    Entry(
        "w1a",
        (SON,),
        "binary",
        f"{LIBSVM}: w1a",
        (_of("w1a", n=2477, d=300, at=_libsvm("binary/w1a"), n_features=300),),
    ),
    Entry(
        "w8a",
        (SON,),
        "binary",
        f"{LIBSVM}: w8a",
        (
            _of(
                "w8a",
                "w8a.t",
                n=64700,
                d=300,
                at=_libsvm("binary/w8a", "binary/w8a.t"),
                n_features=300,
            ),
        ),
    ),
    Entry(
        "cadata",
        (PROS,),
        "regression",
        f"StatLib: California housing, as CSV with a header; or {LIBSVM_REGRESSION}: cadata",
        (
            _of("cal_housing.csv", n=20640, d=8, target="median_house_value", scale="minmax"),
            _of(
                "cadata",
                n=20640,
                d=8,
                at=_libsvm("regression/cadata"),
                tested=False,
                task="regression",
                **DENSE,
            ),
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
                at=(
                    _uci(
                        "265/physicochemical+properties+of+protein+tertiary+structure.zip",
                        "CASP.csv",
                    ),
                ),
                target="RMSD",
                scale="minmax",
            ),
        ),
    ),
    Entry(
        "cpusmall",
        (PROS,),
        "regression",
        f"Delve: comp-activ, the small variant, as CSV with a header; or {LIBSVM_REGRESSION}:"
        " cpusmall",
        (
            _of("cpu.small.csv", n=8192, d=12, target="usr", scale="minmax"),
            _of(
                "cpusmall",
                n=8192,
                d=12,
                at=_libsvm("regression/cpusmall"),
                tested=False,
                task="regression",
                **DENSE,
            ),
        ),
    ),
    Entry(
        "parkinsons",
        (PROS,),
        "regression",
        f"{UCI}: Parkinsons Telemonitoring",
        (
            _of(
                "parkinsons_updrs.data",
                n=5875,
                d=20,
                at=(PARKINSONS,),
                target="total_UPDRS",
                drop=("motor_UPDRS",),
                scale="minmax",
            ),
        ),
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
            _of(
                "millionsong.txt",
                n=6719,
                d=12,
                part="a teaching subset: 6,719 rows of 12 features",
                target="1",
                scale="minmax",
            ),
        ),
    ),
    Entry(
        "german",
        (),
        "binary",
        f"{LIBSVM}: german.numer",
        (_of("german.numer", n=1000, d=24, at=_libsvm("binary/german.numer"), **DENSE),),
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
                at=_libsvm(
                    "multiclass/sector/sector.scale.bz2", "multiclass/sector/sector.t.scale.bz2"
                ),
                n_features=55197,
                scale="unit-rows",
            ),
        ),
        positive_class=1,
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}
