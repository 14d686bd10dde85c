"""What the key of compiled code in the cache covers."""

import pytest

from koco_stream.learners import LEARNERS
from koco_stream.learners.scan import scan_rows
from koco_stream.numerics.compiler import UNCOMPILED, closure_hash

# The file that has a learner's state, whose methods the shared step calls, or the functions that
# are bound to names of its step
OF_SKETCH = {
    "OjaSON": "oja_son",
    "RPSON": "rp_son",
    "FDSON": "frequent_directions",
    "RFDSON": "frequent_directions",
    "SAdaGrad": "frequent_directions",
    "AdaFD": "frequent_directions",
}


@pytest.mark.skipif(UNCOMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("name", OF_SKETCH)
def test_key_of_a_scan__covers_the_functions_that_its_step_calls_by_other_names(name):
    """Or a change to one of them would leave the scan that has its old code."""
    scan = LEARNERS[name].compiled(scan_rows, "step", "full")
    covered = {function.__module__ for function in scan.bound}
    assert f"koco_stream.learners.linear.{OF_SKETCH[name]}" in covered


@pytest.mark.skipif(UNCOMPILED, reason="nothing is compiled")
def test_key_of_code_that_calls_a_states_methods__covers_their_file():
    from numba import typeof

    from koco_stream.numerics.reference_type import Reference

    state = LEARNERS["OjaSON"](2).partial_fit([[1.0]], [1.0])._state
    code = closure_hash(frozenset({"koco_stream.learners.linear.oja_sketch"}))
    assert code in Reference(typeof(state)).name
