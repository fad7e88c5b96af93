"""Do the peers train the same model? Parameters of a model of ours go into each, and losses must agree."""
import json
import os
import subprocess

from comparison import corpora
from comparison.systems import PEERS, Unavailable
from comparison.workloads import LEARNING_RATE, WORKLOADS
from peers import tensor_file

STEPS = 3
# Largest relative differences: of a loss, and of what all steps together take off it.
TOLERANCES = {"fp32": (1e-4, 1e-3), "bf16": (2e-2, 5e-2)}


def train(arguments, workload, source, more):
    """Epochs over the first minibatch alone, one step each; returns their events."""
    metrics = os.path.join(more["folder"], "metrics.json")
    command = [arguments.cavs, "train", f"--train={source}", f"--max_examples={workload.batch_size}",
               f"--batch_size={workload.batch_size}", "--shuffle=false", "--optimizer=sgd", f"--lr={LEARNING_RATE}",
               f"--epochs={more['epochs']}", "--quiet", f"--metrics={metrics}", *more["flags"]]
    done = subprocess.run(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Unavailable("cavs train: " + done.stderr.strip().split("\n")[-1])
    with open(metrics, encoding="utf-8") as lines:
        return [event for event in map(json.loads, lines) if event["event"] == "epoch"]


def our_losses(arguments, workload, source, folder):
    """A saved model, and the losses of the steps from there: summed over the minibatch, by example."""
    flags = [f"--model={workload.model}", f"--hidden={workload.hidden}", f"--embed={workload.embed}",
             f"--save={folder}"]
    train(arguments, workload, source, {"folder": folder, "epochs": 1, "flags": flags})
    model = os.path.join(folder, "last.safetensors")
    events = train(arguments, workload, source, {"folder": folder, "epochs": STEPS, "flags": [f"--load={model}"]})
    return model, [event["train_loss"] * event["predictions"] / event["examples"] for event in events]


def write_data(workload, source, model, path):
    """The minibatch; its words must be the model's, row by row."""
    corpus = corpora.read(source, workload.batch_size)
    vocabulary = json.loads(tensor_file.read(model)[0]["vocabulary"])
    if vocabulary != corpus.words:
        raise Unavailable(f"expected the model's {len(vocabulary)} words, got {len(corpus.words)} others")
    corpus.write(path, workload.batch_size, {"model": workload.model, "hidden": str(workload.hidden),
                                             "embed": str(workload.embed)})


def peer_losses(environment, workload, request):
    """By setting, or why there are none; each setting begins from the model's parameters. One that fails may have taken
    its process along: the next begins in a fresh one."""
    worker = environment.start()
    try:
        losses = {}
        for setting in worker.ask(**request)["settings"]:
            try:
                worker.ask(**request)
                losses[setting] = worker.ask(do="losses", setting=setting, batch_size=workload.batch_size,
                                             steps=STEPS)["losses"]
            except Unavailable as reason:
                losses[setting] = str(reason)
                worker.close()
                worker = environment.start()
        return losses
    finally:
        worker.close()


def relative(ours, theirs):
    """Not finite counts as all wrong."""
    off = abs(ours - theirs) / abs(ours)
    return off if off == off else float("inf")


def differences(ours, theirs):
    """The largest of a loss over the steps, and that of the way from the first to the last."""
    return max(map(relative, ours, theirs)), relative(ours[0] - ours[-1], theirs[0] - theirs[-1])


def verdict(ours, theirs, precision):
    """What is said about a setting, and whether it is wrong; None: it did not run."""
    if isinstance(theirs, str):
        return f"did not run: {theirs}", None
    off, descent = differences(ours, theirs)
    wrong = off > TOLERANCES[precision][0] or descent > TOLERANCES[precision][1]
    return f"{'WRONG' if wrong else 'equal'}: losses off by {off:.1e}, their descent by {descent:.1e}", wrong


def check_workload(arguments, environments, workload, source, folder, say):
    """Returns for each setting of a peer whether it is wrong; None: it did not run."""
    model, ours = our_losses(arguments, workload, source, folder)
    data = os.path.join(folder, "data.safetensors")
    write_data(workload, source, model, data)
    say(f"{workload.name}: losses of {STEPS} steps " + ", ".join(f"{loss:.6f}" for loss in ours))
    outcomes = []
    for name, environment in environments.items():
        for precision in PEERS[name]:
            request = {"do": "load", "data": data, "parameters": model, "mode": "train", "precision": precision}
            try:
                losses = peer_losses(environment, workload, request)
            except Unavailable as reason:
                losses = {"any setting": str(reason)}
            for setting, theirs in losses.items():
                words, wrong = verdict(ours, theirs, precision)
                say(f"  {name} {precision}, {setting}: {words}")
                outcomes.append(wrong)
    return outcomes


def run(arguments, environments, folder, say):
    """Returns the exit code: 1 when a peer computes something else, or nothing was found equal."""
    outcomes = []
    for workload in (w for w in WORKLOADS if w.name in arguments.workloads):
        source = workload.source(arguments.data, folder)
        if source is None:
            say(f"workload {workload.name}: not checked: expected {workload.path} in {arguments.data}, got none")
            continue
        scratch = os.path.join(folder, workload.name)
        os.makedirs(scratch)
        try:
            outcomes += check_workload(arguments, environments, workload, source, scratch, say)
        except Unavailable as reason:
            say(f"workload {workload.name}: not checked: {reason}")
            outcomes.append(True)
    say(f"{outcomes.count(False)} equal, {outcomes.count(True)} wrong, {outcomes.count(None)} did not run")
    return 1 if True in outcomes or False not in outcomes else 0
