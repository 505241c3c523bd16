import re

import pytest

from headrace.doctor.measuring.made_up import WARM, World
from headrace.doctor.measuring.plain import Checked, fewer_are_faster, plain_rows, plain_says, rate_with

SAME = {2: Checked(text="ids, order, targets: the first 64 samples", is_same=True)}


def rows(world, checked=SAME):
    return plain_rows(world.rounds(has_step=False), checked, WARM)


def test_one_row_for_each_number_of_workers_and_epoch():
    table = rows(World(wall_ms={"decode": 2}))
    assert [(row.num_workers, row.epoch) for row in table] == [(0, 1), (0, 2), (2, 1), (2, 2)]
    assert all(len(row.seconds) == 3 for row in table)
    assert all(row.cache == WARM for row in table)
    assert [row.is_same for row in table] == [True, True, True, True]


def test_rates_leave_the_start_out_and_seconds_do_not():
    table = rows(World(wall_ms={"decode": 2}, worker_start_s=1.0, noise=0.0))
    assert rate_with(table, 2) == pytest.approx(1000, rel=0.05)
    assert rate_with(table, 0) == pytest.approx(500, rel=0.05)
    first = next(row for row in table if row.num_workers == 2)
    assert first.seconds[0] == pytest.approx(1.0 + 480 / 1000, rel=0.05)


def test_it_says_what_workers_bring_what_they_cost_and_when_that_pays():
    says = plain_says(rows(World(wall_ms={"decode": 2}, worker_start_s=1.0, noise=0.0)))
    found = re.fullmatch(
        r"2 workers bring x[\d.]+; they cost 1\.0 s to start, which pays off after ([\d,]+) samples\.", says
    )
    # A second at 500 samples/s more.
    assert int(found[1].replace(",", "")) == pytest.approx(1000, rel=0.1)


def test_it_says_when_they_cost_more_than_they_bring():
    world = World(wall_ms={"sample": 0.1, "handover": 1.0})
    assert plain_says(rows(world)).startswith("2 workers cost more than they bring: x0.")
    assert fewer_are_faster(rows(world), 2)[0] == 0


def test_the_speed_of_other_data_says_nothing():
    other = {2: Checked(text="ids differ", is_same=False)}
    assert "deliver other data" in plain_says(rows(World(wall_ms={"decode": 2}), other))


def test_nobody_is_faster_by_chance():
    assert fewer_are_faster(rows(World(wall_ms={"decode": 1}, noise=0.05)), 2) is None


def test_without_a_reference_nothing_is_compared():
    table = [row for row in rows(World(wall_ms={"decode": 2})) if row.num_workers]
    assert "no reference" in plain_says(table)
    assert plain_says([]) == ""
