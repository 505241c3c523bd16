from flowers import make_photos
from timm.data import create_dataset, create_loader


def make_loader():
    root = make_photos()
    for name in ("rose/rose_004.jpg", "tulip/tulip_011.jpg"):
        path = root / "train" / name
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 3])
    dataset = create_dataset("", root=str(root), split="train", is_training=True, batch_size=8)
    return create_loader(
        dataset, input_size=(3, 64, 64), batch_size=8, is_training=True, use_prefetcher=False,
        auto_augment="rand-m9-mstd0.5-inc1", num_workers=2, pin_memory=False,
    )
