"""Each rule gives exactly the verdicts that its own examples declare; the tests are made from the catalogue."""

from __future__ import annotations

import json

import pytest

from headrace.doctor import catalogue

SICK = [(rule, example) for rule in catalogue.rules() for example in rule.sick]
HEALTHY = [(rule, example) for rule in catalogue.rules() for example in rule.healthy]


def name_of(value):
    return getattr(value, "code", None) or value.title


@pytest.mark.parametrize(("rule", "example"), SICK, ids=name_of)
def test_a_sick_example_gets_one_finding_with_the_declared_message_and_samples(rule, example):
    findings = rule.judge(*example.evidence)
    assert [(finding.message, finding.sample_ids) for finding in findings] == [(example.message, example.sample_ids)]


@pytest.mark.parametrize(("rule", "example"), HEALTHY, ids=name_of)
def test_a_healthy_example_gets_silence(rule, example):
    assert rule.judge(*example.evidence) == []


@pytest.mark.parametrize(("rule", "example"), SICK, ids=name_of)
def test_a_finding_can_be_written_down(rule, example):
    for finding in rule.judge(*example.evidence):
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence
        assert 0.5 <= finding.confidence <= 1
        assert finding.stage
        assert "\n" not in finding.message
        assert not finding.message.endswith(".")


@pytest.mark.parametrize(("rule", "example"), SICK + HEALTHY, ids=name_of)
def test_a_verdict_is_repeatable(rule, example):
    assert rule.judge(*example.evidence) == rule.judge(*example.evidence)
