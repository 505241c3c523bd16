"""Sequence to sequence with padded sources and targets and a mask made from a reserved pad id."""
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD, BOS, EOS = 0, 1, 2


class Pairs(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        source = torch.randint(3, 50, (5 + index % 7,), generator=g)
        return source, torch.cat([torch.tensor([BOS]), source.flip(0), torch.tensor([EOS])])


def collate(batch):
    sources, targets = zip(*batch)
    src = pad_sequence(sources, batch_first=True, padding_value=PAD)
    tgt = pad_sequence(targets, batch_first=True, padding_value=PAD)
    return src, tgt, src == PAD, tgt == PAD


def make_loader():
    return DataLoader(Pairs(), batch_size=16, shuffle=True, collate_fn=collate, num_workers=2, pin_memory=True)
