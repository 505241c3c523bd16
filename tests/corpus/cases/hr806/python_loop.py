import numpy as np

import headrace as hr

TEXTS = {"text": np.array([f"line {n} of a log with {n % 17} words and some more" for n in range(300)]), "y": np.arange(300) % 3}


def count_letters(sample):
    counts = [0] * 128
    for _ in range(200):
        for letter in str(sample["text"]):
            counts[ord(letter)] += 1
    return {"counts": np.array(counts, np.float32), "y": sample["y"]}


def make_loader():
    return hr.DataLoader(hr.arrays(TEXTS).map(count_letters), batch_size=20, num_workers=2, runner="threads")
