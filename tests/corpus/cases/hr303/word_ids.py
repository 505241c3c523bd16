import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

REVIEWS = [
    ("the film was good", 1),
    ("the plot was weak and the end was worse", 0),
    ("good fun", 1),
    ("i left before the end", 0),
    ("the best film of the year so far", 1),
    ("weak", 0),
    ("good actors and a good plot", 1),
    ("never again", 0),
] * 4


class Reviews(Dataset):
    def __init__(self, reviews):
        self.reviews = reviews
        words = dict.fromkeys(word for text, _ in reviews for word in text.split())
        self.ids = {word: number for number, word in enumerate(words)}

    def __len__(self):
        return len(self.reviews)

    def __getitem__(self, index):
        text, label = self.reviews[index]
        return torch.tensor([self.ids[word] for word in text.split()]), torch.tensor(label)


def pad_batch(samples):
    texts, labels = zip(*samples)
    return pad_sequence(texts, batch_first=True), torch.stack(labels)


def make_loader():
    return DataLoader(Reviews(REVIEWS), batch_size=8, shuffle=True, collate_fn=pad_batch)
