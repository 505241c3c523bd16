"""Which command is run, and what is swept away of watchers that were killed."""

from __future__ import annotations

import os
import pathlib
import sys
import time

import pytest

from headrace.doctor.watch import running
from headrace.errors import ConfigurationError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_scripts_modules_and_code_get_python_and_commands_are_found(folder):
    for name in ("train.py", "script"):
        (folder / name).write_text("")
    (folder / "package").mkdir()
    (folder / "package" / "__main__.py").touch()
    for words in (["train.py", "-m"], ["script"], ["package", "1"], ["-m", "module", "x"], ["-c", "code"]):
        assert running._command(words) == [sys.executable, *words]
    assert running._command(["sh", "-c", "true"])[1:] == ["-c", "true"]
    assert os.access(running._command(["sh"])[0], os.X_OK)
    python = pathlib.Path(sys.executable)
    assert running._command([python.name, "x"]) == [str(python), "x"]
    (folder / "script").chmod(0o700)
    assert running._command(["./script", "x"]) == ["./script", "x"]


@pytest.mark.parametrize("words", [["missing.py"], ["-m"], ["-c"], ["no such thing"]])
def test_what_is_not_there_is_refused_before_anything_is_made(words, folder):
    with pytest.raises(ConfigurationError, match=r"^watch"):
        running.run_watched(words)
    assert list(folder.iterdir()) == []


def test_only_old_folders_of_ours_are_swept(folder):
    old = time.time() - running.STALE_S - 60
    names = {"headrace-watch-old": old, "headrace-watch-new": time.time(), "somebody-elses": old}
    for name, age in names.items():
        (folder / name).mkdir()
        (folder / name / "1.seen").touch()
        os.utime(folder / name, (age, age))
    running._sweep()
    assert sorted(path.name for path in folder.iterdir()) == ["headrace-watch-new", "somebody-elses"]


def test_a_run_leaves_no_file_and_says_how_it_ended(folder, capfd):
    run = running.run_watched(["-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"])
    assert capfd.readouterr() == ("out\n", "err\n")
    assert (run.status, run.exit_status, run.ending, run.could_watch) == (3, 3, "failed with exit status 3", True)
    assert (run.seen, list(folder.iterdir())) == ((), [])
    isolated = running.run_watched([sys.executable, "-I", "-c", "import os; os.kill(os.getpid(), 9)"])
    assert (isolated.status, isolated.exit_status, isolated.ending) == (-9, 137, "ended by SIGKILL")
    assert not isolated.could_watch
