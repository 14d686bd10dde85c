import gc

import psutil
import pytest


@pytest.fixture(autouse=True, scope="module")
def no_process_is_left():
    """No file of tests leaves a process, alive or waiting to be reaped."""
    before = psutil.Process().children(recursive=True)
    yield
    gc.collect()
    assert [p for p in psutil.Process().children(recursive=True) if p not in before] == []
