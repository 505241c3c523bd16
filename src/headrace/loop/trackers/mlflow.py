"""MLflow: a database in the folder of the run, or a server."""

from __future__ import annotations

import inspect
import json
import pathlib
import posixpath
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import ConfigurationError, TrackerWarning
from headrace.loop.trackers.plain import flat, numbers, plain
from headrace.loop.trackers.required import require
from headrace.loop.trackers.tracker import RunInfo

__all__ = ["MLflow"]

STATUS = {"finished": "FINISHED", "failed": "FAILED", "killed": "KILLED"}
VALUE_LENGTH = 5000
"""Characters of a parameter or tag: the least that the versions and stores of MLflow take."""
GIVE_EVERY_S = 1.0
"""Each call costs MLflow's database some 10 ms, whether it brings one value or a thousand."""
MOST_HELD = 100_000
"""Values that are held for a server that is away; older ones are given up."""
DIGEST_LENGTH = 36
"""Characters of a data set's digest that MLflow takes."""


class MLflow:
    """Logs to MLflow: settings as parameters, facts as tags, the version of the data as a data set.

        mlflow ui --backend-store-uri sqlite:///runs/digits/mlflow.db

    A run that goes on is the same run of MLflow. MLflow forgets nothing, so values that a killed attempt logged behind the
    checkpoint stay, and the ones that come again are not logged twice.

    Values are given to MLflow once a second, and with each checkpoint.

    Names of values are spelled as MLflow allows: "wait %" is "wait percent", other signs are "_". Infinity is kept as the
    greatest number by MLflow's own databases. `mlflow.active_run` knows nothing of the run.

    Args:
        uri: Of the tracking server or database. Default: what the program or MLFLOW_TRACKING_URI says; else
            `mlflow.db` in the folder of the run, with the artifacts beside it.
        experiment: Name of MLflow's experiment; made if it is not there.
        system_metrics: Also log use of CPU, memory, disk, network and GPU, every ten seconds.
        clock: Seconds; any beginning.

    Raises:
        MissingExtra: mlflow is not installed.
    """

    name = "mlflow"

    def __init__(
        self,
        uri: str | None = None,
        *,
        experiment: str = "headrace",
        system_metrics: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require("mlflow", "the MLflow tracker")
        self._uri = uri
        self._experiment = experiment
        self._wants_system_metrics = system_metrics
        self._client: Any = None
        self._monitor: Any = None
        self._id: str | None = None
        self._resumed_at: int | None = None
        self._there: dict[str, frozenset[int]] = {}
        self._held: list[tuple[str, float, int, int]] = []
        self._clock = clock
        self._given_at = clock()

    def start(self, run: RunInfo) -> None:
        """Makes a run, or finds the one it was, and logs what is logged once."""
        import mlflow

        run.folder.mkdir(parents=True, exist_ok=True)
        uri, artifacts = self._uri, None
        if uri is None and mlflow.is_tracking_uri_set():
            uri = mlflow.get_tracking_uri()
        if uri is None:
            uri = f"sqlite:///{run.folder.resolve() / 'mlflow.db'}"
            artifacts = (run.folder.resolve() / "mlflow-artifacts").as_uri()
        client = mlflow.MlflowClient(uri)
        self._resumed_at = run.resumed_at
        found = None if self._id is None else _find(client, self._id, uri)
        if found is None:
            self._id = client.create_run(
                _experiment(client, self._experiment, artifacts), run_name=run.name
            ).info.run_id
            self._resumed_at = None  # nothing is there
        else:
            client.update_run(self._id, status="RUNNING")
            # What rode in the checkpoint may have arrived after it.
            there = {key: {row.step for row in client.get_metric_history(self._id, key)} for key, *_ in self._held}
            self._held = [row for row in self._held if row[3] not in there[row[0]]]
        self._client = client
        self._log_once(run, {} if found is None else found.data.params)
        if self._wants_system_metrics:
            self._monitor = _monitor(self._id, uri, goes_on=found is not None)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Holds the values that are not there for this step yet, and gives MLflow what is held once a second.

        What it does not take, a server that is away for a while, stays held and is tried again.
        """
        self._started()
        now_ms = int(time.time() * 1000)
        self._held += [
            (key, value, now_ms, step)
            for key, value in ((_key(name), value) for name, value in numbers(values).items())
            if step not in self._steps_there(key)
        ]
        del self._held[:-MOST_HELD]
        if self._clock() - self._given_at >= GIVE_EVERY_S:
            self._give()

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Has MLflow keep a copy of a file."""
        client = self._started()
        folder, base = posixpath.split(name)
        if path.name == base:
            client.log_artifact(self._id, str(path), folder or None)
            return
        with tempfile.TemporaryDirectory() as place:  # MLflow keeps files under their own names
            client.log_artifact(self._id, str(shutil.copyfile(path, pathlib.Path(place) / base)), folder or None)

    def finish(self, status: str) -> None:
        """Says how the run ended."""
        client = self._started()
        if self._monitor is not None:
            self._monitor.finish()
            self._monitor = None
        self._give()
        client.set_terminated(self._id, STATUS.get(status, "FAILED"))

    def state_dict(self) -> dict[str, Any]:
        """Returns the id of MLflow's run, when MLflow has all that was logged; what it does not take goes along."""
        if self._client is not None:
            try:
                self._give()
            except Exception as error:
                # The state must not fail: without the id, a run that goes on would be another one.
                warnings.warn(
                    f"MLflow took no values at a checkpoint, which keeps {len(self._held):,} of them: {error}",
                    TrackerWarning,
                    stacklevel=2,
                )
        return {"run_id": self._id, "held": [list(plain(row)) for row in self._held]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the id of the run to go on with."""
        self._id = state.get("run_id")
        self._held = [(key, float(value), time_ms, step) for key, value, time_ms, step in state.get("held", [])]

    def _give(self) -> None:
        from mlflow.entities import Metric

        self._given_at = self._clock()
        while self._held:
            metrics = [Metric(*row) for row in self._held[:1000]]  # the most that MLflow takes at once
            self._client.log_batch(self._id, metrics=metrics)
            del self._held[:1000]

    def _log_once(self, run: RunInfo, there: Mapping[str, str]) -> None:
        from mlflow.entities import Param, RunTag

        params = {_key(name): str(value)[:VALUE_LENGTH] for name, value in flat(run.config).items()}
        tags = {_key(name): str(value)[:VALUE_LENGTH] for name, value in flat(run.facts).items()}
        # MLflow's parameters cannot change: those that did are told by a tag of the step from which on they count.
        changed = {name: value for name, value in params.items() if there.get(name, value) != value}
        if changed:
            tags[f"config changed at step {run.resumed_at}"] = json.dumps(changed)[:VALUE_LENGTH]
        new = [Param(name, value) for name, value in params.items() if name not in there]
        marks = [RunTag(name, value) for name, value in tags.items()]
        for first in range(0, max(len(new), len(marks)), 100):  # the most that MLflow takes at once
            part = slice(first, first + 100)
            self._client.log_batch(self._id, params=new[part], tags=marks[part])
        data = run.facts.get("data")
        if isinstance(data, Mapping) and data.get("digest"):
            self._client.log_inputs(self._id, [_dataset(data)])

    def _steps_there(self, key: str) -> frozenset[int]:
        """Steps from the checkpoint on that a killed attempt has logged of a value."""
        if self._resumed_at is None:
            return frozenset()
        if key not in self._there:
            rows = self._client.get_metric_history(self._id, key)
            self._there[key] = frozenset(row.step for row in rows if row.step >= self._resumed_at)
        return self._there[key]

    def _started(self) -> Any:
        if self._client is None:
            raise ConfigurationError(
                "the tracker was not started", do="tracker.start(run) before log, artifact, finish"
            )
        return self._client


def _find(client: Any, run_id: str, uri: str) -> Any:
    """The run of that id; None if MLflow does not have it."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_run(run_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        warnings.warn(
            f"{uri} has no run {run_id}, with which this one was to go on: a new one begins here",
            TrackerWarning,
            stacklevel=3,
        )
        return None


def _experiment(client: Any, name: str, artifacts: str | None) -> str:
    found = client.get_experiment_by_name(name)
    return str(found.experiment_id if found is not None else client.create_experiment(name, artifacts))


def _key(name: str) -> str:
    """A name as MLflow allows it: it may also serve as a path."""
    spelled = re.sub(r"[^\w\-. :/]", "_", name.replace("%", "percent"))
    return posixpath.normpath(spelled).lstrip("/.")[:250] or "_"


def _dataset(data: Mapping[str, Any]) -> Any:
    """The version of the data, whose whole digest is in the source: MLflow's own field is short."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    digest = str(data["digest"])
    source = json.dumps(plain(data))
    return DatasetInput(
        Dataset(str(data.get("name", "data"))[:500], digest[:DIGEST_LENGTH], "local", source),
        tags=[InputTag("mlflow.data.context", "training")],
    )


def _monitor(run_id: str | None, uri: str, *, goes_on: bool) -> Any:
    import mlflow
    from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

    if "tracking_uri" in inspect.signature(SystemMetricsMonitor).parameters:
        monitor = SystemMetricsMonitor(run_id, resume_logging=goes_on, tracking_uri=uri)
    else:  # older versions ask the whole program's setting
        mlflow.set_tracking_uri(uri)
        monitor = SystemMetricsMonitor(run_id, resume_logging=goes_on)
    monitor.start()
    return monitor
