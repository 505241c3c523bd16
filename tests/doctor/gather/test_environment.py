"""Usable cores: never more than affinity and quota allow, never fewer than one."""

import os

import numpy as np
import pytest

from headrace.doctor.report.environment import describe_environment, usable_cores


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_the_quota_bounds_the_cores(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    allowed = len(os.sched_getaffinity(0))
    assert usable_cores(tmp_path) == (allowed if cores is None else min(cores, allowed))


def test_versions_are_those_installed():
    environment = describe_environment()
    assert environment.numpy == np.__version__
    assert environment.usable_cores >= 1
