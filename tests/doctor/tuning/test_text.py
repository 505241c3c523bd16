"""The text of a result: the verdict first; what was tried, the change and its way back below."""

from __future__ import annotations

import dataclasses

import msgspec

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.choice import Choice
from headrace.doctor.tuning.cost import Cost
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.model import Edit, Gain, Need, Proof, TriedRow, Tuning
from headrace.doctor.tuning.text import render, verdict_line

COST = Cost(0, 0, 4, 0, 0, 1)
FOUR, EIGHT = Setting(num_workers=4), Setting(num_workers=8)
GAIN = Gain(value=0.32, interval=Interval(0.29, 0.35))
FOUND = Tuning(
    spec="train.py:make_loader",
    command="headrace tune train.py:make_loader",
    created="2030-01-01T00:00:00+00:00",
    facts=LoaderNow(
        library="torch",
        kind="torch.utils.data.DataLoader",
        present=Setting(num_workers=2, prefetch_factor=2, persistent_workers=False, pin_memory=False),
    ),
    consumer="train.py:train_step",
    is_emulated=False,
    seed=0,
    budget_s=300.0,
    used_s=211.0,
    noise="quiet",
    need=Need(rate_per_s=1600.0, source="train.py:train_step", compute_per_s=1280.0, step_s=0.1),
    margin=0.25,
    choice=Choice(outcome="change", setting=FOUR, meets_need=True, why="the simplest that meets the need"),
    says="num_workers=2 -> 4",
    gain=GAIN,
    tried=(
        TriedRow(
            setting=AS_IT_IS, says="as it is", cost=COST, supply_per_s=878.0, loop_per_s=865.0, starved_share=0.28
        ),
        TriedRow(
            setting=FOUR,
            says="num_workers=2 -> 4",
            cost=COST,
            supply_per_s=1700.0,
            loop_per_s=1174.0,
            gain=GAIN,
            speed="faster",
            starved_share=0.0,
            memory_bytes=3 * 2**30,
            proof=Proof(same_data="proven", says="proven E0-E4 on all 40 samples, 2 epochs"),
        ),
        TriedRow(
            setting=EIGHT,
            says="num_workers=2 -> 8",
            cost=COST,
            supply_per_s=880.0,
            proof=Proof(same_data="differs", says="target label of sample 23 is 2 as it is, 5 in this setting"),
        ),
        TriedRow(
            setting=Setting(num_workers=0), says="num_workers=2 -> 0", cost=COST, supply_per_s=400.0, is_flat=True
        ),
        TriedRow(
            setting=Setting(num_workers=1), says="num_workers=2 -> 1", cost=COST, supply_per_s=None, failure="SIGKILL"
        ),
    ),
    num_blocks=7,
    floor=0.019,
    edit=Edit(
        line="num_workers=4",
        back="num_workers=2",
        where="train.py:3",
        diff="--- a/train.py\n+++ b/train.py\n@@ -3 +3 @@\n-DataLoader(d, num_workers=2)\n+DataLoader(d, num_workers=4)\n",
    ),
)


def test_the_verdict_comes_first_with_its_interval_and_its_proof():
    assert verdict_line(FOUND) == (
        "num_workers=2 -> 4: +32 % [29, 35] samples/s of the loop, data proven E0-E4 on all 40 samples, 2 epochs"
    )
    assert render(FOUND).startswith("VERDICT  num_workers=2 -> 4: +32 % [29, 35]")


def test_the_table_marks_the_choice_and_says_what_differs():
    lines = render(FOUND, width=100).splitlines()
    (chosen,) = (line for line in lines if line.startswith("> "))
    assert chosen.split("  ")[0] == "> num_workers=2 -> 4"
    assert "1,700" in chosen
    assert "1,174" in chosen
    assert chosen.endswith("yes")
    assert "      target label of sample 23 is 2 as it is, 5 in this setting" in lines
    assert "flat     tried, and no faster: num_workers=2 -> 0" in lines
    assert "not run  num_workers=2 -> 1: SIGKILL" in lines
    assert "need     1,600 samples/s: train.py:train_step takes 1,280, and 25% more" in lines


def test_the_change_comes_with_its_way_back_and_its_diff():
    text = render(FOUND)
    assert "CHANGE   num_workers=4\nback     num_workers=2\n" in text
    assert "+DataLoader(d, num_workers=4)" in text
    assert "--apply writes it" in text
    assert "applied  train.py:3" in render(dataclasses.replace(FOUND, applied=True))


def test_what_cannot_be_written_is_said_with_the_reason():
    edit = Edit(
        line="num_workers=4", back="num_workers=2", refused="num_workers in line 3 is n: set it where that comes from"
    )
    text = render(dataclasses.replace(FOUND, edit=edit), width=120)
    assert "by hand  the file is not changed by headrace: num_workers in line 3 is n" in text


def test_what_is_kept_is_said_in_a_line():
    choice = Choice(
        outcome="keep", setting=None, meets_need=True, why="it meets the need", simpler=Setting(num_workers=1)
    )
    kept = dataclasses.replace(FOUND, choice=choice, gain=None, edit=None, says="as it is")
    text = render(kept)
    assert text.startswith("VERDICT  keep what you have: it meets the need\n")
    looked_at = "simpler num_workers=2 -> 1 seems to do as well, by one round; headrace compare train.py:make_loader"
    assert f"{looked_at} --workers 2,1 says whether its data are the same" in " ".join(text.split())
    assert kept.exit_status == 0


def test_a_simpler_setting_whose_data_were_compared_would_do():
    choice = Choice(outcome="keep", setting=None, meets_need=True, why="it meets the need", simpler=FOUR)
    text = render(dataclasses.replace(FOUND, choice=choice, gain=None, edit=None, says="as it is"))
    assert "simpler  num_workers=2 -> 4 would do as well" in text


def test_what_is_kept_though_it_is_not_enough_says_what_binds():
    choice = Choice(
        outcome="keep",
        setting=None,
        meets_need=False,
        why="nothing that was tried is faster",
        binding=("1 of 10 steps waits",),
    )
    text = render(dataclasses.replace(FOUND, choice=choice, gain=None, edit=None))
    assert "but it does not\n         meet the need" in text
    assert "binds    1 of 10 steps waits" in text
    assert "headrace measure train.py:make_loader" in text


def test_exit_status():
    inconclusive = Choice(outcome="inconclusive", setting=None, meets_need=None, why="noise")
    assert [FOUND.exit_status, dataclasses.replace(FOUND, applied=True).exit_status] == [1, 0]
    assert dataclasses.replace(FOUND, choice=inconclusive).exit_status == 3


def test_no_line_is_wider_than_the_terminal_but_those_of_the_table_and_the_diff():
    text = render(FOUND, width=60)
    told = [line for line in text.splitlines() if not line.startswith(("  ", "> ", "+", "-", "@"))]
    assert max(map(len, told)) <= 60


def test_a_program_gets_all_of_it():
    told = msgspec.json.decode(msgspec.json.encode(FOUND))
    assert told["schema"] == 1
    assert told["choice"]["setting"]["num_workers"] == 4
    assert told["tried"][1]["gain"]["interval"] == {"low": 0.29, "high": 0.35}
