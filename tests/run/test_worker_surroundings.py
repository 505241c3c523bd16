"""What a worker loads, how many threads it computes with, and what it leaves as it found it. Each test runs a program."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

START_METHODS = ["fork", "forkserver", "spawn"]
PATIENCE_S = 100


@pytest.fixture
def run(tmp_path):
    """Runs a program, strict about warnings, and returns what it printed; `variables` come on top of none of threads."""

    def run(body, *args, **variables):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
        clean = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        done = subprocess.run(
            [sys.executable, "-W", "error", script, *args],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={**clean, **variables},
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


HEAD = """
    import os, sys
    import numpy as np
    import headrace as hr

    method = sys.argv[1]

    class Dataset:
        def __init__(self, paths=()):
            self.paths = paths
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return {"x": np.full(3, index, np.float32), "y": index, "name": "a", "said": self.say()}
        def say(self):
            return 0
"""


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_worker_loads_no_torch_unless_the_data_set_does(run, method):
    said = run(
        """
        class Says(Dataset):
            def say(self):
                heavy = ("torch", "psutil", "typer", "rich", "msgspec", "scipy")
                return " ".join(name for name in heavy if name in sys.modules) or "none"

        if __name__ == "__main__":
            loader = hr.DataLoader(Says(), batch_size=4, num_workers=2, multiprocessing_context=method)
            here = list(hr.DataLoader(Dataset(), batch_size=4))
            for batch, twin in zip(loader, here, strict=True):
                print(*batch["said"])
                for name in ("x", "y"):
                    assert type(batch[name]) is type(twin[name]) and batch[name].equal(twin[name])
                    assert batch[name].dtype == twin[name].dtype and batch[name].stride() == twin[name].stride()
                assert batch["name"] == twin["name"] and type(batch) is type(twin)
        """,
        method,
    )
    assert said == ["none none none none"] * 2


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_samples_that_need_torch_get_it(run, method):
    said = run(
        """
        class Mixed(Dataset):
            def __getitem__(self, index):
                return np.ones((2, 3, 4)).transpose(2, 0, 1), index if index % 2 else float(index)

        if __name__ == "__main__":
            loader = hr.DataLoader(Mixed(), batch_size=4, num_workers=1, multiprocessing_context=method)
            for batch, twin in zip(loader, hr.DataLoader(Mixed(), batch_size=4), strict=True):
                print(all(a.equal(b) and a.stride() == b.stride() for a, b in zip(batch, twin)))
        """,
        method,
    )
    assert said == ["True", "True"]


THREADS = """
    import threadpoolctl

    class Says(Dataset):
        def say(self):
            counts = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
            torch = sys.modules.get("torch")
            return f"{counts} {torch and torch.get_num_threads()} {os.environ.get('OPENCV_FOR_THREADS_NUM')}"

    def three(worker):
        import torch
        torch.set_num_threads(3)
        threadpoolctl.threadpool_limits(3)

    if __name__ == "__main__":
        init = three if "init" in sys.argv else None
        loader = hr.DataLoader(
            Says(), batch_size=4, num_workers=1, multiprocessing_context=method, worker_init_fn=init
        )
        print(next(iter(loader))["said"][0])
"""


@pytest.mark.parametrize("method", START_METHODS)
def test_a_worker_computes_by_one_thread(run, method):
    assert run(THREADS, method) == [f"[1] {1 if method == 'fork' else None} 1"]


@pytest.mark.parametrize("method", START_METHODS)
def test_what_worker_init_fn_says_of_threads_holds(run, method):
    assert run(THREADS, method, "init")[0].split()[1] == "3"


def test_what_the_environment_says_of_threads_holds(run):
    assert run(THREADS, "fork", OPENBLAS_NUM_THREADS="2", OPENCV_FOR_THREADS_NUM="5") == ["[2] 1 5"]


def test_opencv_is_told_where_it_is_loaded(run):
    said = run(
        """
        import types
        sys.modules["cv2"] = types.SimpleNamespace(setNumThreads=lambda number: sys.modules.update(told=number))

        class Says(Dataset):
            def say(self):
                return sys.modules["told"]

        if __name__ == "__main__":
            print(next(iter(hr.DataLoader(Says(), batch_size=4, num_workers=1)))["said"].tolist())
        """,
        "fork",
    )
    assert said == ["[1, 1, 1, 1]"]


@pytest.mark.parametrize("of_its_own", [(), ("json",)])
def test_the_fork_server_knows_our_modules_and_no_list_of_the_program_is_changed(run, of_its_own):
    said = run(
        """
        import multiprocessing, multiprocessing.forkserver as server

        class Says(Dataset):
            def __init__(self):
                self.known = 0
            def __setstate__(self, state):
                self.known = "headrace.engine.run.pool" in at_start
            def say(self):
                return self.known

        at_start = set(sys.modules)
        if __name__ == "__main__":
            if sys.argv[2:]:
                multiprocessing.set_forkserver_preload(sys.argv[2:])
            next(iter(hr.DataLoader(Says(), batch_size=4, num_workers=1, multiprocessing_context=method)))
            print(server._forkserver._preload_modules)
        """,
        "forkserver",
        *of_its_own,
    )
    assert said == [repr(list(of_its_own or ["__main__"]))]


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_workers_share_large_parts_and_the_parent_keeps_no_file(run, method):
    said = run(
        """
        from pathlib import Path

        class Says(Dataset):
            def say(self):
                rows = Path("/proc/self/maps").read_text().splitlines()
                return " ".join({row.split()[4] for row in rows if "headrace-parcel" in row})

        if __name__ == "__main__":
            data = Says([np.arange(100_000), hr.Manifest(f"path {k}" for k in range(10_000))])
            loader = hr.DataLoader(
                data, batch_size=4, num_workers=2, multiprocessing_context=method, persistent_workers=True
            )
            batches = list(loader)
            print(len({said for batch in batches for said in batch["said"]}), all(batches[0]["said"]))
            files = [str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in os.listdir("/proc/self/fd") if Path(f"/proc/self/fd/{fd}").is_symlink()]
            print([name for name in files if "headrace-parcel" in name])
        """,
        method,
    )
    assert said == ["1 True", "[]"]


@pytest.mark.parametrize("method", START_METHODS)
def test_a_stream_that_imports_torch_late_still_finds_its_share(run, method):
    said = run(
        """
        class Stream:
            def __iter__(self):
                from torch.utils.data import get_worker_info
                info = get_worker_info()
                return iter(range(info.id, 8, info.num_workers))

        if __name__ == "__main__":
            loader = hr.DataLoader(Stream(), batch_size=2, num_workers=2, multiprocessing_context=method)
            print(sorted(number for batch in loader for number in batch.tolist()))
        """,
        method,
    )
    assert said == ["[0, 1, 2, 3, 4, 5, 6, 7]"]


@pytest.mark.parametrize("method", START_METHODS)
def test_draws_of_a_data_set_that_imports_torch_late_follow_from_the_seed(run, method):
    said = run(
        """
        class Draws(Dataset):
            def __getitem__(self, index):
                if index == 0:
                    return np.zeros(1, np.float32)
                import torch
                return torch.rand(1).numpy()

        if __name__ == "__main__":
            options = {"batch_size": 4, "seed": 7}
            there = hr.DataLoader(Draws(), num_workers=2, multiprocessing_context=method, **options)
            print(all(a.equal(b) for a, b in zip(there, hr.DataLoader(Draws(), **options), strict=True)))
        """,
        method,
    )
    assert said == ["True"]
