"""`diagnose` hands the doctor's report on: the same in text and JSON, to a screen or a file, with its exit status."""

import json

import pytest

from headrace.cli import main

TRAIN = """
import time
import torch
from torch.utils.data import DataLoader

images = [torch.zeros(3, 4, 4) for _ in range(11)]
images[7] = torch.zeros(1, 4, 4)
loader = DataLoader(images, batch_size=4)
sound = DataLoader(images[:7], batch_size=4)

class Stuck(list):
    def __getitem__(self, index):
        while index == 2:
            time.sleep(1)
        return super().__getitem__(index)

stuck = DataLoader(Stuck(images[:4]), batch_size=2)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def train_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)


def report_of(capsys, *words):
    status = main(["diagnose", *words, "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_odd_sample_is_named_in_text_within_80_columns(capsys):
    assert main(["diagnose", "train.py:loader"]) == 1
    out, err = capsys.readouterr()
    assert "HR301 shape-mismatch" in out
    assert "sample 7" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert err == ""


def test_the_json_has_the_exit_status_in_it(capsys):
    status, report = report_of(capsys, "train.py:loader")
    assert status == 1
    assert [(row["code"], row["sample_ids"]) for row in report["findings"]] == [("HR301", [7])]
    assert report["target"]["spec"] == "train.py:loader"


def test_a_sound_loader_is_clean(capsys):
    status, report = report_of(capsys, "train.py:sound")
    assert (status, report["findings"], report["verdict"]) == (0, [], "clean")


def test_a_report_can_go_to_a_file(capsys, tmp_path):
    assert main(["diagnose", "train.py:loader", "--format", "json", "--output", "report.json"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "headrace: wrote report.json\n")
    assert json.loads((tmp_path / "report.json").read_text())["findings"]


def test_rules_can_be_left_out(capsys):
    status, report = report_of(capsys, "train.py:loader", "--ignore", "HR301")
    assert status == 0
    assert "HR301" not in [*report["cleared"], *(row["code"] for row in report["skipped"])]


def test_a_stuck_sample_is_a_finding_and_not_the_end(capsys):
    status, report = report_of(capsys, "train.py:stuck", "--per-sample", "2s")
    assert status == 1
    assert ("HR109", [2]) in [(row["code"], row["sample_ids"]) for row in report["findings"]]


def test_a_misspelt_code_names_the_nearest(capsys):
    assert main(["diagnose", "train.py:loader", "--select", "HR991"]) == 2
    assert "did you mean" in capsys.readouterr().err


# Several forms in one run.

HR3 = ("--select", "HR3")
"""What these tests are about, without the experiments of all the other rules."""


def test_every_form_at_once_beside_the_text(capsys, tmp_path):
    files = {form: f"r.{form}" for form in ("html", "json", "sarif", "junit")}
    words = [word for form, file in files.items() for word in (f"--{form}", file)]
    assert main(["diagnose", "train.py:loader", *HR3, *words]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("VERDICT  ")
    assert err.splitlines() == [f"headrace: wrote {file}" for file in ("r.html", "r.json", "r.sarif", "r.junit")]
    texts = {form: (tmp_path / file).read_text() for form, file in files.items()}
    assert all("HR301" in text for text in texts.values())
    assert json.loads(texts["sarif"])["version"] == "2.1.0"
    assert json.loads(texts["json"])["schema"] == 1


@pytest.mark.parametrize("form", ["html", "sarif", "github", "junit"])
def test_each_form_can_go_to_stdout(capsys, form):
    assert main(["diagnose", "train.py:loader", *HR3, "--format", form]) == 1
    starts = {"html": "<!DOCTYPE html>", "sarif": "{", "github": "::error ", "junit": "<?xml"}
    assert capsys.readouterr().out.startswith(starts[form])


@pytest.mark.parametrize("words", [["--html", "missing/r.html"], ["--output", "."], ["--write-baseline", "no/b.json"]])
def test_a_file_that_cannot_be_written_is_refused_before_the_examination(capsys, words):
    assert main(["diagnose", "no_such_file.py:loader", *words]) == 2
    err = capsys.readouterr().err
    assert "no_such_file" not in err


def test_pictures_only_if_asked_for_and_only_with_a_page(capsys, tmp_path):
    assert main(["diagnose", "train.py:loader", *HR3, "--thumbnails"]) == 2
    assert "--html" in capsys.readouterr().err
    pytest.importorskip("PIL", reason="Pillow is not installed")
    assert main(["diagnose", "train.py:loader", *HR3, "--html", "a.html", "--json", "a.json", "--thumbnails"]) == 1
    assert main(["diagnose", "train.py:loader", *HR3, "--html", "b.html"]) == 1
    assert "data:image/png;base64," in (tmp_path / "a.html").read_text()
    assert "data:image/png;base64," not in (tmp_path / "b.html").read_text()
    assert "png" not in (tmp_path / "a.json").read_text()


# What does not count.


def test_an_ignore_with_a_reason_in_the_source(capsys, tmp_path):
    source = (tmp_path / "train.py").read_text()
    line = "loader = DataLoader(images, batch_size=4)"
    (tmp_path / "train.py").write_text(source.replace(f"\n{line}\n", f"\n{line}  # headrace: ignore[HR301] meant\n", 1))
    status, report = report_of(capsys, "train.py:loader", *HR3)
    assert (status, report["findings"], report["verdict"]) == (0, [], "clean")
    assert [(one["finding"]["code"], one["reason"]) for one in report["ignored"]] == [("HR301", "meant")]


def test_an_ignore_on_the_class_speaks_through_a_subset(capsys, tmp_path):
    source = (tmp_path / "train.py").read_text()
    source = source.replace(
        "class Stuck(list):", "class Odd(list):  # headrace: ignore[HR301] meant\n    pass\n\nclass Stuck(list):"
    )
    source += "part = DataLoader(torch.utils.data.Subset(Odd(images), range(5, 10)), batch_size=4)\n"
    (tmp_path / "train.py").write_text(source)
    status, report = report_of(capsys, "train.py:part", *HR3)
    assert (status, [one["finding"]["code"] for one in report["ignored"]]) == (0, ["HR301"])


def test_an_ignore_without_a_reason_is_not_honoured(capsys, tmp_path):
    source = (tmp_path / "train.py").read_text()
    (tmp_path / "train.py").write_text(source.replace("\nloader =", "\n# headrace: ignore[HR301]\nloader ="))
    assert main(["diagnose", "train.py:loader", *HR3]) == 1
    assert "has no reason, so it is not honoured" in " ".join(capsys.readouterr().out.split())


def test_a_baseline_knows_what_was_there_and_fails_for_what_is_new(capsys, tmp_path):
    assert main(["diagnose", "train.py:loader", *HR3, "--write-baseline", "b.json"]) == 0
    assert "headrace: wrote b.json" in capsys.readouterr().err
    status, report = report_of(capsys, "train.py:loader", *HR3, "--baseline", "b.json")
    assert (status, report["findings"], [row["code"] for row in report["known"]]) == (0, [], ["HR301"])
    source = (tmp_path / "train.py").read_text()
    (tmp_path / "train.py").write_text(source.replace("images[7] =", "images[5] = torch.zeros(1, 4, 4)\nimages[7] ="))
    status, report = report_of(capsys, "train.py:loader", *HR3, "--baseline", "b.json")
    assert (status, len(report["findings"])) == (1, 1)
    assert report["notes"] == ["HR301: not in the baseline yet: 5"]


def test_a_finding_of_the_baseline_that_is_gone_is_said(capsys):
    assert main(["diagnose", "train.py:loader", *HR3, "--write-baseline", "b.json"]) == 0
    capsys.readouterr()
    assert main(["diagnose", "train.py:sound", *HR3, "--baseline", "b.json"]) == 0
    assert "1 finding of the baseline no longer seen: HR301" in capsys.readouterr().out


def test_a_missing_baseline_is_wrong_usage(capsys):
    assert main(["diagnose", "train.py:loader", *HR3, "--baseline", "missing.json"]) == 2
    assert "--write-baseline" in capsys.readouterr().err


def test_settings_of_the_project_hold_and_the_command_line_wins(capsys, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.headrace]\nignore = ["HR301"]\n')
    assert report_of(capsys, "train.py:loader", *HR3)[0] == 0
    assert report_of(capsys, "train.py:loader", *HR3, "--ignore", "HR302")[0] == 1
    (tmp_path / "pyproject.toml").write_text('[tool.headrace]\nignroe = ["HR301"]\n')
    assert main(["diagnose", "train.py:loader", *HR3]) == 2
    assert "did you mean 'ignore'" in capsys.readouterr().err
