"""However a program begins and ends, its workers do so with it, quietly. Each test runs a real program."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

pytestmark = pytest.mark.slow

START_METHODS = ["fork", "forkserver", "spawn"]
PATIENCE_S = 60  # for what takes well under two seconds on an idle machine


@pytest.fixture
def start(tmp_path):
    """Starts a program in a process group of its own, strict about warnings."""
    programs = []

    def start(body, *args):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
        program = subprocess.Popen(
            [sys.executable, "-W", "error", script, tmp_path, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        programs.append(program)
        return program

    yield start
    for program in programs:
        program.stdout.close()
        program.stderr.close()
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


HEAD = """
    import gc, os, sys
    from pathlib import Path
    from headrace.engine.run import ProcessRunner, ThreadRunner
    from headrace.testing import tasks
    from headrace.testing.tasks import Act, ActTask, Latch

    here, context = Path(sys.argv[1]), sys.argv[2]
    def make_runner(**options):
        return ThreadRunner(2) if context == "threads" else ProcessRunner(2, context=context, **options)
    never = Latch(here / "never")
    # The first two make sure that both workers are up: one that is still starting is not ours yet, and takes a Ctrl-C as
    # any Python process does.
    both_up = [Act(do=tasks.square, pin=worker) for worker in (0, 1)]
    one_stuck = both_up + [Act(do=tasks.square, value=2, latch=never)] + [Act(do=tasks.square)] * 9
"""

STUCK = """
    if __name__ == "__main__":
        results = make_runner().run(ActTask(), one_stuck)
        next(results), next(results)
        print("ready", flush=True)
        next(results)
"""


def family(program):
    assert program.stdout.readline() == "ready\n", program.stderr.read()
    return psutil.Process(program.pid).children(recursive=True)


def assert_all_gone(processes):
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    # A zombie that init has not collected yet is gone as well.
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("context", ["threads", *START_METHODS])
def test_ctrl_c_ends_everything_with_one_traceback(start, context):
    program = start(STUCK, context)
    children = family(program)
    os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert_all_gone(children)


@pytest.mark.parametrize("context", START_METHODS)
def test_killing_the_program_leaves_no_orphan(start, context):
    program = start(STUCK, context)
    children = family(program)
    assert len(children) >= 2
    program.kill()
    _, errors = program.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in errors
    assert_all_gone(children)


@pytest.mark.parametrize("context", ["threads", *START_METHODS])
def test_ending_with_live_iterators_is_quiet(start, context):
    program = start(
        """
        if __name__ == "__main__":
            results = make_runner().run(ActTask(), one_stuck)
            assert next(results) == next(results) == 0
            others = make_runner().run(ActTask(here / "journal"), [Act(do=tasks.square, value=v) for v in range(99)])
            assert next(others) == 0
            cycle = [others]
            cycle.append(cycle)
            if context != "threads":
                runner = make_runner(persistent=True)
                assert list(runner.run(ActTask(), [Act(do=tasks.square, value=3)])) == [9]
            print("ready", flush=True)
        """,
        context,
    )
    output, errors = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, output, errors) == (0, "ready\n", "")
    assert_group_gone(program)


def assert_group_gone(program):
    """Nobody of the program's process group is left; multiprocessing's resource tracker may take a moment."""
    deadline = time.monotonic() + PATIENCE_S
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(program.pid, 0)
            time.sleep(0.02)


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_a_script_without_a_main_guard_is_told_so_once(start, context):
    program = start("print(list(make_runner().run(ActTask(), one_stuck[:1])))", context)
    output, errors = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, output) == (1, "")
    assert errors.count("Traceback") == 1
    assert "ConfigurationError: the main script must not start its loop on import" in errors
    assert 'if __name__ == "__main__":' in errors


def test_a_worker_that_cannot_start_is_reported(start):
    program = start(
        """
        if __name__ == "__main__":
            list(make_runner().run(ActTask(), one_stuck[:1]))
        else:
            raise ImportError("only the first time")
        """,
        "spawn",
    )
    _, errors = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 1
    assert "ended with exit status 1 while starting" in errors


def test_workers_do_not_import_torch_unless_the_task_does(start):
    program = start(
        """
        def torch_is_here(task, act, mark):
            return "torch" in sys.modules

        if __name__ == "__main__":
            print(list(make_runner().run(ActTask(), [Act(do=torch_is_here)])))
        """,
        "spawn",
    )
    output, errors = program.communicate(timeout=PATIENCE_S)
    assert (output, errors) == ("[False]\n", "")


def test_spawned_workers_share_what_the_user_shared_and_copy_the_rest(start):
    program = start(
        """
        import multiprocessing, torch

        def write(task, act, mark):
            for part in task.luggage.values():
                part[0] = act.value
            return torch.get_num_threads()

        if __name__ == "__main__":
            plain, shared = torch.arange(3), torch.arange(3).share_memory_()
            array = multiprocessing.get_context("spawn").Array("i", 3)
            task = ActTask(luggage={"plain": plain, "shared": shared, "array": array})
            print(list(make_runner().run(task, [Act(do=write, value=7)])))
            print(plain.tolist(), plain.is_shared(), shared.tolist(), array[:])
        """,
        "spawn",
    )
    output, errors = program.communicate(timeout=PATIENCE_S)
    assert (output, errors) == ("[1]\n[0, 1, 2] False [7, 1, 2] [7, 0, 0]\n", "")
