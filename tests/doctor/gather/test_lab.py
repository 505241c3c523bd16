"""The lab's promises: nothing finished is lost, nothing started is left, and time is bounded."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from headrace.doctor.lab.outside import Budget
from headrace.doctor.probes.reads import ReadSamples, read_samples
from headrace.errors import TargetError

pytestmark = pytest.mark.slow  # each test starts interpreters

ENDLESS = """
class Endless(Base):
    size = 5
    def __getitem__(self, index):
        if index == 3:
            reached()
            while True:
                time.sleep(0.01)
        return index

def make():
    return Endless()
"""


def reads(size):
    return ReadSamples(indices=range(size), seed=0)


def wait_until_gone(pids):
    deadline = time.monotonic() + 20
    while left := [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.05)


def test_budget_ends_a_hang_keeps_what_was_finished_and_says_what_was_in_hand(open_lab, spent_at):
    heard = []
    lab = open_lab(ENDLESS, budget=spent_at())
    ending = lab.run(reads(5), heard.append)
    assert ending.outcome == "over-budget"
    assert [one.read.index for one in heard] == [0, 1, 2]
    assert ending.mark.sample_id == 3
    assert "in __getitem__" in ending.at
    assert lab.run(reads(5), heard.append).outcome == "over-budget"
    assert len(heard) == 3


def test_a_spent_budget_starts_nothing(open_lab):
    lab = open_lab("raise SystemExit", budget=Budget(0.0))
    assert lab.run(reads(1), lambda one: None).outcome == "over-budget"


def test_one_child_serves_several_experiments(open_lab):
    lab = open_lab("""
    class Pids(Base):
        size = 2
        def __getitem__(self, index):
            return os.getpid()

    def make():
        return Pids()
    """)
    heard = []
    for _ in range(3):
        assert lab.run(reads(2), heard.append).outcome == "done"
    assert len({one.read.fields[0].minimum for one in heard}) == 1


def test_printing_reaches_nobody_but_its_end_is_kept(open_lab, capfd):
    lab = open_lab("""
    class Loud(Base):
        size = 3
        def __getitem__(self, index):
            print("noise " * 100_000)
            print("to stderr", index, file=sys.stderr)
            return index

    def make():
        return Loud()
    """)
    heard = []
    ending = lab.run(reads(3), heard.append)
    assert (ending.outcome, len(heard)) == ("done", 3)
    assert ending.output.endswith("to stderr 2\n")
    assert len(ending.output) <= 8192
    assert capfd.readouterr() == ("", "")


def test_waiting_for_the_keyboard_is_an_error_and_no_hang(open_lab):
    lab = open_lab("""
    class Asks(Base):
        size = 1
        def __getitem__(self, index):
            return input("which? ")

    def make():
        return Asks()
    """)
    heard = []
    lab.run(reads(1), heard.append)
    assert heard[0].read.error_type == "EOFError"


@pytest.mark.parametrize("end", ["hang", "crash", "well"])
def test_processes_that_the_target_started_end_with_their_child(open_lab, tmp_path, end):
    lab = open_lab(
        f"""
    class Starts(Base):
        size = 1
        def __init__(self):
            sleep = [sys.executable, "-c", "import time; time.sleep(1000)"]
            started = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
            with open({str(tmp_path / "pids")!r}, "w") as file:
                print(os.getpid(), *(one.pid for one in started[:{1 if end == "crash" else 2}]), file=file)
            if {end == "crash"}:
                started[1].kill()  # of a child that is dead nobody knows who started what in another session
        def __getitem__(self, index):
            if {end == "hang"}:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                while True: pass
            if {end == "crash"}:
                ctypes.string_at(0)
            return index

    def make():
        return Starts()
    """,
        per_sample_s=0.3 if end == "hang" else 30.0,
    )
    ending = lab.run(reads(1), lambda one: None)
    assert ending.outcome == {"hang": "stuck", "crash": "crashed", "well": "done"}[end]
    lab.close()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == (2 if end == "crash" else 3)
    wait_until_gone(pids)


def test_an_interrupt_ends_the_child(open_lab, own_nursery):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    lab = open_lab(ENDLESS)
    seen = []

    def receive(one):
        children = psutil.Process().children(recursive=True)
        seen.extend(one.pid for one in children if one.pid not in before and one.status() != "zombie")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        lab.run(reads(5), receive)
    assert len(seen) == (2 if sys.platform == "linux" else 1), "the child, and the nursery that it is a fork of"
    wait_until_gone(seen[1:])
    lab.__exit__()
    wait_until_gone(seen)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's parent-death signal")
def test_a_child_does_not_outlive_a_killed_parent(write_target):
    spec = write_target(ENDLESS)
    code = (
        "from headrace.doctor.lab.outside import Budget, Lab\n"
        "from headrace.doctor.probes.reads import ReadSamples\n"
        f"lab = Lab({spec!r}, budget=Budget(100), per_sample_s=100)\n"
        "def receive(one):\n"
        "    print(lab._child._process.pid, flush=True)\n"
        "lab.run(ReadSamples(indices=range(5), seed=0), receive)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with parent:
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    wait_until_gone([pid])


@pytest.mark.parametrize(
    ("code", "messages"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", ["ended while it was being loaded: SIGSEGV", "train.py:12"]),
        ("print('step 1'); os._exit(7)", ["ended while it was being loaded: exit status 7", "step 1"]),
        ("reached()\nwhile True: pass", ["was not loaded within 60 s", "train.py:13", "__main__"]),
        ("1 / 0", ["train.py could not be imported: ZeroDivisionError: division by zero", "train.py:12"]),
    ],
)
def test_a_target_that_cannot_be_loaded_is_an_error_that_says_why(open_lab, spent_at, code, messages):
    with pytest.raises(TargetError) as caught:
        open_lab(code, budget=spent_at()).run(reads(1), lambda one: None)
    for message in messages:
        assert message in str(caught.value)


def test_the_users_traceback_comes_along_as_the_cause(open_lab):
    with pytest.raises(TargetError) as caught:
        open_lab("1 / 0").run(reads(1), lambda one: None)
    assert "1 / 0" in str(caught.value.__cause__)
    assert "headrace" not in str(caught.value.__cause__)


def test_a_failing_experiment_ends_alone(open_lab):
    lab = open_lab(ENDLESS)
    missing = ReadSamples(indices=range(3), seed=0, contract="/nowhere/contract.toml")
    ending = lab.run(missing, lambda one: None)
    assert ending.outcome == "failed"
    assert "ContractFileError" in ending.cause
    assert lab.run(reads(3), lambda one: None).outcome == "done"


def test_budget_counts_down_on_its_clock():
    now = [10.0]
    budget = Budget(3.0, clock=lambda: now[0])
    assert budget.left_s == 3.0
    now[0] = 12.0
    assert budget.left_s == 1.0
    now[0] = 99.0
    assert budget.left_s == 0.0


def test_a_slow_start_is_not_a_slow_sample(open_lab):
    lab = open_lab(
        """
    time.sleep(2.5)
    def make():
        return [1, 2, 3]
    """,
        per_sample_s=1.0,
    )
    prepared, ending = read_samples(lab, reads(3), lambda text: None)
    assert [one.read.outcome for one in prepared] == ["ok"] * 3
    assert ending.outcome == "done"
    assert lab.loading_s >= 2.5


def test_a_child_finds_the_environment_and_the_folder_of_its_caller(open_lab, monkeypatch, tmp_path):
    monkeypatch.setenv("CHOSEN", "fünf \udce9")
    monkeypatch.chdir(tmp_path)
    lab = open_lab("""
    def make():
        return [os.environ["CHOSEN"], os.getcwd(), sys.argv[0]]
    """)
    heard = []
    lab.run(reads(2), heard.append)
    assert [one.read.fields[0].kind for one in heard] == ["string", "string"]


def test_a_child_writes_to_the_temporary_folder_of_its_caller(open_lab, monkeypatch, tmp_path):
    """And not to the one that was its when the nursery imported torch, which asks for it."""
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setenv("TMPDIR", str(folder))
        lab = open_lab("""
        import tempfile

        def make():
            os.close(tempfile.mkstemp()[0])
            return [0]
        """)
        lab.run(reads(1), lambda _: None)
        assert len(list(folder.iterdir())) == 1


def test_code_that_eats_memory_is_ended_before_the_machine_suffers(open_lab, monkeypatch):
    monkeypatch.setattr("headrace.doctor.lab.outside.usable_memory", lambda: 2**30)
    lab = open_lab("""
    class Hungry(Base):
        size = 4
        def __getitem__(self, index):
            if index == 2:
                eaten = []
                while True:
                    eaten.append(np.ones(2**22))
                    time.sleep(0.02)
            return index

    def make():
        return Hungry()
    """)
    prepared, ending = read_samples(lab, reads(4), lambda text: None)
    assert [one.read.outcome for one in prepared] == ["ok", "ok", "crashed", "ok"]
    assert "it held" in prepared[2].read.error_type
    assert "in __getitem__" in prepared[2].read.error_at
    assert ending.outcome == "done"
