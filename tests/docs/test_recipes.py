"""The recipes of the guide and the hooks for pre-commit are YAML, and every command in them has options that exist."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from headrace.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]


def recipes(blocks):
    return {
        f"{page.name}:{block.line}": yaml.safe_load(block.body)
        for page in PAGES
        for block in blocks.read_blocks(page)
        if block.language == "yaml"
    }


def parsed(words):
    """What the command line makes of the words; raises what a user would see as wrong usage."""
    root = typer.main.get_command(app)
    context = root.make_context("headrace", [words[0]], resilient_parsing=True)
    command = root.get_command(context, words[0])
    assert command is not None, f"no command {words[0]}"
    return command.make_context(words[0], list(words[1:])).params


def commands_in(value):
    """Every text of a recipe that starts headrace."""
    if isinstance(value, dict):
        for part in value.values():
            yield from commands_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from commands_in(part)
    elif isinstance(value, str):
        yield from (line.strip() for line in value.splitlines() if line.strip().startswith("headrace "))


def test_wrong_options_are_found_by_this_test():
    with pytest.raises(Exception, match="No such option"):
        parsed(["diagnose", "train.py:loader", "--htm", "x.html"])


def test_every_recipe_parses_and_its_commands_are_valid(blocks):
    found = recipes(blocks)
    commands = [command for recipe in found.values() for command in commands_in(recipe)]
    assert len(found) >= 2
    assert len(commands) >= 1
    for command in commands:
        parsed(shlex.split(command)[1:])


def hooks():
    return {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}


def test_the_hooks_have_what_pre_commit_asks_for():
    for hook in hooks().values():
        assert {"id", "name", "entry", "language"} <= hook.keys()
        assert hook["language"] == "system"
        assert hook["pass_filenames"] is False


def test_the_recipe_for_pre_commit_uses_hooks_that_exist_with_valid_arguments(blocks):
    used = [
        hook
        for recipe in recipes(blocks).values()
        for repository in recipe.get("repos", [])
        for hook in repository["hooks"]
    ]
    assert {hook["id"] for hook in used} == hooks().keys()
    for hook in used:
        words = shlex.split(hooks()[hook["id"]]["entry"]) + hook["args"]
        assert words[0] == "headrace"
        assert parsed(words[1:])["target"] == hook["args"][0]


def test_the_workflow_uploads_what_it_writes(blocks):
    (workflow,) = [recipe for recipe in recipes(blocks).values() if "jobs" in recipe]
    steps = workflow["jobs"]["diagnose"]["steps"]
    written = parsed(shlex.split(next(c for step in steps for c in commands_in(step.get("run", ""))))[1:])
    uploads = {step["uses"].partition("@")[0]: step["with"] for step in steps if "with" in step}
    assert uploads["github/codeql-action/upload-sarif"]["sarif_file"] == str(written["sarif"])
    assert uploads["actions/upload-artifact"]["path"] == str(written["html"])
    assert workflow["permissions"]["security-events"] == "write"


def test_commands_in_the_text_of_the_guide_have_options_that_exist():
    known = {option for one in typer.main.get_command(app).commands.values() for p in one.params for option in p.opts}
    for page in ("reports.md", "adoption.md"):
        text = re.sub(r"^```.*?^```$", "", (ROOT / "docs/guide" / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        for option in re.findall(r"`(--[a-z-]+)", text):
            assert option in known | {"--headrace-html"}, f"{page}: {option}"
