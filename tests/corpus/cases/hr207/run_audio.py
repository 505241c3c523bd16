import argparse

import torch
import torch.distributed as dist
from audio_data import make_loader
from torch.nn.parallel import DistributedDataParallel as DDP


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--num-epochs", type=int, default=5)
    return parser.parse_args()


def main():
    args = parse()
    dist.init_process_group(backend="gloo")
    torch.manual_seed(args.seed)
    model = DDP(torch.nn.Linear(400, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    loader = make_loader()
    for epoch in range(args.num_epochs):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            loss = torch.nn.functional.cross_entropy(model(batch["wave"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
