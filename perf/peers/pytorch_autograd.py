"""The models in PyTorch with its own differentiation, batched by hand: trees level by level, chains by nn.LSTM."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tree_plan import ForestPlan, TreePlan
from worker import LEARNING_RATE


class Store:
    """The states of all vertices of a minibatch, and their gradients."""

    def __init__(self, rows, width, dtype):
        self.value = torch.empty(rows, width, dtype=dtype)
        self._gradient = None

    @property
    def gradient(self):
        if self._gradient is None:
            self._gradient = torch.zeros_like(self.value)
        return self._gradient


class Put(torch.autograd.Function):
    """Writes rows of a store. `token` and the result chain what writes and what reads: without them autograd would have
    to keep a copy of the whole store for every level."""

    @staticmethod
    def forward(ctx, token, rows, store, values):
        ctx.rows, ctx.store = rows, store
        store.value.index_copy_(0, rows, values)
        return token.clone()

    @staticmethod
    def backward(ctx, token):
        return token, None, None, ctx.store.gradient.index_select(0, ctx.rows)


class Get(torch.autograd.Function):
    """Reads rows of a store; every row may be read several times."""

    @staticmethod
    def forward(ctx, token, rows, store):
        ctx.rows, ctx.store = rows, store
        return store.value.index_select(0, rows)

    @staticmethod
    def backward(ctx, gradient):
        ctx.store.gradient.index_add_(0, ctx.rows, gradient)
        return gradient.new_zeros(()), None, None


class Model:
    """Parameters, their lowered copies, and stochastic gradient descent, by rows for the words."""

    def __init__(self, parameters, dtype, compiled=False):
        self.parameters = parameters
        self.dtype = dtype
        self.cell = torch.compile(self.cell, dynamic=True) if compiled else self.cell

    @staticmethod
    def cell():
        """Of the subclass; compiled where asked."""

    def weights(self):
        return {name: value.to(self.dtype).requires_grad_() for name, value in self.parameters.items()
                if name != "words"} if self.dtype != torch.float32 else \
            {name: value.detach().requires_grad_() for name, value in self.parameters.items() if name != "words"}

    def lookup(self, words):
        return self.parameters["words"].index_select(0, words).to(self.dtype).requires_grad_()

    def descend(self, loss, w, words, x):
        loss.backward()
        with torch.no_grad():
            for name, value in w.items():
                if value.grad is not None:
                    self.parameters[name].add_(value.grad, alpha=-LEARNING_RATE)
            self.parameters["words"].index_add_(0, words, x.grad.float(), alpha=-LEARNING_RATE)
        return loss.item()


class TreeModel(Model):
    def states(self, plan, w, x):
        """h of all slots, and the token that says it is complete."""
        hidden = w["head.W"].shape[0]
        h, c = Store(plan.slots, hidden, self.dtype), Store(plan.slots, hidden, self.dtype)
        token = torch.zeros((), dtype=self.dtype, requires_grad=x.requires_grad)
        token = self.put(token, plan.leaf_slots, h, c, *self.leaf(x, w))
        for begin, end in plan.levels:
            slots = torch.arange(2 * begin, 2 * end)
            children = [Get.apply(token, slots, store).view(end - begin, -1) for store in self.read(h, c)]
            token = self.put(token, plan.row_slots[begin:end], h, c,
                             *self.cell(*children, w["node.U"], w["node.b"]))
        return h, token

    def train(self, batch):
        plan, w = TreePlan(batch), self.weights()
        x = self.lookup(plan.words)
        h, token = self.states(plan, w, x)
        rows = torch.arange(plan.slots) if plan.labelled is None else plan.labelled
        logits = torch.addmm(w["head.b"], Get.apply(token, rows, h), w["head.W"])
        loss = functional.cross_entropy(logits.float(), plan.labels, reduction="sum") / len(batch)
        return self.descend(loss, w, plan.words, x) * len(batch)

    def infer(self, batch):
        plan, w = TreePlan(batch), self.weights()
        h, _ = self.states(plan, w, self.lookup(plan.words))
        return torch.addmm(w["head.b"], h.value[plan.root_slots], w["head.W"])


class TreeLstm(TreeModel):
    @staticmethod
    def read(h, c):
        return h, c

    @staticmethod
    def put(token, rows, h, c, h_values, c_values):
        return Put.apply(Put.apply(token, rows, h, h_values), rows, c, c_values)

    @staticmethod
    def leaf(x, w):
        i, o, u = torch.addmm(w["leaf.b"], x, w["leaf.W"]).chunk(3, 1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    @staticmethod
    def cell(h, c, weights, bias):
        i, o, u, f_l, f_r = torch.addmm(bias, h, weights).chunk(5, 1)
        c_l, c_r = c.chunk(2, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_l) * c_l + torch.sigmoid(f_r) * c_r
        return torch.sigmoid(o) * torch.tanh(c), c


class TreeFc(TreeModel):
    @staticmethod
    def read(h, c):
        return (h,)

    @staticmethod
    def put(token, rows, h, c, h_values):
        return Put.apply(token, rows, h, h_values)

    @staticmethod
    def leaf(x, w):
        return (x @ w["leaf.W"],)

    @staticmethod
    def cell(h, weights, bias):
        return (torch.relu(torch.addmm(bias, h, weights)),)


class ChildSumTreeLstm(Model):
    @staticmethod
    def cell(x, h, c, parent, weights, forget_weights):
        """x [rows, 4 H]; h, c [edges, H] of the children; `parent` counts the rows of this level."""
        hidden = h.shape[1]
        iou = x[:, :3 * hidden] + h.new_zeros(x.shape[0], hidden).index_add(0, parent, h) @ weights
        forget = torch.sigmoid(x[:, 3 * hidden:].index_select(0, parent) + h @ forget_weights)
        i, o, u = iou.chunk(3, 1)
        c = (torch.sigmoid(i) * torch.tanh(u)).index_add(0, parent, forget * c)
        return torch.sigmoid(o) * torch.tanh(c), c

    @staticmethod
    def leaf(x):
        i, o, u, _ = x.chunk(4, 1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def logits(self, plan, w, x):
        hidden = w["node.U"].shape[0]
        h, c = Store(plan.rows, hidden, self.dtype), Store(plan.rows, hidden, self.dtype)
        token = torch.zeros((), dtype=self.dtype, requires_grad=x.requires_grad)
        inputs = torch.addmm(w["node.b"], x, w["node.W"]).split([end - begin for begin, end in plan.levels])
        for level, (begin, end) in enumerate(plan.levels):
            if level == 0:
                h_values, c_values = self.leaf(inputs[0])
            else:
                edges = slice(plan.edges[level], plan.edges[level + 1])
                below = [Get.apply(token, plan.child[edges], store) for store in (h, c)]
                h_values, c_values = self.cell(inputs[level], *below, plan.parent[edges] - begin, w["node.U"],
                                               w["node.U_f"])
            rows = torch.arange(begin, end)
            token = Put.apply(Put.apply(token, rows, h, h_values), rows, c, c_values)
        left, right = Get.apply(token, plan.roots, h).view(-1, 2, hidden).unbind(1)
        features = torch.cat([left * right, (left - right).abs()], 1)
        similarity = torch.sigmoid(torch.addmm(w["pair.b"], features, w["pair.W"]))
        return torch.addmm(w["head.b"], similarity, w["head.W"]).float()

    def train(self, batch):
        plan, w = ForestPlan(batch), self.weights()
        x = self.lookup(plan.words)
        logarithms = torch.log_softmax(self.logits(plan, w, x), 1)
        loss = functional.kl_div(logarithms, plan.targets, reduction="sum") / len(batch)
        return self.descend(loss, w, plan.words, x) * len(batch)

    def infer(self, batch):
        plan, w = ForestPlan(batch), self.weights()
        return self.logits(plan, w, self.lookup(plan.words))


class LstmLm(Model):
    """nn.LSTM orders its gates i, f, g, o, ours are i, f, o, u; its second bias stays zero."""

    def __init__(self, parameters, dtype):
        super().__init__(parameters, dtype)
        inputs, self.hidden = parameters["words"].shape[1], parameters["layer1.U"].shape[0]
        self.lstm = nn.LSTM(inputs, self.hidden, batch_first=True).to(dtype)
        self.lstm.bias_hh_l0.requires_grad_(False).zero_()
        self.pairs = [("layer1.W", self.lstm.weight_ih_l0), ("layer1.U", self.lstm.weight_hh_l0),
                      ("layer1.b", self.lstm.bias_ih_l0)]

    def swapped(self, values):
        """Exchanges the last two gates, from our order to theirs and back."""
        i, f, o, u = values.split(self.hidden, -1)
        return torch.cat([i, f, u, o], -1)

    @torch.no_grad()
    def weights(self):
        for name, theirs in self.pairs:
            value = self.swapped(self.parameters[name])
            theirs.copy_(value.t() if value.dim() == 2 else value)
        training = not torch.is_inference_mode_enabled()
        return {name: self.parameters[name].detach().to(self.dtype).requires_grad_(training)
                for name in ("head.W", "head.b")}

    def outputs(self, batch, x, lengths):
        """h of all tokens, [tokens, H], and the order of the labels that goes with it."""
        raise NotImplementedError

    def prepare(self, batch):
        words = torch.from_numpy(np.concatenate([example.word for example in batch]))
        return words, self.lookup(words), [example.vertices for example in batch]

    def train(self, batch):
        w = self.weights()
        words, x, lengths = self.prepare(batch)
        h, labels = self.outputs(batch, x, lengths)
        logits = torch.addmm(w["head.b"], h, w["head.W"])
        loss = functional.cross_entropy(logits.float(), labels, reduction="sum") / len(batch)
        for _, theirs in self.pairs:
            theirs.grad = None
        value = self.descend(loss, w, words, x) * len(batch)
        with torch.no_grad():
            for name, theirs in self.pairs:
                gradient = theirs.grad.t() if theirs.dim() == 2 else theirs.grad
                self.parameters[name].add_(self.swapped(gradient), alpha=-LEARNING_RATE)
        return value

    def infer(self, batch):
        w = self.weights()
        _, x, lengths = self.prepare(batch)
        h, _ = self.outputs(batch, x, lengths)
        return torch.log_softmax(torch.addmm(w["head.b"], h, w["head.W"]).float(), 1)


class PackedLstm(LstmLm):
    def outputs(self, batch, x, lengths):
        packed = nn.utils.rnn.pack_sequence(x.split(lengths), enforce_sorted=False)
        labels = nn.utils.rnn.pack_sequence([torch.from_numpy(example.label) for example in batch],
                                            enforce_sorted=False)
        return self.lstm(packed)[0].data, labels.data


class PaddedLstm(LstmLm):
    def outputs(self, batch, x, lengths):
        padded = nn.utils.rnn.pad_sequence(x.split(lengths), batch_first=True)
        real = torch.arange(padded.shape[1])[None, :] < torch.tensor(lengths)[:, None]
        labels = torch.from_numpy(np.concatenate([example.label for example in batch]))
        return self.lstm(padded)[0][real], labels
