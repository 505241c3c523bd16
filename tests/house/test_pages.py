"""What the pages must hold: the README's parts, every command, every public name, the words of the field."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import headrace

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".py", ".md", ".toml", ".txt", ".json", ".svg"}
GUIDE = sorted((ROOT / "docs/guide").glob("*.md"))


def _texts():
    """Every text file that the checkout holds, without what tools leave in it."""
    for name in ("src", "tests", "tools", "docs", "examples", "benchmarks", "changes"):
        yield from (path for path in sorted((ROOT / name).rglob("*")) if path.is_file() and _is_ours(path))
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.suffix in TEXT)
    yield from (ROOT / "Makefile", ROOT / ".ci/run", ROOT / "LICENSE")


def _is_ours(path):
    is_hidden = any(part.startswith(".") for part in path.relative_to(ROOT).parts)  # environments and caches of tools
    return path.suffix in TEXT and not is_hidden


def _guide():
    return "\n".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *GUIDE])


def _commands():
    """Names of the public commands, as the command line lists them."""
    import typer.main

    from headrace.cli.app import app

    return sorted(name for name, command in typer.main.get_command(app).commands.items() if not command.hidden)


def test_the_readme_has_its_parts_in_order():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings == [
        "What it guarantees, and what it does not",
        "Numbers",
        "Install",
        "When to use something else",
        "Read the code",
        "More",
    ]
    above = text[: text.index("\n## ")]
    assert above.startswith("# headrace\n")
    assert above.count("```") == 4, "two results above the fold, and nothing else"
    assert "<img" in above


def test_the_readme_names_the_two_commands_of_a_fresh_clone():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_every_promise_of_the_readme_links_to_a_test():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text[text.index("## What it guarantees") : text.index("## Numbers")]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith(("| Promise", "|-"))]
    assert rows
    for row in rows:
        assert re.search(r"\]\(tests/[\w/]+\.py\)", row), row


def test_every_public_name_is_in_the_guide():
    guide = _guide()
    assert not [name for name in headrace.__all__ if not re.search(rf"\b{name}\b", guide)]


@pytest.mark.parametrize("command", _commands())
def test_every_command_is_in_the_guide_and_has_help(command):
    assert re.search(rf"\bheadrace {command}\b", _guide()), f"headrace {command} is not in README or docs/guide"
    done = subprocess.run(
        [sys.executable, "-m", "headrace", command, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_every_command_that_a_page_or_a_message_names_exists():
    as_code = re.compile(r"(?:`|^\s*\$ |^ {4,}|[\"'(])headrace ([a-z]+) (?=TARGET|CODE|--|[A-Z]|\S+:)", re.MULTILINE)
    named = set()
    for path in _texts():
        if path.suffix in {".py", ".md"} and "tests" not in path.parts:
            named |= set(as_code.findall(path.read_text(encoding="utf-8")))
    assert {"diagnose", "replay"} <= named, "nothing was found; is the pattern out of date?"
    assert named <= set(_commands())


def test_no_text_names_a_place_of_the_machine_that_it_was_written_on():
    place = re.compile(r"(?<![\w.~-])/(?:home|root|work|Users|opt|mnt)/\w")
    for path in _texts():
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text, path
        assert not place.search(text), f"{path}: {place.search(text)}"


def test_the_version_is_one():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == headrace.__version__
