"""Assembles CHANGELOG.md from the fragments in changes/.

    tools/changelog.py                    prints the section that the next release would get
    tools/changelog.py --check            says whether every fragment is in order; exit status 1 if not
    tools/changelog.py --release 0.2.0    moves the fragments into CHANGELOG.md under that version

Standard library only. What a fragment looks like: changes/README.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed"}
NAME = re.compile(r"(?P<slug>[a-z0-9]+(-[a-z0-9]+)*)\.(?P<kind>[a-z]+)\.md")


class Fragment(NamedTuple):
    """One change: what it is about, which kind, and the sentence for users."""

    path: Path
    kind: str
    text: str


def read_fragments(folder: Path) -> list[Fragment]:
    """Returns the well-named fragments of a folder, by kind and then by name."""
    found = [
        Fragment(path, match["kind"], " ".join(path.read_text(encoding="utf-8").split()))
        for path in sorted(folder.iterdir())
        if (match := NAME.fullmatch(path.name)) and match["kind"] in KINDS
    ]
    return sorted(found, key=lambda fragment: list(KINDS).index(fragment.kind))


def problems(folder: Path) -> Iterator[str]:
    """Yields one line for each thing in the folder that is not in order."""
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        match = NAME.fullmatch(path.name)
        if match is None or match["kind"] not in KINDS:
            yield f"{path.name}: expected <slug>.<{'|'.join(KINDS)}>.md, with lower-case letters, digits and dashes in <slug>"
            continue
        text = path.read_text(encoding="utf-8").strip()
        if not text:
            yield f"{path.name}: is empty; expected one paragraph for users"
        elif re.search(r"^\s*([#*+-]|\d+\.)\s", text, flags=re.MULTILINE) or "\n\n" in text:
            yield f"{path.name}: expected one paragraph, without heading or list"
        elif not text.endswith("."):
            yield f"{path.name}: expected whole sentences; the last one has no full stop"


def section(fragments: list[Fragment]) -> str:
    """Returns the fragments as Markdown, one heading per kind that occurs."""
    parts = []
    for kind, title in KINDS.items():
        rows = [f"- {fragment.text}" for fragment in fragments if fragment.kind == kind]
        if rows:
            parts.append(f"### {title}\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


def release(version: str, today: dt.date, root: Path) -> None:
    """Puts the fragments under a new heading, newest first, and removes their files."""
    fragments = read_fragments(root / "changes")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    head, mark, older = text.partition("\n## ")
    new = f"{head.rstrip()}\n\n## {version} ({today.isoformat()})\n\n{section(fragments)}\n"
    changelog.write_text(new + (mark + older if mark else ""), encoding="utf-8")
    for fragment in fragments:
        fragment.path.unlink()


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the fragments are in order")
    parser.add_argument("--release", metavar="VERSION", help="move the fragments into CHANGELOG.md")
    options = parser.parse_args(arguments)
    wrong = list(problems(root / "changes"))
    for line in wrong:
        print(f"changes/{line}", file=sys.stderr)
    if wrong or options.check:
        return 1 if wrong else 0
    if options.release is None:
        print(section(read_fragments(root / "changes")) or "Nothing that a user can see.")
    else:
        today = dt.datetime.now(tz=dt.UTC).date()
        release(options.release, today, root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
