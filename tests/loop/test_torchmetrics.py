"""torchmetrics' own metrics: the value over all samples, whatever the batches and ranks; no trace in training; kept by checkpoints."""

import itertools
import json
import warnings

import pytest
import torch

torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

from tests.loop.measured_by_torchmetrics import body, by_hand, made_loop, made_metrics, made_net, measure_with  # noqa: E402
from tests.loop.sensitive import digest, own_loader  # noqa: E402
from tests.loop.test_ranks import under_torchrun  # noqa: E402
from torch import nn  # noqa: E402
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix  # noqa: E402

import headrace as hr  # noqa: E402
from headrace.errors import ConfigurationError  # noqa: E402
from headrace.loop.checkpoint import Promise  # noqa: E402


def close_to(expected):
    return {name: pytest.approx(value, abs=1e-6) for name, value in expected.items()}


def finished(loop, net):
    digests = []
    for step in loop:
        step.update(body(net, step))
        digests.append(digest([net.state_dict(), torch.get_rng_state()]))
    loop.close()
    return digests


def test_each_is_the_value_over_all_samples_though_the_last_batch_is_smaller(tmp_path):
    net = made_net()
    loop = made_loop(tmp_path, net=net)
    finished(loop, net)
    assert loop.history[-1] == close_to(by_hand(net))
    rows = map(json.loads, (tmp_path / "history.jsonl").read_text(encoding="utf-8").splitlines())
    logged = [row for row in rows if "evaluation/accuracy" in row]
    assert [row["evaluation/both/recall"] for row in logged] == [one["both/recall"] for one in loop.history]


def test_a_collection_alone_is_metrics_by_name(tmp_path):
    net = made_net()
    together = made_metrics()["both"]
    loop = made_loop(tmp_path, net=net, metrics={**made_metrics(), "both": together})
    values = loop.evaluate(measure_with(net, {**made_metrics(), "both": together}), metrics=together)
    loop.close()
    expected = by_hand(net)
    assert values == close_to(
        {"loss": expected["loss"], "precision": expected["both/precision"], "recall": expected["both/recall"]}
    )


@pytest.mark.slow
def test_under_two_ranks_with_samples_repeated_to_fill_up_each_counts_once(tmp_path):
    held = json.loads(under_torchrun(2, "tests.loop.measured_by_torchmetrics", tmp_path).stdout)
    (found, expected), (found_by_the_other, _) = held  # models of ranks evaluate with the buffers of rank 0
    assert found == found_by_the_other
    assert found == close_to(expected)


def test_the_training_does_not_know_of_them(tmp_path):
    nets = made_net(), made_net()
    torch.manual_seed(1)
    with_them = finished(made_loop(tmp_path / "with", net=nets[0]), nets[0])
    torch.manual_seed(1)
    without = finished(made_loop(tmp_path / "without", net=nets[1], evaluates=False), nets[1])
    assert with_them == without


def test_a_run_that_goes_on_evaluates_the_same(tmp_path):
    net = made_net()
    torch.manual_seed(1)
    whole = made_loop(tmp_path / "whole", net=net)
    finished(whole, net)

    net = made_net()
    torch.manual_seed(1)
    cut = made_loop(tmp_path / "cut", net=net, every=1)
    for step in itertools.islice(cut, 5):
        step.update(body(net, step))
    cut.close()
    net = made_net()
    again = made_loop(tmp_path / "cut", net=net, every=1)
    finished(again, net)
    assert again.restored.promise is Promise.BIT_EXACT
    assert again.history == whole.history


def test_what_is_no_number_is_refused_by_name(tmp_path):
    net, confusion = made_net(), MulticlassConfusionMatrix(num_classes=2)
    loop = made_loop(tmp_path, net=net)
    with pytest.raises(
        ConfigurationError, match=r"^metric 'confusion' computes a Tensor of shape \(2, 2\), which is no"
    ):
        loop.evaluate(
            lambda batch: confusion.update(net(batch["x"]), batch["y"]),
            metrics={"confusion": confusion},
        )
    loop.close()


# Metrics of the training itself, that count from checkpoint to checkpoint.


class Counting(nn.Module):
    """A module with a metric in it, as Lightning's modules have them."""

    def __init__(self):
        super().__init__()
        self.net = made_net()
        self.seen = MulticlassAccuracy(num_classes=2, average="micro")

    def forward(self, x):
        return self.net(x)


def running():
    """Metrics of a training by name: sums, a mean, lists, several that share what they count."""
    made = made_metrics()
    return {name: made[name] for name in ("accuracy", "mean_loss", "auroc", "both")}


def trained(folder, most=None):
    """What all metrics compute in the end, or where it was left."""
    model, metrics = Counting(), running()
    torch.manual_seed(1)
    loop = hr.Loop(
        model,
        torch.optim.SGD(model.net.parameters(), 0.05),
        train=own_loader(),
        epochs=2,
        folder=folder,
        evaluate=None,
        extra=dict(metrics),
        every=1,
        sanity=False,
    )
    for step in itertools.islice(loop, most):
        scores, y = model(step.batch["x"]), step.batch["y"]
        loss = nn.functional.cross_entropy(scores, y)
        model.seen.update(scores, y)
        for name, values in {
            "accuracy": (scores, y),
            "mean_loss": (loss.detach(), len(y)),
            "auroc": (scores.softmax(1)[:, 1], y),
            "both": (scores, y),
        }.items():
            metrics[name].update(*values)
        step.update(loss)
    loop.close()
    found = {name: metric.compute() for name, metric in {**metrics, "seen": model.seen}.items()}
    counts = {name: metric.update_count for name, metric in metrics.items() if name != "both"}
    return digest(found), counts, loop.restored


def test_metrics_that_count_over_the_training_go_on_where_they_were(tmp_path):
    whole, counts, _ = trained(tmp_path / "whole")
    trained(tmp_path / "cut", most=6)
    found, counts_of_both, restored = trained(tmp_path / "cut")
    assert restored.promise is Promise.BIT_EXACT
    assert found == whole
    assert counts_of_both == counts == dict.fromkeys(counts, 16)


def test_trials_of_steps_are_not_counted(tmp_path):
    metric = MulticlassAccuracy(num_classes=2)
    net = nn.Linear(6, 2)
    checkpoint = hr.Checkpointer(tmp_path, model=net, extra={"seen": metric})
    metric.update(torch.eye(2), torch.tensor([0, 0]))
    before = float(metric.compute())
    checkpoint.check(lambda batch: metric(net(batch["x"]), batch["y"]) + metric.compute(), list(own_loader())[:3])
    checkpoint.close()
    assert metric.update_count == 1
    assert float(metric.tp.sum()) == 1
    assert float(metric.compute()) == before


def test_metrics_of_a_collection_of_which_one_alone_is_updated_are_all_kept(tmp_path):
    def made():
        both = torchmetrics.MetricCollection({"a": torchmetrics.MaxMetric(), "b": torchmetrics.MaxMetric()})
        return both, hr.Checkpointer(tmp_path, model=nn.Linear(6, 2), extra={"both": both})

    both, checkpoint = made()
    for value in (1.0, 3.0):
        both.update(value)  # one of a group from the second time on
    checkpoint.save()
    checkpoint.close()
    both, checkpoint = made()
    assert checkpoint.restore(quiet=True).lost == ()
    checkpoint.close()
    both.update(2.0)
    assert {name: float(value) for name, value in both.compute().items()} == {"a": 3.0, "b": 3.0}


def test_a_checkpoint_from_before_a_metric_came_says_that_it_begins_anew(tmp_path):
    first = hr.Checkpointer(tmp_path, model=nn.Linear(6, 2))
    first.save()
    first.close()
    second = hr.Checkpointer(tmp_path, model=nn.Linear(6, 2), extra={"seen": torchmetrics.MeanMetric()})
    restored = second.restore(quiet=True)
    second.close()
    assert restored.promise is Promise.CLOSE
    assert "metrics: not in this checkpoint" in restored.lost


def test_other_ranks_do_not_take_over_what_these_have_counted(tmp_path):
    metric = torchmetrics.MeanMetric()
    metric.update(3.0)
    first = hr.Checkpointer(tmp_path, model=nn.Linear(6, 2), extra={"seen": metric})
    first.save()
    first.close()
    metric = torchmetrics.MeanMetric()
    second = hr.Checkpointer(tmp_path, model=nn.Linear(6, 2), extra={"seen": metric})
    second._ranks.world_size = 2
    restored = second.restore(quiet=True)
    second.close()
    assert restored.promise is Promise.CLOSE
    assert "metrics begin anew: each of 1 ranks had counted its own samples, and there are 2" in restored.lost
    assert metric.update_count == 0


def test_a_run_without_metrics_has_no_part_for_them(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint = hr.Checkpointer(tmp_path, model=nn.Linear(6, 2))
        checkpoint.save(wait=True)
        checkpoint.close()
    (manifest,) = tmp_path.glob("step-*/manifest.json")
    assert "metrics" not in json.loads(manifest.read_text())["parts"]
