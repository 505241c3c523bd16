"""Text classification with an embedding bag: offsets instead of padding."""
import torch
from torch.utils.data import DataLoader
from torch.utils.data.dataset import random_split

WORDS = "the a of market team science game price new old wins falls rises".split()
VOCAB = {word: number for number, word in enumerate(WORDS)}


def pipeline(text):
    return [VOCAB[word] for word in text.split()]


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for label, text in batch:
        label_list.append(label - 1)
        processed = torch.tensor(pipeline(text), dtype=torch.int64)
        text_list.append(processed)
        offsets.append(processed.size(0))
    return torch.tensor(label_list), torch.cat(text_list), torch.tensor(offsets[:-1]).cumsum(dim=0)


def make_loaders():
    news = [(n % 4 + 1, " ".join(WORDS[(n * k) % 13] for k in range(1, 4 + n % 6))) for n in range(200)]
    split_train, split_valid = random_split(news, [190, 10], generator=torch.Generator().manual_seed(0))
    train = DataLoader(split_train, batch_size=8, shuffle=True, collate_fn=collate_batch)
    valid = DataLoader(split_valid, batch_size=8, shuffle=False, collate_fn=collate_batch)
    return {"train": train, "val": valid}
