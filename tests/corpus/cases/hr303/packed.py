import torch
from patients import Patients
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader


def pack(samples):
    histories = [torch.from_numpy(one["history"]) for one in samples]
    return pack_sequence(histories, enforce_sorted=False), torch.tensor([one["outcome"] for one in samples])


def make_loader():
    return DataLoader(Patients(), batch_size=5, shuffle=True, collate_fn=pack)
