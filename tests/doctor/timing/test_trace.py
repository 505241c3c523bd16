"""The trace is what its viewers ask for, and holds every batch where it was."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from headrace.doctor.subject import Subject
from headrace.doctor.timing.accounting import Account
from headrace.doctor.timing.setting import Setting
from headrace.doctor.timing.timed import Amounts, BatchMade, Steps, Timed
from headrace.doctor.timing.trace import STEP, WAIT, span, write_trace

times = st.lists(st.floats(0, 0.5, allow_nan=False), min_size=6, max_size=6)


def timed(gaps, num_workers=2):
    """A run whose times are made of these gaps, beginning at some uptime."""
    began = at = 123456.789
    asked, got, made = [], [], []
    for number, (wait, own) in enumerate(zip(gaps[::2], gaps[1::2], strict=True)):
        asked.append(at)
        made.append(
            BatchMade(
                batch=number, worker=number % num_workers, began_s=at, fetched_s=at + wait / 2, made_s=at + wait * 0.9
            )
        )
        at += wait
        got.append(at)
        at += own
    ahead = BatchMade(batch=99, worker=0, began_s=at, fetched_s=at, made_s=at + 1, slowest_sample_s=0.5)
    return Timed(
        kind="I",
        setting=Setting(num_workers=num_workers),
        num_workers=num_workers,
        in_flight=4,
        began_s=began,
        starts=(),
        steps=Steps(
            asked_s=tuple(asked), got_s=tuple(got), end_s=at, epochs=(0,) * len(got), num_samples=(4,) * len(got)
        ),
        window=None,
        amounts=Amounts(num_samples=12, num_bytes=100),
        consumer_cpu_s=0.0,
        workers_cpu_s=0.0,
        batches_made=(*made, ahead),
    )


def trace(run, folder):
    write_trace(run, folder / "trace.json")
    return json.loads((folder / "trace.json").read_text())["traceEvents"]


REQUIRED = {"X": {"ts", "dur"}, "M": {"args"}, "b": {"ts", "id", "cat"}, "e": {"ts", "id", "cat"}}


@given(st.data())
def test_every_event_has_what_the_format_requires(tmp_path_factory, data):
    events = trace(timed(data.draw(times)), tmp_path_factory.mktemp("trace"))
    for event in events:
        assert {"name", "ph", "pid", "tid"} | REQUIRED[event["ph"]] <= event.keys()
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    moments = [event["ts"] for event in events if event["ph"] != "M"]
    assert moments == sorted(moments)
    for track in {event["tid"] for event in events}:  # slices of one track follow each other
        end = 0.0
        for event in events:
            if event["ph"] == "X" and event["tid"] == track:
                assert event["ts"] >= end - 0.01
                end = event["ts"] + event["dur"]
    began = {event["id"]: event["ts"] for event in events if event["ph"] == "b"}
    ended = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    assert began.keys() == ended.keys() == {0, 1, 2}
    assert all(began[batch] <= ended[batch] for batch in began)


def test_what_is_in_it(tmp_path):
    events = trace(timed([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), tmp_path)
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {0: "loop", 1: "worker 0", 2: "worker 1"}
    loop = [
        (event["name"], round(event["dur"] / 1e6, 3)) for event in events if event["tid"] == 0 and event["ph"] == "X"
    ]
    assert loop == [("wait", 0.1), ("compute", 0.2), ("wait", 0.3), ("compute", 0.4), ("wait", 0.5), ("compute", 0.6)]
    slow = [event["args"] for event in events if event["args"].get("slowest sample, ms")]
    assert slow == [{"batch": 99, "slowest sample, ms": 500}] * 2


def test_of_a_loader_that_ran(tmp_path):
    loader = DataLoader(list(range(40)), 4, num_workers=2)
    kept = Account(tmp_path / "notes")
    for _ in kept.wrap(Subject(loader), loader):
        pass
    _, made = kept.read()
    run = timed([0.0] * 6)
    events = trace(
        run.__class__(**{name: getattr(run, name) for name in run.__slots__} | {"batches_made": made}), tmp_path
    )
    assert sum(event["name"] == "samples" for event in events) == 10


def test_spans_are_in_torchs_profile_and_cost_nothing_else():
    with span(WAIT) as outside:
        assert outside is None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        with span(WAIT):
            torch.zeros(2).add_(1)
        with span(STEP):
            torch.zeros(2).add_(1)
    names = {event.name for event in profile.events()}
    assert {WAIT, STEP} <= names


def test_no_notes_no_workers(tmp_path):
    run = timed([0.1] * 6)
    events = trace(
        run.__class__(**{name: getattr(run, name) for name in run.__slots__} | {"batches_made": ()}), tmp_path
    )
    assert {event["tid"] for event in events} == {0}


pytestmark = pytest.mark.filterwarnings("ignore:.*Profiler clears events.*")
