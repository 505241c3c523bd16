"""HR107 stray-class-folder: something that is no class is counted as one."""

from __future__ import annotations

from headrace.doctor.evidence.source import ClassFolder, ClassFolders
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, listing

JUNK = frozenset({
    ".ipynb_checkpoints", "__pycache__", "__MACOSX", ".DS_Store", ".git", ".svn", ".cache", ".Trash", ".Trashes",
    "@eaDir", "$RECYCLE.BIN", "System Volume Information", "lost+found", "Thumbs.db", "desktop.ini",
    ".Spotlight-V100", ".fseventsd", ".AppleDouble", ".thumbnails",
})  # fmt: skip
"""What editors, operating systems and network drives leave in folders."""


def _class(name: str, number: int, *, kind: str = "folder", num_files: int = 100) -> ClassFolder:
    return ClassFolder(name=name, number=number, kind=kind, num_files=num_files)


class StrayClassFolder(Rule):
    """HR107."""

    code = "HR107"
    name = "stray-class-folder"
    summary = "A hidden folder, a left-over of a tool or a file that is counted as a class."
    rationale = """
        Classes are often the sorted names in a folder. `.ipynb_checkpoints`, `__MACOSX` or `README.md` among them sort
        first and become class 0: all other numbers move by one, the network gets an output that nobody needs, and the
        same code on another machine, without the left-over, numbers the classes differently. Then a checkpoint of one
        is wrong on the other, or the highest label is beyond the last output.

        It is no fault if the data set leaves such names out, or if a class is really called `.net` and has samples.
        A class of an ordinary name without any file is only mentioned.
        """
    experiment = """
        The class list of the data set, or the sorted folder that the labels follow, is held against what lies under
        each name. Nothing is loaded or changed.
        """
    needs = (ClassFolders,)
    fix = Fix(
        text="Remove the left-over, and leave out hidden names and files where classes are listed.",
        safety="changes the numbers of the classes that sort after it: checkpoints made before expect the old ones",
        snippet="import pathlib\n\n\n"
        "def find_classes(root):\n"
        "    entries = [e for e in pathlib.Path(root).iterdir() if e.is_dir()]\n"
        '    return sorted(e.name for e in entries if e.name[0] not in "._@$")',
    )
    references = ("mmpretrain#507",)

    def judge(self, seen: ClassFolders) -> list[Finding]:
        """One finding for all that is stray, and one for classes without files."""
        if len(seen.classes) < 2:
            return []
        stray = [one for one in seen.classes if _is_stray(one)]
        is_told = any(one.num_files for one in seen.classes)
        empty = [one for one in seen.classes if one not in stray and one.kind == "folder" and not one.num_files]
        findings = [_finding(stray, seen)] if stray else []
        if empty and is_told:
            findings.append(_empty(empty, seen))
        return findings

    sick = (
        Example(
            title="Checkpoints of a notebook are class 0",
            evidence=(
                ClassFolders(
                    root="data/train",
                    said_by="Photos.classes",
                    classes=(_class(".ipynb_checkpoints", 0, num_files=0), _class("cat", 1), _class("dog", 2)),
                ),
            ),
            message="class 0 is '.ipynb_checkpoints', which is no class (0 data files); the 2 others are numbered around it",
        ),
        Example(
            title="A file among the folders, and labels that follow the sorted names",
            evidence=(
                ClassFolders(
                    root="data",
                    said_by=None,
                    classes=(_class("README.md", 0, kind="file", num_files=0), _class("a", 1), _class("b", 2)),
                ),
            ),
            message="class 0 is 'README.md', which is no class (a file); the 2 others are numbered around it",
        ),
    )
    healthy = (
        Example(
            title="A class that is called .net and has samples",
            evidence=(
                ClassFolders(root="logos", said_by="Logos.classes", classes=(_class(".net", 0), _class("java", 1))),
            ),
        ),
        Example(
            title="No class list and no class folders",
            evidence=(ClassFolders(root=None, said_by=None, classes=()),),
        ),
        Example(
            title="Names that are no folders",
            evidence=(
                ClassFolders(
                    root=None,
                    said_by="Words.classes",
                    classes=(
                        _class(".", 0, kind="nothing", num_files=0),
                        _class("noun", 1, kind="nothing", num_files=0),
                    ),
                ),
            ),
        ),
    )


def _is_stray(one: ClassFolder) -> bool:
    """A known left-over, a file, or a hidden folder without data."""
    is_hidden = one.name.startswith((".", "__", "@", "$", "~"))
    return one.name in JUNK or one.kind == "file" or (is_hidden and one.kind == "folder" and not one.num_files)


def _finding(stray: list[ClassFolder], seen: ClassFolders) -> Finding:
    first = stray[0]
    what = "a file" if first.kind == "file" else count(first.num_files, "data file")
    more = f" (and {listing([repr(one.name) for one in stray[1:]])})" if len(stray) > 1 else ""
    moves = any(one.number > first.number and one not in stray for one in seen.classes)
    others = len(seen.classes) - len(stray)
    consequence = f"the {others} others are numbered around it" if moves else "the number of classes is too high by it"
    holds_data = any(one.num_files for one in stray)
    return Finding(
        message=f"class {first.number} is {first.name!r}{more}, which is no class ({what}); {consequence}",
        severity="error" if holds_data else "warning",
        basis="static",
        confidence=0.95 if first.name in JUNK else 0.8,
        stage="read",
        where=seen.root if seen.said_by is None else f"{seen.said_by}{f' from {seen.root}' if seen.root else ''}",
        evidence={"stray": {one.name: one.number for one in stray}, "num_classes": len(seen.classes)},
    )


def _empty(empty: list[ClassFolder], seen: ClassFolders) -> Finding:
    names = listing([repr(one.name) for one in empty])
    return Finding(
        message=f"{count(len(empty), 'class folder')} without any data file: {names}",
        severity="info",
        basis="static",
        confidence=0.6,
        stage="read",
        where=seen.root,
        evidence={"empty": [one.name for one in empty[:20]], "num_classes": len(seen.classes)},
        fix=Fix(
            text="Look whether data are missing there; if the folder is none of the classes, remove it.",
            safety="removing it changes the numbers of the classes that sort after it",
        ),
    )
