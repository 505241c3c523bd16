"""The file of JSON lines: cut at any byte, it goes on with each step once."""

import json
import math
import os
import warnings

import hypothesis
import hypothesis.strategies as st
import pytest

from headrace.errors import ConfigurationError, TrackerWarning
from headrace.loop.trackers import JsonLines, RunInfo


def begun(folder, resumed_at=None, **more):
    tracker = JsonLines(clock=lambda: 5.0)
    tracker.start(RunInfo(name="digits", folder=folder, resumed_at=resumed_at, **more))
    return tracker


def log(tracker, steps):
    for step in steps:
        tracker.log({"loss": step / 4}, step)


def rows(folder, name="history.jsonl"):
    text = (folder / name).read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def steps(folder):
    found = [row for row in rows(folder) if "step" in row]
    assert all(row["loss"] == row["step"] / 4 for row in found)
    return [row["step"] for row in found]


def test_what_is_logged_once_is_the_first_line(tmp_path):
    facts = {"data": {"digest": "ab", "rows": 5}, "path": tmp_path, "limit": math.inf, "shape": (1, 2)}
    tracker = begun(tmp_path, config={"lr": 0.1, "betas": (0.9, math.nan)}, facts=facts)
    tracker.log({"loss": 0.5}, 1)
    assert rows(tmp_path) == [
        {
            "run": "digits",
            "time": 5.0,
            "resumed_at": None,
            "config": {"lr": 0.1, "betas": [0.9, "NaN"]},
            "facts": {
                "data": {"digest": "ab", "rows": 5},
                "path": str(tmp_path),
                "limit": "Infinity",
                "shape": [1, 2],
            },
        },
        {"step": 1, "time": 5.0, "loss": 0.5},
    ]


def test_each_line_is_there_at_once(tmp_path):
    tracker = begun(tmp_path)
    for step in range(1, 4):
        log(tracker, [step])
        assert steps(tmp_path) == list(range(1, step + 1))


@pytest.mark.parametrize(("value", "word"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_numbers_that_json_lacks_are_text_that_becomes_them_again(tmp_path, value, word):
    begun(tmp_path).log({"loss": value}, 1)
    found = rows(tmp_path)[-1]["loss"]
    assert found == word
    assert str(float(found)) == str(value)


@pytest.mark.parametrize("resumed_at", [3, 4])
def test_a_cut_at_every_byte_of_the_last_two_lines_is_repaired(tmp_path, resumed_at):
    log(begun(tmp_path), range(1, 6))
    path = tmp_path / "history.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for size in range(len(whole) - len(lines[-1]) - len(lines[-2]), len(whole) + 1):
        path.write_bytes(whole[:size])
        # Step 4 is behind the checkpoint at 4, which put it on the disk: a loss of it is none that a kill makes.
        held = 4 if size >= len(whole) - len(lines[-1]) - 1 else 3
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a line cut short is no surprise
            tracker = begun(tmp_path, resumed_at=resumed_at)
        assert steps(tmp_path) == list(range(1, min(held, resumed_at) + 1)), size
        log(tracker, range(resumed_at + 1, 7))
        expected = [step for step in range(1, 7) if step <= held or step > resumed_at]
        assert steps(tmp_path) == expected, size


@hypothesis.given(attempts=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 60)), max_size=6))
def test_killed_anywhere_any_number_of_times_it_has_each_step_once(tmp_path_factory, attempts):
    folder = tmp_path_factory.mktemp("run")
    checkpoint = None
    for num_steps, save_after, torn in attempts:
        tracker = begun(folder, resumed_at=checkpoint)
        first = (checkpoint or 0) + 1
        for step in range(first, first + num_steps):
            log(tracker, [step])
            if step - first + 1 == save_after:
                tracker.state_dict()
                checkpoint = step
                size = (folder / "history.jsonl").stat().st_size
        if checkpoint is not None:  # what a checkpoint holds is on the disk; any part of the rest may be
            path = folder / "history.jsonl"
            path.write_bytes(path.read_bytes()[: max(size, path.stat().st_size - torn)])
            size = min(size, path.stat().st_size)
    tracker = begun(folder, resumed_at=checkpoint)
    last = (checkpoint or 0) + 3
    log(tracker, range((checkpoint or 0) + 1, last + 1))
    assert steps(folder) == list(range(1, last + 1))


def test_going_on_twice_from_one_place_leaves_one_line_of_it(tmp_path):
    log(begun(tmp_path), range(1, 4))
    for _ in range(3):
        log(begun(tmp_path, resumed_at=2), [3, 4])
    assert [row.get("resumed_at", row.get("step")) for row in rows(tmp_path)] == [None, 1, 2, 2, 3, 4]


def test_artifacts_and_ends_of_what_was_cut_away_are_cut_away_too(tmp_path):
    (tmp_path / "x").write_text("one", encoding="utf-8")
    tracker = begun(tmp_path)
    log(tracker, [1])
    tracker.artifact(tmp_path / "x", "early")
    log(tracker, [2])
    tracker.artifact(tmp_path / "x", "late")
    tracker.finish("killed")
    begun(tmp_path, resumed_at=1)
    assert [row["artifact"] for row in rows(tmp_path) if "artifact" in row] == ["early"]
    assert not [row for row in rows(tmp_path) if "status" in row]


def test_nothing_is_rewritten_if_nothing_is_to_go(tmp_path):
    log(begun(tmp_path), range(1, 4))
    inode = (tmp_path / "history.jsonl").stat().st_ino
    begun(tmp_path, resumed_at=3)
    assert (tmp_path / "history.jsonl").stat().st_ino == inode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.jsonl"]


def test_a_kill_while_cutting_leaves_the_old_file(tmp_path, monkeypatch):
    log(begun(tmp_path), range(1, 6))
    before = (tmp_path / "history.jsonl").read_bytes()

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path, resumed_at=2)
    assert (tmp_path / "history.jsonl").read_bytes() == before
    monkeypatch.undo()
    begun(tmp_path, resumed_at=2)
    assert steps(tmp_path) == [1, 2]


def test_damaged_lines_in_the_middle_are_left_out_and_told(tmp_path):
    log(begun(tmp_path), range(1, 5))
    path = tmp_path / "history.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 40 + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.warns(TrackerWarning, match=r"lines \[3\] could not be read"):
        begun(tmp_path, resumed_at=4)
    assert steps(tmp_path) == [1, 3, 4]


def test_a_run_that_begins_again_keeps_the_earlier_history_beside(tmp_path):
    for attempt in range(3):
        log(begun(tmp_path), range(1, 2 + attempt))
    begun(tmp_path)  # nothing was logged: nothing to keep
    log(begun(tmp_path), [1])
    assert steps(tmp_path) == [1]
    kept = [sum("step" in row for row in rows(tmp_path, f"history.{n}.jsonl")) for n in (1, 2, 3)]
    assert kept == [1, 2, 3]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    tracker = begun(tmp_path)
    log(tracker, [1])
    write = os.write

    def full(descriptor, data):
        if len(data) < 12:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        log(tracker, [2])
    monkeypatch.undo()
    log(tracker, [3])
    assert steps(tmp_path) == [1, 3]


@pytest.mark.parametrize("name", ["../out", "/etc/x", "", "a/../../b"])
def test_an_artifact_cannot_leave_its_folder(tmp_path, name):
    (tmp_path / "x").write_text("one", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"^artifact name .* leads out"):
        begun(tmp_path).artifact(tmp_path / "x", name)


def test_another_file_can_be_named(tmp_path):
    tracker = JsonLines(tmp_path / "elsewhere" / "log.jsonl")
    tracker.start(RunInfo(name="digits", folder=tmp_path / "run"))
    tracker.log({}, 1)
    tracker.finish("finished")
    assert [row.get("step", row.get("status")) for row in rows(tmp_path, "elsewhere/log.jsonl")] == [
        None,
        1,
        "finished",
    ]
    assert not (tmp_path / "run").exists()
