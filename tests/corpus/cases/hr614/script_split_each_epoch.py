import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

EPOCHS = 4


def load():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:600] / 16
    return TensorDataset(images, torch.tensor(digits.target)[:600])


def accuracy(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
    return right / len(loader.dataset)


def main():
    dataset = load()
    n_val = len(dataset) // 5
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    best = 0.0
    for epoch in range(EPOCHS):
        train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val])
        train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
        val_loader = DataLoader(val_set, batch_size=64)
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        acc = accuracy(model, val_loader)
        best = max(best, acc)
        print(f"epoch {epoch}: validation accuracy {acc:.3f}, best {best:.3f}")


if __name__ == "__main__":
    main()
