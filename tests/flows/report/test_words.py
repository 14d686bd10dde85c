"""Words of the report and of the screen."""

import pytest

from flows.commands import in_words, labels_of
from flows.report.document import came_from
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import prepare_file


def test_report__names_every_kind_of_source(tmp_path):
    store, mail, table = tmp_path / "store", tmp_path / "mails" / "cats" / "1", tmp_path / "a.csv"
    mail.parent.mkdir(parents=True)
    mail.write_text("the cat sat")
    table.write_text("x,y\n1,2\n3,4\n")
    manifests = (
        prepare_file(store, "mails", tmp_path / "mails", format="documents"),
        prepare_file(store, "a", table),
        prepare_synthetic(store, "ill-conditioned", {"n_rows": 9}),
    )
    named = [came_from(manifest.source) for manifest in manifests]
    assert named == ["mails", "a.csv", "ill-conditioned"]


@pytest.mark.parametrize(
    ("words_for", "given", "expected"),
    [
        (labels_of, [], "real targets"),
        (labels_of, [-1.0, 1.0], "labels -1, 1"),
        (labels_of, [float(k) for k in range(1, 106)], "105 classes, labels 1 to 105"),
        (
            in_words,
            {"block": 1327104, "order": [2.5, "shuffled"]},
            "block 1,327,104, order 2.5; shuffled",
        ),
    ],
)
def test_words_on_the_screen__stay_short_and_have_commas(words_for, given, expected):
    assert words_for(given) == expected
