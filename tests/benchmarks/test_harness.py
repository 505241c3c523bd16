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
    "slow tail asleep",
    "slow tail busy",
    "latency 64",
    "Python transform",
]


def test_every_regime_that_delivers_samples_is_examined_here():
    from benchmarks import regime

    regimes = regime.all_regimes().values()
    names = [each.name for each in regimes if each.measure == "throughput" and each.name != "latency 256"]
    assert names == REGIME_NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", REGIME_NAMES)
def test_limit_ours_and_torch_deliver_the_same_samples(name, tmp_path, monkeypatch):
    from benchmarks import meter
    from benchmarks import regime as regimes

    examined = regimes.all_regimes()[name]
    if name == "jpeg":
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
    command += ["--sides", "LIMIT,hr.arrays", "--seconds", "0.05", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "| **rows** (samples/s)" in done.stdout
    record = json.loads(output.read_text(encoding="utf-8"))
    assert record["schema"] == 1
    assert {"created", "command", "machine", "rounds", "seconds", "regimes"} <= set(record)
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
    record = rounds.compare(rows, [broken], num_rounds=2, size="tiny", seconds=0.1, say=lambda _: None)
    assert record["sides"]["no such side"] == {"library": "LIMIT", "rounds": [], "reason": "it broke"}
    assert "it broke" in table.table([record])
