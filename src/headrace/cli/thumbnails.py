"""Pictures of flagged samples, where the user asks for them with `--thumbnails`."""

from __future__ import annotations

import importlib.util
import itertools
from typing import TYPE_CHECKING

from headrace.errors import MissingExtra, SampleId

if TYPE_CHECKING:
    from headrace.doctor.report.model import Report
    from headrace.doctor.report.thumbnail import Thumbnail

__all__ = ["check_thumbnails", "flagged_samples", "take_thumbnails"]

MOST = 24
"""Samples with a picture: a page stays far below 2 MB."""
MOST_OF_ONE = 6
"""Samples of one finding: more of the same say no more."""
BUDGET_S = 60.0
"""Seconds for all of them: they were prepared within the examination's own budget before."""


def check_thumbnails() -> None:
    """Raises MissingExtra where pictures cannot be written: before the examination, not after it."""
    if importlib.util.find_spec("PIL") is None:
        raise MissingExtra("--thumbnails needs Pillow", do="pip install 'headrace[report]'")


def take_thumbnails(target: str, report: Report, *, per_sample_s: float, seed: int) -> list[Thumbnail]:
    """Prepares flagged samples once more, in a child of their own, and returns their pictures."""
    from headrace.doctor.lab.outside import Budget, Lab
    from headrace.doctor.probes.thumbnails import make_thumbnails

    ids = flagged_samples(report)
    if not ids:
        return []
    with Lab(target, budget=Budget(BUDGET_S), per_sample_s=per_sample_s) as lab:
        return make_thumbnails(lab, ids, seed=seed)


def flagged_samples(report: Report) -> list[SampleId]:
    """Returns the ids to show: the first of each finding, then the second of each, and so on; each once."""
    # A finding about one of several loaders names samples of a data set that TARGET alone may not be.
    listed = [row.sample_ids[:MOST_OF_ONE] for row in report.findings if row.split is None]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*listed))
    return list(dict.fromkeys(one for one in mixed if one is not None))[:MOST]
