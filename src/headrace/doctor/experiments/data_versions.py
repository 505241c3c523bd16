"""Compares the files that were opened with the records of DVC beside and above them; runs none of the user's code."""

from __future__ import annotations

import time
from typing import ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.source import DataVersions
from headrace.doctor.lab.outside import Ending
from headrace.doctor.probes.data_versions import compare_with_records
from headrace.doctor.round import Round
from headrace.errors import MissingExtra

__all__ = ["STEP"]

MAX_PATHS = 500


class _Step:
    """Its place in a diagnosis."""

    place: ClassVar[int] = 205
    gives: ClassVar[tuple[type[Evidence], ...]] = (DataVersions,)
    every_split: ClassVar[bool] = True

    def run(self, round_: Round) -> None:
        """Reads records and sizes in this process."""
        paths = dict.fromkeys(file.path for one in round_.prepared for file in one.read.files)
        if not paths:
            round_.found.lacks(self.gives, "no file was seen being opened")
            return
        started = time.monotonic()
        try:
            num_records, mismatches = compare_with_records(list(paths)[:MAX_PATHS])
        except MissingExtra as error:
            round_.found.lacks(self.gives, f"{error.what} ({', '.join(error.do)})")
            return
        round_.found.add(DataVersions(num_records=num_records, mismatches=mismatches))
        ending = Ending(outcome="done", wall_s=time.monotonic() - started)
        round_.found.note("data versions", ending, f"{num_records} records of DVC concern the opened files")


STEP = _Step()
