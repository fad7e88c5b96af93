"""Tree models in PyTorch, forward and backward written by hand.

Level by level over the minibatch; states are written into the slots that their consumers read (tree_plan.py), results
go into buffers of all rows, and the gradients of parameters are one product over all levels. The formulas are those of
the models being compared.
"""
import torch

from tree_plan import TreePlan
from worker import LEARNING_RATE

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input


class Values:
    """What one minibatch computes, all in the model's number format: states by slot, gates by row, and for the rows of
    a level (or all leaves) the views that its cell works on."""

    def __init__(self, model, plan, w):
        self.h, self.c = (model.buffer(plan.slots, model.hidden) for _ in range(2))
        self.x = model.parameters["words"].index_select(0, plan.words).to(model.dtype)
        self.leaf_gates = model.product(self.x, w, "leaf.W", "leaf.b")
        self.leaf_tanh = model.buffer(len(plan.words), model.hidden)
        self.gates = model.buffer(plan.rows, model.row_gates * model.hidden)
        self.tanh = model.buffer(plan.rows, model.hidden)


class TreeModel:
    """What the tree models share: words, the classifier over h, the step. `row_gates`: widths of h that a row's product
    has. The cells of the subclass write states into `slots` and turn gates into what the backward pass reads."""
    row_gates = 0

    def __init__(self, parameters, dtype):
        self.parameters = parameters
        self.dtype = dtype
        self.hidden = parameters["head.W"].shape[0]

    def weights(self):
        return {name: value.to(self.dtype) for name, value in self.parameters.items() if name != "words"}

    def buffer(self, rows, width):
        return torch.empty(rows, width, dtype=self.dtype)

    @staticmethod
    def product(x, w, weights, bias):
        return torch.addmm(w[bias], x, w[weights]) if bias in w else torch.mm(x, w[weights])

    def forward(self, plan, w):
        v = Values(self, plan, w)
        self.leaf_forward(v.leaf_gates, v.leaf_tanh, plan.leaf_slots, v.h, v.c)
        for begin, end in plan.levels:
            gates = v.gates[begin:end]
            torch.addmm(w["node.b"], v.h[2 * begin:2 * end].view(end - begin, -1), w["node.U"], out=gates)
            self.row_forward(gates, v.tanh[begin:end], v.c[2 * begin:2 * end].view(end - begin, -1),
                             plan.row_slots[begin:end], v.h, v.c)
        return v

    def infer(self, batch):
        plan, w = TreePlan(batch), self.weights()
        return torch.addmm(w["head.b"], self.forward(plan, w).h[plan.root_slots], w["head.W"])

    def train(self, batch):
        plan, w = TreePlan(batch), self.weights()
        v = self.forward(plan, w)
        loss, dh, gradients = self.head(plan, w, v.h, 1 / len(batch))
        dc, d_gates = torch.empty_like(v.c), torch.empty_like(v.gates)
        dc[plan.root_slots] = 0
        back = w["node.U"].t()
        for begin, end in reversed(plan.levels):
            children = slice(2 * begin, 2 * end)
            self.row_backward(v.gates[begin:end], v.tanh[begin:end], v.c[children].view(end - begin, -1),
                              plan.row_slots[begin:end], dh, dc, d_gates[begin:end], dc[children].view(end - begin, -1))
            dh[children].view(end - begin, -1).addmm_(d_gates[begin:end], back)
        d_leaf = torch.empty_like(v.leaf_gates)
        self.leaf_backward(v.leaf_gates, v.leaf_tanh, plan.leaf_slots, dh, dc, d_leaf)
        gradients["node.U"] = v.h[:2 * plan.rows].view(plan.rows, -1).t() @ d_gates
        gradients["node.b"] = d_gates.sum(0)
        gradients["leaf.W"] = v.x.t() @ d_leaf
        if "leaf.b" in w:
            gradients["leaf.b"] = d_leaf.sum(0)
        self.update(gradients, plan, d_leaf @ w["leaf.W"].t())
        return loss

    def head(self, plan, w, h, scale):
        """The loss, dh, and the gradients of the classifier."""
        rows = h if plan.labelled is None else h.index_select(0, plan.labelled)
        logarithms = torch.log_softmax(torch.addmm(w["head.b"], rows, w["head.W"]).float(), 1)
        picked = logarithms.gather(1, plan.labels[:, None])
        d_logits = logarithms.exp().scatter_add_(1, plan.labels[:, None], torch.full_like(picked, -1))
        d_logits = d_logits.mul_(scale).to(self.dtype)
        dh = d_logits @ w["head.W"].t()
        if plan.labelled is not None:
            dh = torch.zeros_like(h).index_copy_(0, plan.labelled, dh)
        return -picked.sum().item(), dh, {"head.W": rows.t() @ d_logits, "head.b": d_logits.sum(0)}

    def update(self, gradients, plan, d_words):
        for name, gradient in gradients.items():
            self.parameters[name].add_(gradient, alpha=-LEARNING_RATE)
        self.parameters["words"].index_add_(0, plan.words, d_words.float(), alpha=-LEARNING_RATE)


class TreeLstm(TreeModel):
    row_gates = 5

    @staticmethod
    def leaf_forward(gates, tanh_c, slots, h, c):
        i, o, u = gates.chunk(3, 1)
        gates[:, :2 * i.shape[1]].sigmoid_()
        u.tanh_()
        cell = i * u
        torch.tanh(cell, out=tanh_c)
        c.index_copy_(0, slots, cell)
        h.index_copy_(0, slots, o * tanh_c)

    @staticmethod
    def leaf_backward(gates, tanh_c, slots, dh, dc, d_gates):
        (i, o, u), (d_i, d_o, d_u) = gates.chunk(3, 1), d_gates.chunk(3, 1)
        d_out = dh.index_select(0, slots)
        d_cell = d_out * o
        tanh_backward(d_cell, tanh_c, grad_input=d_cell)
        d_cell += dc.index_select(0, slots)
        torch.mul(d_cell, u, out=d_i)
        torch.mul(d_out, tanh_c, out=d_o)
        torch.mul(d_cell, i, out=d_u)
        both = slice(0, 2 * i.shape[1])
        sigmoid_backward(d_gates[:, both], gates[:, both], grad_input=d_gates[:, both])
        tanh_backward(d_u, u, grad_input=d_u)

    @staticmethod
    def row_forward(gates, tanh_c, children, slots, h, c):
        hidden = tanh_c.shape[1]
        i, o, u, f_l, f_r = gates.chunk(5, 1)
        c_l, c_r = children.chunk(2, 1)
        gates[:, :2 * hidden].sigmoid_()
        u.tanh_()
        gates[:, 3 * hidden:].sigmoid_()
        cell = (i * u).addcmul_(f_l, c_l).addcmul_(f_r, c_r)
        torch.tanh(cell, out=tanh_c)
        c.index_copy_(0, slots, cell)
        h.index_copy_(0, slots, o * tanh_c)

    @staticmethod
    def row_backward(gates, tanh_c, children, slots, dh, dc, d_gates, d_children):
        rows, hidden = tanh_c.shape
        i, o, u, _, _ = gates.chunk(5, 1)
        d_i, d_o, d_u, _, _ = d_gates.chunk(5, 1)
        forget, d_forget = gates[:, 3 * hidden:], d_gates[:, 3 * hidden:]
        d_out = dh.index_select(0, slots)
        d_cell = d_out * o
        tanh_backward(d_cell, tanh_c, grad_input=d_cell)
        d_cell += dc.index_select(0, slots)
        torch.mul(d_cell, u, out=d_i)
        torch.mul(d_out, tanh_c, out=d_o)
        torch.mul(d_cell, i, out=d_u)
        twice = d_cell[:, None]
        torch.mul(twice, children.view(rows, 2, hidden), out=d_forget.view(rows, 2, hidden))
        torch.mul(twice, forget.view(rows, 2, hidden), out=d_children.view(rows, 2, hidden))
        sigmoid_backward(d_gates[:, :2 * hidden], gates[:, :2 * hidden], grad_input=d_gates[:, :2 * hidden])
        tanh_backward(d_u, u, grad_input=d_u)
        sigmoid_backward(d_forget, forget, grad_input=d_forget)


class TreeFc(TreeModel):
    """c and its gradients lie unused beside h, so that both models share one step."""
    row_gates = 1

    @staticmethod
    def leaf_forward(gates, _, slots, h, c):
        h.index_copy_(0, slots, gates)

    @staticmethod
    def leaf_backward(gates, _, slots, dh, dc, d_gates):
        torch.index_select(dh, 0, slots, out=d_gates)

    @staticmethod
    def row_forward(gates, _, children, slots, h, c):
        h.index_copy_(0, slots, gates.relu_())

    @staticmethod
    def row_backward(gates, _, children, slots, dh, dc, d_gates, d_children):
        torch.mul(dh.index_select(0, slots), gates > 0, out=d_gates)
