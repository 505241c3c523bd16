"""Two measurements at two times: what may be said, and what may not."""

import dataclasses
import functools
import json

import msgspec
import pytest

from headrace.doctor.measuring.against import compare_with, load
from headrace.doctor.measuring.against_text import render_against
from headrace.doctor.measuring.json import to_json
from headrace.doctor.measuring.made_up import World
from headrace.errors import ConfigurationError

WAITING = World(wall_ms={"sample": 6.0, "collate": 0.4})


@pytest.fixture
def measured(measured):
    """Six blocks: enough for intervals that can be told apart."""
    return functools.partial(measured, num_blocks=6)


@pytest.fixture
def earlier(tmp_path):
    def write(m):
        path = tmp_path / "baseline.json"
        path.write_text(to_json(m))
        return load(path)

    return write


@pytest.mark.parametrize("seed", range(1, 9))
def test_equal_loops_are_never_worse_whatever_the_machines_speed(measured, earlier, seed):
    slower = dataclasses.replace(WAITING, wall_ms={"sample": 12.0, "collate": 0.8}, step_s=2 * WAITING.step_s)
    then = earlier(measured(WAITING))
    for world in (WAITING, slower):  # the same loop on a machine half as fast
        assert compare_with(then, measured(world, seed=seed)).outcome in {"same", "not told"}


def test_a_slower_loader_is_worse_and_a_faster_one_better(measured, earlier):
    slow = dataclasses.replace(WAITING, wall_ms={"sample": 9.0, "collate": 0.4})
    found = compare_with(earlier(measured(WAITING)), measured(slow, seed=1))
    assert found.outcome == "worse"
    assert {one.name: one.outcome for one in found.ratios} == {
        "accelerator utilisation": "worse",
        "supply over need": "worse",
    }
    assert "worse than the report of 2026-01-02" in render_against(found)
    back = compare_with(earlier(measured(slow)), measured(WAITING, seed=1))
    assert back.outcome == "better"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label": "cold-verified"}, "cache: warm-verified then, cold-verified now"),
        ({"consumer": "20 ms a step"}, "training step: train.py:train_step then, 20 ms a step now"),
        ({"batch_size": 64}, "batch size: 8 then, 64 now"),
        ({"decodes": True}, "decoding: not known then, yes now"),
    ],
)
def test_measurements_of_different_scope_are_not_judged(measured, earlier, changes, said):
    found = compare_with(earlier(measured(WAITING)), measured(WAITING, seed=1, **changes))
    assert found.outcome == "not told"
    assert found.differs == (said,)
    assert not found.ratios
    assert said in " ".join(render_against(found).split())


def test_absolute_rates_are_shown_and_not_judged(measured, earlier):
    slower = dataclasses.replace(WAITING, wall_ms={"sample": 12.0, "collate": 0.8}, step_s=2 * WAITING.step_s)
    found = compare_with(earlier(measured(WAITING)), measured(slower, seed=1))
    (_, then, now) = found.rates[0]
    assert then > 1.5 * now
    assert found.outcome != "worse"
    assert "not judged" in render_against(found)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_text_keeps_within_its_width(measured, earlier, width):
    text = render_against(compare_with(earlier(measured(WAITING)), measured(WAITING, seed=2)), width=width)
    assert max(map(len, text.splitlines())) <= max(width, 84)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no report of headrace measure"),
        (json.dumps({"schema": 1}), "is no report of headrace measure"),
        (json.dumps([1, 2]), "is no report of headrace measure"),
    ],
)
def test_a_file_that_is_no_report_is_refused(tmp_path, content, said):
    path = tmp_path / "baseline.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=said):
        load(path)


def test_a_missing_file_and_another_schema_are_refused(measured, tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        load(tmp_path / "none.json")
    told = msgspec.json.decode(to_json(measured(WAITING)))
    told["schema"] = 99
    (tmp_path / "new.json").write_bytes(msgspec.json.encode(told))
    with pytest.raises(ConfigurationError, match="schema 99, this headrace reads 1"):
        load(tmp_path / "new.json")
