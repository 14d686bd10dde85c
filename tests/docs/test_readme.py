"""What the README says is so."""

import re

from koco_stream.learners import LEARNERS
from tests.helpers.project import ROOT

README = (ROOT / "README.md").read_text()


def test_python_examples__run(capsys):
    first, second = re.findall(r"```python\n(.*?)```", README, re.S)
    exec(compile(first + second, "README.md", "exec"), {})
    assert re.fullmatch(
        r"progressive error 0\.\d+\nmean loss 0\.0\d+, \d+ rows in the dictionary\n",
        capsys.readouterr().out,
    )


def test_table_of_learners__is_complete():
    assert set(re.findall(r"^\| `(\w+)` \|", README, re.M)) == set(LEARNERS)


def test_links_and_names__exist():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
    for sweep in re.findall(r"koco sweep (\S+)", README):
        assert not sweep.endswith(".toml") or (ROOT / sweep).exists()


def test_errata__has_every_number_that_the_code_cites():
    cited = set()
    for source in (ROOT / "koco_stream").rglob("*.py"):
        cited |= set(re.findall(r"\b([SKPT]\d+)\b", source.read_text()))
    known = set(re.findall(r"\*\*([SKPT]\d+)\.", (ROOT / "docs" / "errata.md").read_text()))
    assert cited <= known
