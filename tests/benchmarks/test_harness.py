"""The benchmarks' harness: rounds, ratios, checks, record. Timings never decide a test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmarks read /proc")


@pytest.fixture(scope="module", autouse=True)
def _importable():
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


def record_of(sides, *, more_is_better=True):
    entries = {
        name: {"library": library, "rounds": [{"value": value} for value in values]}
        for name, (library, values) in sides.items()
    }
    return {"name": "r", "title": "t", "unit": "u", "more_is_better": more_is_better, "sides": entries}


def test_every_second_round_runs_backwards():
    from benchmarks import rounds

    assert rounds.interleaved(["a", "b", "c"], 1) == ["a", "b", "c"]
    assert rounds.interleaved(["a", "b", "c"], 2) == ["c", "b", "a"]


def test_ratios_are_taken_within_a_round_and_above_one_is_better():
    from benchmarks import rounds

    sides = {"limit": ("LIMIT", [10, 20]), "ours": ("headrace", [5, 30])}
    assert rounds.ratios(record_of(sides), "ours", "limit") == [0.5, 1.5]
    assert rounds.ratios(record_of(sides, more_is_better=False), "ours", "limit") == [2, 20 / 30]


def test_best_is_by_median_and_never_a_failed_side():
    from benchmarks import rounds

    record = record_of({"a": ("torch", [1, 9, 2]), "b": ("torch", [3, 3, 3]), "c": ("torch", [8, 8, 8])})
    record["sides"]["c"]["reason"] = "broke"
    assert rounds.best(record, "torch") == "b"
    assert rounds.best(record, "grain") is None


def test_a_side_with_other_samples_is_refused_with_the_reason():
    from benchmarks import rounds

    record = record_of({"limit": ("LIMIT", []), "same": ("torch", []), "other": ("torch", []), "labels": ("x", [])})
    check = {"num_samples": 4, "labels": "1", "contents": "2"}
    checks = [check, check, {**check, "contents": "3"}, {**check, "contents": None}]
    for entry, found in zip(record["sides"].values(), checks, strict=True):
        entry["warm_up"] = {"check": found}
    rounds.refuse_other_samples(record)
    assert [name for name, entry in record["sides"].items() if "reason" in entry] == ["other"]
    assert "contents 3" in record["sides"]["other"]["reason"]


def test_digest_ignores_order_and_integer_width_but_not_which_fields_belong_together():
    import numpy as np

    from benchmarks import meter

    x, y = np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6)
    whole = meter.digest([(x, y)], with_contents=True)
    shuffled = np.array([3, 1, 5, 0, 2, 4])
    parts = [(x[rows], y[rows].astype(np.int32)) for rows in np.split(shuffled, [4])]
    assert meter.digest(parts, with_contents=True) == whole
    swapped = meter.digest([(x, y[::-1])], with_contents=True)
    assert swapped["labels"] == whole["labels"]
    assert swapped["contents"] != whole["contents"]


def test_memory_growth_is_told_from_the_third_epoch_against_the_second():
    from benchmarks import rounds

    seen = [(1.0, 1 << 20), (2.0, 3 << 20), (3.0, 2 << 20), (4.0, 5 << 20)]
    assert rounds._with_memory({"epoch_ends": [1.5, 2.5, 4.5], "memory": seen}) == {"value": 5.0, "growth_mib": 2.0}


def test_the_limits_deliver_every_sample_once_per_epoch_and_leave_nothing_behind():
    import numpy as np

    from benchmarks import limits

    def write(slot, row, index):
        slot[row] = index

    before = len(list(Path("/proc/self/fd").iterdir()))
    for loader in (
        limits.in_caller(12, 4, lambda rows: rows),
        limits.threads(3, 12, 4, lambda: np.empty(4, np.int64), write),
        limits.processes(2, 12, 4, 1, write),
    ):
        for _ in range(2):
            assert sorted(int(row) for batch in loader for row in np.ravel(batch)) == list(range(12))
        del loader
    assert len(list(Path("/proc/self/fd").iterdir())) == before


REGIME_NAMES = [
    "rows",
    "tokens",
    "many fields",
    "jpeg",
    "cached",
    "slow tail asleep",
    "slow tail busy",
    "latency",
    "Python transform",
]


def test_every_regime_that_delivers_samples_is_examined_here():
    from benchmarks import regime

    names = [each.name for each in regime.all_regimes().values() if each.measure == "throughput"]
    assert names == REGIME_NAMES


def test_targets_name_sides_that_there_are():
    from benchmarks import regime

    for each in regime.all_regimes().values():
        names = [side.name for side in each.sides]
        assert len(names) == len(set(names)), each.name
        for target in each.targets:
            assert target.side in names, (each.name, target)
            assert any(name.startswith(tuple(target.against.split("|"))) for name in names) or (
                target.against in {"", regime.PEERS}
            ), (each.name, target)


def test_a_target_is_compared_within_rounds_with_the_best_that_is_meant():
    from benchmarks import regime, targets

    record = record_of(
        {
            "LIMIT": ("LIMIT", [100, 100, 100]),
            "ours": ("headrace", [60, 60, 30]),
            "torch, a": ("torch", [10, 10, 10]),
            "torch, b": ("torch", [20, 20, 20]),
            "else": ("grain", [40]),
        }
    )

    def judge(**asked):
        return targets.judge(record, regime.Target(side="ours", **asked))

    of_limit = judge(against="LIMIT", at_least=0.5)
    assert (of_limit.values, of_limit.is_met, of_limit.found) == ([0.6, 0.6, 0.3], True, "met")
    assert judge(against="torch,", at_least=4).reference == "torch, b"
    assert judge(against="torch,", at_least=4).found == "missed by 25 %"
    assert judge(against="torch, a", at_least=4).found == "met"
    assert judge(against=regime.PEERS, at_least=1).values == [1.5], (
        "a side with fewer rounds is compared in the first ones"
    )
    assert judge(at_most=50, unit="s").found == "missed by 20 %"
    assert judge(key="no such", at_most=1).found == "not measured"
    record["sides"]["ours"]["reason"] = "broke"
    assert judge(against="LIMIT", at_least=0.5).found == "not measured"
    record["targets"] = [{"side": "ours", "against": "LIMIT", "at_least": 0.5}]
    assert "not measured" in targets.summary([record])


def test_bursts_do_not_move_the_rate():
    from benchmarks import meter

    # 64 batches of 10 come at once, every 0.64 s: 1,000 a second, wherever in a burst the window begins.
    arrivals = [0.64 * (number // 64) + 1e-5 * (number % 64) for number in range(1, 64 * 8)]
    for begin in (0, 20, 62):
        within = arrivals[begin:]
        assert meter.slope(within[0], within[1:], [10] * (len(within) - 1)) == pytest.approx(1000, rel=0.03)


def measured_as(name, value, **more):
    record = {**record_of({"LIMIT": ("LIMIT", [value])}), "name": name, "title": "t", "load_before": 0.1}
    machine = {"processor": "p", "usable_cores": 2, "python": "3", "versions": {"headrace": "0"}, "load_before": value}
    return {
        "schema": 2,
        "created": "2030-01-01",
        "command": f"run {value}",
        "machine": machine,
        "size": "full",
        "took_s": 60,
        "regimes": [record],
        **more,
    }


def test_pieces_merge_by_regime_and_only_from_one_machine(tmp_path):
    from benchmarks import records

    pieces = [measured_as("a", 1), measured_as("b", 2), measured_as("a", 3)]
    whole = records.merged(pieces)
    assert [(regime["name"], regime["sides"]["LIMIT"]["rounds"][0]["value"]) for regime in whole["regimes"]] == [
        ("a", 3),
        ("b", 2),
    ]
    assert whole["command"] == "run 1 && run 2 && run 3"
    assert whole["took_s"] == 180
    other = measured_as("b", 2)
    other["machine"]["usable_cores"] = 4
    with pytest.raises(records.CannotMerge, match="machine"):
        records.merged([pieces[0], other])
    records.write(tmp_path / "a.json", {**pieces[0], "schema": 1})
    with pytest.raises(records.CannotMerge, match="measure again"):
        records.load(tmp_path / "a.json")


def test_results_go_between_the_marks_of_a_page_as_often_as_one_likes(tmp_path):
    from benchmarks import records

    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{records.BEGIN}\n{records.END}\n\nafter\n", encoding="utf-8")
    records.write_docs(page, measured_as("old", 1))
    records.write_docs(page, measured_as("new", 2))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n\n")
    assert text.endswith("\n\nafter\n")
    assert "**new**" in text
    assert "$ run 2" in text
    assert "**old**" not in text
    assert records.BEGIN in (ROOT / "docs/guide/benchmarks.md").read_text(encoding="utf-8")
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(records.CannotMerge, match="no place"):
        records.write_docs(page, measured_as("new", 2))


def test_a_dry_run_says_how_long_and_starts_nothing():
    command = [sys.executable, "-m", "benchmarks.run", "--dry-run", "--peers", "none", "--regimes", "rows,resume"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    assert [row.split(" | ")[0] for row in done.stdout.splitlines()[2:5]] == ["| rows", "| resume", "| all"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")  # more sleepers than cores is the point
@pytest.mark.parametrize("name", REGIME_NAMES)
def test_limit_ours_and_torch_deliver_the_same_samples(name, tmp_path, monkeypatch):
    from benchmarks import meter
    from benchmarks import regime as regimes

    examined = regimes.all_regimes()[name]
    if name in {"jpeg", "cached"}:
        from benchmarks.regimes import jpeg

        # The photographs of scikit-learn alone: the others need a peers' environment.
        monkeypatch.setattr(
            jpeg, "_photographs", lambda: __import__("sklearn.datasets").datasets.load_sample_images().images
        )
    work = regimes.Work(folder=tmp_path, size=examined.sizes["tiny"])
    (tmp_path / "meta.json").write_text(json.dumps(examined.make(work)), encoding="utf-8")
    checks = {}
    for library in ("LIMIT", "headrace", "torch"):
        sides = [side for side in examined.sides if side.library == library]
        side = next((side for side in sides if "threads" in side.name), sides[0])
        checks[library] = meter.digest(side.open(work), with_contents=True)
    assert checks["headrace"] == checks["LIMIT"]
    assert checks["torch"] == checks["LIMIT"]


@pytest.mark.slow
def test_one_run_prints_a_table_and_keeps_every_value(tmp_path):
    output = tmp_path / "result.json"
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--regimes", "rows", "--peers", "none"]
    command += ["--sides", "LIMIT,headrace, 2 processes", "--seconds", "0.05", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "| **rows** (samples/s)" in done.stdout
    record = json.loads(output.read_text(encoding="utf-8"))
    assert record["schema"] == 2
    assert {"created", "command", "machine", "rounds", "regimes"} <= set(record)
    (rows,) = record["regimes"]
    for entry in rows["sides"].values():
        assert "reason" not in entry, entry
        assert len(entry["rounds"]) == 2
        assert all(values["value"] > 0 for values in entry["rounds"])


def test_a_side_that_fails_is_a_row_with_its_reason(monkeypatch):
    import dataclasses

    from benchmarks import regime as regimes
    from benchmarks import rounds, table

    rows = regimes.all_regimes()["rows"]
    broken = dataclasses.replace(rows.sides[0], name="no such side")

    def fail(*_, **__):
        raise rounds.Failed("it broke")

    monkeypatch.setattr(rounds, "run_child", fail)
    monkeypatch.setattr(rounds, "make_data", lambda *_: None)
    record = rounds.compare(rows, [broken], num_rounds=lambda _: 2, size="tiny", seconds=0.1, say=lambda _: None)
    entry = record["sides"]["no such side"]
    assert (entry["rounds"], entry["reason"]) == ([], "it broke")
    assert "it broke" in table.table([record])


def test_programs_that_run_by_themselves_are_named_by_help():
    said = subprocess.run(
        [sys.executable, "-m", "benchmarks.run", "--help"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    ).stdout
    programs = {
        path.name for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text(encoding="utf-8")
    }
    assert {name for name in programs if f"python benchmarks/{name} " in said} == programs - {"run.py", "child.py"}


@pytest.mark.slow
def test_the_pause_of_a_checkpoint_is_measured(tmp_path):
    command = [sys.executable, "benchmarks/checkpoint_pause.py", "--millions", "0.01", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--folder", tmp_path], capture_output=True, text=True, cwd=ROOT, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("stands still") == 4
    assert done.stdout.count("checksums included") == 2
    assert not any(tmp_path.iterdir())
