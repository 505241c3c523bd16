"""An evaluation by torchmetrics' metrics over batches that are not equal: what the loop finds, and what it is by hand.

torchrun --nproc-per-node 2 -m tests.loop.measured_by_torchmetrics FOLDER    prints what each rank found
"""

import json
import sys

import numpy as np
import torch
import torchmetrics
from tests.loop.sensitive import own_loader, sample
from torch import nn
from torch.nn.functional import cross_entropy
from torchmetrics.classification import (
    BinaryAUROC,
    MulticlassAccuracy,
    MulticlassPrecision,
    MulticlassRecall,
)

import headrace as hr

ROWS = range(40, 53)


def made_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 2))


def made_metrics():
    """A sum over samples, a weighted mean, one with lists of all scores, one of each class, and several together."""
    return {
        "accuracy": MulticlassAccuracy(num_classes=2, average="micro"),
        "mean_loss": torchmetrics.MeanMetric(),
        "auroc": BinaryAUROC(),
        "of_class": MulticlassAccuracy(num_classes=2, average=None),
        "both": torchmetrics.MetricCollection(
            {
                "precision": MulticlassPrecision(num_classes=2, average="macro"),
                "recall": MulticlassRecall(num_classes=2, average="macro"),
            }
        ),
    }


def measure_with(net, metrics):
    def measure(batch):
        scores, y = net(batch["x"]), batch["y"]
        loss = cross_entropy(scores, y, reduction="none")
        real = torch.from_numpy(~batch.info.is_pad)
        for name, values in {
            "accuracy": (scores[real], y[real]),
            "mean_loss": (loss[real],),
            "auroc": (scores[real].softmax(1)[:, 1], y[real]),
            "of_class": (scores[real], y[real]),
            "both": (scores[real], y[real]),
        }.items():
            if len(values[0]):
                metrics[name].update(*values)
        return {"loss": loss}

    return measure


def by_hand(net):
    """The same numbers over all rows at once, by definition."""
    rows = [sample(row) for row in ROWS]
    x, y = torch.tensor(np.stack([one["x"] for one in rows])), np.array([one["y"] for one in rows])
    was = net.training
    net.eval()
    with torch.no_grad():
        scores = net(x)
    net.train(was)
    loss = cross_entropy(scores, torch.tensor(y), reduction="none").double().mean().item()
    guess, first = scores.argmax(1).numpy(), scores.softmax(1)[:, 1].double().numpy()
    pairs = first[y == 1][:, None] - first[y == 0][None, :]
    recall = [float((guess[y == label] == label).mean()) for label in (0, 1)]
    precision = [float((y[guess == label] == label).mean()) if (guess == label).any() else 0.0 for label in (0, 1)]
    return {
        "loss": loss,
        "accuracy": float((guess == y).mean()),
        "mean_loss": loss,
        "auroc": float(((pairs > 0) + 0.5 * (pairs == 0)).mean()),
        "of_class/0": recall[0],
        "of_class/1": recall[1],
        "both/precision": sum(precision) / 2,
        "both/recall": sum(recall) / 2,
    }


def made_loop(folder, *, net=None, metrics=None, train=None, evaluates=True, **more):
    net = made_net() if net is None else net
    metrics = made_metrics() if metrics is None else metrics
    rank, world = more.pop("ranks", (0, 1))
    rest = hr.DataLoader(
        hr.Plan.of(ROWS).map(sample), 8, tail="pad" if world > 1 else "partial", rank=rank, world_size=world
    )
    return hr.Loop(
        net,
        torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
        **{
            "train": own_loader() if train is None else train,
            "epochs": 2,
            "folder": folder,
            "evaluate": rest if evaluates else None,
            "measure": measure_with(net, metrics) if evaluates else None,
            "metrics": metrics if evaluates else None,
            "sanity": False,
            "every_s": None,
            **more,
        },
    )


def body(net, step):
    return cross_entropy(net(step.batch["x"]), step.batch["y"])


def main():
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    ranks = dist.get_rank(), dist.get_world_size()
    net = made_net()
    wrapped = DistributedDataParallel(net)
    train = hr.DataLoader(
        hr.Plan.of(range(40)).map(sample), 8, shuffle=True, seed=3, tail="drop", rank=ranks[0], world_size=ranks[1]
    )
    loop = made_loop(sys.argv[1], net=wrapped, train=train, ranks=ranks, epochs=1)
    for step in loop:
        step.update(body(wrapped, step))
    loop.close()
    said = [loop.history[-1], by_hand(net)]
    held = [None] * ranks[1]
    dist.all_gather_object(held, said)
    if ranks[0] == 0:
        print(json.dumps(held))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
