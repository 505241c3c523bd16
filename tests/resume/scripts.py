"""Training functions as users write them: some go on exactly, others do not. Written to files by the tests."""

HEAD = """
import os, random
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, RandomSampler

torch.set_num_threads(1)
DATA = TensorDataset(torch.linspace(-1, 1, 40)[:, None].repeat(1, 3), torch.linspace(0, 1, 40)[:, None])


def build(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def learn(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()


def save(path, **state):
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)
"""

EXACT = (
    HEAD
    + """

def train(checkpoint_dir, max_steps, num_workers=0):
    path = os.path.join(checkpoint_dir, "last.pt")
    model, optimizer = build()
    order = torch.Generator()
    step = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        torch.set_rng_state(state["random"])
    loader = DataLoader(DATA, batch_size=4, shuffle=True, generator=order, num_workers=num_workers)
    while step < max_steps:
        epoch, done = divmod(step, len(loader))
        order.manual_seed(epoch)
        for number, (x, y) in enumerate(loader):
            if number < done:
                continue
            learn(model, optimizer, x, y)
            step += 1
            if step % 3 == 0 or step == max_steps:
                save(path, model=model.state_dict(), optimizer=optimizer.state_dict(), step=step,
                     random=torch.get_rng_state())
            if step == max_steps:
                return
"""
)

HEADRACE = (
    HEAD
    + """
import headrace


def train(folder, max_steps, num_workers=0):
    path = os.path.join(folder, "last.pt")
    model, optimizer = build()
    loader = headrace.DataLoader(DATA, batch_size=4, shuffle=True, seed=3, num_workers=num_workers)
    step = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        step = state["step"]
        torch.set_rng_state(state["random"])
    while step < max_steps:
        for x, y in loader:
            learn(model, optimizer, x, y)
            step += 1
            save(path, model=model.state_dict(), optimizer=optimizer.state_dict(), step=step,
                 loader=loader.state_dict(), random=torch.get_rng_state())
            if step == max_steps:
                return
"""
)

EPOCHS_ONLY = (
    HEAD
    + """

def train(folder, max_steps):
    # saves at the end of each epoch, and takes the rest again
    path = os.path.join(folder, "last.pt")
    model, optimizer = build()
    epoch = step = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        epoch, step = state["epoch"], state["step"]
        torch.set_rng_state(state["random"])
    loader = DataLoader(DATA, batch_size=4, shuffle=True)
    while True:
        for x, y in loader:
            learn(model, optimizer, x, y)
            step += 1
            if step == max_steps:
                return
        epoch += 1
        save(path, model=model.state_dict(), optimizer=optimizer.state_dict(), epoch=epoch, step=step,
             random=torch.get_rng_state())
"""
)

ONE_PARAMETER = EXACT.replace(
    "checkpoint_dir, max_steps, num_workers=0):", "checkpoint_dir):\n    max_steps, num_workers = 60, 0"
)

NO_OPTIMIZER = EXACT.replace('optimizer.load_state_dict(state["optimizer"])', "pass")
NO_RANDOM_STATE = EXACT.replace('torch.set_rng_state(state["random"])', "pass")
RESTARTS_EPOCH = EXACT.replace("if number < done:", "if False:")
WRONG_ORDER = EXACT.replace("order.manual_seed(epoch)", "order.manual_seed(100 * step + epoch)")
IGNORES_CHECKPOINT = EXACT.replace("if os.path.exists(path):", "if os.path.exists(path + '.bak'):")
SECOND_IS_WRONG = (
    EXACT.replace("    step = 0\n", "    step = start = 0\n", 1)
    .replace('step = state["step"]', 'step = start = state["step"]')
    .replace("step=step,", "step=step - start if start else step,")
)
REPLAYS_FIRST_ORDER = EPOCHS_ONLY.replace('torch.set_rng_state(state["random"])', "pass")
BROKEN_LOAD = EXACT.replace('state["step"]', 'state["steps"]')
UNSEEDED = EXACT.replace("torch.manual_seed(seed)", "torch.seed()").replace("order.manual_seed(epoch)", "order.seed()")
UNREPEATABLE_LOSS = EXACT.replace(
    "    model, optimizer = build()", "    model, optimizer = build(seed=int.from_bytes(os.urandom(4), 'big'))"
)
NEEDS_SAME_WORKERS = EXACT.replace("order.manual_seed(epoch)", "order.manual_seed(epoch + 10 * num_workers)").replace(
    "num_workers=0", "num_workers=1"
)
STREAM_RESTARTS = (
    HEAD
    + """

class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter((DATA[i][0], DATA[i][1]) for i in range(40))


def train(folder, max_steps):
    path = os.path.join(folder, "last.pt")
    model, optimizer = build()
    step = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        torch.set_rng_state(state["random"])
    while True:
        for x, y in DataLoader(Stream(), batch_size=4):
            learn(model, optimizer, x, y)
            step += 1
            save(path, model=model.state_dict(), optimizer=optimizer.state_dict(), step=step,
                 random=torch.get_rng_state())
            if step == max_steps:
                return
"""
)
