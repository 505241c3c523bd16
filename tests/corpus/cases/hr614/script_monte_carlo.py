import statistics

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

# How much does the score depend on the split? Each split trains from the same first weights.
REPEATS = 4


def main():
    digits = load_digits()
    dataset = TensorDataset(
        torch.tensor(digits.images, dtype=torch.float32)[:600] / 16, torch.tensor(digits.target)[:600]
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    first = {name: value.clone() for name, value in model.state_dict().items()}
    scores = []
    for _ in range(REPEATS):
        model.load_state_dict(first)
        optimizer = optim.Adam(model.parameters(), lr=2e-3)
        train_set, test_set = random_split(dataset, [480, 120])
        model.train()
        for images, labels in DataLoader(train_set, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test_set, batch_size=60))
        scores.append(right / len(test_set))
    print(f"{statistics.mean(scores):.3f} +- {statistics.stdev(scores):.3f}")


if __name__ == "__main__":
    main()
