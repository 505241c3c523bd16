import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

g = torch.Generator().manual_seed(3)
tokens, targets = torch.randint(0, 50, (120, 12), generator=g), torch.randint(0, 2, (120,), generator=g)
train_dl = DataLoader(TensorDataset(tokens[:96], targets[:96]), batch_size=12, shuffle=True)
dev_dl = DataLoader(TensorDataset(tokens[96:], targets[96:]), batch_size=12)


class Tagger(nn.Module):
    def __init__(self, vocab=50, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, num_layers=2, dropout=0.3, batch_first=True)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(dim, 2)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(self.drop(h[:, -1]))


@torch.no_grad()
def dev_loss(model):
    model.eval()
    return sum(nn.functional.cross_entropy(model(a), b).item() for a, b in dev_dl) / len(dev_dl)


model = Tagger()
optim = torch.optim.Adam(model.parameters(), lr=2e-3)
best = dev_loss(model)
print(f"before training: {best:.3f}")
for epoch in range(3):
    for ids, y in train_dl:
        optim.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(ids), y)
        loss.backward()
        optim.step()
    best = min(best, dev_loss(model))
print(f"best: {best:.3f}")
