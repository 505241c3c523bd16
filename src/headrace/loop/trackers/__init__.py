"""Trackers: what keeps the history of a run, each behind the same four methods, and none needed."""

from headrace.loop.trackers.guarded import Guarded
from headrace.loop.trackers.jsonl import JsonLines
from headrace.loop.trackers.mlflow import MLflow
from headrace.loop.trackers.progress import Progress
from headrace.loop.trackers.tensorboard import TensorBoard
from headrace.loop.trackers.tracker import RunInfo, Tracker
from headrace.loop.trackers.wandb import WandB

__all__ = ["Guarded", "JsonLines", "MLflow", "Progress", "RunInfo", "TensorBoard", "Tracker", "WandB"]
