"""A watched script does what it does without us: the same output, the same status, the same traceback."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest


@pytest.mark.parametrize("num_workers", [0, 2])
def test_losses_are_equal_bit_for_bit(scripts, train, num_workers):
    script = train(f"if __name__ == '__main__': main({num_workers})")
    plain, watched = scripts.plain(script), scripts.reported(script)
    assert watched.stdout == plain.stdout
    assert plain.stdout.count("\n") == 24
    assert watched.status == plain.status == 0
    assert watched.codes == []
    assert watched.loop["num_batches"] == 22, "the first batch of each of the two passes is not counted"
    assert scripts.leftovers(str(scripts.folder)) == ([], [])


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_workers_that_are_started_afresh_are_seen_too(scripts, train, context):
    script = train(f"if __name__ == '__main__': main(2, epochs=1, context={context!r})")
    plain, watched = scripts.plain(script), scripts.reported(script)
    assert (watched.stdout, watched.status) == (plain.stdout, plain.status)
    assert watched.loop["batch_s"] > 0, "the workers told how long a batch takes them"
    assert scripts.leftovers(str(scripts.folder)) == ([], [])


SEEN_BY_A_SCRIPT = """
    import json, sys, traceback
    import torch.utils.data
    print(json.dumps([__name__, sys.argv, sys.path[0], __file__, sys.stdin.read(), sys.stdin.isatty()]))
    print([frame.name for frame in traceback.extract_stack()])
    sys.exit(5)
"""


def test_a_script_sees_its_own_arguments_path_and_input(scripts):
    script = scripts.write(SEEN_BY_A_SCRIPT, "sub/show.py")
    words = (script, "--quiet", "-m", "--output", "x", "-h")
    plain, watched = scripts.plain(*words, stdin="hello"), scripts.watched(*words, stdin="hello")
    assert watched.stdout == plain.stdout
    assert json.loads(plain.stdout.splitlines()[0])[1] == list(words)
    assert watched.status == plain.status == 5


def test_a_module_and_code_run_as_python_runs_them(scripts):
    scripts.write("", "package/__init__.py")
    scripts.write("import sys; print(__name__, __package__, __spec__.name, sys.argv[1:])", "package/module.py")
    for words in (("-m", "package.module", "--lr", "3"), ("-c", "import sys; print(sys.argv)", "-m")):
        plain, watched = scripts.plain(*words), scripts.watched(*words)
        assert (watched.stdout, watched.status) == (plain.stdout, plain.status)
        assert "-" in plain.stdout


ADDRESS = re.compile(r"0x[0-9a-f]+|pid\(s\) \d+")
FAILS = """
    import sys
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, row):
            if row == 5:
                raise ValueError(f"bad row {row}")
            return row

    class Sampler:
        def __len__(self):
            return 8

        def __iter__(self):
            yield 1
            raise RuntimeError("the sampler")

    def collate(rows):
        raise KeyError("collate")

    if __name__ == "__main__":
        kind, num_workers = sys.argv[1], int(sys.argv[2])
        more = {"sampler": {"sampler": Sampler()}, "collate": {"collate_fn": collate}}.get(kind, {})
        loader = DataLoader(Rows(), num_workers=num_workers, **more)
        if kind == "pickle":
            loader = DataLoader(lambda: None, num_workers=1, multiprocessing_context="spawn", sampler=[0])
        for batch in loader:
            print(batch)
"""


@pytest.mark.parametrize(
    "words", ["dataset 0", "dataset 1", "sampler 0", "sampler 1", "collate 0", "collate 1", "pickle 1"]
)
def test_a_traceback_is_the_same_to_the_letter(scripts, words):
    script = scripts.write(FAILS)
    plain, watched = scripts.plain(script, *words.split()), scripts.watched(script, *words.split())
    own = watched.stderr[: watched.stderr.index("\nWATCHED")]
    assert ADDRESS.sub("", own) == ADDRESS.sub("", plain.stderr)
    assert "Error" in own
    assert (watched.stdout, watched.status) == (plain.stdout, 1)
    assert "failed with exit status 1" in watched.verdict


CRASHES = {
    "os._exit": "os._exit(7)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("kind", CRASHES)
def test_a_crash_of_the_interpreter_still_ends_with_a_verdict(scripts, train, kind):
    script = train(
        f"""
        def at_step(step):
            if step == 20:
                {CRASHES[kind]}
        if __name__ == '__main__': main(2, at_step=at_step)
        """
    )
    plain, watched = scripts.plain(script), scripts.watched(script)
    assert watched.stdout == plain.stdout
    assert watched.status == (plain.status if plain.status > 0 else 128 - plain.status)
    assert watched.status in (7, 128 + signal.SIGSEGV, 128 + signal.SIGKILL)
    assert "steps in" in watched.verdict
    assert "made at train.py" in watched.verdict
    assert scripts.leftovers(str(scripts.folder)) == ([], [])


ENDLESS = """
def at_step(step):
    time.sleep(0.02)
if __name__ == '__main__': main(2, epochs=1000, at_step=at_step)
"""
STOP = """
def stop(number, frame):
    print("saved", flush=True)
    sys.exit(9)
signal.signal(signal.SIGINT, stop)
"""


def _wait_for_steps(process, number):
    for line in process.stdout:
        if line.startswith(f"{number} "):
            return
    raise AssertionError(f"it ended: {process.stderr.read()}")


def rest_of(process):
    """What is printed from here on, on stdout and on stderr; the process has ended then."""
    with process:
        return process.stdout.read(), process.stderr.read()


def test_ctrl_c_reaches_the_script_and_the_verdict_follows(scripts, train):
    process = scripts.start(sys.executable, "-m", "headrace", "watch", train(ENDLESS))
    _wait_for_steps(process, 20)
    process.send_signal(signal.SIGINT)
    _, stderr = rest_of(process)
    assert "KeyboardInterrupt" in stderr
    assert "train.py: interrupted" in stderr
    assert process.returncode == 128 + signal.SIGINT
    assert scripts.leftovers(str(scripts.folder)) == ([], [])


def test_the_scripts_own_handler_of_ctrl_c_runs_and_its_status_counts(scripts, train):
    script = train(STOP + ENDLESS)
    process = scripts.start(sys.executable, "-m", "headrace", "watch", script)
    _wait_for_steps(process, 20)
    process.send_signal(signal.SIGINT)
    stdout, stderr = rest_of(process)
    assert stdout.endswith("saved\n")
    assert "WATCHED" in stderr
    assert process.returncode == 9


def test_a_second_ctrl_c_ends_a_script_that_does_not_listen(scripts, train):
    script = train("signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + ENDLESS)
    process = scripts.start(sys.executable, "-m", "headrace", "watch", script)
    _wait_for_steps(process, 20)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)  # two signals of one kind that come together are one
    _, stderr = rest_of(process)
    assert "train.py: interrupted" in stderr
    assert process.returncode == 128 + signal.SIGKILL
    assert scripts.leftovers(str(scripts.folder)) == ([], [])


def test_sigterm_is_handed_on(scripts, train):
    process = scripts.start(sys.executable, "-m", "headrace", "watch", train(ENDLESS))
    _wait_for_steps(process, 20)
    process.terminate()
    _, stderr = rest_of(process)
    assert "train.py: interrupted" in stderr
    assert process.returncode == 128 + signal.SIGTERM


def test_the_script_does_not_outlive_a_watcher_that_is_killed(scripts, train):
    process = scripts.start(sys.executable, "-m", "headrace", "watch", train(ENDLESS))
    _wait_for_steps(process, 20)
    process.kill()
    rest_of(process)
    alive, _ = scripts.leftovers(str(scripts.folder))
    assert alive == []


def test_two_ranks_under_torchrun(scripts, train):
    script = train(
        """
        if __name__ == '__main__':
            torch.distributed.init_process_group("gloo")
            rank = torch.distributed.get_rank()
            sampler = torch.utils.data.DistributedSampler(Rows())
            loader = DataLoader(Rows(), batch_size=8, sampler=sampler)
            for epoch in range(2):
                sampler.set_epoch(epoch)
                for batch in loader:
                    pass
            os.write(1, f"rank {rank} of {torch.distributed.get_world_size()}\\n".encode())  # whole, though both write
            torch.distributed.destroy_process_group()
        """
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = scripts.reported(*torchrun, script)
    assert sorted(ended.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert ended.status == 0
    assert ended.report["target"]["num_processes"] == 2
    assert scripts.leftovers(str(scripts.folder)) == ([], [])
    inside = scripts.run(*torchrun, "-m", "headrace", "watch", script)
    assert inside.status == 0
    assert sorted(inside.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert inside.stderr.count("WATCHED") == 1, "rank 0 speaks for itself"


def test_a_terminal_stays_a_terminal(scripts):
    import os
    import pty

    script = scripts.write("import sys; print(sys.stdout.isatty(), sys.stderr.isatty(), sys.stdin.isatty())")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "watch", script],
        cwd=scripts.folder,
        env=scripts.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(ours, 4096)
        except OSError:  # its last user has closed it
            break
    assert process.wait(60) == 0
    assert text.startswith(b"True True True")
    os.close(ours)


def test_the_sites_own_customisation_runs_too(scripts):
    scripts.write("import builtins; builtins.customised = True", "site/sitecustomize.py")
    scripts.environment["PYTHONPATH"] += f":{scripts.folder / 'site'}"
    ended = scripts.watched("-c", "import sitecustomize, sys; print(customised, sitecustomize.__file__)")
    assert ended.stdout.startswith("True ")
    assert str(scripts.folder / "site") in ended.stdout
