"""For every kind of loader: a real fault is found and named by `diagnose`, and a healthy one gets no finding.

The libraries are the real ones; a kind whose library is not installed is skipped, and says so.
"""

import dataclasses

import pytest

from .conftest import needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@dataclasses.dataclass(frozen=True)
class Case:
    """A file with `make` in which BAD marks the fault; the healthy one has GOOD in its place."""

    kind: str
    """What the report calls it."""
    code: str
    bad: str
    good: str
    finding: tuple[str, object]
    """(code, sample id)."""
    modules: tuple[str, ...] = ("torch",)
    num_examined: int | None = None
    """Of the healthy one; None: as many as one pass has."""


ROWS = """
def row(i):
    return {"x": np.full((3, FAULT), i, np.float32), "label": i % 3}
"""
ODD_WIDTH = ("5 if i == 9 else 4", "4")

CASES = {
    "nested-torch": Case(
        "DataLoader",
        """
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, random_split
class Rows(Dataset):
    def __init__(self, first): self.first = first
    def __len__(self): return 20
    def __getitem__(self, k):
        i = self.first + k
        return torch.full((3, FAULT), float(i)), i % 3
def make():
    both = ConcatDataset([Rows(100), Subset(Rows(0), range(19, -1, -1))])
    part, _ = random_split(both, [40, 0], generator=torch.Generator().manual_seed(0))
    sampler = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(part), 4, False)
    return DataLoader(part, batch_sampler=sampler)
""",
        *ODD_WIDTH,
        ("HR301", None),
    ),
    "stacked-torch": Case(
        "DataLoader",
        """
import torch
from torch.utils.data import DataLoader, StackDataset, TensorDataset
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i): return np.zeros((3, FAULT), np.float32)
def make():
    return DataLoader(StackDataset(image=Rows(), label=torch.arange(20) % 3), batch_size=4)
""",
        *ODD_WIDTH,
        ("HR301", 9),
    ),
    "chained-stream": Case(
        "DataLoader",
        """
import torch
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, get_worker_info
class Part(IterableDataset):
    def __init__(self, first): self.first = first
    def __iter__(self):
        info = get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(self.first + start, self.first + 20, step):
            yield torch.full((2,), float(i)), FAULT
def make():
    return DataLoader(ChainDataset([Part(0), Part(20)]), batch_size=4, num_workers=2)
""",
        "None if i == 9 else i % 3",
        "i % 3",
        ("HR306", "#9"),
    ),
    "single-samples": Case(
        "DataLoader",
        """
import torch
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i):
        if FAULT: raise OSError("no such record")
        return torch.ones(3 + i)
def make():
    return torch.utils.data.DataLoader(Rows(), batch_size=None)
""",
        "i == 9",
        "False",
        ("HR101", 9),
    ),
    "subclass": Case(
        "GraphLoader",
        """
import torch
class Collater:
    def __call__(self, graphs): return {"nodes": torch.cat([g["nodes"] for g in graphs]), "sizes": [len(g["nodes"]) for g in graphs]}
class GraphLoader(torch.utils.data.DataLoader):
    def __init__(self, dataset, batch_size=1, shuffle=False, **options):
        options.pop("collate_fn", None)
        super().__init__(dataset, batch_size, shuffle, collate_fn=Collater(), **options)
class Graphs(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i):
        return {"nodes": torch.ones(2, FAULT)}
def make():
    return GraphLoader(Graphs(), batch_size=4, shuffle=True)
""",
        *ODD_WIDTH,
        ("HR301", 9),
    ),
    "stateful": Case(
        "StatefulDataLoader",
        """
import torch
from torchdata.stateful_dataloader import StatefulDataLoader
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i):
        if FAULT: raise OSError("no such record")
        return torch.zeros(3), i % 2
def make(): return StatefulDataLoader(Rows(), batch_size=4, num_workers=1)
""",
        "i == 9",
        "False",
        ("HR101", 9),
        ("torch", "torchdata"),
    ),
    "nodes": Case(
        "Loader",
        ROWS
        + """
import torch, torchdata.nodes as tn
def make():
    node = tn.ParallelMapper(tn.IterableWrapper(range(40)), row, num_workers=2, method="thread")
    node = tn.Batcher(node, batch_size=4, drop_last=False)
    return tn.Loader(tn.Prefetcher(tn.Mapper(node, torch.utils.data.default_collate), 2))
""",
        *ODD_WIDTH,
        ("HR301", "#9"),
        ("torch", "torchdata"),
    ),
    "webdataset": Case(
        "WebLoader",
        """
import webdataset as wds
def make():
    paths = []
    for shard in range(2):
        paths.append(os.path.join(HERE, f"s{shard}.tar"))
        with wds.TarWriter(paths[-1]) as sink:
            for i in range(shard * 20, shard * 20 + 20):
                sink.write({"__key__": f"{i:04d}", "x.npy": np.zeros((3, FAULT), np.float32), "cls": i % 3})
    data = wds.WebDataset(paths, shardshuffle=False).shuffle(8).decode().to_tuple("x.npy", "cls").batched(4)
    return wds.WebLoader(data, batch_size=None, num_workers=2)
""",
        *ODD_WIDTH,
        ("HR301", "0009"),
        ("torch", "webdataset"),
    ),
    "webdataset-record": Case(
        "WebDataset",
        """
import webdataset as wds
def make():
    path = os.path.join(HERE, "s.tar")
    with wds.TarWriter(path) as sink:
        for i in range(20):
            sink.write({"__key__": f"{i:04d}", "x.npy": b"nothing" if FAULT else np.zeros(3, np.float32), "cls": 1})
    return wds.WebDataset(path, shardshuffle=False).decode().to_tuple("x.npy", "cls").batched(4)
""",
        "i == 9",
        "False",
        ("HR101", "0009"),
        ("torch", "webdataset"),
    ),
    "webdataset-workers": Case(
        "WebLoader",
        """
import webdataset as wds
def make():
    paths = []
    for shard in range(2):
        paths.append(os.path.join(HERE, f"s{shard}.tar"))
        with wds.TarWriter(paths[-1]) as sink:
            for i in range(shard * 20, shard * 20 + 20):
                sink.write({"__key__": f"{i:04d}", "x.npy": np.full(3, i, np.float32), "cls": i % 3})
    data = wds.WebDataset(paths, shardshuffle=False, FAULT).decode().to_tuple("x.npy", "cls").batched(4)
    return wds.WebLoader(data, batch_size=None, num_workers=2)
""",
        "workersplitter=None",
        "seed=0",
        ("HR601", None),
        ("torch", "webdataset"),
    ),
    "hugging-face": Case(
        "DataLoader",
        """
import datasets, torch
def make():
    rows = datasets.Dataset.from_dict({"x": [[float(i), 1.0] for i in range(20)], "label": [FAULT for i in range(20)]})
    return torch.utils.data.DataLoader(rows, batch_size=4, shuffle=True, num_workers=1)
""",
        "None if i == 9 else i % 3",
        "i % 3",
        ("HR306", 9),
        ("torch", "datasets"),
    ),
    "hugging-face-transform": Case(
        "DataLoader",
        """
import datasets, torch
def widen(rows):
    return {"x": [torch.ones(3, FAULT) for (i,) in rows["i"]]}
def make():
    rows = datasets.Dataset.from_dict({"i": [[i] for i in range(20)]}).with_transform(widen)
    return torch.utils.data.DataLoader(rows, batch_size=4)
""",
        *ODD_WIDTH,
        ("HR301", 9),
        ("torch", "datasets"),
    ),
    "hugging-face-stream": Case(
        "DataLoader",
        """
import datasets, torch
def rows(shards):
    for shard in shards:
        for i in range(shard * 10, shard * 10 + 10):
            yield {"id": i, "x": [float(i), 1.0], "label": FAULT}
def make():
    data = datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]})
    return torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
""",
        "None if i == 9 else i % 3",
        "i % 3",
        ("HR306", "id 9"),
        ("torch", "datasets"),
    ),
    "tensorflow": Case(
        "_PrefetchDataset",
        """
import tensorflow as tf
def make():
    label = np.arange(40) % 3
    label[9] = FAULT
    rows = tf.data.Dataset.from_tensor_slices({"x": np.ones((40, 4), "float32"), "label": label})
    return rows.map(lambda row: row).batch(8).prefetch(2)
""",
        "7",
        "0",
        ("HR304", "#9"),
        ("tensorflow",),
    ),
    "tensorflow-error": Case(
        "_FlatMapDataset",
        """
import tensorflow as tf
def rows():
    for i in range(20):
        if FAULT: raise ValueError("bad row")
        yield np.ones(3, "float32"), i % 2
def make():
    signature = (tf.TensorSpec((3,), tf.float32), tf.TensorSpec((), tf.int64))
    return tf.data.Dataset.from_generator(rows, output_signature=signature)
""",
        "i == 9",
        "False",
        ("HR101", "#9"),
        ("tensorflow",),
    ),
    "grain": Case(
        "DataLoader",
        ROWS
        + """
import grain
class Source:
    def __len__(self): return 40
    def __getitem__(self, i): return row(i)
def make():
    sampler = grain.samplers.IndexSampler(40, shard_options=grain.sharding.NoSharding(), num_epochs=1, seed=0)
    return grain.DataLoader(data_source=Source(), sampler=sampler, operations=[grain.transforms.Batch(8)], worker_count=2)
""",
        *ODD_WIDTH,
        ("HR301", "#9"),
        ("grain",),
    ),
    "grain-map": Case(
        "BatchMapDataset",
        """
import grain
def prepare(i):
    if FAULT: raise OSError("no such record")
    return {"x": np.full(4, i, np.float32)}
def make():
    return grain.MapDataset.range(40).map(prepare).batch(8)
""",
        "i == 9",
        "False",
        ("HR101", "#9"),
        ("grain",),
    ),
    "grain-iter": Case(
        "WithOptionsIterDataset",
        ROWS
        + """
import grain
def make():
    rows = grain.MapDataset.range(40).filter(lambda i: i != 20).map(row).to_iter_dataset().batch(8)
    return rows.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
""",
        *ODD_WIDTH,
        ("HR301", "#9"),
        ("grain",),
    ),
    "mosaic": Case(
        "DataLoader",
        """
import torch
# Streaming imports torchvision for its operators' names only, and an index may have it for another build of torch.
operators = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import streaming, streaming.base.util, shutil
def make():
    out = os.path.join(HERE, "mds")
    shutil.rmtree(out, ignore_errors=True)
    with streaming.MDSWriter(out=out, columns={"x": "ndarray", "label": "int"}) as sink:
        for i in range(40):
            sink.write({"x": np.full((3, FAULT), i, np.float32), "label": i % 3})
    streaming.base.util.clean_stale_shared_memory()
    rows = streaming.StreamingDataset(local=out, shuffle=False, batch_size=4)
    return torch.utils.data.DataLoader(rows, batch_size=4, num_workers=2)
""",
        *ODD_WIDTH,
        ("HR301", "#9"),
        ("torch", "streaming", "torchvision"),
    ),
    "litdata": Case(
        "StreamingDataLoader",
        """
import litdata, torch
def row(i):
    return {"x": torch.full((3, FAULT), float(i)), "label": i % 3}
def make():
    out = os.path.join(HERE, "lit")
    if not os.path.exists(os.path.join(out, "index.json")):
        litdata.optimize(fn=row, inputs=list(range(40)), output_dir=out, chunk_size=10, num_workers=1)
    return litdata.StreamingDataLoader(litdata.StreamingDataset(out, shuffle=False), batch_size=4)
""",
        *ODD_WIDTH,
        ("HR301", "#9"),
        ("torch", "litdata"),
    ),
    "accelerate": Case(
        "DataLoaderShard",
        """
import torch, accelerate
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i): return torch.zeros(3, FAULT), i % 2
def make():
    return accelerate.Accelerator(cpu=True).prepare(torch.utils.data.DataLoader(Rows(), batch_size=4, shuffle=True))
""",
        *ODD_WIDTH,
        ("HR301", 9),
        ("torch", "accelerate"),
    ),
    "headrace-stream": Case(
        "DataLoader",
        """
import headrace
class Rows:
    def __iter__(self):
        for i in range(20):
            if FAULT: raise OSError("no such record")
            yield np.ones(3, np.float32), i % 2
def make():
    return headrace.DataLoader(Rows(), batch_size=4)
""",
        "i == 9",
        "False",
        ("HR101", "#9"),
    ),
    "sequence": Case(
        "Batches",
        """
class Batches:
    batch_size = 8
    def __len__(self): return 5
    def on_epoch_end(self): pass
    def __getitem__(self, k):
        if FAULT: raise OSError("no such file")
        return np.ones((8, 4), np.float32), np.arange(8) % 3
make = Batches
""",
        "k == 2",
        "False",
        ("HR101", "batch 2"),
        (),
    ),
    "any-iterable": Case(
        "Batches",
        """
class Batches:
    batch_size = 8
    num_classes = 3
    def __iter__(self):
        for k in range(5):
            size = 8 if k < 4 else 3
            label = np.arange(size) % 3
            if k == 1: label[1] = FAULT
            yield {"x": np.ones((size, 4 + k), np.float32), "label": label}
make = Batches
""",
        "7",
        "0",
        ("HR304", "#9"),
        (),
    ),
    "last-batch-smaller": Case(
        "Batches",
        """
class Batches:
    def __iter__(self):
        for k in range(5):
            size = 8 if k < 4 else 3
            if FAULT: raise OSError("no such file")
            yield np.ones((size, 4), np.float32), np.arange(size) % 3
make = Batches
""",
        "k == 3",
        "False",
        ("HR101", "#3"),
        (),
    ),
}


def cases():
    return [pytest.param(case, id=name, marks=needs(*case.modules)) for name, case in CASES.items()]


@pytest.mark.parametrize("case", cases())
def test_a_fault_is_found_and_named(examine, case):
    report = examine(case.code.replace("FAULT", case.bad), num_classes=3)
    code, sample_id = case.finding
    assert report.target["kind"].rpartition(".")[2] == case.kind
    found = [row for row in report.findings if row.severity != "info"]
    assert [row.code for row in found] == [code], [(row.code, row.message) for row in found]
    if sample_id is not None:
        assert sample_id in found[0].sample_ids
    assert report.exit_status == 1


@pytest.mark.parametrize("case", cases())
def test_a_healthy_one_gets_no_finding(examine, case):
    report = examine(case.code.replace("FAULT", case.good), num_classes=3)
    assert [(row.code, row.message) for row in report.findings if row.severity != "info"] == []
    assert (report.is_conclusive, report.exit_status) == (True, 0)
    assert [(run.name, run.detail) for run in report.runs if run.outcome != "done"] == []
    assert report.target["examined"] >= 5
