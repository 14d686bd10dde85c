"""Reports of searches: many values make no crowd of lines, and no line joins what differs."""

import re

import pytest

from flows.report.document import write_report
from flows.report.sections.lines import MOST_SIZES, READ, results_of
from flows.report.sections.parameters import is_scattered
from flows.tables.sweep_runs import runs_of
from tests.helpers.swept import swept

SEARCH = """
[search]
method = "sobol"
samples = 32
[[dataset]]
name = "ill-conditioned"
n_rows = 60
[[learner]]
name = "OjaSON"
sketch_size = { integer = [0, LAST] }
alpha = { log_uniform = [1e-2, 1e2] }
[[learner]]
name = "AdaGrad"
step_size = { log_uniform = [1e-2, 1e2] }
"""


@pytest.mark.parametrize("last", [MOST_SIZES - 1, MOST_SIZES])
def test_sketch_sizes__have_lines_of_their_own_if_they_are_few(last, tmp_path):
    swept(tmp_path, SEARCH.replace("LAST", str(last)))
    store = tmp_path / "store"
    [stream] = results_of(runs_of(store, "tiny", READ)).streams
    lines = {line.name: line for line in stream.lines}
    sizes = [f"OjaSON m = {size}" for size in range(last + 1)] if last < MOST_SIZES else ["OjaSON"]
    assert lines.keys() == {"AdaGrad", *sizes}
    assert sum(len(line.configurations) for line in lines.values()) == 64
    assert not is_scattered(lines["AdaGrad"], "step_size")  # nothing else of it is drawn
    if last == MOST_SIZES:
        assert is_scattered(lines["OjaSON"], "alpha")
        assert lines["OjaSON"].best.params["sketch_size"] in range(last + 1)
    page = write_report(str(store), "tiny").read_text()
    assert len(re.findall("<svg", page)) > 2
