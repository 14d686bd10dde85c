"""Every file of the real datasets is prepared from the command line, and has the rows and features
that its publisher says.
"""

import json

import pytest
from click.testing import CliRunner

from flows.cli import koco
from tests.helpers.real_files import FILES

# (file, options, n, d): d is the number of features after one-hot where columns are texts


@pytest.mark.data
@pytest.mark.parametrize(("file", "options", "n", "d"), FILES, ids=[file for file, *_ in FILES])
def test_file__has_its_publisher_s_size(file, options, n, d, data_folder, tmp_path):
    command = [
        "prepare",
        "x",
        "--from",
        str(data_folder / file),
        "--store",
        str(tmp_path / "store"),
        "--json",
        *options,
    ]
    done = CliRunner().invoke(koco, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    manifest = json.loads(done.stdout)
    assert (manifest["n_rows"], manifest["n_features"]) == (n, d)


@pytest.mark.data
def test_all_files_are_here(data_folder):
    there = {str(path.relative_to(data_folder)) for path in data_folder.rglob("*.xz")}
    assert there == {file for file, *_ in FILES}
