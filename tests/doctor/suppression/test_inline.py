"""An ignored finding does not count, and is never lost; an ignore that cannot be honoured says so."""

import sys

import pytest

from headrace.doctor.suppression import apply_comments

SOURCE = """import torch


class Photos(torch.utils.data.Dataset):{on_class}
    def __getitem__(self, index):
        return self.crop(index){on_line}


@cached(
    1
)
def make_loader(
    size=1,
):{on_def}
    return Photos()
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**comments):
        marks = dict.fromkeys(("on_class", "on_line", "on_def"), "")
        marks |= {name: f"  # headrace: ignore[{text}" for name, text in comments.items()}
        (tmp_path / "train.py").write_text(SOURCE.format(**marks))

    return write


def test_no_comment_changes_nothing(write, row, report):
    write()
    before = report(row("HR306", where="train.py:6 in __getitem__"))
    assert apply_comments(before) == before


@pytest.mark.parametrize("place", ["on_class", "on_line", "on_def"])
def test_on_the_line_the_class_or_the_target(write, row, report, place):
    write(**{place: "HR306] each worker draws the same"})
    after = apply_comments(report(row("HR306", where="train.py:6 in __getitem__")))
    assert (after.findings, after.verdict, after.exit_status, after.notes) == ([], "clean", 0, [])
    assert [(one.finding.code, one.reason) for one in after.ignored] == [("HR306", "each worker draws the same")]
    assert after.ignored[0].at.startswith("train.py:")
    assert apply_comments(after) == after


@pytest.mark.parametrize("where", [None, "dataset.generator", "train.py:5", "other.py:6"])
def test_a_line_speaks_for_itself_only(write, row, report, where):
    write(on_line="HR306] meant")
    after = apply_comments(report(row("HR306", where=where)))
    assert [finding.code for finding in after.findings] == ["HR306"]
    assert after.notes == ["1 ignore matches nothing in this run: HR306 at train.py:6"]


def test_the_definition_speaks_for_findings_anywhere(write, row, report):
    write(on_def="HR306] meant")
    assert not apply_comments(report(row("HR306", where="dataset.generator"))).findings


def test_another_rule_stays(write, row, report):
    write(on_line="HR306] meant")
    after = apply_comments(report(row("HR306", where="train.py:6"), row("HR601", where="train.py:6")))
    assert [finding.code for finding in after.findings] == ["HR601"]
    assert (after.verdict, after.exit_status) == ("findings", 1)


def test_without_a_reason_it_is_not_honoured_and_told(write, row, report):
    write(on_line="HR306]")
    after = apply_comments(report(row("HR306", where="train.py:6")))
    assert len(after.findings) == 1
    assert after.ignored == []
    assert any("train.py:6: the ignore has no reason" in note for note in after.notes)


def test_a_code_that_is_no_rule_is_told_with_the_nearest(write, row, report):
    write(on_line="HR9999] meant", on_class="] meant")
    notes = " ".join(apply_comments(report(row("HR301", where="train.py:6"))).notes)
    assert "HR9999, which is no rule" in notes
    assert "names no rule" in notes


def test_a_rule_that_could_not_judge_is_not_told_as_idle(write, row, report):
    write(on_class="HR601] meant", on_def="HR309] meant")
    assert apply_comments(report()).notes == ["1 ignore matches nothing in this run: HR309 at train.py:14"]


def test_little_evidence_stays_inconclusive(write, row, report):
    write(on_line="HR306] meant")
    after = apply_comments(report(row("HR306", where="train.py:6"), is_conclusive=False))
    assert (after.verdict, after.exit_status) == ("inconclusive", 3)


def test_a_data_set_of_another_module_is_found_without_importing_it(tmp_path, monkeypatch, row, report):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)  # of an example that ran before
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "shop/data.py").write_text("# headrace: ignore[HR306] meant\nclass Photos:\n    pass\n")
    (tmp_path / "train.py").write_text("make_loader = 1\n")
    found = apply_comments(report(row("HR306"), target={"spec": "train.py:make_loader", "dataset": "shop.data.Photos"}))
    assert [one.at for one in found.ignored] == ["shop/data.py:1"]
    assert "shop" not in sys.modules


def test_a_variable_under_a_condition_and_a_local_class(tmp_path, monkeypatch, row, report):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(
        "if True:\n    loader = load(\n        1,  # headrace: ignore[HR306] meant\n    )\n"
        "def make():\n    class Local:  # headrace: ignore[HR601] meant\n        pass\n"
    )
    target = {"spec": "train.py:loader", "dataset": "train.make.<locals>.Local"}
    after = apply_comments(report(row("HR306"), row("HR601"), target=target))
    assert [one.finding.code for one in after.ignored] == ["HR306", "HR601"]


def test_the_class_of_a_module_that_is_already_imported(tmp_path, monkeypatch, load_file, row, report):
    (tmp_path / "made_here.py").write_text("class Data:  # headrace: ignore[HR306] meant\n    pass\n")
    module = load_file(tmp_path / "made_here.py")
    target = {"spec": "an object", "dataset": f"{module.__name__}.Data"}
    assert len(apply_comments(report(row("HR306"), target=target)).ignored) == 1


def test_the_class_inside_a_subset(write, row, report):
    write(on_class="HR306] meant")
    target = {"spec": "train.py:other", "dataset": "torch.utils.data.Subset", "inside": ["train.Photos"]}
    assert len(apply_comments(report(row("HR306"), target=target)).ignored) == 1
