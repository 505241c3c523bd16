import argparse
import pathlib
import tempfile

import torch
import torchvision.datasets as datasets
import torchvision.models as models
import torchvision.transforms as transforms
from shapes import make_folder
from torch import nn
from torch.optim.lr_scheduler import StepLR

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", default=3, type=int)
parser.add_argument("-b", "--batch-size", default=16, type=int)
parser.add_argument("-j", "--workers", default=2, type=int)
parser.add_argument("--dummy", action="store_true")


def make_loaders(dummy=False, batch_size=16, workers=2):
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    if dummy:
        train_dataset = datasets.FakeData(96, (3, 64, 64), 4, transforms.ToTensor())
        val_dataset = datasets.FakeData(48, (3, 64, 64), 4, transforms.ToTensor())
    else:
        root = make_folder()
        train_dataset = datasets.ImageFolder(
            root / "train",
            transforms.Compose(
                [
                    transforms.RandomResizedCrop(64),
                    transforms.RandomHorizontalFlip(),
                    transforms.ToTensor(),
                    normalize,
                ]
            ),
        )
        val_dataset = datasets.ImageFolder(
            root / "val",
            transforms.Compose([transforms.Resize(72), transforms.CenterCrop(64), transforms.ToTensor(), normalize]),
        )
    train_loader = torch.utils.data.DataLoader(
        train_dataset, batch_size=batch_size, shuffle=True, num_workers=workers, pin_memory=True
    )
    val_loader = torch.utils.data.DataLoader(
        val_dataset, batch_size=batch_size, shuffle=False, num_workers=workers, pin_memory=True
    )
    return train_loader, val_loader


def make_dummy_loaders():
    return make_loaders(dummy=True)


def main():
    args = parser.parse_args()
    model = models.resnet18(num_classes=4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    train_loader, val_loader = make_loaders(args.dummy, args.batch_size, args.workers)
    best_acc1 = 0
    model.train()
    checkpoints = pathlib.Path(tempfile.mkdtemp())
    for epoch in range(args.epochs):
        train(train_loader, model, criterion, optimizer, epoch)
        acc1 = validate(val_loader, model, criterion)
        scheduler.step()
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        state = {
            "epoch": epoch + 1,
            "arch": "resnet18",
            "state_dict": model.state_dict(),
            "best_acc1": best_acc1,
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }
        torch.save(state, checkpoints / "checkpoint.pth.tar")
        if is_best:
            (checkpoints / "model_best.pth.tar").write_bytes((checkpoints / "checkpoint.pth.tar").read_bytes())


def train(train_loader, model, criterion, optimizer, epoch):
    for i, (images, target) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"Epoch: [{epoch}][{i}/{len(train_loader)}] Loss {loss.item():.4f}")


def validate(val_loader, model, criterion):
    correct = count = 0
    model.eval()
    with torch.no_grad():
        for images, target in val_loader:
            output = model(images)
            criterion(output, target)
            correct += (output.argmax(1) == target).sum().item()
            count += len(target)
    print(f" * Acc@1 {100 * correct / count:.3f}")
    return correct / count


if __name__ == "__main__":
    main()
