"""On a GPU: state goes through the main memory and comes back to the last bit, mixed precision and its scaler included."""

import itertools

import pytest
import torch
from tests.loop.test_loop import Watched, body

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


class OnGpu(Watched):
    def __init__(self, folder, **more):
        # Made on the CPU and moved, so that the same numbers begin there.
        super().__init__(folder, evaluates=False, **more)

    def steps(self):
        for step in self.loop:
            batch = {name: value.cuda() for name, value in step.batch.items()}
            step.update(body(self.net, batch))
            self.note()
            yield step


@pytest.fixture
def deterministic(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def on_gpu(monkeypatch):
    import tests.loop.test_loop as cpu

    made = cpu.parts

    def parts(lr=1e-2):
        net, _, _, _ = made(lr)
        net = net.cuda()
        optimizer = torch.optim.AdamW(net.body.parameters(), lr=lr)
        warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=6)
        return net, optimizer, warm, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)

    monkeypatch.setattr(cpu, "parts", parts)


@pytest.mark.parametrize("precision", ["full", "bf16", "fp16"])
def test_a_cut_on_the_gpu_changes_no_bit(tmp_path, on_gpu, deterministic, precision):
    golden = OnGpu(tmp_path / "golden", precision=precision).finish()
    first = OnGpu(tmp_path / "run", precision=precision)
    list(itertools.islice(first.steps(), 11))
    first.loop.checkpoint.save()
    first.loop.close()
    second = OnGpu(tmp_path / "run", precision=precision, seed=99).finish()

    assert {**first.digests, **second.digests} == golden.digests
