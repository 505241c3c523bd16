import torch
from torch.utils.data import DataLoader, Dataset

NAMES = ["Ada", "Grace", "Linus", "Barbara", "Ken", "Margaret", "Dennis", "Frances", "Alan", "Radia"] * 3


class Names(Dataset):
    def __len__(self):
        return len(NAMES)

    def __getitem__(self, index):
        if index >= len(NAMES):
            raise IndexError(index)
        return {"letters": torch.tensor([ord(letter) - 65 for letter in NAMES[index]]), "label": index % 2}


def make_loader():
    return DataLoader(Names(), batch_size=5, shuffle=True)
