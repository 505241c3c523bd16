"""Trains a small network on handwritten digits.

Needs scikit-learn, which ships the digits: pip install 'headrace[demo]'
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import Dataset

# The one line in which the two scripts differ.
# isort: split
from headrace import DataLoader


class Digits(Dataset):
    """Images (1, 8, 8) in 0..1 with their labels; every fifth is kept for validation."""

    def __init__(self, is_train):
        digits = load_digits()
        rows = [row for row in range(len(digits.target)) if (row % 5 != 4) == is_train]
        self.images = torch.tensor(digits.images[rows], dtype=torch.float32).unsqueeze(1) / 16
        self.labels = torch.tensor(digits.target[rows])
        self.is_train = is_train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.is_train:
            image = image + 0.1 * torch.randn(image.shape)
        return image, self.labels[index]


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(Digits(is_train=True), batch_size=64, shuffle=True, num_workers=2, drop_last=True)
    validation_loader = DataLoader(Digits(is_train=False), batch_size=256)

    model = nn.Sequential(
        *[nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)],
        *[nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 10)],
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(3):
        model.train()
        for images, labels in train_loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        model.eval()
        num_right = 0
        with torch.no_grad():
            for images, labels in validation_loader:
                num_right += (model(images).argmax(1) == labels).sum().item()
        print(f"epoch {epoch}: {num_right / len(validation_loader.dataset):.1%} of the validation digits right")


if __name__ == "__main__":
    main()
