"""Saved models whose footer was written by someone else, with hashes that fit: each is loaded, or
refused in words.
"""

import copy
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from koco_stream import OGD, PROSNKONS, Classifier, OjaSON, WrongInput
from koco_stream.io.array_file import ARRAYS, HEADER
from koco_stream.io.paths import store_path
from koco_stream.io.table_file import write_tables
from koco_stream.learners import LEARNERS
from koco_stream.learners.saved import read_model, revived
from tests.helpers.examples import make

X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.sign(X[:, 0])
OTHER = [None, -1, 0, "x", [], {}, 1e300, 2**70, "../../x", True, "<i8", "O", [2**40], [-1]]


def places(value, before=()):
    """The keys that lead to each value of a nested header."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in pairs:
        yield (*before, key)
        if isinstance(one, dict | list):
            yield from places(one, (*before, key))


@pytest.mark.filterwarnings("ignore:a label")
@pytest.mark.parametrize("model", [OjaSON(2), PROSNKONS(), Classifier(OGD())], ids=repr)
def test_footer_with_other_values__is_loaded_or_refused_in_words(model, tmp_path):
    path = tmp_path / "a.koco"
    model.partial_fit(X, Y).save(path)
    table, texts = pq.read_table(path), pq.read_metadata(path).metadata
    footer = {key: json.loads(texts[key]) for key in (HEADER, ARRAYS)}
    messages = []
    for place in list(places(footer)):
        for value in OTHER:
            changed = copy.deepcopy(footer)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            texts = {key: json.dumps(one) for key, one in changed.items()}
            write_tables([table], store_path(path), texts)
            try:
                type(model).load(path)
            except WrongInput as error:
                messages.append(str(error))
    assert len(messages) > 100
    assert all(str(path) in message for message in messages)


def test_arrays_with_less_room_than_a_new_learner_s__are_refused(tmp_path):
    """Compiled code would write beyond them: a budget that was made larger by hand."""
    path = tmp_path / "norma.koco"
    make("NORMA", budget=5).partial_fit(np.eye(3), np.ones(3)).save(path)
    header, arrays = read_model(path)
    header["params"]["budget"] = 4096
    with pytest.raises(WrongInput, match="does not fit"):
        revived(path, header, arrays, LEARNERS, "")
