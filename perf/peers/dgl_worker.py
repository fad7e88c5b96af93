#!/usr/bin/env python3
"""DGL: message passing in topological order, as its Tree-LSTM recipe does; DGL batches the graphs and their frontiers.

Each example is a graph of DGL's from the start; a step batches them and propagates."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import dgl
import numpy as np
import torch
from torch.nn import functional

from worker import LEARNING_RATE, Worker, serve


def lstm(iou, c):
    i, o, u = iou.chunk(3, 1)
    c = torch.sigmoid(i) * torch.tanh(u) + c
    return torch.sigmoid(o) * torch.tanh(c), c


class Model:
    """Parameters by name, and functions over DGL's node and edge batches."""

    def __init__(self, parameters):
        self.parameters = parameters

    def graph(self, example):
        """Edges go from children to parents, the left child's first."""
        parents = np.repeat(np.arange(example.vertices), np.diff(example.child_begin))
        return self.make(example, example.child, parents, example.vertices)

    @staticmethod
    def make(example, children, parents, vertices):
        graph = dgl.graph((torch.from_numpy(children), torch.from_numpy(parents)), num_nodes=vertices)
        graph.ndata["word"] = torch.from_numpy(example.word[:vertices])
        graph.ndata["label"] = torch.from_numpy(example.label[:vertices])
        graph.ndata["root"] = torch.zeros(vertices, dtype=torch.bool)
        return graph

    @staticmethod
    def message(edges):
        return {"h": edges.src["h"], "c": edges.src["c"]}

    def step(self, batch, training):
        graph = dgl.batch([graph for _, graph in batch])
        w = {name: value.detach().requires_grad_(training) for name, value in self.parameters.items()
             if name != "words"}
        has_word = graph.ndata["word"] >= 0
        words = graph.ndata["word"][has_word]
        x = self.parameters["words"].index_select(0, words).requires_grad_(training)
        hidden = w["head.W"].shape[0] if "pair.W" not in w else w["node.U_f"].shape[0]
        graph.ndata["h"] = graph.ndata["c"] = torch.zeros(graph.num_nodes(), hidden)
        self.begin(graph, has_word.nonzero().squeeze(1), x, w)
        dgl.prop_nodes_topo(graph, self.message, lambda nodes: self.reduce(nodes, w), apply_node_func=self.apply)
        if not training:
            return self.logits(graph, w, graph.ndata["root"])
        loss = self.loss(graph, w, [example for example, _ in batch]) / len(batch)
        loss.backward()
        with torch.no_grad():
            for name, value in w.items():
                if value.grad is not None:
                    self.parameters[name].add_(value.grad, alpha=-LEARNING_RATE)
            self.parameters["words"].index_add_(0, words, x.grad, alpha=-LEARNING_RATE)
        return loss.item() * len(batch)

    def logits(self, graph, w, rows):
        return torch.addmm(w["head.b"], graph.ndata["h"][rows], w["head.W"])

    def loss(self, graph, w, examples):
        labels = graph.ndata["label"]
        rows = labels >= 0
        return functional.cross_entropy(self.logits(graph, w, rows), labels[rows], reduction="sum")


class TreeLstm(Model):
    def graph(self, example):
        graph = super().graph(example)
        graph.ndata["root"][-1] = True
        return graph

    @staticmethod
    def begin(graph, leaves, x, w):
        iou = torch.addmm(w["leaf.b"], x, w["leaf.W"])
        graph.ndata["iou"] = torch.zeros(graph.num_nodes(), iou.shape[1]).index_copy(0, leaves, iou)

    @staticmethod
    def reduce(nodes, w):
        h, c = nodes.mailbox["h"], nodes.mailbox["c"]
        gates = torch.addmm(w["node.b"], h.flatten(1), w["node.U"])
        hidden = h.shape[2]
        forget = torch.sigmoid(gates[:, 3 * hidden:]).view_as(c)
        return {"iou": gates[:, :3 * hidden], "c": (forget * c).sum(1)}

    @staticmethod
    def apply(nodes):
        h, c = lstm(nodes.data["iou"], nodes.data["c"])
        return {"h": h, "c": c}


class TreeFc(TreeLstm):
    @staticmethod
    def message(edges):
        return {"h": edges.src["h"]}

    @staticmethod
    def begin(graph, leaves, x, w):
        graph.ndata["h"] = graph.ndata["h"].index_copy(0, leaves, x @ w["leaf.W"])

    @staticmethod
    def reduce(nodes, w):
        return {"h": torch.relu(torch.addmm(w["node.b"], nodes.mailbox["h"].flatten(1), w["node.U"]))}

    apply = None


class ChildSumTreeLstm(Model):
    def graph(self, example):
        """Both trees of the pair; the vertex that joins them is no part of DGL's graph."""
        vertices = example.vertices - 1
        parents = np.repeat(np.arange(vertices), np.diff(example.child_begin[:-1]))
        graph = self.make(example, example.child[:-2], parents, vertices)
        graph.ndata["root"][torch.from_numpy(example.child[-2:])] = True
        return graph

    @staticmethod
    def begin(graph, rows, x, w):
        gates = torch.addmm(w["node.b"], x, w["node.W"])
        hidden = w["node.U_f"].shape[0]
        graph.ndata["iou"], graph.ndata["f"] = gates[:, :3 * hidden], gates[:, 3 * hidden:]

    @staticmethod
    def reduce(nodes, w):
        h, c = nodes.mailbox["h"], nodes.mailbox["c"]
        forget = torch.sigmoid(nodes.data["f"][:, None] + h @ w["node.U_f"])
        return {"iou": nodes.data["iou"] + h.sum(1) @ w["node.U"], "c": (forget * c).sum(1)}

    apply = staticmethod(TreeLstm.apply)

    def logits(self, graph, w, rows):
        h = graph.ndata["h"][rows]
        left, right = h.view(-1, 2, h.shape[1]).unbind(1)
        features = torch.cat([left * right, (left - right).abs()], 1)
        similarity = torch.sigmoid(torch.addmm(w["pair.b"], features, w["pair.W"]))
        return torch.addmm(w["head.b"], similarity, w["head.W"])

    def loss(self, graph, w, examples):
        targets = torch.from_numpy(np.stack([example.target for example in examples]))
        logarithms = torch.log_softmax(self.logits(graph, w, graph.ndata["root"]), 1)
        return functional.kl_div(logarithms, targets, reduction="sum")


MODELS = {"tree_lstm": TreeLstm, "tree_fc": TreeFc, "child_sum_tree_lstm": ChildSumTreeLstm}


class DglWorker(Worker):
    settings = ["topological"]

    def versions(self):
        return {"DGL": dgl.__version__, "PyTorch": torch.__version__}

    def set_threads(self, threads):
        torch.set_num_threads(threads)

    def make(self, values):
        if self.sizes["model"] not in MODELS:
            raise ValueError("DGL's recipe is for trees, not for chains")
        self.model = MODELS[self.sizes["model"]]({name: torch.from_numpy(value.copy())
                                                  for name, value in values.items()})
        self.examples = [Pair(example, self.model.graph(example)) for example in self.examples]

    def step(self, setting, batch):
        if self.mode == "infer":
            with torch.inference_mode():
                return self.model.step(batch, training=False)
        return self.model.step(batch, training=True)


class Pair(tuple):
    """An example and its graph."""

    def __new__(cls, example, graph):
        return super().__new__(cls, (example, graph))

    @property
    def vertices(self):
        return self[0].vertices


if __name__ == "__main__":
    serve(DglWorker())
