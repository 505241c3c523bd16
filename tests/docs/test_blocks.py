"""Every block that a page shows is executed, and prints what the page says."""

import contextlib
import io
import linecache
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs/guide").rglob("*.md"))]


def _run_python(block, page, namespace, folder):
    """Runs one block so that tracebacks point into the page; returns what it printed."""
    source = "\n" * (block.line - 1) + block.body
    name = f"{page.relative_to(ROOT)}"
    if block.file_name:
        (folder / block.file_name).write_text(block.body, encoding="utf-8")
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), namespace)
    return printed.getvalue()


def _run_command(blocks, command, page, folder):
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONPATH": "",
    }
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    place = f"{page.relative_to(ROOT)}:{command.line}: $ {command.text}"
    if done.returncode != command.status:
        said = f"{done.stdout}\n--- stderr\n{done.stderr}"
        pytest.fail(f"{place}\nexit status {done.returncode}, the page says {command.status}\n{said}", pytrace=False)
    if command.shown.strip():
        _compare(blocks, place, command.shown, done.stdout)


def _compare(blocks, place, shown, printed):
    if not blocks.matches(shown, printed):
        pytest.fail(f"{place}\n--- the page shows\n{shown}\n--- printed is\n{printed}", pytrace=False)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_and_print_what_the_page_shows(blocks, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")  # pages are read from the root of a checkout
    monkeypatch.syspath_prepend(str(tmp_path))
    namespace = {"__name__": f"page_{page.stem}"}
    printed = ""
    for block in blocks.read_blocks(page):
        if block.not_run:
            continue
        if block.language == "python":
            printed = _run_python(block, page, namespace, tmp_path)
        elif block.language == "text" and block.follows_python:
            _compare(blocks, f"{page.relative_to(ROOT)}:{block.line}", block.body, printed)
        elif block.language == "console":
            for command in blocks.read_commands(block):
                _run_command(blocks, command, page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_that_look_like_code_are_marked_as_such(blocks, page):
    # A block in an unknown or missing language would never be run, and nobody would notice.
    for block in blocks.read_blocks(page):
        assert block.language in {"python", "console", "text", "toml", "json", "yaml"}, f"{page.name}:{block.line}"
        if block.language == "console":
            assert any(True for _ in blocks.read_commands(block)), f"{page.name}:{block.line}: no line starts with `$ `"
