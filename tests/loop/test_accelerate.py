"""Under Accelerate: what it wraps is looked into, and a run that is cut goes on to the last bit."""

import pytest
import torch
from tests.loop.sensitive import sample, shake
from torch import nn

import headrace as hr

accelerate = pytest.importorskip("accelerate")


def train(folder, *, cut=None, seed=0):
    torch.manual_seed(seed)
    accelerator = accelerate.Accelerator(cpu=True)
    net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    net, optimizer, scheduler = accelerator.prepare(net, optimizer, scheduler)
    loader = hr.DataLoader(hr.Plan.of(range(24)).map(sample).map(shake), 4, shuffle=True, seed=1)
    losses = {}
    with hr.Checkpointer(
        folder, model=net, optimizer=optimizer, scheduler=scheduler, loader=loader, every=2, every_s=None
    ) as checkpoint:
        for _ in checkpoint.epochs(3):
            for batch in checkpoint.batches():
                loss = nn.functional.cross_entropy(net(batch["x"]), batch["y"])
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                checkpoint.step()
                losses[checkpoint.steps] = loss.item().hex()
                if checkpoint.steps == cut:
                    return losses
    return losses


@pytest.mark.parametrize("cut", [3, 6, 13])
def test_a_run_that_is_cut_goes_on_to_the_last_bit(tmp_path, cut):
    golden = train(tmp_path / "golden")
    first = train(tmp_path / "run", cut=cut)
    rest = train(tmp_path / "run", seed=9)

    assert {**first, **rest} == golden
    assert min(rest) == cut // 2 * 2 + 1
