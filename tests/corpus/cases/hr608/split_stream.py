import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Pages(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        for page in range(rank * workers + worker, self.count, ranks * workers):
            yield {"tokens": torch.full((12,), page), "page": page}


def make_loader():
    return DataLoader(Pages(160), batch_size=8)


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Embedding(160, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for batch in make_loader():
        optimizer.zero_grad()
        model(batch["tokens"]).sum().backward()
        optimizer.step()
