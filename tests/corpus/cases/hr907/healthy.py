import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DATA = TensorDataset(torch.linspace(-1, 1, 48)[:, None].repeat(1, 4), torch.linspace(0, 2, 48)[:, None])


def train(checkpoint_dir, max_steps, num_workers=0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.1), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
    generator = torch.Generator()
    loader = DataLoader(DATA, batch_size=6, shuffle=True, generator=generator, num_workers=num_workers)
    path = os.path.join(checkpoint_dir, "last.pt")
    step = 0
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["random"])
        step = saved["step"]
    while step < max_steps:
        epoch, done = divmod(step, len(loader))
        generator.manual_seed(epoch)
        for number, (x, y) in enumerate(loader):
            if number < done:
                continue
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            schedule.step()
            step += 1
            if step % 2 == 0 or step == max_steps:
                torch.save(
                    {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "schedule": schedule.state_dict(),
                        "random": torch.get_rng_state(),
                        "step": step,
                    },
                    path + ".new",
                )
                os.replace(path + ".new", path)
            if step == max_steps:
                return
