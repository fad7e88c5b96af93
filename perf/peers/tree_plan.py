"""Where the rows of a minibatch of trees lie, for peers that are batched level by level by hand."""
import numpy as np
import torch


class TreePlan:
    """Binary trees: inner vertices are rows, ordered by height. The state of every vertex lies in a slot: the left
    child of row r in slot 2 r, the right one in 2 r + 1, and the roots behind; so both children of a row lie side by
    side, and the rows of a level read one stretch of slots without a copy."""

    def __init__(self, batch):
        sizes = np.array([example.vertices for example in batch])
        ends = np.cumsum(sizes)
        height = np.concatenate([example.height for example in batch])
        child = np.concatenate([example.child for example in batch])
        label = np.concatenate([example.label for example in batch])
        word = np.concatenate([example.word for example in batch])
        inner, leaves = np.flatnonzero(height), np.flatnonzero(height == 0)
        if len(child) != 2 * len(inner):
            raise ValueError("expected binary trees")
        child = child + np.repeat(ends - sizes, [len(example.child) for example in batch])
        order = np.argsort(height[inner], kind="stable")
        rows = inner[order]
        slot = np.empty(len(height), np.int64)
        slot[child.reshape(-1, 2)[order].ravel()] = np.arange(2 * len(rows))
        slot[ends - 1] = 2 * len(rows) + np.arange(len(batch))
        bounds = np.cumsum(np.bincount(height[inner]))  # none is of height 0
        self.levels = list(zip(bounds[:-1].tolist(), bounds[1:].tolist()))  # [first row, last row) of each height
        self.rows, self.slots = len(rows), len(height)
        self.leaf_slots = torch.from_numpy(slot[leaves])
        self.row_slots = torch.from_numpy(slot[rows])
        self.root_slots = slice(2 * len(rows), len(height))
        self.words = torch.from_numpy(word[leaves])
        labels = np.empty(len(height), np.int64)
        labels[slot] = label
        self.labelled = None if labels.min() >= 0 else torch.from_numpy(np.flatnonzero(labels >= 0))
        self.labels = torch.from_numpy(labels[labels >= 0])


class ForestPlan:
    """Pairs of trees with any number of children: vertices are rows ordered by height, edges by their parent's row. The
    slot of a vertex is its edge to its parent, the roots' are behind: a level reads one stretch here too."""

    def __init__(self, batch):
        trees = [example.vertices - 1 for example in batch]  # the last vertex joins both trees
        firsts = np.cumsum(trees) - trees
        height = np.concatenate([example.height[:-1] for example in batch])
        order = np.argsort(height, kind="stable")
        row = np.empty(len(height), np.int64)
        row[order] = np.arange(len(height))
        child = np.concatenate([example.child[:-2] + first for example, first in zip(batch, firsts)])
        counts = np.concatenate([np.diff(example.child_begin[:-1]) for example in batch])
        parent = np.repeat(row, counts)
        edges = np.argsort(parent, kind="stable")
        self.rows = len(height)
        self.words = torch.from_numpy(np.concatenate([example.word[:-1] for example in batch])[order])
        self.child, self.parent = torch.from_numpy(row[child[edges]]), torch.from_numpy(parent[edges])
        bounds = np.concatenate([[0], np.cumsum(np.bincount(height))])
        self.levels = list(zip(bounds[:-1].tolist(), bounds[1:].tolist()))
        self.edges = np.searchsorted(parent[edges], bounds).tolist()  # where a level's edges begin
        roots = np.concatenate([example.child[-2:] + first for example, first in zip(batch, firsts)])
        self.roots = torch.from_numpy(row[roots])
        slot = np.empty(self.rows, np.int64)
        slot[np.concatenate([row[child[edges]], row[roots]])] = np.arange(self.rows)
        self.row_slots = torch.from_numpy(slot)
        self.targets = torch.from_numpy(np.stack([example.target for example in batch]))
