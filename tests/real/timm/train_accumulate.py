from collections import OrderedDict

import timm
import torch
from recipe import make_loaders
from timm import utils
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, lr_scheduler, model_ema):
    losses_m = utils.AverageMeter()
    model.train()
    num_updates = epoch * len(loader)
    optimizer.zero_grad()
    for input, target in loader:
        output = model(input)
        loss = loss_fn(output, target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        num_updates += 1
        model_ema.update(model, step=num_updates)
        losses_m.update(loss.item(), input.size(0))
        lr_scheduler.step_update(num_updates=num_updates, metric=losses_m.avg)
    return OrderedDict([("loss", losses_m.avg)])


def validate(model, loader, loss_fn):
    losses_m, top1_m = utils.AverageMeter(), utils.AverageMeter()
    model.eval()
    with torch.inference_mode():
        for input, target in loader:
            output = model(input)
            acc1, _ = utils.accuracy(output, target, topk=(1, 2))
            losses_m.update(loss_fn(output, target).item(), input.size(0))
            top1_m.update(acc1.item(), output.size(0))
    return OrderedDict([("loss", losses_m.avg), ("top1", top1_m.avg)])


def main():
    utils.random_seed(42, 0)
    loader_train, loader_eval = make_loaders(use_prefetcher=True)
    model = timm.create_model("resnet18", pretrained=False, num_classes=3, drop_rate=0.1)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    model_ema = ModelEmaV3(model, decay=0.99, use_warmup=True)
    lr_scheduler, num_epochs = create_scheduler_v2(optimizer, num_epochs=3, warmup_epochs=1, updates_per_epoch=len(loader_train))
    for epoch in range(3):
        train_metrics = train_one_epoch(
            epoch, model, loader_train, optimizer, LabelSmoothingCrossEntropy(0.1), lr_scheduler, model_ema
        )
        eval_metrics = validate(model, loader_eval, torch.nn.CrossEntropyLoss())
        validate(model_ema, loader_eval, torch.nn.CrossEntropyLoss())
        lr_scheduler.step(epoch + 1, eval_metrics["top1"])
        print(epoch, train_metrics, eval_metrics)


if __name__ == "__main__":
    main()
