"""The catalogue on the screen is the catalogue: every rule once, and nothing wider than 80 columns."""

import json

import pytest

from headrace.cli import main
from headrace.doctor import catalogue

RULES = catalogue.rules()


def test_the_table_has_every_rule(capsys):
    assert main(["rules"]) == 0
    screen = capsys.readouterr().out
    assert [line.split()[0] for line in screen.splitlines() if line.startswith(" HR")] == [rule.code for rule in RULES]
    assert max(map(len, screen.splitlines())) <= 80


def test_the_json_is_the_catalogue(capsys):
    assert main(["rules", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["code"], row["name"], row["summary"]) for row in rows] == [
        (rule.code, rule.name, rule.summary) for rule in RULES
    ]


def test_select_and_ignore_narrow_the_list(capsys):
    assert main(["rules", "--format", "json", "--select", "HR1", "--ignore", "HR101"]) == 0
    codes = [row["code"] for row in json.loads(capsys.readouterr().out)]
    assert codes == [rule.code for rule in RULES if rule.code.startswith("HR1") and rule.code != "HR101"]


def test_a_list_can_be_written_to_a_file(tmp_path, capsys):
    assert main(["rules", "--format", "json", "--output", str(tmp_path / "rules.json")]) == 0
    assert len(json.loads((tmp_path / "rules.json").read_text())) == len(RULES)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_explain_tells_the_whole_story_by_code_and_by_name(rule, capsys):
    assert main(["explain", rule.code.lower()]) == 0
    screen = capsys.readouterr().out
    assert main(["explain", rule.name]) == 0
    assert capsys.readouterr().out == screen
    unwrapped = " ".join(screen.split())
    for text in (rule.summary, rule.rationale, rule.experiment, rule.fix.text, *(e.title for e in rule.sick)):
        assert " ".join(text.split()) in unwrapped
    assert screen.startswith(f"{rule.code} {rule.name}")


def test_explain_suggests_the_nearest_name(capsys):
    assert main(["explain", "unreadable-recrod"]) == 2
    assert "did you mean 'unreadable-record'?" in capsys.readouterr().err
