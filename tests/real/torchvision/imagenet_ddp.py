import torch
import torchvision.datasets as datasets
import torchvision.transforms as transforms
from shapes import make_folder


def make_loader(rank=0, world_size=2):
    train_dataset = datasets.ImageFolder(
        make_folder() / "train",
        transforms.Compose([transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip(), transforms.ToTensor()]),
    )
    train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset, num_replicas=world_size, rank=rank)
    return torch.utils.data.DataLoader(
        train_dataset, batch_size=8, shuffle=(train_sampler is None), num_workers=2, sampler=train_sampler
    )


def train(model, criterion, optimizer, epochs):
    train_loader = make_loader()
    for epoch in range(epochs):
        for images, target in train_loader:
            loss = criterion(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
