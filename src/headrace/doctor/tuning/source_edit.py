"""A change of a setting as a change of the user's file: keyword arguments of the one call that makes the loader, nothing else.

Formatting, comments, encoding and line ends stay. What cannot be read off the text for certain is refused, with the reason:
a number that comes from a variable is set where the variable is.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
from collections.abc import Mapping

from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.finding_call import NotFound, find_call
from headrace.doctor.tuning.source_text import Place, SourceText, read_text

__all__ = ["Edited", "NotFound", "arguments_of", "edit"]

POSITIONS = (
    *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory"),
    *("drop_last", "timeout", "worker_init_fn", "multiprocessing_context"),
)
"""The order of the arguments that may be given without their names: torch's, and headrace's."""
ARGUMENT = {"start_method": "multiprocessing_context"}
INHERITED_WITHOUT_WORKERS = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "timeout": 0,
    "multiprocessing_context": None,
}
"""Torch refuses other values of these without workers."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A changed file, not yet written."""

    raw: bytes
    diff: str
    line: int
    """Of the call."""
    digest: str
    """Of the file as it was read."""


def arguments_of(facts: LoaderNow, change: Setting) -> dict[str, object]:
    """Returns the arguments that a change sets, under the loader's own names, as they stand in the call.

    Raises:
        NotFound: it is more than arguments of one call.
    """
    if change.loader is not None:
        raise NotFound("another class of loader is more than an argument")
    if change.reads_batches is not None:
        raise NotFound("reading whole batches from the data set is more than an argument")
    found: dict[str, object] = {}
    for field in dataclasses.fields(facts.difference(change)):
        value = getattr(facts.difference(change), field.name)
        if value is not None:
            found[ARGUMENT.get(field.name, field.name)] = value
    return found


def edit(raw: bytes, attribute: str, arguments: Mapping[str, object], *, name: str = "file.py") -> Edited:
    """Returns the file with arguments of the loader's call set.

    Args:
        raw: The file.
        attribute: What TARGET names in it.
        arguments: Argument -> plain value.
        name: Of the file, for the diff.

    Raises:
        NotFound: it cannot be done for certain; says why.
    """
    source = read_text(raw)
    if source is None:
        raise NotFound("the file cannot be read as Python text")
    try:
        # The text without its byte order mark, or columns of the first line are off by one.
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError):
        raise NotFound("the file cannot be parsed") from None
    found = find_call(tree, attribute)
    wanted = dict(arguments)
    if wanted.get("num_workers") == 0:
        # Only those that stand there: the others have these values already.
        there = {one.arg for one in found.keywords}
        wanted |= {key: value for key, value in INHERITED_WITHOUT_WORKERS.items() if key in there}
    changes = _changes(source, found, wanted)
    new = source.spliced(changes)
    _check(tree, new, found, wanted)
    after = new.decode(source.encoding)
    return Edited(raw=new, diff=_diff(source.text, after, name), line=found.lineno, digest=source.digest)


def _diff(before: str, after: str, name: str) -> str:
    """Unified, as `git apply` takes it; carriage returns are left out, so that it can be read on a terminal."""
    return "".join(difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}"))


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    lines = [line.rstrip("\r") + "\n" for line in whole]
    return [*lines, f"{last}\n\\ No newline at end of file\n"] if last else lines


def _changes(source: SourceText, call: ast.Call, wanted: Mapping[str, object]) -> list[tuple[int, int, str]]:
    """(from, to, new text) for each argument."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        raise NotFound(f"the call in line {call.lineno} takes *arguments, which may hold the same ones")
    named = {one.arg: one.value for one in call.keywords if one.arg is not None}
    takes_more = any(one.arg is None for one in call.keywords)
    positional = dict(zip(POSITIONS, call.args, strict=False))
    changes, missing = [], {}
    for argument, value in wanted.items():
        there = named.get(argument, positional.get(argument))
        if there is not None:
            _check_is_plain(source, there, argument)
            changes.append((source.offset(Place.start_of(there)), source.offset(Place.end_of(there)), repr(value)))
        elif takes_more:
            raise NotFound(f"the call in line {call.lineno} takes **arguments, in which {argument} may be")
        else:
            missing[argument] = value
    if missing:
        changes.append(_insertion(source, call, missing))
    return changes


def _check_is_plain(source: SourceText, value: ast.expr, argument: str) -> None:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError):
        text = source.between(Place.start_of(value), Place.end_of(value))
        raise NotFound(f"{argument} in line {value.lineno} is {text}: set it where that comes from") from None
    if value.lineno != value.end_lineno:
        raise NotFound(f"{argument} in line {value.lineno} is written over several lines")


def _insertion(source: SourceText, call: ast.Call, missing: Mapping[str, object]) -> tuple[int, int, str]:
    """Puts arguments behind the last one, in the style of the call."""
    values = [*call.args, *(one.value for one in call.keywords)]
    nodes: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    told = [f"{argument}={value!r}" for argument, value in missing.items()]
    end_of_call = source.offset(Place.end_of(call)) - 1
    if not nodes:
        start = source.offset(Place.end_of(call.func))
        bracket = source.text.index("(", start)
        if source.text[bracket + 1 : end_of_call].strip():
            raise NotFound(f"the call in line {call.lineno} has no arguments, and something between its brackets")
        return bracket + 1, end_of_call, ", ".join(told)
    last = max(range(len(nodes)), key=lambda at: Place.end_of(values[at]))
    if isinstance(values[last], ast.GeneratorExp) and len(nodes) == 1:
        raise NotFound(f"the call in line {call.lineno} takes a generator without brackets")
    behind = source.offset(Place.end_of(values[last]))
    rest = _Rest(source.text[behind:end_of_call])
    starts_line = not source.line(nodes[last].lineno).encode()[: nodes[last].col_offset].strip()
    if rest.has_newline and starts_line:
        indent = source.newline + source.line(nodes[last].lineno)[: -len(source.line(nodes[last].lineno).lstrip())]
        if rest.has_comma:
            return behind + rest.line_end, behind + rest.line_end, "".join(f"{indent}{one}," for one in told)
        lines = f",{indent}".join(told)
        return _behind_comment(behind, rest, lines, indent)
    if rest.has_comma:
        at = behind + rest.end_of_last
        return at, at, " " + ", ".join(told) + ("," if rest.has_newline else "")
    at = behind + rest.end_of_last
    return at, at, ", " + ", ".join(told)


def _behind_comment(behind: int, rest: _Rest, lines: str, indent: str) -> tuple[int, int, str]:
    """The last argument has no comma behind it, but perhaps a comment: the comma goes before the comment."""
    start, end = behind + rest.end_of_last, behind + rest.line_end
    comment = rest.text[rest.end_of_last : rest.line_end]
    return start, end, f",{comment}{indent}{lines}"


class _Rest:
    """What stands between the last argument and the closing bracket: brackets around the argument, a comma, comments."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.has_comma = False
        self.end_of_last = 0
        """Behind the last bracket or comma."""
        self.line_end = 0
        """End of the line on which that is; a comment there belongs to the argument."""
        lines = text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        # Brackets that close what was opened before are errors for a tokenizer that begins here: comments are what matters.
        for place, line in enumerate(lines):
            code = line.split("#", 1)[0]
            for at, sign in enumerate(code):
                if sign in "),":
                    self.end_of_last = starts[place] + at + 1
                    self.has_comma = sign == "," or self.has_comma
                elif not sign.isspace() and sign != "\\":
                    raise NotFound("what stands behind the last argument cannot be read")
        newline = text.find("\n", self.end_of_last)
        self.has_newline = newline >= 0
        self.line_end = len(text) if newline < 0 else newline - (text[newline - 1 : newline] == "\r")


def _check(before: ast.Module, new: bytes, found: ast.Call, wanted: Mapping[str, object]) -> None:
    """The new text must parse, and differ from the old in these arguments of this call alone."""
    try:
        after = ast.parse(new)
    except (SyntaxError, ValueError):
        raise NotFound(f"the call in line {found.lineno} is written in a way that cannot be changed safely") from None
    same_place = [
        node
        for node in ast.walk(after)
        if isinstance(node, ast.Call)
        and (node.lineno, node.col_offset) == (found.lineno, found.col_offset)
        and ast.dump(node.func) == ast.dump(found.func)
    ]
    if len(same_place) != 1:
        raise NotFound(f"the call in line {found.lineno} cannot be found again after the change")
    now = {one.arg: one.value for one in same_place[0].keywords}
    given = dict(zip(POSITIONS, same_place[0].args, strict=False))
    values = {key: ast.literal_eval(now[key] if key in now else given[key]) for key in wanted}
    _strip(same_place[0], wanted)
    _strip(found, wanted)
    if values != dict(wanted) or ast.dump(after) != ast.dump(before):
        raise NotFound(f"the call in line {found.lineno} is written in a way that cannot be changed safely")


def _strip(call: ast.Call, wanted: Mapping[str, object]) -> None:
    """Takes the arguments in question out of a call, so that the rest can be compared."""
    call.keywords = [one for one in call.keywords if one.arg not in wanted]
    for place, argument in enumerate(POSITIONS[: len(call.args)]):
        if argument in wanted:
            call.args[place] = ast.Constant(None)
