"""`headrace.track`: what keeps the history of a run.

    import headrace as hr

    trackers = [hr.track.jsonl(), hr.track.progress(total=1000), hr.track.mlflow()]

Each has the four methods of `headrace.loop.trackers.Tracker`: start, log, artifact, finish. A class of one's own that has
them is a tracker too. The libraries behind them are loaded when the run starts.
"""

from __future__ import annotations

import os

from headrace.loop.trackers import JsonLines, MLflow, Progress, TensorBoard, WandB

__all__ = ["jsonl", "mlflow", "progress", "tensorboard", "wandb"]


def jsonl(path: str | os.PathLike[str] | None = None) -> JsonLines:
    """Returns a tracker that writes one JSON object a line, into `history.jsonl` in the folder of the run by default.

    Args:
        path: Another file.
    """
    return JsonLines(path)


def progress(total: int | None = None) -> Progress:
    """Returns a tracker that shows a bar on a terminal, and a line every 30 seconds elsewhere.

    Args:
        total: Steps of the whole run. Default: what the loop says, if its loader has a length.

    Raises:
        MissingExtra: stderr is a terminal, and tqdm is not installed.
    """
    return Progress(total)


def tensorboard(folder: str | os.PathLike[str] | None = None) -> TensorBoard:
    """Returns a tracker that writes event files, into `tensorboard` in the folder of the run by default.

    Args:
        folder: Another folder.

    Raises:
        MissingExtra: tensorboard is not installed.
    """
    return TensorBoard(folder)


def wandb(project: str, *, entity: str | None = None, mode: str | None = None) -> WandB:
    """Returns a tracker that logs to Weights & Biases.

    Args:
        project: Name of the project.
        entity: User or team. Default: the one of the API key.
        mode: "online", "offline", "disabled". Default: online if there is a key and a way to the server.

    Raises:
        MissingExtra: wandb is not installed.
    """
    return WandB(project, entity=entity, mode=mode)


def mlflow(uri: str | None = None, *, experiment: str = "headrace", system_metrics: bool = False) -> MLflow:
    """Returns a tracker that logs to MLflow, into `mlflow.db` in the folder of the run by default.

    Args:
        uri: Of another database or a server.
        experiment: Name of MLflow's experiment; made if it is not there.
        system_metrics: Also log use of CPU, memory, disk, network and GPU.

    Raises:
        MissingExtra: mlflow is not installed.
    """
    return MLflow(uri, experiment=experiment, system_metrics=system_metrics)
