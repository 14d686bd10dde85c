"""The contract as users run it on a learner of their own: it finds what is wrong, in words."""

import pytest

from koco_stream.learners import learner_called, learner_named
from koco_stream.learners.contract import check_contract
from tests.helpers.project import ROOT

INIT = "return State(np.zeros(n_features))"
PREDICTED = "    y_hat = forward(params, s, idx, val)\n    if"
EMPTY = "        return 0.0  # an empty row\n"
CLASS = "    def __init__("
ADVANCE = """    @classmethod
    def advance(cls, params, state, rows, labels, predictions):
        if (np.diff(rows.indptr) == 0).any():
            raise IndexError("no values")
        return super().advance(params, state, rows, labels, predictions)

"""
SAVE = """    def save(self, path):
        self._state.w[:3] = 0.0
        super().save(path)

"""
# the texts of the example that are replaced, and what is said then
FAULTS = {
    "state kept outside": (
        {
            "class State(": "KEPT = np.zeros(99)\n\n\nclass State(",
            INIT: "return State(KEPT[:n_features])",
        },
        "kept outside the state",
    ),
    "numbers that depend on the time": (
        {
            "import math\n": "import math\nimport time\n",
            INIT: "return State(np.full(n_features, time.time() // 3600 * 1e-7))",
        },
        "depend on the time",
    ),
    "a state read by position": (
        {PREDICTED: f"    w = s[0]\n{PREDICTED}"},
        "read their fields by name",
    ),
    "a state taken apart": ({PREDICTED: f"    (w,) = s\n{PREDICTED}"}, "read their fields by name"),
    "an allocation": ({PREDICTED: f"    val = val + np.zeros(val.size)\n{PREDICTED}"}, "allocates"),
    "a global random generator": (
        {INIT: "return State(np.random.standard_normal(n_features))"},
        "global random generator",
    ),
    "a row that is changed": ({EMPTY: f"{EMPTY}    val[0] *= 0.5\n"}, "writes to the row"),
    "NaN": ({EMPTY: f"{EMPTY}    if y_hat > 0.5:\n        return math.nan\n"}, "is nan"),
    "an exception on the empty row": ({CLASS: ADVANCE + CLASS}, "IndexError: no values"),
    "a save that forgets": ({CLASS: SAVE + CLASS}, "saved and loaded"),
}


def found_in(folder, changes):
    """What is found in the example with these texts replaced."""
    text = (ROOT / "examples" / "nlms.py").read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "nlms.py").write_text(text)
    learner = learner_named(learner_called("nlms.py:NLMS", folder))
    return [outcome.found for outcome in check_contract(learner) if outcome.found]


def test_example__keeps_every_promise(tmp_path):
    assert found_in(tmp_path, {}) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_fault__is_found_in_words(fault, tmp_path):
    changes, said = FAULTS[fault]
    found = found_in(tmp_path, changes)
    assert any(said in one for one in found), found
