"""Tree models in PyTorch, forward and backward written by hand.

Level by level over the minibatch; states are written into the slots that their consumers read (tree_plan.py), results
go into buffers of all rows, and the gradients of parameters are one product over all levels. The formulas are those of
the models being compared.
"""
import torch
from torch.nn import functional

from tree_plan import ForestPlan, TreePlan
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


class Model:
    """Parameters, their lowered copies, and stochastic gradient descent. `row_gates`: widths of h that a product with
    node.U has."""
    row_gates = 0

    def __init__(self, parameters, dtype):
        self.parameters = parameters
        self.dtype = dtype
        self.hidden = parameters["node.U"].shape[1] // self.row_gates

    def weights(self):
        return {name: value.to(self.dtype) for name, value in self.parameters.items() if name != "words"}

    def buffer(self, rows, width):
        return torch.empty(rows, width, dtype=self.dtype)

    def update(self, gradients, plan, d_words):
        for name, gradient in gradients.items():
            self.parameters[name].add_(gradient, alpha=-LEARNING_RATE)
        self.parameters["words"].index_add_(0, plan.words, d_words.float(), alpha=-LEARNING_RATE)


class TreeModel(Model):
    """What the models of binary trees share: the classifier over h, the step. The cells of the subclass write states
    into `slots` and turn gates into what the backward pass reads."""

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
        """Returns the gradient of c."""
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
        return d_cell

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


class ForestValues:
    """What a minibatch of a child-sum model computes: h and c by slot, the forget gates by edge, and by row the gates
    i, o, u and what the words add to f, tanh c, and the sum of h over the children."""

    def __init__(self, model, plan, w):
        self.h, self.c, self.tanh = (model.buffer(plan.rows, model.hidden) for _ in range(3))
        self.x = model.parameters["words"].index_select(0, plan.words).to(model.dtype)
        self.gates = torch.addmm(w["node.b"], self.x, w["node.W"])
        self.sums = torch.zeros_like(self.h)
        self.forget = model.buffer(len(plan.parent), model.hidden)


class ChildSumTreeLstm(Model):
    row_gates = 3

    def forward(self, plan, w):
        v, iou = ForestValues(self, plan, w), slice(0, 3 * self.hidden)
        for level, (begin, end) in enumerate(plan.levels):
            gates, tanh_c, slots = v.gates[begin:end], v.tanh[begin:end], plan.row_slots[begin:end]
            if level == 0:
                TreeLstm.leaf_forward(gates[:, iou], tanh_c, slots, v.h, v.c)
                continue
            edges = slice(plan.edges[level], plan.edges[level + 1])
            parent, forget = plan.parent[edges] - begin, v.forget[edges]
            gates[:, iou].addmm_(v.sums[begin:end].index_add_(0, parent, v.h[edges]), w["node.U"])
            torch.addmm(gates[:, 3 * self.hidden:].index_select(0, parent), v.h[edges], w["node.U_f"], out=forget)
            forget.sigmoid_()
            gates[:, :2 * self.hidden].sigmoid_()
            i, o, u, _ = gates.chunk(4, 1)
            cell = (i * u.tanh_()).index_add_(0, parent, forget * v.c[edges])
            torch.tanh(cell, out=tanh_c)
            v.c.index_copy_(0, slots, cell)
            v.h.index_copy_(0, slots, o * tanh_c)
        return v

    def head(self, plan, w, h):
        """Both roots of every pair, their features, the similarity, and the logits."""
        left, right = h[len(plan.parent):].view(-1, 2, self.hidden).unbind(1)
        features = torch.cat([left * right, (left - right).abs()], 1)
        similarity = torch.addmm(w["pair.b"], features, w["pair.W"]).sigmoid_()
        return left, right, features, similarity, torch.addmm(w["head.b"], similarity, w["head.W"]).float()

    def head_backward(self, plan, w, h, scale):
        """The loss, the gradient of the roots' h, and those of the parameters."""
        left, right, features, similarity, logits = self.head(plan, w, h)
        logarithms = torch.log_softmax(logits, 1)
        loss = functional.kl_div(logarithms, plan.targets, reduction="sum").item()
        d_logits = logarithms.exp().sub_(plan.targets).mul_(scale).to(self.dtype)  # targets sum to 1
        d_pair = torch.ops.aten.sigmoid_backward(d_logits @ w["head.W"].t(), similarity)
        d_product, d_distance = (d_pair @ w["pair.W"].t()).chunk(2, 1)
        d_distance = d_distance * (left - right).sign()
        d_roots = torch.stack([d_product * right + d_distance, d_product * left - d_distance], 1)
        return loss, d_roots.view(-1, self.hidden), {
            "head.W": similarity.t() @ d_logits, "head.b": d_logits.sum(0),
            "pair.W": features.t() @ d_pair, "pair.b": d_pair.sum(0)}

    def infer(self, batch):
        plan, w = ForestPlan(batch), self.weights()
        return self.head(plan, w, self.forward(plan, w).h)[-1]

    def train(self, batch):
        plan, w = ForestPlan(batch), self.weights()
        v, iou, inner = self.forward(plan, w), slice(0, 3 * self.hidden), slice(plan.levels[0][1], None)
        loss, d_roots, gradients = self.head_backward(plan, w, v.h, 1 / len(batch))
        dh, dc = torch.empty_like(v.h), torch.empty_like(v.c)
        dh[len(plan.parent):], dc[len(plan.parent):] = d_roots, 0
        d_gates, d_forget = torch.empty_like(v.gates), torch.empty_like(v.forget)
        for level, (begin, end) in reversed(list(enumerate(plan.levels))):
            d_iou = d_gates[begin:end, iou]
            d_cell = TreeLstm.leaf_backward(v.gates[begin:end, iou], v.tanh[begin:end], plan.row_slots[begin:end], dh,
                                            dc, d_iou)
            if level == 0:
                continue
            edges = slice(plan.edges[level], plan.edges[level + 1])
            parent, forget = plan.parent[edges] - begin, v.forget[edges]
            d_edge = d_cell.index_select(0, parent)
            torch.mul(d_edge, forget, out=dc[edges])
            sigmoid_backward(d_edge.mul_(v.c[edges]), forget, grad_input=d_forget[edges])
            torch.addmm((d_iou @ w["node.U"].t()).index_select(0, parent), d_forget[edges], w["node.U_f"].t(),
                        out=dh[edges])
        d_gates[:, 3 * self.hidden:].zero_().index_add_(0, plan.parent, d_forget)
        gradients["node.U"] = v.sums[inner].t() @ d_gates[inner, iou]
        gradients["node.U_f"] = v.h[:len(plan.parent)].t() @ d_forget
        gradients["node.W"] = v.x.t() @ d_gates
        gradients["node.b"] = d_gates.sum(0)
        self.update(gradients, plan, d_gates @ w["node.W"].t())
        return loss
