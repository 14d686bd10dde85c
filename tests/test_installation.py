"""What is installed: the library alone is light, and a missing part is named."""

import re
import subprocess
import sys
import tomllib

import pytest

import koco_stream
from koco_stream.extras import EXTRAS
from tests.helpers.project import ROOT, environment

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# modules whose distribution has another name
DISTRIBUTIONS = {"sklearn": "scikit-learn", "vl_convert": "vl-convert-python", "yaml": "pyyaml"}
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = {words!r}
{code}
"""
COMMAND = "from flows.__main__ import main; main()"


def python(code, modules=(), words=("koco",)):
    """Run code in a Python that lacks some modules."""
    text = WITHOUT.format(modules=set(modules), words=list(words), code=code)
    return subprocess.run(
        [sys.executable, "-c", text], env=environment(), capture_output=True, text=True
    )


def names(requirements):
    return {re.split(r"[<>=\[ ]", text)[0] for text in requirements}


def test_library__runs_with_its_own_dependencies_alone():
    code = """
import warnings
import numpy as np, koco_stream
X = np.eye(3)
for name in ("OGD", "NORMA"):
    model = getattr(koco_stream, name)()
    model.progressive(X, np.ones(3))
    model.record(X, np.ones(3))
model = koco_stream.Classifier(koco_stream.OGD(0.1))
try:
    model.predict(X)
except AttributeError as error:
    print(error)
with warnings.catch_warnings(record=True) as seen:
    koco_stream.OGD(0.1).fit(X, np.ones((3, 1)))
print(seen[0].message)
print(model.fit(X, ["a", "b", "a"]).score(X, ["a", "b", "a"]))
"""
    done = python(code, EXTRAS)
    assert done.returncode == 0, done.stderr
    not_fitted, column, score = done.stdout.splitlines()
    assert "not fitted yet" in not_fitted
    assert "column-vector" in column
    assert score == "1.0"
    assert names(PROJECT["dependencies"]) == {"numba", "numpy", "pyarrow", "scipy"}


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("click", ["--help"]),
        ("distributed", ["sweep", "ill-conditioned", "--dry-run"]),
        ("prefect", ["serve"]),
        ("cryptography", ["cluster", "certificates", "--host", "localhost", "certificates"]),
    ],
)
def test_command__names_the_extra_that_it_lacks(module, words, tmp_path):
    store = [] if module == "cryptography" or words == ["--help"] else ["--store", str(tmp_path)]
    done = python(COMMAND, [module], ["koco", *words, *store])
    assert done.returncode == 2, done.stderr
    assert f"pip install 'koco-stream[{EXTRAS[module]}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_sweep__runs_without_what_other_extras_install(tmp_path):
    others = [module for module, extra in EXTRAS.items() if extra != "sweep"]
    file = tmp_path / "one.toml"
    file.write_text(
        'name = "one"\n[[dataset]]\nname = "ill-conditioned"\nn_rows = 50\n'
        '[[learner]]\nname = "OGD"\n'
    )
    words = ["koco", "sweep", str(file), "--store", str(tmp_path / "store"), "--workers", "0"]
    done = python(COMMAND, others, words)
    assert done.returncode == 0, done.stderr


def test_extras__install_the_modules_that_they_are_named_for():
    extras = {name: names(wanted) for name, wanted in PROJECT["optional-dependencies"].items()}
    for module, extra in EXTRAS.items():
        wanted = DISTRIBUTIONS.get(module, module).replace("_", "-")
        assert wanted in extras[extra]
    caps = [
        text
        for wanted in PROJECT["optional-dependencies"].values()
        for text in [*wanted, *PROJECT["dependencies"]]
        if "<" in text or "==" in text
    ]
    assert sorted(set(caps)) == ["fastapi<0.151", "prefect==3.8.8", "sqlalchemy<2.1"]


@pytest.mark.parametrize("name", ["storage", "cluster"])
def test_other_package_of_our_name__is_named(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    more = environment(PYTHONPATH=f"{tmp_path}:{ROOT}")
    words = [sys.executable, "-c", COMMAND]
    done = subprocess.run(words, env=more, capture_output=True, text=True, cwd="/")
    assert done.returncode == 2
    assert f"{tmp_path / name}" in done.stderr
    assert "PYTHONPATH" in done.stderr


def test_version__is_the_packages(koco):
    assert koco("--version", status=0).stdout == f"koco {koco_stream.__version__}\n"


def test_dir__lists_what_is_public_and_nothing_else():
    """What a newcomer sees after `koco_stream.<Tab>`, also once submodules were loaded."""
    import koco_stream
    import koco_stream.engine.cohort

    assert dir(koco_stream) == sorted(koco_stream.__all__)
    assert all(getattr(koco_stream, name) is not None for name in dir(koco_stream))
