"""The systems that are compared: ours, one process a measurement, and the peers, one worker process each."""
import json
import os
import subprocess
import tempfile

from comparison.workloads import LATENCY_EXAMPLES, LEARNING_RATE

TRIAL_SECONDS = 0.4

# By system: number formats of products.
PEERS = {"dynet": ["fp32"], "pytorch": ["fp32", "bf16"], "dgl": ["fp32"]}

# Ours, by the name of the setting: precision and flags.
CAVS_SETTINGS = {
    "sharing=none": ("fp32", ["--sharing=none"]),
    "defaults": ("fp32", []),
    "bf16": ("bf16", ["--precision=bf16"]),
}


class Unavailable(Exception):
    """A system cannot take part; the text says why."""


def batches(workload, mode):
    """Size and number of the minibatches that are run."""
    if mode == "latency":
        return 1, min(LATENCY_EXAMPLES, workload.examples())
    return workload.batch_size, workload.minibatches


class Cavs:
    """`cavs bench` under one setting."""

    def __init__(self, program, setting, workload, source, mode, threads):
        self.system, self.setting, self.tried = "cavs", setting, {}
        self.precision, flags = CAVS_SETTINGS[setting]
        self.threads = 1 if mode == "latency" else threads
        batch_size, minibatches = batches(workload, mode)
        self.command = [program, "bench", f"--model={workload.model}", f"--data={source}",
                        f"--hidden={workload.hidden}", f"--embed={workload.embed}", f"--batch_size={batch_size}",
                        f"--minibatches={minibatches}", f"--mode={'train' if mode == 'train' else 'infer'}",
                        f"--threads={self.threads}", "--optimizer=sgd", f"--lr={LEARNING_RATE}", "--quiet", *flags]

    def measure(self, seconds):
        return self.run(seconds)

    def run(self, seconds):
        """The bench event of one process."""
        with tempfile.TemporaryDirectory() as folder:
            metrics = os.path.join(folder, "metrics")
            done = subprocess.run([*self.command, f"--seconds={seconds}", f"--metrics={metrics}"], text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            if done.returncode != 0:
                raise Unavailable(done.stderr.strip().split("\n")[-1])
            with open(metrics, encoding="utf-8") as events:
                event = next(e for e in map(json.loads, events) if e["event"] == "bench")
        return {"examples_per_s": event["examples_per_s"], "vertices_per_s": event["vertices_per_s"],
                "peak_bytes": event["resident_peak_bytes"]}

    def close(self):
        pass


class WorkerProcess:
    """A peer's worker; the protocol is described in peers/worker.py."""

    def __init__(self, command, log):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Unavailable(f"its worker ended with code {self.process.wait()}; {self.process.args[-1]}")
        answer = json.loads(line)
        if "error" in answer:
            raise Unavailable(answer["error"])
        return answer

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Environment:
    """What setup prepared for a peer: how to start its worker."""

    def __init__(self, name, folder):
        path = os.path.join(folder, name, "ready.json")
        try:
            with open(path, encoding="utf-8") as file:
                self.command = json.load(file)["command"]
        except FileNotFoundError:
            try:
                with open(os.path.join(folder, name, "failed"), encoding="utf-8") as file:
                    raise Unavailable(file.read().strip()) from None
            except FileNotFoundError:
                raise Unavailable("its environment is missing; run perf/peers/setup") from None
        self.name = name
        self.versions = {}  # of the peer and what it runs on; known once a worker has been asked
        self.log = open(os.path.join(folder, name, "worker.log"), "a", encoding="utf-8")

    def note(self, text):
        self.log.write(text + "\n")
        self.log.flush()

    def start(self):
        return WorkerProcess(self.command, self.log)


class Choices:
    """Which setting of a peer is the fastest for a workload; kept in a file, because finding out takes minutes."""

    def __init__(self, path, forget):
        self.path, self.known = path, {}
        if os.path.exists(path) and not forget:
            with open(path, encoding="utf-8") as file:
                self.known = json.load(file)

    def get(self, key, find):
        """The figures of all settings by `setting, N threads`, the fastest first."""
        if key not in self.known:
            self.known[key] = find()
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(self.known, file, indent=1)
        return self.known[key]


class Peer:
    """A peer under its fastest setting."""

    def __init__(self, environment, data, workload, mode, precision, threads, choices):
        self.system, self.precision = environment.name, precision
        self.batch_size, self.minibatches = batches(workload, mode)
        self.environment = environment
        self.request = {"do": "load", "data": data, "parameters": None, "precision": precision,
                        "mode": "train" if mode == "train" else "infer"}
        self.worker, loaded = self.load()
        environment.versions = loaded["versions"]
        counts = [1] if mode == "latency" else sorted({1, threads})
        key = "|".join([workload.name, mode, precision, str(threads), self.system, *environment.versions.values()])
        try:
            tried = choices.get(key, lambda: self.find(loaded["settings"], counts))
        except Unavailable:
            self.worker.close()
            raise
        if not tried:
            self.worker.close()
            raise Unavailable(f"none of its settings runs this workload; see {environment.log.name}")
        best = max(tried, key=lambda trial: trial["examples_per_s"])
        self.setting, self.threads = best["setting"], best["threads"]
        self.tried = {f"{trial['setting']}, {trial['threads']} threads": trial["examples_per_s"] for trial in tried}

    def load(self):
        worker = self.environment.start()
        try:
            return worker, worker.ask(**self.request)
        except Unavailable:
            worker.close()
            raise

    def find(self, settings, counts):
        """Tries all settings with all threads, and the fastest with one; a fresh process then measures."""
        trials = []
        for setting in settings:
            self.attempt(setting, counts[-1], trials)
        if trials:
            best = max(trials, key=lambda trial: trial["examples_per_s"])
            for threads in counts[:-1]:
                self.attempt(best["setting"], threads, trials)
        self.worker.close()
        self.worker, _ = self.load()
        return trials

    def attempt(self, setting, threads, trials):
        """Appends the figures of a setting, unless it fails."""
        self.setting, self.threads = setting, threads
        try:
            trials.append({"setting": setting, "threads": threads, **self.measure(TRIAL_SECONDS)})
        except Unavailable as reason:
            self.environment.note(f"{setting}, {threads} threads: {reason}")
            self.worker.close()
            self.worker, _ = self.load()

    def measure(self, seconds):
        answer = self.worker.ask(do="run", setting=self.setting, threads=self.threads, batch_size=self.batch_size,
                                 minibatches=self.minibatches, seconds=seconds)
        return {"examples_per_s": answer["examples"] / answer["seconds"],
                "vertices_per_s": answer["vertices"] / answer["seconds"], "peak_bytes": answer["peak_bytes"]}

    def close(self):
        self.worker.close()
