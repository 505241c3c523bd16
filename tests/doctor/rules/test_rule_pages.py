"""The pages in docs/ say what the catalogue says; the published schema is that of the types."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import pkgutil
from pathlib import Path

import pytest

from headrace.doctor import catalogue, evidence

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def docs(load_file):
    return load_file(ROOT / "tools" / "docs.py")


def test_every_generated_file_is_fresh(docs):
    stale = [path.name for path, _ in docs.changed(ROOT / "docs")]
    assert not stale, "python tools/docs.py writes them anew"


def test_a_page_without_its_rule_is_stale(docs, tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "HR000.md").touch()
    assert (tmp_path / "rules" / "HR000.md", None) in list(docs.changed(tmp_path))


def test_checking_says_so_by_its_exit_status_and_writes_nothing(docs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    assert docs.main(["--check"]) == 1
    assert list(tmp_path.iterdir()) == []
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    assert docs.main(["--chekc"]) == 2
    assert "stale: docs/rules/HR101.md" in capsys.readouterr().out


@pytest.mark.parametrize("rule", catalogue.rules(), ids=lambda rule: rule.code)
def test_the_example_on_a_page_is_the_evidence_itself(rule, docs):
    topics = [importlib.import_module(f"{evidence.__name__}.{one.name}") for one in pkgutil.iter_modules(evidence.__path__)]
    names = {name: getattr(module, name) for module in (*topics, docs.view) for name in module.__all__}
    for example in (*rule.sick, *rule.healthy):
        for record in example.evidence:
            text = docs.literal(record)
            ast.parse(text)
            assert eval(text, dict(names)) == record


@pytest.mark.parametrize("kind", evidence.Evidence.__subclasses__(), ids=lambda kind: kind.__name__)
def test_a_page_shows_every_field_of_the_evidence(kind, docs):
    table = docs.evidence_table(kind)
    assert all(f"| `{field.name}` |" in table for field in dataclasses.fields(kind))


def test_the_published_schema_is_json(docs):
    assert json.loads((ROOT / "docs" / "report.schema.json").read_text())["$defs"]["Report"]["type"] == "object"
