"""What `import headrace` offers: sorted names that all resolve, and nothing loaded before it is used."""

import subprocess
import sys
import types

import pytest

import headrace

HEAVY = ("torch", "numpy", "rich", "typer", "PIL", "sklearn", "scipy", "msgspec")


def _modules_after(code):
    """Names of the modules that a fresh interpreter holds after `code`."""
    code += "\nimport sys; print('\\n'.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_names_are_sorted_and_all_resolve():
    assert headrace.__all__ == sorted(headrace.__all__)
    for name in headrace.__all__:
        value = getattr(headrace, name)
        home = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
        assert home.startswith("headrace."), name
        assert value.__doc__, name


def test_dir_shows_the_public_names_and_nothing_else():
    assert dir(headrace) == sorted([*headrace.__all__, "__version__"])


def test_nothing_leaks_from_the_front_door():
    submodules = {name for name, value in vars(headrace).items() if isinstance(value, types.ModuleType)}
    public = {name for name in vars(headrace) if not name.startswith("_")} - submodules
    assert public - {"Any", "TYPE_CHECKING"} <= set(headrace.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'headrace' has no attribute 'DataLoadr'"):
        headrace.DataLoadr


@pytest.mark.slow
def test_importing_headrace_loads_nothing_heavy():
    assert not set(HEAVY) & set(_modules_after("import headrace"))


@pytest.mark.slow
def test_errors_keys_and_protocols_do_not_need_torch():
    assert "torch" not in _modules_after("import headrace.errors, headrace.keys, headrace.protocols, headrace.observe")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["diagnose", "--help"], ["rules"]])
def test_help_and_lists_do_not_load_torch(arguments):
    code = (
        "import sys, contextlib\n"
        f"sys.argv = ['headrace', *{arguments!r}]\n"
        "from headrace.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr):\n"
        "    main()"
    )
    assert not {"torch", "PIL", "sklearn"} & set(_modules_after(code))
