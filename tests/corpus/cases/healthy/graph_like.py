"""Graphs joined into one big graph, as PyG's loader does, by a loader class of its own."""
import dataclasses

import torch
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Data:
    x: torch.Tensor
    edge_index: torch.Tensor
    y: int


class Molecules(Dataset):
    def __len__(self):
        return 90

    def __getitem__(self, index):
        nodes = 3 + index % 6
        generator = torch.Generator().manual_seed(index)
        edges = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
        return Data(torch.randn(nodes, 4, generator=generator), edges, index % 2)


class Collater:
    def __call__(self, graphs):
        offsets = torch.tensor([0, *(len(graph.x) for graph in graphs[:-1])]).cumsum(0)
        return {
            "x": torch.cat([graph.x for graph in graphs]),
            "edge_index": torch.cat([g.edge_index + offset for g, offset in zip(graphs, offsets)], 1),
            "batch": torch.cat([torch.full((len(g.x),), n) for n, g in enumerate(graphs)]),
            "y": torch.tensor([graph.y for graph in graphs]),
        }


class GraphLoader(DataLoader):
    def __init__(self, dataset, batch_size=1, shuffle=False, **options):
        options.pop("collate_fn", None)
        super().__init__(dataset, batch_size, shuffle, collate_fn=Collater(), **options)


def make_loader():
    return GraphLoader(Molecules(), batch_size=9, shuffle=True)
