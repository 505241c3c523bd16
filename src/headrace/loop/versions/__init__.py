"""Which version of the data a run is made of: what DVC, git-lfs or git say of it, held against what is on the disk."""

from headrace.loop.versions.front import data_version
from headrace.loop.versions.version import DataVersion

__all__ = ["DataVersion", "data_version"]
