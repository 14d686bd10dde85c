"""The identity of a run: what it is made of, and that a parameter which a learner gains later
leaves the runs of before theirs.
"""

import hashlib

import pytest

from koco_stream.learners.linear.ogd import OGD
from koco_stream.learners.spec import Parameter
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream

STREAM = Stream("cadata", "0123456789abcdef", "shuffled", 3)
# What a run of CON-KONS with alpha = 2 was named by before `carry` was there, word for word but for
# the version of its numbers.
BEFORE_CARRY = (
    '{"learner":"CONKONS","learner_seed":5,"numbers_version":2,"params":{"alpha":2.0,"bandwidth":1.0,"beta":1.0,"clip":1.0,'
    '"curvature":0.0625,"curvature_schedule":"constant","epsilon":0.5,"estimate":"icml","fit_intercept":false,"kernel":"gaussian",'
    '"loss":"squared","ridge":1.0},"stream":{"dataset_hash":"0123456789abcdef","max_rows":null,"order":"shuffled","order_seed":3,'
    '"positive_class":null}}'
)


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@pytest.mark.parametrize(
    "given", [{}, {"carry": "both"}], ids=["not given", "given at its default"]
)
def test_run_of_con_kons__keeps_the_identity_it_had_before_later_parameters(given):
    run = Run.of(STREAM, "CONKONS", {"alpha": 2, **given}, 5)
    assert run.run_id == hashed(BEFORE_CARRY)
    assert "carry" not in run.params


def test_run_of_con_kons__with_another_carry_is_another_run():
    run = Run.of(STREAM, "CONKONS", {"alpha": 2, "carry": "weights"}, 5)
    assert run.run_id == hashed(BEFORE_CARRY.replace('"clip"', '"carry":"weights","clip"'))


def test_parameter_added_later__is_neither_shown_nor_kept_where_it_cannot_matter():
    pace = Parameter("pace", int, "a parameter that only the logistic loss has", low=1, later=True)

    class Paced(OGD):
        parameters = (*OGD.parameters, pace)

        def __init__(
            self,
            step_size=1.0,
            pace=1,
            projection="weights",
            step_schedule="constant",
            loss="squared",
            clip=1.0,
            fit_intercept=False,
            seed=0,
        ):
            self._keep(locals())

        @classmethod
        def irrelevant(cls, q):
            return {"pace"} if q["loss"] == "squared" else set()

    def kept_and_shown(**given):
        kept = Paced.identifying(Paced.complete(given))
        return kept.get("pace"), Paced.shown(kept).get("pace")

    assert kept_and_shown(pace=7) == (None, None)
    assert kept_and_shown(loss="logistic", pace=7) == (7, 7)
    assert kept_and_shown(loss="logistic", pace=1) == (None, 1)
