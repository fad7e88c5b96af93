"""The systems that are compared: ours, one process a measurement, and the peers, one worker process each."""
import json
import os
import subprocess
import tempfile
import threading

from comparison.workloads import LATENCY_EXAMPLES, LEARNING_RATE

TRIAL_SECONDS, QUICK_TRIAL_SECONDS = 0.4, 0.15
ANSWER_SECONDS = 300  # a worker that says nothing for so long is given up
PEERS_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers")

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
        # One thread means one core, as it does for the peers: nothing is planned beside it.
        prefetch = "off" if self.threads == 1 else "auto"
        self.command = [program, "bench", f"--model={workload.model}", f"--data={source}",
                        f"--hidden={workload.hidden}", f"--embed={workload.embed}", f"--batch_size={batch_size}",
                        f"--minibatches={minibatches}", f"--mode={'train' if mode == 'train' else 'infer'}",
                        f"--threads={self.threads}", f"--prefetch={prefetch}", "--optimizer=sgd",
                        f"--lr={LEARNING_RATE}", "--quiet", *flags]

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
    """A peer's worker; the protocol is described in peers/worker.py. The log takes what it prints otherwise."""

    def __init__(self, command, log):
        self.log_begin, self.log = os.path.getsize(log.name), log.name
        self.process = subprocess.Popen(command, cwd=PEERS_FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log, text=True)

    def ask(self, **request):
        watchdog = threading.Timer(ANSWER_SECONDS, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            in_time = watchdog.is_alive()
            watchdog.cancel()
        if not line:
            raise Unavailable(self.last_words() if in_time else f"its worker gave no answer in {ANSWER_SECONDS} s")
        answer = json.loads(line)
        if "error" in answer:
            raise Unavailable(answer["error"])
        return answer

    def last_words(self):
        """Of a process that has ended."""
        code = self.process.wait()
        with open(self.log, encoding="utf-8", errors="replace") as log:
            log.seek(self.log_begin)
            printed = [line.strip() for line in log if line.strip()]
        ending = f"by signal {-code}" if code < 0 else f"with code {code}"
        return f"its worker ended {ending}" + (f", having said: {printed[-1]}" if printed else "")

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Environment:
    """What setup prepared for a peer: how to start its worker, or why it cannot be started."""

    def __init__(self, name, folder):
        self.name, self.failure = name, None
        self.versions = {}  # of the peer and what it runs on; known once a worker has been asked
        folder = os.path.join(folder, name)
        try:
            with open(os.path.join(folder, "ready.json"), encoding="utf-8") as file:
                self.command = json.load(file)["command"]
            self.log = open(os.path.join(folder, "worker.log"), "a", encoding="utf-8")
        except FileNotFoundError:
            self.failure = self.why_missing(folder)

    @staticmethod
    def why_missing(folder):
        try:
            with open(os.path.join(folder, "failed"), encoding="utf-8") as file:
                return file.read().strip()
        except FileNotFoundError:
            return "its environment is missing; run perf/peers/setup"

    def start(self):
        if self.failure:
            raise Unavailable(self.failure)
        return WorkerProcess(self.command, self.log)


class Choices:
    """How fast a peer's settings are at a workload; kept in a file, because finding out takes minutes."""

    def __init__(self, path, forget):
        self.path, self.known = path, {}
        if os.path.exists(path) and not forget:
            with open(path, encoding="utf-8") as file:
                self.known = json.load(file)

    def get(self, keys, settings, find):
        """The trials of at least these settings that are known for the first of the keys that has some; where none has,
        those that `find` returns, kept under the last key."""
        for key in keys:
            trials = self.known.get(key, [])
            if {trial["setting"] for trial in trials} >= set(settings) and any_ran(trials):
                return trials
        trials = self.known[keys[-1]] = find()
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self.known, file, indent=1)
        return trials


def any_ran(trials):
    return any("failure" not in trial for trial in trials)


def fastest(trials):
    return max((trial for trial in trials if "failure" not in trial), key=lambda trial: trial["examples_per_s"])


class Peer:
    """A peer under its fastest setting."""

    def __init__(self, environment, data, workload, mode, precision, threads, choices, quick):
        self.system, self.precision = environment.name, precision
        self.batch_size, self.minibatches = batches(workload, mode)
        self.environment = environment
        self.request = {"do": "load", "data": data, "parameters": None, "precision": precision,
                        "mode": "train" if mode == "train" else "infer"}
        self.worker, loaded = self.load()
        environment.versions = loaded["versions"]
        counts = [1] if mode == "latency" else sorted({1, threads})
        self.trial_seconds = QUICK_TRIAL_SECONDS if quick else TRIAL_SECONDS
        # A quick run believes the longer trials of a full one, never the other way round.
        lengths = [(self.minibatches, self.trial_seconds)]
        if workload.whole:
            lengths.insert(0, (batches(workload.whole, mode)[1], TRIAL_SECONDS))
        keys = ["|".join([workload.name, mode, precision, str(threads), self.system, *environment.versions.values(),
                          f"{minibatches} minibatches", f"{seconds} s"]) for minibatches, seconds in lengths]
        left_out = loaded.get("slow_to_start", []) if quick else []
        settings = [setting for setting in loaded["settings"] if setting not in left_out]
        try:
            trials = choices.get(keys, settings, lambda: self.find(settings, counts))
        except Unavailable:
            self.worker.close()
            raise
        if not any_ran(trials):
            self.worker.close()
            raise Unavailable("; ".join(f"{trial['setting']}: {trial['failure']}" for trial in trials))
        best = fastest(trials)
        self.setting, self.threads = best["setting"], best["threads"]
        self.tried = {f"{trial['setting']}, {trial['threads']} threads":
                      trial["failure"] if "failure" in trial else trial["examples_per_s"] for trial in trials}

    def load(self):
        worker = self.environment.start()
        try:
            return worker, worker.ask(**self.request)
        except Unavailable:
            worker.close()
            raise

    def find(self, settings, counts):
        """Tries all settings with all threads, and the fastest with one; a fresh process then measures."""
        trials = [self.attempt(setting, counts[-1]) for setting in settings]
        if any_ran(trials):
            best = fastest(trials)["setting"]
            trials += [self.attempt(best, threads) for threads in counts[:-1]]
        self.restart()
        return trials

    def attempt(self, setting, threads):
        """The figures of a setting, or its failure in words."""
        self.setting, self.threads = setting, threads
        trial = {"setting": setting, "threads": threads}
        try:
            return {**trial, **self.measure(self.trial_seconds)}
        except Unavailable as reason:
            self.restart()
            return {**trial, "failure": str(reason)}

    def restart(self):
        self.worker.close()
        self.worker, _ = self.load()

    def measure(self, seconds):
        answer = self.worker.ask(do="run", setting=self.setting, threads=self.threads, batch_size=self.batch_size,
                                 minibatches=self.minibatches, seconds=seconds)
        return {"examples_per_s": answer["examples"] / answer["seconds"],
                "vertices_per_s": answer["vertices"] / answer["seconds"], "peak_bytes": answer["peak_bytes"]}

    def close(self):
        self.worker.close()
