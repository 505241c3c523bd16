import numpy as np
from torch.utils.data import Dataset


class Patients(Dataset):
    """Visits of a patient as (fever, pain, drugs) counts; a quiet visit has none of them."""

    def __init__(self, num=40):
        rng = np.random.default_rng(8)
        self.histories = [rng.poisson(0.5, (int(rng.integers(2, 9)), 3)).astype(np.float32) for _ in range(num)]

    def __len__(self):
        return len(self.histories)

    def __getitem__(self, index):
        return {"history": self.histories[index], "outcome": float(self.histories[index].sum() > 6)}
