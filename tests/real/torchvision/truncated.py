import torch
import torchvision.datasets as datasets
import torchvision.transforms as transforms
from shapes import make_folder


def make_loader():
    root = make_folder()
    path = root / "train" / "n02102040" / "n02102040_7.JPEG"
    path.write_bytes(path.read_bytes()[:900])
    transform = transforms.Compose([transforms.RandomResizedCrop(64), transforms.ToTensor()])
    return torch.utils.data.DataLoader(
        datasets.ImageFolder(root / "train", transform), batch_size=16, shuffle=True, num_workers=2
    )
