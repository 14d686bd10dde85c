"""Remedies of a sweep's messages: what one says is done, until the sweep is accepted."""

import re

import pytest

from koco_stream import WrongInput
from storage.preparing.prepare import prepare_file
from tests.helpers.sweeps import checked, written

ROWS = {
    "bits": "0,1\n1,2\n",
    "large": "12345671,1\n12345672,2\n",
    "threes": "1,1\n2,2\n3,1\n",
    "names": "red,1\nit's,2\nblue,1\n",
    "alone": "3,1\n3,2\n",
    "real": "1.5,1\n2.5,2\n",
}
KEY = r'(\w+) = ("[^"]*"|[-\d.]+)'


def follow(store, folder, keys):
    """Follow each remedy of each message, to its end; how many there were.

    `keys` are those of the dataset, and the learner's loss.
    """
    text = 'name = "s"\n[[dataset]]\n{}[[learner]]\nname = "OGD"\n{}'
    lines = {key: f"{key} = {value}\n" for key, value in keys.items()}
    of_learner = lines.pop("loss", "")
    try:
        checked(written(folder, text.format("".join(lines.values()), of_learner)), store)
        return 0
    except WrongInput as error:
        said = str(error)
    more = [{**keys, key: value} for key, value in re.findall(f"(?:add|or|take) {KEY}", said)]
    left = re.findall(r"leave out (\w+)", said)
    more += [{key: value for key, value in keys.items() if key != one} for one in left]
    assert more, f"nothing to follow: {said}"
    assert keys not in more, f"no end: {said}"
    return sum(1 + follow(store, folder, one) for one in more)


@pytest.mark.parametrize(
    ("given", "remedies"),
    [
        ({"name": '"bits"'}, 1),
        ({"name": '"large"'}, 1),
        ({"name": '"threes"'}, 2),
        ({"name": '"names"'}, 2),
        ({"name": '"alone"'}, 1),
        ({"name": '"bits"', "multiclass": '"one-vs-rest"'}, 2),
        ({"name": '"names"', "multiclass": '"one-vs-rest"', "positive_class": '"blue"'}, 2),
        ({"name": '"real"', "positive_class": "1"}, 1),
        ({"name": '"real"', "multiclass": '"one-vs-rest"', "loss": '"hinge"'}, 2),
        ({"name": '"real"', "loss": '"logistic"'}, 1),
        ({"name": '"threes"', "positive_class": "1", "order_seeds": "3"}, 1),
        ({"name": '"threes"', "positive_class": "1", "window_rows": "3"}, 1),
    ],
)
def test_remedy__that_is_done_leads_to_a_sweep_that_is_accepted(given, remedies, tmp_path):
    name = given["name"].strip('"')
    (tmp_path / "rows.csv").write_text(ROWS[name])
    prepare_file(tmp_path / "store", name, tmp_path / "rows.csv", target="1", header=False)
    assert follow(tmp_path / "store", tmp_path, given) == remedies
