"""What the Python peers have in common: the examples of a workload, parameters, and the loop over requests.

A worker is a process that reads requests as JSON lines and answers each by one JSON line on its standard output:
  {"do": "load", "data": FILE, "parameters": FILE or null, "mode": "train" or "infer", "precision": "fp32" or "bf16"}
      -> {"settings": [TEXT, ...], "slow_to_start": [TEXT, ...], "versions": {NAME: VERSION}}
      the second, which may be missing: settings whose first run takes long, so that --quick does not try them
  {"do": "run", "setting": TEXT, "threads": N, "batch_size": N, "minibatches": N, "seconds": S}
      -> {"examples": N, "vertices": N, "seconds": S, "peak_bytes": N}
      whole passes over the first minibatches in file order, until S seconds have passed; a combination's first run
      begins with a pass that is not timed
  {"do": "losses", "setting": TEXT, "batch_size": N, "steps": N}
      -> {"losses": [X, ...]}
      training steps on the first minibatch: the loss before each of them, summed and divided by its examples
What goes wrong is answered by {"error": TEXT}. `peak_bytes` is the process's resident memory at its highest since
"load", less what it was before the parameters were made.
"""
import json
import os
import sys
import time

import numpy as np

import tensor_file

LEARNING_RATE = 0.01
DTYPES = {"F32": np.float32, "I32": np.int32}


def read_arrays(path):
    metadata, tensors = tensor_file.read(path)
    return metadata, {name: np.frombuffer(buffer, DTYPES[dtype]).reshape(shape)
                      for name, (dtype, shape, buffer) in tensors.items()}


def memory(field):
    """VmRSS or VmHWM of this process, in bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


class Example:
    """One graph, its vertices children first."""

    def __init__(self, arrays, number):
        begin, end = arrays["example_begin"][number:number + 2]
        edges = arrays["child_begin"][begin:end + 1]
        self.vertices = int(end - begin)
        self.child_begin = edges - edges[0]
        self.child = arrays["child"][edges[0]:edges[-1]].astype(np.int64)  # within the example, -1 for none
        self.word = arrays["word"][begin:end].astype(np.int64)
        self.label = arrays["label"][begin:end].astype(np.int64)
        self.target = arrays["target"][number] if "target" in arrays else None
        self.height = self._heights()

    def children(self, vertex):
        return self.child[self.child_begin[vertex]:self.child_begin[vertex + 1]]

    def _heights(self):
        heights = np.zeros(self.vertices, np.int64)
        for vertex in range(self.vertices):
            children = self.children(vertex)
            if len(children) and children[0] >= 0:
                heights[vertex] = 1 + heights[children].max()
        return heights


def initial_parameters(sizes):
    """The parameters of a model of ours, by name, with values that keep activations in the usual range."""
    h, e, vocabulary, classes = (int(sizes[name]) for name in ("hidden", "embed", "vocabulary", "classes"))
    shapes = {
        "tree_lstm": {"leaf.W": (e, 3 * h), "leaf.b": (3 * h,), "node.U": (2 * h, 5 * h), "node.b": (5 * h,)},
        "tree_fc": {"leaf.W": (e, h), "node.U": (2 * h, h), "node.b": (h,)},
        "lstm_lm": {"layer1.W": (e, 4 * h), "layer1.U": (h, 4 * h), "layer1.b": (4 * h,)},
        "child_sum_tree_lstm": {"node.W": (e, 4 * h), "node.b": (4 * h,), "node.U": (h, 3 * h), "node.U_f": (h, h),
                                "pair.W": (2 * h, 50), "pair.b": (50,)},
    }[sizes["model"]]
    last = 50 if sizes["model"] == "child_sum_tree_lstm" else h
    shapes = {"words": (vocabulary, e), **shapes, "head.W": (last, classes), "head.b": (classes,)}
    draw = np.random.default_rng(1)
    return {name: np.zeros(shape, np.float32) if len(shape) == 1 else
            draw.uniform(-0.05, 0.05, shape).astype(np.float32) for name, shape in shapes.items()}


class Worker:
    """A peer implements make(), set_threads() and step()."""
    settings = []
    slow_to_start = []

    def __init__(self):
        self.warm = set()
        self.base_bytes = 0

    def load(self, data, parameters, mode, precision):
        self.sizes, arrays = read_arrays(data)
        self.mode, self.precision = mode, precision
        self.examples = [Example(arrays, number) for number in range(len(arrays["example_begin"]) - 1)]
        values = read_arrays(parameters)[1] if parameters else initial_parameters(self.sizes)
        self.base_bytes = memory("VmRSS") - sum(value.nbytes for value in values.values())
        self.make(values)
        self.warm.clear()
        return {"settings": self.settings, "slow_to_start": self.slow_to_start, "versions": self.versions()}

    def run(self, setting, threads, batch_size, minibatches, seconds):
        self.set_threads(threads)
        examples = self.examples[:batch_size * minibatches]
        batches = [examples[i:i + batch_size] for i in range(0, len(examples), batch_size)]
        key = (setting, threads, batch_size)
        if key not in self.warm:
            for batch in batches:
                self.step(setting, batch)
            self.warm.add(key)
        passes, begin = 0, time.perf_counter()
        while passes == 0 or time.perf_counter() - begin < seconds:
            for batch in batches:
                self.step(setting, batch)
            passes += 1
        spent = time.perf_counter() - begin
        return {"examples": passes * sum(map(len, batches)), "seconds": spent,
                "vertices": passes * sum(example.vertices for batch in batches for example in batch),
                "peak_bytes": max(0, memory("VmHWM") - self.base_bytes)}

    def losses(self, setting, batch_size, steps):
        batch = self.examples[:batch_size]
        return {"losses": [self.step(setting, batch) / len(batch) for _ in range(steps)]}

    # Of the subclass:

    def versions(self):
        raise NotImplementedError

    def make(self, values):
        """Builds the model from numpy arrays by name."""
        raise NotImplementedError

    def set_threads(self, threads):
        raise NotImplementedError

    def step(self, setting, batch):
        """A training step on these examples, or their inference; returns the summed loss of a training step."""
        raise NotImplementedError


def serve(worker):
    """Answers requests until the end of the input; whatever libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # pylint: disable=broad-except; the driver reports it and goes on
            answer = {"error": f"{type(error).__name__}: {str(error).strip()[:500]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
