"""`[tool.headrace]` is read where it is present; a mistake in it is told, with the nearest key."""

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.settings import Settings, read_settings
from headrace.errors import ConfigurationError

KEYS = ["select", "ignore", "num-classes", "contract", "budget", "baseline"]


def write(folder, text):
    (folder / "pyproject.toml").write_text(text)
    return read_settings(folder)


def test_no_file_and_no_table_are_no_settings(tmp_path, monkeypatch):
    assert write(tmp_path, "[tool.other]\nselect = 3\n") == Settings()
    assert write(tmp_path, "") == Settings()
    assert write(tmp_path, "tool = 3\n") == Settings()


def test_every_key_is_read_and_paths_start_at_the_file(tmp_path):
    inner = tmp_path / "deep/inside"
    inner.mkdir(parents=True)
    write(
        tmp_path,
        '[tool.headrace]\nselect = ["HR3"]\nignore = "HR301, HR302"\nnum-classes = 10\ncontract = "c.toml"\n'
        'budget = "2m"\nbaseline = "b.json"\n',
    )
    assert read_settings(inner) == Settings(
        select=("HR3",),
        ignore=("HR301", "HR302"),
        num_classes=10,
        contract=tmp_path / "c.toml",
        budget=120.0,
        baseline=tmp_path / "b.json",
    )


@pytest.mark.parametrize("key", KEYS)
def test_a_misspelt_key_names_the_nearest(tmp_path, key):
    with pytest.raises(ConfigurationError, match=rf"has no key '{key}x'; did you mean '{key}'"):
        write(tmp_path, f'[tool.headrace]\n{key}x = "1"\n')


@pytest.mark.parametrize(
    "line",
    ["select = 3", "select = [3]", "ignore = true", "num-classes = 0", 'num-classes = "3"', "num-classes = true",
     "contract = 3", 'contract = ""', 'budget = "soon"', "budget = 0", "budget = true", "baseline = []"],
)  # fmt: skip
def test_a_value_that_cannot_be_meant_is_refused_with_its_key(tmp_path, line):
    key = line.partition(" ")[0]
    with pytest.raises(ConfigurationError, match=rf"\[tool\.headrace\] {key} = "):
        write(tmp_path, f"[tool.headrace]\n{line}\n")


def test_what_is_no_toml_or_no_table_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"pyproject\.toml cannot be read"):
        write(tmp_path, "[tool.headrace\n")
    with pytest.raises(ConfigurationError, match=r"not a table of settings"):
        write(tmp_path, "[tool]\nheadrace = 3\n")


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_is_settings_or_a_configuration_error(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(f"[tool.headrace]\n{text}", newline="")
    try:
        assert isinstance(read_settings(folder), Settings)
    except ConfigurationError:
        pass


def test_the_keys_of_the_guide_are_those_that_are_read():
    page = (pathlib.Path(__file__).parents[2] / "docs/guide/adoption.md").read_text()
    for key in KEYS:
        assert f"{key} = " in page
