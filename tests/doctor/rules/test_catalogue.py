"""The catalogue: unique codes in order, right names, nothing missing; and what it refuses."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import textwrap

import pytest

from headrace.doctor import catalogue
from headrace.errors import ConfigurationError

RULES = catalogue.rules()
CODES = [rule.code for rule in RULES]

RULE = """
from headrace.doctor.evidence import WorkerStreams
from headrace.doctor.rule import Example, Fix, Rule

STREAMS = WorkerStreams(
    num_workers=2, per_worker=(1, 1), num_single=2, num_duplicated=0, first_duplicate=None, is_complete=True
)

class OddSpeed(Rule):
    code = {code!r}
    name = {name!r}
    summary = rationale = experiment = "text"
    needs = ({needs},)
    fix = Fix(text="text", safety="same data")
    sick = ({sick})
    healthy = (Example(title="fine", evidence=(STREAMS,)),)

    def judge(self, streams):
        return []
"""
SICK = 'Example(title="bad", evidence=(STREAMS,), message="bad"),'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of rules from {file name: code of the module}."""
    made = []

    def make(**modules):
        name = f"made_up_rules_{len(made)}_{tmp_path.name}"
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        made.append(name)
        return importlib.import_module(name)

    yield make
    for name in [module for module in sys.modules if module.partition(".")[0] in made]:
        del sys.modules[name]


def written(code="HR999", name="odd-speed", needs="WorkerStreams", sick=SICK):
    return RULE.format(code=code, name=name, needs=needs, sick=sick)


def test_codes_are_unique_and_in_order():
    assert sorted(set(CODES)) == CODES


def test_the_agreed_rules_are_there():
    agreed = {
        "HR101",
        "HR102",
        "HR106",
        "HR109",
        "HR301",
        "HR302",
        "HR304",
        "HR305",
        "HR306",
        "HR307",
        "HR309",
        "HR601",
    }
    assert agreed <= set(CODES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_says_everything_that_its_page_needs(rule):
    assert len(rule.sick) >= 2
    assert len(rule.healthy) >= 2
    assert rule.references
    assert all(re.fullmatch(r"[\w.-]+#\d+", reference) or " " in reference for reference in rule.references)
    assert rule.summary.endswith(".")
    assert rule.fix.text.endswith((".", "!"))
    assert not rule.fix.safety.endswith(".")
    assert "It is no fault" in " ".join(rule.rationale.split()), "when it is not a fault must be said"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_examples_of_a_rule_have_titles_of_their_own(rule):
    titles = [example.title for example in (*rule.sick, *rule.healthy)]
    assert len(set(titles)) == len(titles)


def fixes():
    for rule in RULES:
        found = [finding.fix for example in rule.sick for finding in rule.judge(*example.evidence)]
        yield from ((rule.code, fix) for fix in dict.fromkeys([rule.fix, *filter(None, found)]))


@pytest.mark.parametrize(("code", "fix"), list(fixes()), ids=lambda value: value if isinstance(value, str) else "fix")
def test_a_snippet_is_python_that_compiles_or_lines_for_a_shell(code, fix):
    lines = (fix.snippet or "").splitlines()
    assert all(len(line) <= 71 for line in lines), "80 columns, less the margin of the report"
    if any(line.startswith("$ ") for line in lines):
        assert all(line.startswith("$ ") for line in lines)
    else:
        compile(fix.snippet or "", code, "exec")


def test_select_and_ignore_take_codes_and_beginnings_in_any_case():
    assert [rule.code for rule in catalogue.rules(select=["hr301"])] == ["HR301"]
    assert {rule.code[:3] for rule in catalogue.rules(select=["HR3"])} == {"HR3"}
    families = {code[:3] for code in CODES}
    assert {rule.code[:3] for rule in catalogue.rules(ignore=["HR3", "hr1"])} == families - {"HR3", "HR1"}
    chosen = {rule.code for rule in catalogue.rules(select=["HR30"], ignore=["HR302", "HR304"])}
    assert chosen == {code for code in CODES if code.startswith("HR30")} - {"HR302", "HR304"}
    assert catalogue.rules(select=["HR601"], ignore=["HR6"]) == ()


@pytest.mark.parametrize("option", ["select", "ignore"])
def test_an_unknown_code_is_refused_with_the_nearest_one(option):
    with pytest.raises(ConfigurationError, match=rf"^{option}: no rule has the code 'HR3011'; did you mean 'HR311'\?"):
        catalogue.rules(**{option: ["hr3011"]})
    with pytest.raises(ConfigurationError, match=f"^{option}: no rule has the code ''"):
        catalogue.rules(**{option: [" "]})


def test_a_rule_is_found_by_code_and_by_name():
    assert catalogue.rule("hr301") is catalogue.rule("shape-mismatch") is catalogue.rule(" HR301 ")


@pytest.mark.parametrize(("asked", "meant"), [("hr600", "HR610"), ("shape-mismatches", "shape-mismatch")])
def test_an_unknown_rule_is_refused_with_the_nearest_one(asked, meant):
    with pytest.raises(ConfigurationError, match=rf"^no rule is called '{asked}'; did you mean '{meant}'"):
        catalogue.rule(asked)


def test_a_well_formed_rule_is_found_without_a_list(package):
    assert [rule.code for rule in catalogue.load(package(hr999_odd_speed=written()))] == ["HR999"]


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ({"hr999_odd_speed": ""}, "defines 0 rules, expected exactly one"),
        ({"hr999_odd_speed": written() + "\nclass Second(OddSpeed): ..."}, "defines 2 rules, expected exactly one"),
        ({"hr99_odd_speed": written(code="HR99")}, "code 'HR99' is not HR and three digits"),
        ({"hr999_odd_speed": written(name="Odd speed")}, "name 'Odd speed' is not kebab-case"),
        ({"odd_speed": written()}, r"the file must be called hr999_odd_speed\.py"),
        ({"hr999_odd_speed": written(sick="")}, "sick is missing or empty"),
        ({"hr999_odd_speed": written(needs="int")}, "needs must name kinds of Evidence"),
        (
            {"hr999_odd_speed": written(sick='Example(title="bad", evidence=()),')},
            "example 'bad' does not hold one record per entry of needs",
        ),
        (
            {"hr999_odd_speed": written(), "hr999_odd_pace": written(name="odd-pace")},
            "two rules share the code HR999",
        ),
        (
            {"hr998_odd_speed": written(code="HR998"), "hr999_odd_speed": written()},
            "two rules share the name odd-speed",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "modules",
)
def test_a_rule_that_is_not_well_formed_is_refused(package, modules, reason):
    with pytest.raises(TypeError, match=reason):
        catalogue.load(package(**modules))


def test_the_catalogue_loads_without_torch_pillow_or_rich():
    program = textwrap.dedent("""
        import sys
        from headrace.doctor import catalogue
        catalogue.rules()
        print(sorted({"torch", "PIL", "rich", "typer"} & set(sys.modules)))
    """)
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
