"""How each tracker's history is read back, by the library that keeps it where there is a reader; and how it is made."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from headrace.loop import track
from headrace.loop.trackers.plain import flat


@dataclass(frozen=True)
class Kept:
    """A tracker under test."""

    name: str
    make: Callable
    """Returns a tracker."""
    read: Callable
    """From the folder of the run: {value name: [(step, value), ...]} in the order in which the library has them."""
    identity: Callable
    """From the folder of the run: the ids of the runs that the library knows of."""
    facts: Callable
    """From the folder of the run: what was logged once of it, when it started last, as text by name, `data.digest`."""
    needs: str | None = None

    def __str__(self):
        return self.name

    def skip_if_missing(self):
        if self.needs:
            pytest.importorskip(self.needs, reason=f"{self.needs} is not installed")


def read_jsonl(folder):
    found = {}
    for line in (folder / "history.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
        for name in row.keys() - {"step", "time"} if "step" in row else ():
            found.setdefault(name, []).append((row["step"], float(row[name])))
    return found


def spelled(facts):
    return {name: str(value) for name, value in flat(facts).items()}


def facts_of_jsonl(folder):
    rows = map(json.loads, (folder / "history.jsonl").read_text(encoding="utf-8").splitlines())
    return spelled([row["facts"] for row in rows if "facts" in row][-1])


def facts_of_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen = EventAccumulator(str(folder / "tensorboard"))
    seen.Reload()
    return spelled(json.loads(seen.Tensors("facts/text_summary")[-1].tensor_proto.string_val[0]))


def facts_of_mlflow(folder):
    _, (run,) = _mlflow_runs(folder)
    return dict(run.data.tags)


def facts_of_wandb(folder):
    import wandb

    wandb.teardown()
    found = {}
    for path in sorted(folder.glob("wandb/offline-run-*/run-*.wandb")):
        for record in records_of_wandb(path):
            if record.WhichOneof("record_type") == "config":
                found |= {item.key: json.loads(item.value_json) for item in record.config.update}
    return spelled(found["facts"])


def read_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

    seen = EventAccumulator(str(folder / "tensorboard"), size_guidance={SCALARS: 0})
    seen.Reload()
    return {name: [(event.step, event.value) for event in seen.Scalars(name)] for name in seen.Tags()["scalars"]}


def _mlflow_runs(folder):
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiments = [one.experiment_id for one in client.search_experiments()]
    return client, client.search_runs(experiments)


def read_mlflow(folder):
    client, (run,) = _mlflow_runs(folder)
    return {
        name: [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, name)]
        for name in run.data.metrics
    }


def records_of_wandb(path):
    """W&B has no reader of its local files in Python: blocks of 32 KiB, each of records with a header of seven bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, part = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (rest := 32768 - at % 32768) < 7:
            at += rest
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        part += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in {1, 4}:  # whole, or the last piece of one
            record = Record()
            record.ParseFromString(part)
            yield record
            part = b""


def read_wandb(folder):
    import wandb

    wandb.teardown()  # a moment after `finish`, its process still writes
    found = {}
    for path in sorted(folder.glob("wandb/offline-run-*/run-*.wandb")):
        for record in records_of_wandb(path):
            if record.WhichOneof("record_type") == "history":
                row = {(item.key or item.nested_key[0]): json.loads(item.value_json) for item in record.history.item}
                for name in row.keys() - {"step"} if "step" in row else ():
                    if not name.startswith("_"):
                        found.setdefault(name, []).append((row["step"], float(row[name])))
    return found


def _wandb_ids(folder):
    return {path.name.split("-")[3] for path in folder.glob("wandb/**/offline-run-*")}


KEPT = [
    Kept(
        "jsonl",
        track.jsonl,
        read_jsonl,
        lambda folder: {str(path) for path in folder.glob("*.jsonl")},
        facts_of_jsonl,
    ),
    Kept(
        "tensorboard",
        track.tensorboard,
        read_tensorboard,
        lambda folder: {"its folder"},
        facts_of_tensorboard,
        "tensorboard",
    ),
    Kept(
        "mlflow",
        track.mlflow,
        read_mlflow,
        lambda folder: {run.info.run_id for run in _mlflow_runs(folder)[1]},
        facts_of_mlflow,
        "mlflow",
    ),
    Kept(
        "wandb",
        lambda: track.wandb("headrace-tests", mode="offline"),
        read_wandb,
        _wandb_ids,
        facts_of_wandb,
        "wandb",
    ),
]


def value(name, step):
    """What every attempt logs of a step: a number that float32 holds, too."""
    return {"loss": 1 / 2**step, "acc/top 1": step / 8, "wait %": 0.5, "wait percent": 0.5}[name]
