"""A tracker that fails never stops the training."""

import warnings

import pytest

from headrace.errors import TrackerWarning
from headrace.loop.trackers import Guarded, JsonLines, RunInfo

CALLS = {
    "start": lambda tracker, folder: tracker.start(RunInfo(name="digits", folder=folder)),
    "log": lambda tracker, _: tracker.log({"loss": 1.0}, 1),
    "artifact": lambda tracker, folder: tracker.artifact(folder / "x", "x"),
    "finish": lambda tracker, _: tracker.finish("finished"),
    "state_dict": lambda tracker, _: tracker.state_dict(),
    "load_state_dict": lambda tracker, _: tracker.load_state_dict({"run_id": "a"}),
}


class Failing:
    """Fails in one of its methods; counts what it was asked for."""

    name = "failing"

    def __init__(self, call, error):
        self.call, self.error, self.seen = call, error, []

    def _seen(self, call, answer=None):
        self.seen.append(call)
        if call == self.call:
            raise self.error
        return answer

    def start(self, run):
        self._seen("start")

    def log(self, values, step):
        self._seen("log")

    def artifact(self, path, name):
        self._seen("artifact")

    def finish(self, status):
        self._seen("finish")

    def state_dict(self):
        return self._seen("state_dict", {"run_id": "b"})

    def load_state_dict(self, state):
        self._seen("load_state_dict")


def begun(tracker, folder):
    guarded = Guarded(tracker)
    CALLS["start"](guarded, folder)
    return guarded


@pytest.mark.parametrize("call", CALLS)
def test_a_failure_of_each_method_is_a_warning(call, tmp_path):
    tracker = Failing(call, RuntimeError("no space"))
    match = rf"^tracker failing failed in {call}, and training goes on without it: RuntimeError: no space$"
    if call == "start":
        with pytest.warns(TrackerWarning, match=match):
            begun(tracker, tmp_path)
        return
    guarded = begun(tracker, tmp_path)
    with pytest.warns(TrackerWarning, match=match):
        CALLS[call](guarded, tmp_path)
    assert tracker.seen == ["start", call]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)], ids=["ctrl-c", "exit"])
def test_what_ends_the_program_passes(call, error, tmp_path):
    guarded = Guarded(Failing(call, error))
    with pytest.raises(type(error)):
        for each in dict.fromkeys(["start", call]):
            CALLS[each](guarded, tmp_path)


def test_later_failures_of_a_kind_are_counted_and_told_at_the_end(tmp_path, recwarn):
    warnings.simplefilter("always")
    tracker = Failing("log", OSError("full"))
    guarded = begun(tracker, tmp_path)
    for _ in range(5):
        CALLS["log"](guarded, tmp_path)
    tracker.error = ValueError("another kind")
    CALLS["log"](guarded, tmp_path)
    assert [one.category for one in recwarn] == [TrackerWarning, TrackerWarning]
    with pytest.warns(TrackerWarning, match=r"^tracker failing: its history has gaps: log: OSError 4 more times$"):
        guarded.finish("finished")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guarded.finish("finished")  # told once


def test_one_that_could_not_start_is_asked_for_nothing_more(tmp_path):
    tracker = Failing("start", OSError("read-only"))
    with pytest.warns(TrackerWarning, match="failed in start"):
        guarded = begun(tracker, tmp_path)
    for _ in range(3):
        CALLS["log"](guarded, tmp_path)
    with pytest.warns(TrackerWarning, match=r"gaps: 3 calls were not made after it could not start$"):
        guarded.finish("failed")
    assert tracker.seen == ["start"]


def test_a_state_that_cannot_be_had_is_the_one_before(tmp_path):
    tracker = Failing("load_state_dict", ValueError("of another version"))
    guarded = Guarded(tracker)
    with pytest.warns(TrackerWarning, match="failed in load_state_dict"):
        guarded.load_state_dict({"run_id": "a"})
    tracker.call = "state_dict"
    with pytest.warns(TrackerWarning, match="failed in state_dict"):
        assert guarded.state_dict() == {"run_id": "a"}
    tracker.call = None
    assert guarded.state_dict() == {"run_id": "b"}
    tracker.call = "state_dict"
    assert guarded.state_dict() == {"run_id": "b"}


def test_a_healthy_one_is_as_without_it(tmp_path):
    (tmp_path / "x").write_text("one", encoding="utf-8")
    guarded = Guarded(JsonLines(clock=lambda: 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in ("load_state_dict", "start", "log", "artifact", "state_dict", "finish"):
            CALLS[call](guarded, tmp_path)
    assert guarded.name == "jsonl"
    assert len((tmp_path / "history.jsonl").read_text(encoding="utf-8").splitlines()) == 4


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.warns(TrackerWarning, match="tracker jsonl failed in start"):
        begun(JsonLines(), tmp_path / "file" / "run")
