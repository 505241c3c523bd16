"""From what processes saw to one report: ranks are joined, too little is said to be too little."""

from __future__ import annotations

import dataclasses

import pytest

from headrace.doctor.made_up.stages import loop, passed, times, traced, traces
from headrace.doctor.watch.seen import Seen, read_seen, write_seen
from headrace.doctor.watch.summary import render_summary
from headrace.doctor.watch.verdict import make_report, watched_rules

RULES = watched_rules(select=["HR7", "HR8"])


def seen(*loops, rank=0, world_size=1, process=7, num_batches=100, loader=None, **more):
    return Seen(
        process=process,
        rank=rank,
        world_size=world_size,
        outcome="finished",
        wall_s=100.0,
        num_batches=num_batches,
        num_steps=num_batches,
        has_torch=True,
        evidence=(traces(loader or traced(passed())), times(*loops, **more)),
    )


def report(*processes, **more):
    return make_report(processes, RULES, spec="train.py", command="headrace watch train.py", **more)


def test_a_loop_that_does_not_wait_is_clean():
    made = report(seen(loop(0.01)))
    assert (made.verdict, made.exit_status, made.findings, made.skipped) == ("clean", 0, [], [])
    assert made.cleared == [rule.code for rule in RULES]


def test_a_starved_loop_gets_its_measure_and_its_cause():
    made = report(seen(loop(0.4)))
    assert [row.code for row in made.findings] == ["HR801", "HR803"]
    assert made.exit_status == 1


CAUSES = {
    "HR802": {"fetch_cpu_s": 9.0},
    "HR803": {},
    "HR804": {"fetch_s": 10.0, "fetch_cpu_s": 9.0, "collate_s": 80.0},
    None: {"fetch_s": 40.0, "fetch_cpu_s": 21.0, "collate_s": 12.0},
}


@pytest.mark.parametrize("code", CAUSES)
def test_one_cause_speaks_at_most(code):
    made = report(seen(loop(0.4, **CAUSES[code])))
    assert [row.code for row in made.findings] == ["HR801", *([code] if code else [])]


def test_too_short_a_run_is_undecided_about_speed_and_judged_otherwise():
    made = report(seen(loop(0.9, steps=12)))
    assert (made.verdict, made.findings) == ("inconclusive", [])
    assert made.cleared == ["HR702"]
    assert all("12 steps in 1.2 s are too few" in row.reason for row in made.skipped)
    assert "too short to judge" in render_summary(made.target)


def test_what_ranks_share_is_said_once_and_what_one_alone_has_names_it():
    quiet, waiting = seen(loop(0.01), world_size=2), seen(loop(0.4), rank=1, world_size=2, process=8)
    both = report(dataclasses.replace(waiting, rank=0, process=7), waiting)
    assert [row.evidence["ranks"] for row in both.findings] == [[0, 1]] * 2
    one = report(quiet, waiting)
    assert [row.evidence["ranks"] for row in one.findings] == [[1]] * 2
    assert all(row.message.startswith("rank 1: ") for row in one.findings)
    assert not {"HR801", "HR803"} & set(one.cleared)
    assert one.target["num_processes"] == 2


def test_without_any_process_every_rule_says_why_it_could_not_judge():
    for could_watch, reason in ((True, "imported neither torch"), (False, "could not be watched")):
        made = report(could_watch=could_watch)
        assert (made.verdict, len(made.skipped)) == ("inconclusive", len(RULES))
        assert all(reason in row.reason for row in made.skipped)
        assert "nothing seen" in render_summary(made.target)


def test_two_parts_of_one_kind_of_evidence_become_one():
    first = seen(loop(0.01))
    second = traces(traced(passed(), number=1))
    joined = dataclasses.replace(first, evidence=(*first.evidence, second))
    made = report(joined)
    assert made.target["watch"]["num_loaders"] == 2


def test_every_line_of_the_summary_fits_the_width():
    for one in (
        loop(0.4),
        loop(0.01),
        loop(0.3, num_workers=0, workers=()),
        loop(0.9, steps=12),
        loop(0.2, worst_wait_s=9.0),
    ):
        text = render_summary(report(seen(one)).target, width=80)
        assert all(len(line) <= 80 for line in text.splitlines())
        assert text.startswith("WATCHED  train.py: finished\n")


def test_records_of_processes_come_back_in_the_order_of_ranks(tmp_path):
    several = [seen(loop(0.01), rank=rank, process=20 - rank) for rank in (2, 0, 1)]
    for one in several:
        write_seen(tmp_path, one)
        write_seen(tmp_path, one)
    (tmp_path / "3.seen").write_bytes(b"half")
    (tmp_path / "4.part").write_bytes(b"")
    assert read_seen(tmp_path) == sorted(several, key=lambda one: one.rank)
