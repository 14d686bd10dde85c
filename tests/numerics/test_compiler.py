"""What the key of compiled code in the cache covers."""

import pytest

from koco_stream.learners import LEARNERS
from koco_stream.learners.scan import scan_rows
from koco_stream.numerics.compiler import UNCOMPILED

# The file of the functions that `with_sketch` binds to the names of the shared step
OF_SKETCH = {
    "OjaSON": "oja_son",
    "RPSON": "rp_son",
    "FDSON": "fd_son",
    "RFDSON": "eigen_round",
    "SAdaGrad": "eigen_round",
    "AdaFD": "eigen_round",
}


@pytest.mark.skipif(UNCOMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("name", OF_SKETCH)
def test_key_of_a_scan__covers_the_functions_that_its_step_calls_by_bound_names(name):
    """Or a change to one of them would leave the scan that has its old code."""
    scan = LEARNERS[name].compiled(scan_rows, "step", "full")
    covered = {function.__module__ for function in scan.bound}
    assert f"koco_stream.learners.linear.{OF_SKETCH[name]}" in covered
