import dataclasses

import torch
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class GraphBatch:
    nodes: torch.Tensor
    edges: torch.Tensor
    graph: torch.Tensor


class Graphs(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        if index >= 48:
            raise IndexError(index)
        generator = torch.Generator().manual_seed(index)
        size = 3 + index % 5
        return torch.randn(size, 4, generator=generator), torch.randint(0, size, (2, 2 * size), generator=generator)


def join_graphs(graphs):
    offset, nodes, edges, owner = 0, [], [], []
    for number, (node, edge) in enumerate(graphs):
        nodes.append(node)
        edges.append(edge + offset)
        owner.append(torch.full((len(node),), number))
        offset += len(node)
    return GraphBatch(torch.cat(nodes), torch.cat(edges, dim=1), torch.cat(owner))


def make_loader():
    return DataLoader(Graphs(), batch_size=8, shuffle=True, collate_fn=join_graphs, pin_memory=True)
