"""All JSON that is written is JSON: without NaN and infinities."""

import math
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koco_stream.io.files import canonical_json, finite, json_text
from tests.helpers.in_process import strict
from tests.helpers.project import ROOT

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@given(VALUES)
def test_text__is_strict_json_of_the_value_with_null_for_what_is_not_finite(value):
    assert strict(json_text(value)) == finite(value)
    assert strict(canonical_json(finite(value))) == finite(value)


def test_numbers_that_are_not_finite__are_null_wherever_they_stand():
    nan, inf = math.nan, math.inf
    given = {"a": nan, "b": [inf, (1.5, -inf)], "c": datetime(2026, 1, 1, tzinfo=UTC)}
    found = {"a": None, "b": [None, [1.5, None]], "c": "2026-01-01 00:00:00+00:00"}
    assert strict(json_text(given)) == found
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(given["b"])


def test_nothing_else__writes_json():
    packages = ("koco_stream", "storage", "cluster", "flows")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    files.append(ROOT / "tests" / "bench" / "claims.py")  # of the speeds in the documentation
    writing = [file for file in files if re.search(r"\bjson\.dumps?\b", file.read_text())]
    assert [str(file.relative_to(ROOT)) for file in writing] == ["koco_stream/io/files.py"]
