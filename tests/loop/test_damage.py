"""Files that are cut short, changed, missing or full: refused or passed over by name, never read by half."""

import gc
import itertools
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import warnings

import msgspec
import pytest
import torch
from tests.loop.sensitive import Run, whole

import headrace as hr
from headrace.errors import CheckpointError, CheckpointWarning, DamagedCheckpoint, StateMismatch
from headrace.loop.checkpoint import Promise, files

ROOT = pathlib.Path(__file__).parents[2]


def trained(folder, num=6, **more):
    """A run with checkpoints of steps 1, 2, 3, and its records."""
    run = Run(folder, every=1, keep=3, **more)
    steps = run.micro_steps()
    records = list(itertools.islice(steps, num))
    run.checkpoint.close()
    return records


def cut_short(path):
    os.truncate(path, path.stat().st_size - 1)


def emptied(path):
    os.truncate(path, 0)


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def deleted(path):
    path.unlink()


DAMAGES = {"cut short": cut_short, "emptied": emptied, "flipped": flipped, "deleted": deleted}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "run"
    trained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    import shutil

    return shutil.copytree(saved, tmp_path / "run")


NAMES = [
    "manifest.json",
    "manifest.sha256",
    "state.json",
    "model.safetensors",
    "optimizer.safetensors",
    "rank-0.json",
    "rank-0.safetensors",
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_newest_is_passed_over_by_name(folder, name, damage):
    DAMAGES[damage](folder / "step-000000003" / name)
    run = Run(folder, seed=99)
    with pytest.warns(CheckpointWarning, match="step-000000003 is passed over: "):
        restored = run.checkpoint.restore()
    run.checkpoint.close()

    assert restored.step == 2
    assert name in restored.refused[0]


def test_the_run_goes_on_exactly_from_the_one_before(folder, tmp_path):
    golden = {one["place"]: one for one in whole(tmp_path / "golden")}
    flipped(folder / "step-000000003" / "model.safetensors")
    run = Run(folder, seed=99)
    with pytest.warns(CheckpointWarning):
        records = list(run.micro_steps())
    run.checkpoint.close()

    assert records[0]["place"] == (0, 5)
    assert all(golden[one["place"]] == one for one in records)


def test_if_none_is_good_nothing_is_begun_anew(folder):
    for path in folder.glob("step-*"):
        cut_short(path / "state.json")
    run = Run(folder, seed=99)
    before = run.record(0, 0, torch.zeros(()), torch.zeros(()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        with pytest.raises(CheckpointError, match=r"none of the 3 checkpoints in .* can be read") as caught:
            run.checkpoint.restore()
    run.checkpoint.close()

    assert "mv " in str(caught.value)
    assert run.record(0, 0, torch.zeros(()), torch.zeros(())) == before, "nothing was half loaded"


def test_a_file_outside_of_the_folder_is_refused(folder):
    place = folder / "step-000000003"
    manifest = files.read_manifest(place)
    outside = msgspec.structs.replace(manifest.files[0], name="../../secret")
    files.write_manifest(place, msgspec.structs.replace(manifest, files=(outside,)))
    with pytest.raises(DamagedCheckpoint, match="names a file outside its folder"):
        files.check(place, files.read_manifest(place))


def test_another_format_is_named(folder):
    place = folder / "step-000000003"
    files.write_manifest(place, msgspec.structs.replace(files.read_manifest(place), format="headrace-checkpoint-9"))
    run = Run(folder)
    with pytest.raises(CheckpointError, match="has format 'headrace-checkpoint-9'; this version of headrace reads"):
        run.checkpoint.restore(place)
    run.checkpoint.close()


def test_another_model_is_refused_and_named(folder):
    run = Run(folder)
    run.net.body.append(torch.nn.Linear(2, 2))
    with pytest.raises(StateMismatch, match=r"with new 'net.body.5.weight', 'net.body.5.bias'"):
        run.checkpoint.restore()
    run.checkpoint.close()


def test_another_shape_is_refused_and_named(folder):
    run = Run(folder)
    run.net.body[0] = torch.nn.Linear(6, 9)
    with pytest.raises(StateMismatch, match=r"'net.body.0.weight' was saved with shape \(8, 6\) and has \(9, 6\) here"):
        run.checkpoint.restore()
    run.checkpoint.close()


def test_another_data_set_is_refused(folder, monkeypatch):
    from tests.loop import sensitive

    monkeypatch.setattr(sensitive, "NUM_SAMPLES", 24)
    run = Run(folder)
    with pytest.raises(StateMismatch, match="num_samples"):
        run.checkpoint.restore()
    run.checkpoint.close()


def test_two_processes_do_not_write_to_one_folder(tmp_path):
    first = Run(tmp_path)
    with pytest.raises(CheckpointError, match=f"another process .pid {os.getpid()}. writes checkpoints to"):
        Run(tmp_path)
    first.checkpoint.close()
    Run(tmp_path).checkpoint.close()


@pytest.fixture
def full_disk():
    """A file may have a hundred bytes: what a full disk does, for a process that may not mount one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_no_room_is_told_and_what_was_saved_stays(folder, request):
    run = Run(folder)
    run.checkpoint.restore()
    request.getfixturevalue("full_disk")
    before = sorted(folder.iterdir())
    with pytest.raises(CheckpointError, match="could not be written to") as caught:
        run.checkpoint.save()
    run.checkpoint.close()

    assert "the newest one is of step 3" in str(caught.value)
    assert sorted(folder.iterdir()) == before, "nothing of it is left"


def test_in_the_background_no_room_is_a_warning_and_training_goes_on(folder, request):
    run = Run(folder, background=True)
    run.checkpoint.restore()
    request.getfixturevalue("full_disk")
    run.checkpoint.save()
    run.checkpoint._writer.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    with pytest.warns(CheckpointWarning, match="could not be written"):
        run.checkpoint.save()
    run.checkpoint.close()

    assert run.checkpoint.saved is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk takes root")
def test_a_disk_that_is_really_full(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no right to mount here")
    try:
        run, saved = Run(small / "run", keep=9), []
        steps = run.micro_steps()
        with pytest.raises(CheckpointError, match="No space left on device") as caught:
            for record in steps:
                if record["place"][1] in {2, 4, 6, 8}:
                    run.checkpoint.save()
                    saved.append(run.checkpoint.steps)
        run.checkpoint.close()
        assert f"the newest one is of step {saved[-1]}" in str(caught.value)
        again = Run(small / "run")
        assert again.checkpoint.restore().step == saved[-1]
        again.checkpoint.close()
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)


@pytest.mark.parametrize("which", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_saves_at_the_next_step(tmp_path, which):
    before = signal.getsignal(signal.SIGUSR1)
    run = Run(tmp_path, signals=(signal.SIGUSR1, signal.SIGTERM))
    ended = []
    handler, _ = run.checkpoint._signals._held[signal.SIGTERM]
    run.checkpoint._signals._held[signal.SIGTERM] = handler, lambda *_: ended.append(True)
    for record in run.micro_steps():
        if record["place"] == (0, 3):
            os.kill(os.getpid(), which)
            assert not list(tmp_path.glob("step-*")), "not between two micro-steps"
        if record["place"] == (0, 4):
            assert [path.name for path in tmp_path.glob("step-*")] == ["step-000000002"]
            break
    run.checkpoint.close()

    assert files.read_manifest(tmp_path / "step-000000002").reason == which.name
    assert ended == ([True] if which is signal.SIGTERM else [])
    assert signal.getsignal(signal.SIGUSR1) is before


def test_a_run_that_was_given_up_swallows_no_signal(tmp_path):
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(True))
    try:
        for number in range(3):  # a cell of a notebook, run three times, and never closed
            Run(tmp_path / str(number), signals=(signal.SIGUSR1,))
        gc.collect()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert heard == [True]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_in_a_thread_no_signal_is_caught(tmp_path):
    made, before = [], signal.getsignal(signal.SIGUSR1)
    thread = threading.Thread(target=lambda: made.append(Run(tmp_path, signals=(signal.SIGUSR1,))))
    thread.start()
    thread.join()

    made[0].checkpoint.close()
    assert signal.getsignal(signal.SIGUSR1) is before


def test_sigterm_ends_the_process_as_sigterm_does(tmp_path):
    code = (
        "import os, signal; from tests.loop.sensitive import Run\n"
        f"run = Run({str(tmp_path / 'run')!r}, signals=(signal.SIGTERM,))\n"
        "for record in run.micro_steps():\n"
        "    if record['place'] == (0, 3): os.kill(os.getpid(), signal.SIGTERM)\n"
        "    assert record['place'] != (0, 5)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )

    assert done.returncode == -signal.SIGTERM, done.stderr
    assert files.read_manifest(tmp_path / "run" / "step-000000002").step == 2


def test_the_best_one_is_kept_and_found(tmp_path):
    run = Run(tmp_path, best="max", keep=1)
    metrics = iter([0.1, 0.9, float("nan"), 0.5, 0.3])
    for _ in itertools.islice((record for record in run.micro_steps() if record["place"][1] in {2, 4, 6, 8}), 4):
        run.checkpoint.save(metric=next(metrics))
    run.checkpoint.close()

    assert run.checkpoint.best_metric == 0.9
    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-000000002", "step-000000004"]
    again = Run(tmp_path, best="max")
    assert again.checkpoint.restore("best").step == 2
    again.checkpoint.close()


def test_saving_disturbs_nothing(tmp_path):
    assert whole(tmp_path / "often", every=1, background=True) == whole(tmp_path / "never")


def test_a_resume_of_a_resume_and_the_same_one_twice(tmp_path):
    golden = {one["place"]: one for one in whole(tmp_path / "golden")}
    records = []
    for num in (3, 4, 5, 6):
        run = Run(tmp_path / "run", seed=num if records else 0, every=1)
        records += itertools.islice(run.micro_steps(), num)
        run.checkpoint.close()
    assert all(golden[one["place"]] == one for one in records)
    ends = []
    for _ in range(2):
        run = Run(tmp_path / "run", seed=99, every=None)
        ends.append(list(itertools.islice(run.micro_steps(), 5)))
        run.checkpoint.close()
    assert ends[0] == ends[1]


def test_threads_of_another_number_are_told(folder):
    threads = torch.get_num_threads()
    run = Run(folder)
    try:
        torch.set_num_threads(threads + 1)
        restored = run.checkpoint.restore()
    finally:
        torch.set_num_threads(threads)
    run.checkpoint.close()

    assert restored.promise is Promise.DATA_EXACT
    assert restored.differs == (f"threads: {threads} when saved, {threads + 1} here",)


def test_what_cannot_be_brought_back_is_told(tmp_path):
    trained(tmp_path, loader="torch")
    run = Run(tmp_path, loader="torch", loader_args={"num_workers": 1})
    restored = run.checkpoint.restore()
    run.checkpoint.close()

    assert restored.promise is Promise.CLOSE
    assert restored.lost == (
        "the loader had 0 workers and has 1: same samples in the same order, other random draws in them",
    )


def test_a_step_without_its_batches_is_refused(tmp_path):
    run = Run(tmp_path)
    with pytest.raises(hr.errors.ConfigurationError, match=r"outside of `for batch in checkpoint\.batches"):
        for _ in run.loader:
            run.checkpoint.step()
    run.checkpoint.close()


def test_an_optimizer_of_another_model_is_refused(tmp_path):
    net, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    with pytest.raises(
        hr.errors.ConfigurationError, match=r"trains a parameter of shape \(2, 2\) .group 0. that is in none"
    ):
        hr.Checkpointer(tmp_path, model=net, optimizer=torch.optim.SGD(other.parameters(), 0.1))
    Run(tmp_path).checkpoint.close()


def test_an_iterator_is_no_loader(tmp_path):
    with pytest.raises(hr.errors.ConfigurationError, match="list_iterator is an iterator: it ends once"):
        hr.Checkpointer(tmp_path, model=torch.nn.Linear(2, 2), loader=iter([1]))


@pytest.mark.parametrize("background", [True, False])
def test_a_state_that_is_no_data_is_refused_at_once_by_its_path(tmp_path, background):
    run = Run(tmp_path, background=background)
    run.history["model"] = run.net
    with pytest.raises(CheckpointError, match=r"values\['history'\]\['model'\] is of type tests.loop.sensitive.Net"):
        run.checkpoint.save()
    run.checkpoint.close()
    assert not list(tmp_path.glob("step-*"))
