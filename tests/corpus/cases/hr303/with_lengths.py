import torch
from patients import Patients
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def join(samples):
    histories = [torch.from_numpy(one["history"]) for one in samples]
    sizes = torch.tensor([len(history) for history in histories])
    return pad_sequence(histories), sizes, torch.tensor([one["outcome"] for one in samples])


def make_loader():
    return DataLoader(Patients(), batch_size=5, shuffle=True, collate_fn=join)
