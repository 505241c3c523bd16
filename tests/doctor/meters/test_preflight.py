"""What is looked at before anything is measured."""

import multiprocessing
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from headrace.doctor.meters import preflight
from headrace.doctor.meters.page_cache import FileRange, label
from headrace.doctor.meters.preflight import judge_noise, look_before
from headrace.machine import usable_cores


@pytest.mark.parametrize(
    ("pressure", "noise"),
    [
        (None, "unknown"),
        (0.0, "quiet"),
        (9.9, "quiet"),
        (10.0, "noisy"),
        (39.9, "noisy"),
        (40.0, "loud"),
        (99.0, "loud"),
    ],
)
def test_noise(pressure, noise):
    assert judge_noise(pressure) == noise


def test_what_is_found_agrees_with_the_system(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"x" * 10_000)
    found = look_before([FileRange(path)], pressure=12.0)
    assert found.noise == "noisy"
    assert found.machine.cpu_pressure == 12.0
    assert found.machine.usable_cores == usable_cores()
    assert found.kernel == platform.release()
    assert found.environment.python == platform.python_version()
    assert 0 < found.memory_limit_bytes
    assert found.start_method in multiprocessing.get_all_start_methods()
    assert found.cache.num_planned == 1
    if Path("/dev/shm").is_dir():
        assert 0 <= found.machine.shm_free_bytes <= found.machine.shm_size_bytes


def test_without_a_plan_the_state_of_the_cache_is_unknown():
    assert label(look_before().cache).label == "unknown"


def test_the_pressure_is_asked_if_it_is_not_given(monkeypatch):
    monkeypatch.setattr(preflight, "cpu_pressure", lambda: 55.0)
    assert look_before().noise == "loud"
    monkeypatch.setattr(preflight, "cpu_pressure", lambda: None)
    assert look_before().noise == "unknown"


def test_looking_imports_no_torch_and_fixes_no_start_method():
    program = """
        import multiprocessing, sys
        from headrace.doctor.meters.preflight import look_before
        found = look_before()
        assert found.torch_threads is None, found
        assert "torch" not in sys.modules
        multiprocessing.set_start_method("spawn")
        print(look_before().start_method)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "spawn"


def test_threads_of_torch():
    torch = pytest.importorskip("torch")
    assert look_before().torch_threads == torch.get_num_threads()


def test_elsewhere_little_is_known(monkeypatch, tmp_path):
    class Nowhere:
        def __init__(self, *parts):
            pass

        def read_text(self, **options):
            raise FileNotFoundError

    monkeypatch.setattr(preflight.pathlib, "Path", Nowhere)
    assert preflight._governor() is None
    assert preflight._is_virtual() is None
