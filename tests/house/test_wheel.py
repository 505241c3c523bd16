"""The wheel holds the whole package, and works where there is no checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from headrace import native
from headrace.engine.order import kernels

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

NATIVE = """
from headrace.engine.order import kernels
print(kernels._library() is not None)
"""

pytestmark = pytest.mark.slow

needs_compiler = pytest.mark.skipif(shutil.which(native.compiler()[0]) is None, reason="no C compiler")


def _run(*command, cwd, **more):
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    environment |= more
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _build_wheel(folder, **more):
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder, **more)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return _build_wheel(tmp_path_factory.mktemp("wheel"))


def _libraries(wheel):
    return {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")}


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
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
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


@needs_compiler
def test_where_there_is_a_compiler_the_wheel_is_for_this_platform_and_every_python(wheel):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    expected = {str(native.library_path(source).relative_to(SOURCE)) for source in native.SOURCES}
    assert str(native.library_path(kernels.SOURCE).relative_to(SOURCE)) in _libraries(wheel) <= expected


@needs_compiler
def test_an_installed_wheel_uses_its_library(installed, tmp_path):
    (tmp_path / "native.py").write_text(NATIVE)
    assert _run(installed / "python", "native.py", cwd=tmp_path).strip() == "True"


def test_without_a_compiler_the_wheel_is_for_all_platforms(tmp_path):
    path = _build_wheel(tmp_path, CC="no-such-compiler")
    assert path.name.endswith("-py3-none-any.whl")
    assert not _libraries(path)


@needs_compiler
def test_a_wheel_can_be_made_of_the_source_distribution(tmp_path):
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (archive,), (path,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    names = {name.partition("/")[2] for name in tarfile.open(archive).getnames()}
    assert {"hatch_build.py", *(f"src/headrace/{source}" for source in native.SOURCES)} <= names
    assert not [name for name in names if name.endswith(".so")]
    assert _libraries(path)


@needs_compiler
def test_an_editable_installation_has_its_library_in_the_tree(tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(SOURCE, tree / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tree / name)
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel:editable", "-d", tmp_path / "out", cwd=tree)
    assert (tree / "src" / native.library_path(kernels.SOURCE).relative_to(SOURCE)).exists()
    (path,) = (tmp_path / "out").iterdir()
    assert not _libraries(path)
