"""What would be released: the wheel and the sdist are built from a copy of the project, and the
wheel is used in an empty virtual environment, outside of the project.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest

from tests.helpers.project import ROOT

# what git has; without it, a test of an unpacked project copies what it finds
NOT_COPIED = (".git", ".cache", ".venv*", "build", "*.egg-info", "__pycache__", ".*_cache", "store")


def run(*words, cwd, **more):
    """Run a program without this project on its path; what it prints."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=kept | more, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("release")
    copy = folder / "project"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    tried = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "setuptools",
            "-d",
            folder / "x",
        ],
        capture_output=True,
    )
    if tried.returncode:
        pytest.skip("needs a package index, to build and to install")
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", copy, cwd=folder)
    return folder / "dist"


def test_wheel__has_the_four_packages_and_their_files_and_nothing_else(released):
    [wheel] = released.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    info = f"{wheel.name.rsplit('-', 3)[0]}.dist-info"
    assert {name.partition("/")[0] for name in names} == {
        *("koco_stream", "storage", "cluster", "flows"),
        info,
    }
    packages = {
        str(file.relative_to(ROOT).parent)
        for package in ("koco_stream", "storage", "cluster", "flows")
        for file in (ROOT / package).rglob("*.py")
    }
    assert packages == {os.path.dirname(name) for name in names if name.endswith(".py")}
    for pattern in ("flows/sweeps/*.toml", "flows/templates/*", "cluster/sites/*.yaml"):
        assert {str(file.relative_to(ROOT)) for file in ROOT.glob(pattern)} <= set(names)
    metadata = zipfile.ZipFile(wheel).read(f"{info}/METADATA").decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for classifier in project["classifiers"]:
        assert f"Classifier: {classifier}\n" in metadata
    assert "License-Expression: BSD-3-Clause" in metadata
    body = metadata.partition("\n\n")[2]
    assert [link for link in re.findall(r"\]\(([^)]+)\)", body) if ":" not in link] == []


def test_sdist__builds_the_same_wheel(released, tmp_path):
    [sdist] = released.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    assert (unpacked / "LICENSE").is_file()
    run(
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--outdir",
        tmp_path / "dist",
        unpacked,
        cwd=tmp_path,
    )
    [mine], [other] = released.glob("*.whl"), (tmp_path / "dist").glob("*.whl")
    contents = [
        {name: archive.read(name) for name in archive.namelist()}
        for archive in map(zipfile.ZipFile, (mine, other))
    ]
    assert contents[0] == contents[1]


def test_wheel__in_an_empty_environment_runs_the_quick_start_and_a_sweep_by_name(
    released, tmp_path
):
    [wheel] = released.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python, koco = tmp_path / "venv/bin/python", tmp_path / "venv/bin/koco"
    constraints = ("-c", ROOT / "constraints.txt")
    cache = {"KOCO_CACHE": str(tmp_path / "cache")}
    run(python, "-m", "pip", "install", "-q", *constraints, wheel, cwd=tmp_path)
    installed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).splitlines()
    assert len([line for line in installed if not line.startswith(("pip=", "setuptools="))]) <= 8
    first, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert run(python, "-c", first, cwd=tmp_path, **cache).startswith("progressive error 0.")
    run(python, "-m", "pip", "install", "-q", *constraints, f"{wheel}[sweep]", cwd=tmp_path)
    assert "prefect" not in run(python, "-m", "pip", "list", cwd=tmp_path).lower()
    sweep = ("sweep", "ill-conditioned", "--store", "s")
    assert run(koco, *sweep, cwd=tmp_path, **cache).splitlines()[-1].startswith("report: ")
    assert "ill-conditioned" in run(koco, "sweep", "--list", cwd=tmp_path, **cache)
