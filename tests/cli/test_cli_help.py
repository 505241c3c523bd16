"""Every command explains itself, at 80 columns, and at once: nothing heavy is imported for it."""

import subprocess
import sys

import pytest

from headrace import __version__
from headrace.cli import main
from headrace.cli.app import app

COMMANDS = [info.name for info in app.registered_commands]


def test_the_commands_are_those_of_the_readme():
    assert COMMANDS == [
        "diagnose",
        "watch",
        "measure",
        "tune",
        "compare",
        "contract",
        "replay",
        "rules",
        "explain",
        "demo",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_fits_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    screen = capsys.readouterr().out
    assert f"Usage: headrace {command}" in screen
    assert max(map(len, screen.splitlines())) <= 80


@pytest.mark.parametrize("info", app.registered_commands, ids=COMMANDS)
def test_every_command_and_every_option_says_what_it_does(info, capsys):
    import inspect

    assert info.callback.__doc__
    for name, parameter in inspect.signature(info.callback, eval_str=True).parameters.items():
        settings = parameter.annotation.__metadata__[0]
        assert settings.help, f"{info.name} {name} has no help"


@pytest.mark.parametrize("words", [["--help"], ["diagnose", "--help"], ["--version"], ["no-such-command"]])
def test_no_heavy_library_is_imported_before_a_command_runs(words):
    code = f"""
import sys
from headrace.cli import main
main({words!r})
heavy = {{"torch", "numpy", "PIL", "sklearn", "msgspec", "multiprocessing"}} & set(sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"headrace {__version__}\n"


def test_no_words_at_all_show_the_help(capsys):
    assert main([]) == 2
    assert "Usage: headrace" in "".join(capsys.readouterr())


def test_python_dash_m_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "headrace", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"headrace {__version__}\n")


@pytest.mark.parametrize(
    "words",
    [["diagnose"], ["diagnose", "a:b", "--budget", "soon"], ["diagnose", "a:b", "--full", "--quick"], ["explain"]],
)
def test_wrong_usage_ends_with_2_and_without_a_traceback(words, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "Error" in error
    assert "Traceback" not in error
