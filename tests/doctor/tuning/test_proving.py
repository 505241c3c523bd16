"""What a comparison means for a setting: proven, not the same, or not proven."""

from __future__ import annotations

import dataclasses

import pytest

from headrace.doctor.evidence.equivalence import LEVELS, DeliverySide, Difference, Equivalence, LevelResult
from headrace.doctor.tuning.proving import proof_of

SIDE = DeliverySide(spec="a", kind="DataLoader", num_workers=0, num_samples=(40, 40))


def made(**verdicts):
    levels = []
    for level in LEVELS:
        verdict = verdicts.get(level, "not asked" if level == "E5" else "proven")
        first = None
        if isinstance(verdict, int):
            first = Difference(epoch=verdict, position=3, sample_id=7, in_a="7", in_b="9")
            verdict = "differs"
        levels.append(
            LevelResult(level=level, verdict=verdict, first=first, reason="why" if verdict == "not comparable" else "")
        )
    return Equivalence(side_a=SIDE, side_b=SIDE, levels=tuple(levels), policy="stream", ids="rows", num_epochs=2)


def test_the_same_names_levels_extent_and_policy():
    proof = proof_of(made())
    assert (proof.same_data, proof.first) == ("proven", None)
    assert proof.says == "proven E0-E4 on all 40 samples, 2 epochs, random fields by the policy stream"


@pytest.mark.parametrize("level", ["E0", "E1", "E2", "E3", "E4"])
@pytest.mark.parametrize("reshuffles", [False, True])
def test_what_differs_in_the_first_epoch_is_other_data_whatever_is_known(level, reshuffles):
    proof = proof_of(made(**{level: 0}), reshuffles=reshuffles)
    assert proof.same_data == "differs"
    assert proof.first.sample_id == 7


def test_another_shuffle_from_the_second_epoch_on_is_told_where_it_is_known():
    assert proof_of(made(E1=1)).same_data == "differs"
    proof = proof_of(made(E1=1), reshuffles=True)
    assert proof.same_data == "proven"
    assert "from the second epoch on another shuffle under the same seed" in proof.says
    assert "E0-E4" not in proof.says


@pytest.mark.parametrize("level", ["E0", "E2", "E3", "E4"])
def test_another_shuffle_excuses_nothing_else(level):
    assert proof_of(made(E1=1, **{level: 1}), reshuffles=True).same_data == "differs"


@pytest.mark.parametrize("reshuffles", [False, True])
def test_what_cannot_be_compared_is_not_proven(reshuffles):
    verdicts = {"E4": "not comparable"} | ({"E1": 1} if reshuffles else {})
    proof = proof_of(made(**verdicts), reshuffles=reshuffles)
    assert proof.same_data == "unproven"


def test_a_proof_is_a_plain_value():
    assert dataclasses.asdict(proof_of(made()))["same_data"] == "proven"
