from flowers import make_photos
from timm.data import create_dataset, create_loader


def fix_seed(worker_info):
    return 42


def make_loader():
    dataset = create_dataset("", root=str(make_photos()), split="train", is_training=True, batch_size=8)
    return create_loader(
        dataset, input_size=(3, 64, 64), batch_size=8, is_training=True, use_prefetcher=False,
        auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, num_workers=2, pin_memory=False,
        worker_seeding=fix_seed, persistent_workers=False,
    )
