"""From what was seen to the report: the rules judge each process, and what several ranks share is said once."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from headrace import __version__
from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.last_batch import LastBatch, last_batch
from headrace.doctor.evidence.orders import Orders
from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces
from headrace.doctor.evidence.splits import SplitOverlap, split_overlap
from headrace.doctor.evidence.stages import StageTimes
from headrace.doctor.evidence.training import CheckpointTraces, ModelTraces, TrainingTrace
from headrace.doctor.judging import SEVERITIES, judge
from headrace.doctor.occasions import is_watched
from headrace.doctor.questions.waiting import FEWEST_S, FEWEST_STEPS, is_long_enough, judged, span
from headrace.doctor.report.environment import describe_environment
from headrace.doctor.report.model import FindingRow, Report, SkippedRow
from headrace.doctor.rule import Rule
from headrace.doctor.watch.orders import watched_orders
from headrace.doctor.watch.seen import Seen
from headrace.doctor.watch.summary import main_loop, summarise
from headrace.doctor.wording.samples import count, verb

__all__ = ["make_report", "watched_rules"]

NOTHING = "no torch DataLoader and no headrace loader handed over a batch"

NOT_SEEN: dict[type[Evidence], str] = {
    SplitOverlap: "no training loader and evaluation loader that say which samples they draw",
    LastBatch: "no training loader that says how long its last batch is, or no model",
    CheckpointTraces: "the script saved nothing",
    ModelTraces: "no model was called",
    TrainingTrace: "no optimizer stepped",
}
"""Why a kind of evidence may not be there, in words about the script."""


def watched_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Returns the rules of the catalogue that judge a running script.

    Raises:
        ConfigurationError: no rule has a selected code.
    """
    from headrace.doctor.catalogue import rules

    return tuple(rule for rule in rules(select, ignore) if is_watched(rule))


def make_report(
    seen: Sequence[Seen],
    rules: Iterable[Rule],
    *,
    spec: str,
    command: str,
    ending: str = "finished",
    could_watch: bool = True,
) -> Report:
    """Returns the report of a run.

    Args:
        seen: What each process saw, ranks in order; empty if none could be watched.
        rules: Who judges.
        spec: The script, as the user calls it.
        command: What was typed.
        ending: How the script ended, in words.
        could_watch: False if no interpreter of the script let itself be watched.
    """
    chosen = tuple(rules)
    first = seen[0] if seen else None
    judgements = [_judge(one, chosen, spec) for one in seen] or [([], _all_skipped(chosen, could_watch), [])]
    findings, skipped, cleared = judgements[0]
    for one, (more, _, _) in zip(seen[1:], judgements[1:], strict=True):
        _add_rank(findings, more, one.rank)
    cleared = [code for code in cleared if not any(row.code == code for row in findings)]
    findings.sort(key=lambda row: (SEVERITIES.index(row.severity), row.code))
    evidence = {} if first is None else _evidence(first, spec)
    return Report(
        tool=f"headrace {__version__}",
        created=dt.datetime.now(dt.UTC).astimezone().isoformat(timespec="seconds"),
        command=command,
        environment=describe_environment(),
        target=_describe(spec, evidence, seen, ending),
        findings=findings,
        runs=[],
        stages=[],
        skipped=skipped,
        cleared=cleared,
        verdict=_verdict(findings, evidence),
    )


def _judge(seen: Seen, rules: Sequence[Rule], spec: str) -> tuple[list[FindingRow], list[SkippedRow], list[str]]:
    evidence = _evidence(seen, spec)
    missing: dict[type[Evidence], str] = dict(NOT_SEEN)
    if seen.num_batches == 0:
        missing |= {LoaderTraces: NOTHING, StageTimes: NOTHING}
    elif (reason := _unjudged(evidence)) is not None:
        missing |= {StageTimes: reason}
    untold = missing.keys() - NOT_SEEN.keys()
    kept = {kind: one for kind, one in evidence.items() if kind not in untold}
    findings, skipped, cleared = judge([rule for rule in rules if Orders not in rule.needs], kept, missing)
    for row in _judge_orders(evidence, [rule for rule in rules if rule.needs == (Orders,)]):
        if isinstance(row, FindingRow):
            findings.append(row)
        elif isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            cleared.append(row)
    return findings, skipped, sorted(cleared)


def _judge_orders(
    evidence: Mapping[type[Evidence], Evidence], rules: Sequence[Rule]
) -> Iterator[FindingRow | SkippedRow | str]:
    """Each loader has an order of its own: the rules about orders judge one after another."""
    traces = evidence.get(LoaderTraces)
    orders = watched_orders(traces) if isinstance(traces, LoaderTraces) else ()
    if not orders:
        reason = "no loader whose order is known was walked through twice to its end"
        yield from (SkippedRow(code=rule.code, name=rule.name, reason=reason) for rule in rules)
        return
    found = [judge(rules, {Orders: one}, {})[0] for one in orders]
    yield from (row for rows in found for row in rows)
    named = {row.code for rows in found for row in rows}
    yield from (rule.code for rule in rules if rule.code not in named)


def _evidence(seen: Seen, spec: str) -> dict[type[Evidence], Evidence]:
    """What one process saw, by its kind. Two records of one kind, each with a part, become one."""
    found: dict[type[Evidence], Evidence] = {}
    for one in seen.evidence:
        kind = type(one)
        found[kind] = _joined(found[kind], one) if kind in found else one
    traces = found.get(LoaderTraces)
    if isinstance(traces, LoaderTraces):
        outcome: Any = seen.outcome
        found[LoaderTraces] = dataclasses.replace(
            traces, script=spec, rank=seen.rank, world_size=seen.world_size, outcome=outcome
        )
        models = found.get(ModelTraces)
        last = last_batch(traces, models) if isinstance(models, ModelTraces) else None
        found |= {type(one): one for one in (split_overlap(traces), last) if one is not None}
    return found


def _joined(first: Any, second: Any) -> Any:
    changes = {}
    for field in dataclasses.fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, tuple):
            changes[field.name] = (*one, *other)
        elif not one and other:
            changes[field.name] = other
    return dataclasses.replace(first, **changes)


def _unjudged(evidence: dict[type[Evidence], Evidence]) -> str | None:
    """Why speed cannot be judged; None if it can."""
    times = evidence.get(StageTimes)
    if not isinstance(times, StageTimes) or judged(times):
        return None
    loop = main_loop(times)
    if loop is None:
        return "speed: no loop took more than one batch of a loader"
    if is_long_enough(loop):
        return "speed: the loop only reads its data, so nothing waits for them"
    return (
        f"speed: {count(loop.num_batches, 'step')} in {span(loop.loop_s)} {verb(loop.num_batches, 'is', 'are')} too few to "
        f"judge ({FEWEST_STEPS} steps and {FEWEST_S:g} s are needed)"
    )


def _all_skipped(rules: Iterable[Rule], could_watch: bool) -> list[SkippedRow]:
    reason = (
        "the script imported neither torch nor headrace's loader"
        if could_watch
        else "the script's Python could not be watched: headrace is not installed there, or it ignores PYTHONPATH"
    )
    return [SkippedRow(code=rule.code, name=rule.name, reason=reason) for rule in rules]


def _add_rank(findings: list[FindingRow], more: Iterable[FindingRow], rank: int) -> None:
    """Adds what this rank alone has; what another one said at the same place only gains its number."""
    known = {(row.code, row.where): number for number, row in enumerate(findings)}
    for row in more:
        number = known.get((row.code, row.where))
        if number is None:
            findings.append(
                msgspec.structs.replace(
                    row, message=f"rank {rank}: {row.message}", evidence={**row.evidence, "ranks": [rank]}
                )
            )
        else:
            same = findings[number]
            ranks = [*same.evidence.get("ranks", [0]), rank]
            findings[number] = msgspec.structs.replace(same, evidence={**same.evidence, "ranks": ranks})


def _describe(spec: str, evidence: dict[type[Evidence], Evidence], seen: Sequence[Seen], ending: str) -> dict[str, Any]:
    described: dict[str, Any] = {"spec": spec, "ending": ending, "num_processes": len(seen)}
    traces, times = evidence.get(LoaderTraces), evidence.get(StageTimes)
    if not isinstance(traces, LoaderTraces) or not isinstance(times, StageTimes):
        return described
    described["watch"] = summarise(traces, times)
    loader = _main_loader(traces, times)
    if loader is not None:
        described |= {
            "kind": loader.kind,
            "dataset": loader.dataset_kind,
            "num_samples": loader.num_samples,
            "batch_size": loader.batch_size,
            "num_workers": loader.num_workers,
        }
    return described


def _main_loader(traces: LoaderTraces, times: StageTimes) -> LoaderTrace | None:
    loop = main_loop(times)
    number = None if loop is None else loop.loader
    return next((trace for trace in traces.loaders if trace.number == number), None)


def _verdict(
    findings: Sequence[FindingRow], evidence: dict[type[Evidence], Evidence]
) -> Literal["clean", "findings", "inconclusive"]:
    """`inconclusive` if there was no loop, or one too short to say that it does not wait."""
    if findings:
        return "findings"
    times = evidence.get(StageTimes)
    loop = main_loop(times) if isinstance(times, StageTimes) else None
    return "clean" if loop is not None and is_long_enough(loop) else "inconclusive"
