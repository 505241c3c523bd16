"""Whoever is killed, no memory stays. Each test runs a real program."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow
PATIENCE_S = 60  # for what takes a second on an idle machine

PROGRAM = """
    import sys, time
    from slot_acts import is_whole, make_batch
    from headrace.engine.run import ProcessRunner
    from headrace.engine.run.slots import SlotTransport
    from headrace.testing.tasks import Act, ActTask

    if __name__ == "__main__":
        runner = ProcessRunner(2, context=sys.argv[1], transport=SlotTransport())
        orders = [Act(do=make_batch, value=value) for value in range(20)]
        results = runner.run(ActTask(), orders)
        kept = [next(results) for _ in range(5)]
        assert all(map(is_whole, kept))
"""
WAIT = """
        print("ready", flush=True)
        time.sleep(600)
"""
FORGET = """
        print("ready", flush=True)  # and ends at once, with batches in its hand and workers at work
"""
LATE = """
        del results
        late = next(batch for batch in runner.run(ActTask(), orders[:1]))
        assert is_whole(late)
        class AtTheEnd:
            def __del__(self):  # when modules have lost their names already
                assert self.image.tobytes() == self.expected
                print("whole", flush=True)
        last = AtTheEnd()
        last.image, last.batch = late["image"].numpy(), late
        last.expected = last.image.tobytes()
        print("ready", flush=True)
"""


@pytest.fixture
def start(tmp_path):
    programs = []

    def start(body, context):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(PROGRAM + body))
        program = subprocess.Popen(
            [sys.executable, "-W", "error", script, context],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        programs.append(program)
        assert program.stdout.readline() == "ready\n", program.stderr.read()
        return program

    yield start
    for program in programs:
        if program.poll() is None:
            program.kill()
            program.wait()
        program.stdout.close()
        program.stderr.close()


def users_of_slots():
    """Processes that have slots mapped or open."""
    found = set()
    for process in psutil.process_iter():
        try:
            if "headrace-slots" in Path(f"/proc/{process.pid}/maps").read_text():
                found.add(process.pid)
        except OSError:  # gone meanwhile, or somebody else's
            pass
    return found


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
@pytest.mark.parametrize("victim", ["consumer", "workers"])
def test_after_a_kill_no_memory_is_left(start, context, victim):
    others, shm = users_of_slots(), set(Path("/dev/shm").iterdir())
    program = start(WAIT, context)
    deadline = time.monotonic() + PATIENCE_S
    family = workers = set()
    while len(workers) < 2 and time.monotonic() < deadline:  # one may do all the work before the other has started
        family = users_of_slots() - others
        workers = {child.pid for child in psutil.Process(program.pid).children(recursive=True)} & family
    assert program.pid in family
    assert len(workers) >= 2
    for pid in workers if victim == "workers" else [program.pid]:
        psutil.Process(pid).send_signal(signal.SIGKILL)
    if victim == "workers":
        program.terminate()
    deadline = time.monotonic() + PATIENCE_S
    while users_of_slots() & family and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not users_of_slots() & family  # the file has no name: without a user it is gone
    assert set(Path("/dev/shm").iterdir()) <= shm


@pytest.mark.parametrize(
    "body", [FORGET, LATE], ids=["with workers at work", "with a batch that is used at the very end"]
)
def test_a_program_that_ends_with_batches_in_its_hand_ends_quietly(start, body):
    program = start(body, "fork")
    out, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0
    assert err == ""
    assert out == ("whole\n" if body is LATE else "")
