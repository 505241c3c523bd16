import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset


def make_loader():
    data = TensorDataset(torch.linspace(0, 1, 303).reshape(101, 3))
    rank = dist.get_rank() if dist.is_initialized() else 0
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    mine = Subset(data, range(rank, len(data), ranks))
    return DataLoader(mine, batch_size=10, shuffle=True)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        for (values,) in make_loader():
            optimizer.zero_grad()
            model(values).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
