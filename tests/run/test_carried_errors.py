"""An exception comes home as itself if that is possible at all, and never fails to come home."""

import pickle
import subprocess
import threading

import pytest

from headrace import errors
from headrace.engine.run.carry import WorkerTraceback, pack_error, stand_in, unpack_error
from headrace.errors import RemoteError, Where, annotate
from headrace.testing.tasks import TwoArgumentError


def carry(error):
    try:
        raise error
    except BaseException as raised:
        return unpack_error(pack_error(raised), worker=1)


class FrozenError(Exception):
    """Refuses to be made without its keyword."""

    def __new__(cls, *args, code):
        return super().__new__(cls, *args)

    def __init__(self, *args, code):
        super().__init__(*args)


class WrongTextError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class ReducesToOtherError(Exception):
    def __reduce__(self):
        return ValueError, ("not me",)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain", 3),
        KeyError("key"),
        OSError(2, "No such file", "a.png"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        subprocess.CalledProcessError(3, ["ffmpeg", "-i"], output=b"x"),
        ImportError("no module", name="cv2"),
        ExceptionGroup("several", [ValueError(1), KeyError(2)]),
        TwoArgumentError("awkward", 7),
        ReducesToOtherError("me"),
        errors.SourceError("no files", where=Where(path="data"), why="empty", do="look"),
    ],
)
def test_type_text_and_arguments_survive(error):
    twin = carry(error)
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert repr(twin.args) == repr(error.args)
    assert isinstance(twin.__cause__, WorkerTraceback)
    assert "in carry" not in str(twin.__cause__) or "Traceback" in str(twin.__cause__)


def test_fields_outside_the_arguments_survive():
    assert carry(OSError(2, "No such file", "a.png")).filename == "a.png"
    assert carry(TwoArgumentError("awkward", 7)).code == 7
    assert carry(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")).object == b"\xff"


def test_notes_survive_and_are_shown_once():
    error = TwoArgumentError("awkward", 7)
    annotate(error, Where(sample_id="a.png", index=3))
    twin = carry(error)
    assert twin.headrace_where == Where(sample_id="a.png", index=3)
    assert [note for note in twin.__notes__ if "a.png" in note] == error.__notes__
    assert "a.png" not in str(twin.__cause__)


def test_what_stays_behind_is_said():
    twin = carry(TwoArgumentError("awkward", 7))
    assert not hasattr(twin, "lock")
    assert any("left behind in the worker" in note and "lock" in note for note in twin.__notes__)


def test_unpicklable_arguments_become_text():
    (argument,) = carry(ValueError(threading.Lock())).args
    assert isinstance(argument, str)
    assert "lock" in argument


def test_causes_are_shown():
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")
    assert "inner" in str(carry(error).__cause__)


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), FrozenError("f", code=1), type("Local", (Exception,), {})("l")]
)
def test_what_cannot_be_raised_here_is_described(error):
    annotate(error, Where(sample_id=4))
    twin = carry(error)
    assert type(twin) is RemoteError
    assert type(error).__qualname__ in str(twin)
    assert twin.headrace_where == Where(sample_id=4)
    assert any("sample 4" in note for note in twin.__notes__)
    assert type(pickle.loads(pickle.dumps(twin))) is RemoteError


def test_an_exception_without_text_still_comes_home():
    assert isinstance(carry(WrongTextError("x")), WrongTextError)


def test_threads_raise_exceptions_themselves():
    error = ValueError("x")
    assert stand_in(error, 0) is error
    assert stand_in(SystemExit(2), 0).__cause__.code == 2
