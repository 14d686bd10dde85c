"""The files of the real datasets: options of preparing, and the rows and features that their
publishers say.
"""

D = "--n-features"

ADULT = ["--labels", "<=50K=-1,>50K=1", "--one-hot", "--no-header"]

FILES = [
    ("cpusmall/cpu.small.csv.xz", ["--target", "usr"], 8192, 12),
    ("cadata/cal_housing.csv.xz", ["--target", "median_house_value"], 20640, 8),
    (
        "parkinsons/parkinsons_updrs.data.xz",
        ["--target", "total_UPDRS", "--drop", "motor_UPDRS"],
        5875,
        20,
    ),
    ("casp/CASP.csv.xz", ["--target", "RMSD"], 45730, 9),
    ("ijcnn1/ijcnn1.xz", [], 49990, 22),
    ("ijcnn1/ijcnn1.t.xz", [], 91701, 22),
    ("cod-rna/cod-rna.train.xz", ["--target", "1"], 59535, 8),
    (
        "slice/slice_localization_data.first682.csv.xz",
        ["--target", "reference", "--drop", "patientId"],
        682,
        384,
    ),
    ("year/millionsong.txt.xz", ["--target", "1"], 6719, 12),
    ("20news/20news-bydate.tar.xz", ["--strip", "headers,footers,quotes"], 18846, 101631),
    ("20news/20news_bow_counts.svm.xz", [], 18846, 101631),
    ("rcv1/rcv1_small.dat.xz", ["--one-based", D, "47236"], 1000, 47236),
    ("rcv1/rcv1_small_test.data.xz", ["--one-based", D, "47236"], 500, 47236),
    ("w8a/w8a.xz", [], 49749, 300),
    ("w8a/w8a.t.xz", [D, "300"], 14951, 300),
    ("a9a/a9a.xz", [], 32561, 123),
    ("a9a/a9a.t.xz", [D, "123"], 16281, 123),
    ("w1a/w1a.xz", [D, "300"], 2477, 300),
    ("adult/adult.data.xz", ADULT, 32561, 108),
    ("adult/adult.test.xz", ADULT, 16281, 107),
    ("australian/australian.xz", [], 690, 14),
    ("breast-cancer/breast-cancer_scale.xz", [], 683, 10),
    (
        "census/census-income.test.xz",
        ["--labels", "- 50000.=-1,50000+.=1", "--one-hot", "--no-header"],
        99762,
        408,
    ),
    ("covtype/covtype.20k.data.xz", [], 20000, 54),
    ("diabetes/diabetes.xz", [], 768, 8),
    ("german/german.numer.xz", [], 1000, 24),
    ("heart/heart_scale.xz", [], 270, 13),
    ("ionosphere/ionosphere.data.xz", ["--labels", "g=1,b=-1", "--no-header"], 351, 34),
    (
        "letter/letter-recognition.data.xz",
        ["--target", "1", "--labels", "letters", "--no-header"],
        20000,
        16,
    ),
    ("magic04/magic04.data.xz", ["--labels", "g=1,h=-1", "--no-header"], 19020, 10),
    ("mnist/mnist_test.csv.xz", [], 10000, 784),
    ("mushrooms/mushrooms.xz", [], 8124, 112),
    ("splice/splice.txt.xz", [], 3175, 60),
    ("sector/sector.scale.xz", [], 6412, 55197),
    ("sector/sector.t.scale.xz", [D, "55197"], 3207, 55197),
]
