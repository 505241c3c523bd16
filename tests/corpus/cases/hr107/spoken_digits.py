import os
import tempfile

import numpy as np
from torch.utils.data import DataLoader, Dataset, Subset


class SpokenDigits(Dataset):
    def __init__(self, root):
        self.items = []
        for number, name in enumerate(sorted(os.listdir(root))):
            folder = os.path.join(root, name)
            if not os.path.isdir(folder):
                continue
            for file in sorted(os.listdir(folder)):
                self.items.append((os.path.join(folder, file), number))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        path, number = self.items[index]
        return {"wave": np.load(path), "label": number}


def make_loader():
    root = tempfile.mkdtemp()
    rng = np.random.default_rng(1)
    for name in ("one", "two", "zero"):
        os.makedirs(os.path.join(root, name))
        for number in range(7):
            np.save(os.path.join(root, name, f"{number}.npy"), rng.normal(size=400).astype(np.float32))
    with open(os.path.join(root, "README.md"), "w") as file:
        file.write("Recorded with a cheap microphone.\n")
    digits = SpokenDigits(root)
    return DataLoader(Subset(digits, range(0, len(digits), 1)), batch_size=7, shuffle=True)
