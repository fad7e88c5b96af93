"""Reads the data of the workloads as the command reads them, and writes them as arrays that every peer reads.

The words of a corpus are rows of a lookup table: `<unk>` first, the others in the order of their first occurrence, in
their look-up form. Vertices of an example come children first.
"""
import array
import dataclasses
import functools
import math
import random
import re

from peers import tensor_file

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
NONE = -1  # no child, word or label
CLASSES = 5


@dataclasses.dataclass
class Corpus:
    words: list  # rows of the lookup table
    example_begin: array.array = dataclasses.field(default_factory=lambda: array.array("i", [0]))  # of vertices
    child_begin: array.array = dataclasses.field(default_factory=lambda: array.array("i", [0]))  # of vertices, in child
    child: array.array = dataclasses.field(default_factory=lambda: array.array("i"))  # counted within the example
    word: array.array = dataclasses.field(default_factory=lambda: array.array("i"))  # of vertices
    label: array.array = dataclasses.field(default_factory=lambda: array.array("i"))  # of vertices
    target: array.array = dataclasses.field(default_factory=lambda: array.array("f"))  # of examples, CLASSES each
    classes: int = CLASSES

    def __post_init__(self):
        self.rows = {word: row for row, word in enumerate(self.words)}

    def row(self, token):
        form = BRACKETS.get(token) or token.replace("\\/", "/").replace("\\*", "*")
        row = self.rows.setdefault(form, len(self.words))
        if row == len(self.words):
            self.words.append(form)
        return row

    def add_vertex(self, children, word=NONE, label=NONE):
        """Returns its number within the example that is being added."""
        self.child.extend(children)
        self.child_begin.append(len(self.child))
        self.word.append(word)
        self.label.append(label)
        return len(self.word) - 1 - self.example_begin[-1]

    def end_example(self):
        self.example_begin.append(len(self.word))

    def examples(self):
        return len(self.example_begin) - 1

    def write(self, path, examples, metadata):
        """The first examples alone, as far as there are any, with all the words' rows."""
        examples = min(examples, self.examples())
        vertices = self.example_begin[examples]
        edges = self.child_begin[vertices]
        parts = {"example_begin": self.example_begin[:examples + 1], "child_begin": self.child_begin[:vertices + 1],
                 "child": self.child[:edges], "word": self.word[:vertices], "label": self.label[:vertices]}
        tensors = {name: ("I32", [len(values)], values) for name, values in parts.items()}
        if self.target:
            tensors["target"] = ("F32", [examples, CLASSES], self.target[:examples * CLASSES])
        sizes = {"vocabulary": str(len(self.words)), "classes": str(self.classes)}
        tensor_file.write(path, tensors, {**sizes, **metadata})


def lines(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return [line for line in file.read().split("\n") if line.strip(" \t\r")]


def tokens(line):
    return re.findall(r"\S+", line, re.ASCII)


def label_of(text):
    return int(text) if re.fullmatch("[0-4]", text) else NONE


@functools.cache
def read_trees(path, limit):
    """One binary bracketed tree a line; labels that are no class are none."""
    corpus = Corpus(["<unk>"])
    for line in lines(path)[:limit]:
        parts = re.findall(r"[()]|[^\s()]+", line, re.ASCII)
        stack = []  # for each open bracket: its label, its children, its word
        for before, part in zip([""] + parts, parts):
            if part == "(":
                stack.append([NONE, [], NONE])
            elif part == ")":
                label, children, word = stack.pop()
                vertex = corpus.add_vertex(children, word, label)
                if stack:
                    stack[-1][1].append(vertex)
            elif before == "(":
                stack[-1][0] = label_of(part)
            else:
                stack[-1][2] = corpus.row(part)
        corpus.end_example()
    return corpus


@functools.cache
def read_sentences(path, limit):
    """A chain for each line, one vertex longer than the line: the first reads `<eos>`; the label is what comes next."""
    corpus = Corpus(["<unk>", "<eos>"])
    for line in lines(path)[:limit]:
        rows = [corpus.row(token) for token in tokens(line)]
        for place, (word, following) in enumerate(zip([1] + rows, rows + [1])):
            corpus.add_vertex([place - 1], word, following)
        corpus.end_example()
    corpus.classes = len(corpus.words)
    return corpus


def add_dependency_tree(corpus, words, parents):
    """Returns the root's number."""
    children = {}
    for place, parent in enumerate(parents, 1):
        children.setdefault(parent, []).append(place)
    order, pending = [], list(children[0])
    while pending:
        order.append(pending.pop())
        pending.extend(children.get(order[-1], []))
    numbers = {}
    for place in reversed(order):
        numbers[place] = corpus.add_vertex([numbers[child] for child in children.get(place, [])], words[place - 1])
    return numbers[order[0]]


@functools.cache
def read_pairs(folder, limit):
    """Two dependency trees as parent pointers, joined by a last vertex, and a score."""
    corpus = Corpus(["<unk>"])
    names = ("a.toks", "a.parents", "b.toks", "b.parents", "sim.txt")
    for *sides, score in list(zip(*(lines(f"{folder}/{name}") for name in names)))[:limit]:
        roots = []
        for side in (0, 2):
            words = [corpus.row(token) for token in tokens(sides[side])]
            roots.append(add_dependency_tree(corpus, words, [int(parent) for parent in tokens(sides[side + 1])]))
        corpus.add_vertex(roots)
        corpus.end_example()
        whole = math.floor(float(score))
        share = {whole: whole + 1 - float(score), whole + 1: float(score) - whole}
        corpus.target.extend(share.get(grade, 0.0) for grade in range(1, CLASSES + 1))
    return corpus


READERS = {"sst": read_trees, "tree": read_trees, "lm": read_sentences, "treelstm": read_pairs}


def read(source, limit=None):
    """`source` is FORMAT:PATH; at most `limit` examples, from whose words alone the vocabulary comes."""
    kind, path = source.split(":", 1)
    return READERS[kind](path, limit)


def write_complete_trees(path, trees, leaves, vocabulary):
    """Complete binary trees with a class at the root, leaves a power of two, words drawn evenly."""
    draw = random.Random(1)
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(trees):
            level = [f"(X w{draw.randrange(vocabulary)})" for _ in range(leaves)]
            while len(level) > 2:
                level = [f"(X {left} {right})" for left, right in zip(level[::2], level[1::2])]
            out.write(f"({draw.randrange(CLASSES)} {level[0]} {level[1]})\n")
