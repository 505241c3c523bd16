"""From a choice to the user's file, and back if it does not hold: with real files that are really loaded again."""

from __future__ import annotations

import dataclasses

import pytest

from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.choice import Choice
from headrace.doctor.tuning.editing import apply, edit_of
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.model import Tuning
from headrace.errors import ConfigurationError

FACTS = LoaderNow(
    library="torch",
    kind="torch.utils.data.DataLoader",
    present=Setting(num_workers=2, prefetch_factor=2, persistent_workers=False, pin_memory=False),
)
FILE = """
from torch.utils.data import DataLoader

def make():
    return DataLoader(list(range(8)), batch_size=2, num_workers=2)
"""
STUBBORN = FILE.replace("return DataLoader", "loader = DataLoader") + "    loader.num_workers = 2\n    return loader\n"


def _tuning(spec, change=None, facts=FACTS):
    change = change or Setting(num_workers=4)
    return Tuning(
        spec=spec,
        command="",
        created="",
        facts=facts,
        consumer="no training step",
        is_emulated=False,
        seed=0,
        budget_s=1.0,
        used_s=1.0,
        noise="quiet",
        need=None,
        margin=0.25,
        choice=Choice(outcome="change", setting=change, meets_need=None, why=""),
        says="",
        gain=None,
        tried=(),
        num_blocks=0,
        floor=None,
        edit=edit_of(facts, change, spec),
    )


@pytest.fixture
def spec(tmp_path):
    def write(text):
        (tmp_path / "mine.py").write_text(text)
        return f"{tmp_path}/mine.py:make"

    return write


@pytest.mark.slow
def test_it_is_written_loaded_again_and_found_as_wanted(spec, tmp_path):
    applied = apply(_tuning(spec(FILE)))
    assert applied.applied
    assert (tmp_path / "mine.py").read_text() == FILE.replace("num_workers=2", "num_workers=4")


@pytest.mark.slow
def test_a_loader_that_is_set_elsewhere_gets_its_file_back(spec, tmp_path):
    with pytest.raises(ConfigurationError, match="changed back: after the change the loader has num_workers=2, not 4"):
        apply(_tuning(spec(STUBBORN)))
    assert (tmp_path / "mine.py").read_text() == STUBBORN


def test_a_file_that_changed_since_is_left_alone(spec, tmp_path):
    tuning = _tuning(spec(FILE))
    changed = FILE.replace("batch_size=2", "batch_size=4")
    (tmp_path / "mine.py").write_text(changed)
    with pytest.raises(ConfigurationError, match="has changed since it was examined"):
        apply(tuning)
    assert (tmp_path / "mine.py").read_text() == changed


def test_what_is_refused_is_a_line_to_paste_and_is_not_applied(spec):
    tuning = _tuning(spec(FILE.replace("num_workers=2", "num_workers=N")))
    assert tuning.edit.line == "num_workers=4"
    assert tuning.edit.refused.startswith("num_workers in line 5 is N")
    with pytest.raises(ConfigurationError, match="cannot be changed by headrace"):
        apply(tuning)


def test_a_module_is_found_by_the_file_that_it_was_loaded_from(spec, tmp_path):
    spec(FILE)
    facts = dataclasses.replace(FACTS, file=f"{tmp_path}/mine.py")
    assert (
        "+    return DataLoader(list(range(8)), batch_size=2, num_workers=4)"
        in edit_of(facts, Setting(num_workers=4), "mine:make").diff
    )


@pytest.mark.parametrize(
    ("change", "line", "back"),
    [
        (
            Setting(num_workers=4, prefetch_factor=4),
            "num_workers=4, prefetch_factor=4",
            "num_workers=2, prefetch_factor=2",
        ),
        (Setting(start_method="forkserver"), "multiprocessing_context='forkserver'", "no multiprocessing_context"),
        (
            Setting(num_workers=4, loader="headrace"),
            "headrace.DataLoader(the same arguments, num_workers=4)",
            "torch.utils.data.DataLoader, num_workers=2",
        ),
    ],
)
def test_lines_to_paste_and_to_go_back(change, line, back):
    edit = edit_of(FACTS, change, None)
    assert (edit.line, edit.back) == (line, back)
    assert edit.refused == "the loader was given as an object, not by its file"
