"""Where the rows of a minibatch of binary trees lie, for peers that are batched level by level by hand.

Inner vertices are rows, ordered by height. The state of every vertex lies in a slot: the left child of row r in slot
2 r, the right one in 2 r + 1, and the roots behind; so both children of a row lie side by side, and the rows of a level
read one stretch of slots without a copy.
"""
import numpy as np
import torch


class TreePlan:
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
