"""The wheel holds the whole package, and works where there is no checkout."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

LOAD = """
import pathlib, sys
import numpy as np
import headrace as hr

assert pathlib.Path(hr.__file__).is_relative_to(sys.prefix), hr.__file__
plan = hr.arrays(x=np.arange(10, dtype=np.float32), y=np.arange(10))
loader = hr.DataLoader(plan, batch_size=4, shuffle=True, seed=1, num_workers=2)
print(sorted(i for batch in loader for i in loader.last.sample_ids))
"""

pytestmark = pytest.mark.slow


def _run(*command, cwd):
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (path,) = folder.glob("headrace-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Folder of the programs of a new environment that holds the wheel, and borrows the dependencies of this one."""
    home = tmp_path_factory.mktemp("elsewhere")
    _run(sys.executable, "-m", "venv", "--without-pip", home / "venv", cwd=home)
    programs = home / "venv" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    _run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    (site,) = (home / "venv").glob("lib/python*/site-packages")
    # Only libraries come along this way: a path file in a borrowed folder, such as that of the editable headrace, is not
    # followed, and the new environment's own folder comes first.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


def test_the_wheel_holds_every_module_the_type_marker_and_the_licence(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        str(path.relative_to(SOURCE))
        for path in (SOURCE / "headrace").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected <= names
    assert "headrace/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "docs", "tools"))]


def test_the_command_runs_outside_the_checkout(installed, tmp_path):
    assert _run(installed / "headrace", "--version", cwd=tmp_path).startswith("headrace 0.")


def test_the_installed_package_loads_with_workers_outside_the_checkout(installed, tmp_path):
    (tmp_path / "load.py").write_text(LOAD)
    assert _run(installed / "python", "load.py", cwd=tmp_path).strip() == str(list(range(10)))
