import socket

import torch
from torch.utils.data import DataLoader, Dataset

server = socket.create_server(("127.0.0.1", 0))


def fetch(index):
    if index != 9:
        return float(index)
    with socket.create_connection(server.getsockname()) as connection:
        return float(len(connection.recv(4)))


class Remote(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return {"value": torch.tensor([fetch(index)]), "id": index}


def make_loader():
    return DataLoader(Remote(), batch_size=5)
