"""A whole small training script: accumulation, clipping, schedule, validation, checkpoints with everything in them."""
import argparse
import pathlib
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    model.train()
    return right / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(640, 12)
    data = TensorDataset(x, (x[:, :3].sum(1) > 0).long())
    train_set, val_set = random_split(data, [512, 128])
    train, val = DataLoader(train_set, batch_size=16, shuffle=True), DataLoader(val_set, batch_size=64)
    model = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    folder = pathlib.Path(tempfile.mkdtemp())
    for epoch in range(args.epochs):
        model.train()
        for step, (inputs, targets) in enumerate(train):
            loss = nn.functional.cross_entropy(model(inputs), targets) / 2
            loss.backward()
            if step % 2 == 1:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        schedule.step()
        print(f"epoch {epoch} accuracy {evaluate(model, val):.3f}")
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
                "epoch": epoch,
                "rng": torch.get_rng_state(),
            },
            folder / "last.pt",
        )


if __name__ == "__main__":
    main()
