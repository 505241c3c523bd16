"""WebDataset: tar shards split by worker, decoded, batched outside."""
import io
import pathlib
import tarfile
import tempfile

import numpy as np
import webdataset as wds


def write(folder, shards=4, per_shard=40):
    for shard in range(shards):
        with tarfile.open(folder / f"train-{shard:04d}.tar", "w") as out:
            for number in range(per_shard):
                array = io.BytesIO()
                np.save(array, np.full((4, 6), shard * per_shard + number, np.float32))
                for name, data in (("npy", array.getvalue()), ("cls", str(number % 5).encode())):
                    info = tarfile.TarInfo(f"{shard:02d}{number:04d}.{name}")
                    info.size = len(data)
                    out.addfile(info, io.BytesIO(data))
    return str(folder / f"train-{{0000..{shards - 1:04d}}}.tar")


def make_loader():
    urls = write(pathlib.Path(tempfile.mkdtemp()))
    data = wds.WebDataset(urls, shardshuffle=100, nodesplitter=wds.split_by_node).shuffle(50).decode().to_tuple("npy", "cls")
    return wds.WebLoader(data, batch_size=16, num_workers=2)
