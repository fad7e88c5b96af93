#!/usr/bin/env python3
"""PyTorch on the CPU, batched by hand.

Settings of tree models: `manual` (the backward pass written by hand too), `autograd`, and in training `autograd
compiled` (the cells go through torch.compile; in inference that was slower where it was measured). Of chains: nn.LSTM
over `packed` or `padded` sequences.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch

import pytorch_autograd
import pytorch_manual
from worker import Worker, serve

# By model: what makes each setting from the parameters and the number format.
MODELS = {
    "tree_lstm": {"manual": pytorch_manual.TreeLstm, "autograd": pytorch_autograd.TreeLstm},
    "tree_fc": {"manual": pytorch_manual.TreeFc, "autograd": pytorch_autograd.TreeFc},
    "lstm_lm": {"packed": pytorch_autograd.PackedLstm, "padded": pytorch_autograd.PaddedLstm},
    "child_sum_tree_lstm": {"manual": pytorch_manual.ChildSumTreeLstm,
                            "autograd": pytorch_autograd.ChildSumTreeLstm},
}


class PyTorchWorker(Worker):
    def versions(self):
        return {"PyTorch": torch.__version__}

    def set_threads(self, threads):
        torch.set_num_threads(threads)

    def make(self, values):
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[self.precision]
        parameters = {name: torch.from_numpy(value.copy()) for name, value in values.items()}
        kinds = MODELS[self.sizes["model"]]
        self.models = {name: kind(parameters, dtype) for name, kind in kinds.items()}
        if "autograd" in kinds and self.mode == "train":
            self.models["autograd compiled"] = kinds["autograd"](parameters, dtype, compiled=True)
        self.settings = list(self.models)
        self.slow_to_start = [name for name in self.settings if name.endswith("compiled")]

    def step(self, setting, batch):
        model = self.models[setting]
        if self.mode == "infer":
            with torch.inference_mode():
                return model.infer(batch)
        return model.train(batch)


if __name__ == "__main__":
    serve(PyTorchWorker())
