"""What is logged once: settings, facts, the version of the data; by the library's own reader."""

import hashlib
import json
import math

import pytest

from headrace.errors import TrackerWarning
from headrace.loop import track
from headrace.loop.trackers import MLflow, RunInfo
from headrace.loop.trackers.mlflow import _key
from headrace.loop.trackers.plain import flat

CONFIG = {"optimizer": {"name": "adam", "betas": [0.9, 0.99]}, "seed": 3, "empty": {}}
DIGEST = hashlib.sha256(b"data").hexdigest()
FACTS = {"environment": {"torch": "2.13.0"}, "data": {"name": "digits", "digest": DIGEST, "rows": 1797}}

foreign = pytest.mark.filterwarnings("ignore")


def test_settings_become_flat():
    expected = {"optimizer.name": "adam", "optimizer.betas": [0.9, 0.99], "seed": 3, "empty": {}}
    assert flat(CONFIG) == expected
    assert flat({}) == {}


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("wait %", "wait percent"),
        ("a//b", "a/b"),
        ("/a", "a"),
        ("../a", "a"),
        ("loss[0]", "loss_0_"),
        ("", "_"),
        (".", "_"),
    ],
)
def test_names_are_spelled_as_mlflow_takes_them(name, spelled):
    assert _key(name) == spelled


@pytest.fixture
def client(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")


def begun(tmp_path, state=None, resumed_at=None, config=CONFIG, **more):
    tracker = track.mlflow(experiment="digits", **more)
    if state:
        tracker.load_state_dict(state)
    tracker.start(RunInfo(name="first", folder=tmp_path, config=config, facts=FACTS, resumed_at=resumed_at))
    return tracker


@foreign
@pytest.mark.slow
def test_mlflow_has_settings_facts_data_and_status(tmp_path, client):
    tracker = begun(tmp_path)
    state = tracker.state_dict()
    tracker.finish("killed")
    assert client.get_run(state["run_id"]).info.status == "KILLED"
    tracker = begun(tmp_path, state, resumed_at=4, config={**CONFIG, "seed": 4, "new": 1})
    run = client.get_run(state["run_id"])
    assert run.info.status == "RUNNING"
    assert run.info.run_name == "first"
    assert run.data.params == {
        "optimizer.name": "adam",
        "optimizer.betas": "[0.9, 0.99]",
        "seed": "3",
        "empty": "{}",
        "new": "1",
    }
    assert run.data.tags["environment.torch"] == "2.13.0"
    assert run.data.tags["config changed at step 4"] == '{"seed": "4"}'
    (data,) = run.inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest) == ("digits", DIGEST[:36])
    assert DIGEST in data.dataset.source
    tracker.finish("finished")
    assert client.get_run(state["run_id"]).info.status == "FINISHED"
    assert client.get_experiment(run.info.experiment_id).name == "digits"


@foreign
@pytest.mark.slow
def test_a_run_that_mlflow_has_lost_begins_anew_and_says_so(tmp_path, client):
    with pytest.warns(TrackerWarning, match=f"has no run {'0' * 32}, with which"):
        tracker = begun(tmp_path, {"run_id": "0" * 32}, resumed_at=4)
    tracker.log({"loss": 0.5}, 5)
    tracker.state_dict()
    (metric,) = client.get_metric_history(tracker.state_dict()["run_id"], "loss")
    assert (metric.step, metric.value) == (5, 0.5)


@foreign
@pytest.mark.slow
def test_values_that_a_server_did_not_take_are_given_again(tmp_path, client, monkeypatch):
    now = [0.0]
    tracker = MLflow(clock=lambda: now[0])
    tracker.start(RunInfo(name="first", folder=tmp_path))
    run_id, given = tracker.state_dict()["run_id"], tracker._client.log_batch

    def away(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(tracker._client, "log_batch", away)
    tracker.log({"loss": 0.5}, 1)  # held: the second is not over
    now[0] = 1.0
    with pytest.raises(OSError, match="no route"):
        tracker.log({"loss": 0.25}, 2)
    monkeypatch.setattr(tracker._client, "log_batch", given)
    now[0] = 2.0
    tracker.log({"loss": 0.125}, 3)
    found = client.get_metric_history(run_id, "loss")
    assert [(row.step, row.value) for row in found] == [(1, 0.5), (2, 0.25), (3, 0.125)]


@foreign
@pytest.mark.slow
@pytest.mark.parametrize("came_back", [False, True])
def test_values_that_mlflow_did_not_take_at_a_checkpoint_go_along_in_it(tmp_path, client, monkeypatch, came_back):
    tracker = MLflow(clock=lambda: 0.0)
    tracker.start(RunInfo(name="first", folder=tmp_path))
    given = tracker._client.log_batch

    def away(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(tracker._client, "log_batch", away)
    tracker.log({"loss": 0.5, "nan": math.nan}, 1)
    with pytest.warns(
        TrackerWarning, match=r"^MLflow took no values at a checkpoint, which keeps 2 of them: no route$"
    ):
        state = json.loads(json.dumps(tracker.state_dict(), allow_nan=False))
    monkeypatch.setattr(tracker._client, "log_batch", given)
    if came_back:
        tracker.state_dict()
    tracker = MLflow()
    tracker.load_state_dict(state)
    tracker.start(RunInfo(name="first", folder=tmp_path, resumed_at=1))
    tracker.log({"loss": 0.25}, 2)
    tracker.finish("finished")
    found = client.get_metric_history(state["run_id"], "loss")
    assert [(row.step, row.value) for row in found] == [(1, 0.5), (2, 0.25)]
    assert [row.step for row in client.get_metric_history(state["run_id"], "nan")] == [1]


@foreign
@pytest.mark.slow
def test_mlflow_can_watch_the_machine(tmp_path, client):
    tracker = begun(tmp_path, system_metrics=True)
    tracker.finish("finished")
    assert tracker._monitor is None


@foreign
def test_tensorboard_has_settings_and_facts_as_text(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracker = track.tensorboard()
    tracker.start(RunInfo(name="first", folder=tmp_path, config=CONFIG, facts=FACTS))
    tracker.finish("finished")
    seen = EventAccumulator(str(tmp_path / "tensorboard"))
    seen.Reload()
    assert set(seen.Tags()["tensors"]) == {f"{name}/text_summary" for name in ("config", "facts", "status")}
    (event,) = seen.Tensors("config/text_summary")
    assert b'"name": "adam"' in event.tensor_proto.string_val[0]


@foreign
def test_tensorboard_begun_again_in_its_folder_shows_the_new_run_alone(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for last in (5, 3):
        tracker = track.tensorboard()
        tracker.start(RunInfo(name="first", folder=tmp_path))
        for step in range(1, last + 1):
            tracker.log({"loss": step}, step)
        tracker.finish("failed")
    seen = EventAccumulator(str(tmp_path / "tensorboard"))
    seen.Reload()
    assert [(event.step, event.value) for event in seen.Scalars("loss")] == [(1, 1.0), (2, 2.0), (3, 3.0)]
