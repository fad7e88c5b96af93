"""The workloads that perf/compare knows by name."""
import dataclasses
import os
from typing import Optional

from comparison import corpora

COMPLETE_TREES = "complete_trees.txt"  # made here, not read
COMPLETE_LEAVES = 256
COMPLETE_WORDS = 10000


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    model: str
    format: str  # of the data, as the command calls it
    path: str  # in the folder of data
    hidden: int
    embed: int
    batch_size: int
    minibatches: int  # the first so many are run, over and over
    whole: Optional["Workload"] = None  # what this one was shortened from

    def shortened(self):
        """For --quick: fewer minibatches of the same size."""
        return dataclasses.replace(self, minibatches=max(1, self.minibatches // 4), whole=self)

    def examples(self):
        return self.batch_size * self.minibatches

    def source(self, folder, made):
        """FORMAT:PATH; `made` is the folder of data that are generated. None: there are no such data."""
        if self.path == COMPLETE_TREES:
            path = os.path.join(made, self.path)
            if not os.path.exists(path):
                corpora.write_complete_trees(path, self.examples(), COMPLETE_LEAVES, COMPLETE_WORDS)
        else:
            path = os.path.join(folder, self.path)
        return f"{self.format}:{path}" if os.path.exists(path) else None

    def shape(self):
        """What the latency of one example depends on."""
        return self.model, self.format, self.hidden, self.embed


def tree_lstm(hidden, batch_size, minibatches):
    embed = 64 if hidden == 64 else 300
    return Workload(f"tree_lstm_sst_h{hidden}_b{batch_size}", "tree_lstm", "sst", "sst/train.txt", hidden, embed,
                    batch_size, minibatches)


WORKLOADS = [
    tree_lstm(64, 1, 128),
    tree_lstm(64, 25, 20),
    tree_lstm(150, 25, 12),
    tree_lstm(256, 64, 4),
    tree_lstm(256, 256, 2),
    tree_lstm(512, 64, 2),
    Workload("var_lstm_ptb_h256_b64", "lstm_lm", "lm", "ptb/ptb.train.txt", 256, 256, 64, 2),
    Workload("tree_fc_256", "tree_fc", "tree", COMPLETE_TREES, 256, 256, 64, 2),
    Workload("child_sum_sick_h150_b25", "child_sum_tree_lstm", "treelstm", "sick/train", 150, 300, 25, 12),
]

# The sizes of --quick.
QUICK = ["tree_lstm_sst_h64_b1", "tree_lstm_sst_h64_b25", "tree_lstm_sst_h150_b25", "tree_lstm_sst_h256_b64",
         "tree_lstm_sst_h512_b64"]

# Training; inference (at trees the classes of roots, at sentences the loss of every token); inference of one example at
# a time with one thread.
MODES = ["train", "infer", "latency"]
LATENCY_EXAMPLES = 64
LEARNING_RATE = 0.01
