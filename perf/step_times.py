#!/usr/bin/env python3
"""Times a training step of a model at the sizes of the results table, and prints a table in Markdown.

  perf/step_times.py --cavs build/release/bin/cavs --data sst:FILE [--model tree_lstm] [--threads 1,2]
      [--repeat 3] [--seconds 2] [--sharing none,inputs] [--sizes 64,64,1 ...] [--reference PROGRAM] [--json FILE]

Runs are interleaved, `repeat` times over all rows; medians are reported. PROGRAM is a hand-written implementation of the
same model that takes FILE H E BATCH STEPS THREADS and prints "trees/s=N"; it runs in the same rounds and gives the ratio.
"""
import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

TABLE_HEAD = ["| H, E, batch | threads | sharing | examples/s | vertices/s | GFLOP/s | GEMM rate | fraction | schedule | "
              "over reference |", "|---|---|---|---|---|---|---|---|---|---|"]
SIZES = ["64,64,1", "64,64,25", "150,300,25", "256,300,64", "512,300,64"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cavs", required=True)
    parser.add_argument("--data", required=True, help="FORMAT:PATH")
    parser.add_argument("--model", default="tree_lstm")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--sharing", default="none,inputs")
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="H,E,BATCH")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--reference")
    parser.add_argument("--json")
    parser.add_argument("flags", nargs="*", help="further flags for cavs bench")
    return parser.parse_args()


def run_bench(arguments, size, threads, sharing):
    """One `cavs bench`; returns its metrics event."""
    hidden, embed, batch = size
    with tempfile.TemporaryDirectory() as folder:
        metrics = os.path.join(folder, "metrics")
        command = [arguments.cavs, "bench", f"--model={arguments.model}", f"--data={arguments.data}",
                   f"--hidden={hidden}", f"--embed={embed}", f"--batch_size={batch}", f"--threads={threads}", f"--sharing={sharing}",
                   f"--seconds={arguments.seconds}", "--optimizer=sgd", "--lr=0.01", "--quiet", f"--metrics={metrics}",
                   "--prefetch=off"]  # as many threads as the table says, and none beside
        subprocess.run(command + arguments.flags, check=True, stdout=subprocess.DEVNULL)
        with open(metrics, encoding="utf-8") as lines:
            return [event for event in map(json.loads, lines) if event["event"] == "bench"][-1]


def run_reference(arguments, size, threads, steps):
    """The reference program; returns examples per second."""
    path = arguments.data.split(":", 1)[1]
    command = [arguments.reference, path, *map(str, size), str(steps), str(threads)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"trees/s=([0-9.]+)", text).group(1))


def measure(arguments, sizes, threads):
    """By (size, threads, sharing) the events of all rounds, and by (size, threads) the reference's examples/s."""
    sharings = arguments.sharing.split(",")
    runs = {row: [] for row in itertools.product(sizes, threads, sharings)}
    references = {place: [] for place in itertools.product(sizes, threads)}
    for repeat in range(arguments.repeat):
        for (size, count, sharing), events in runs.items():
            events.append(run_bench(arguments, size, count, sharing))
            if arguments.reference and sharing == sharings[0]:
                steps = max(3, int(arguments.seconds * events[-1]["examples_per_s"] / size[2]))
                references[size, count].append(run_reference(arguments, size, count, steps))
        print(f"round {repeat + 1} of {arguments.repeat} done", file=sys.stderr)
    return runs, references


def table_row(row, events, reference):
    """Medians over the events, beside those of the reference."""
    def median(key):
        return statistics.median(event[key] for event in events)

    (hidden, embed, batch), count, sharing = row
    split = events[-1]["split"]
    step = sum(seconds for part, seconds in split.items() if part not in ("read", "ahead"))
    ratio = f"{median('examples_per_s') / statistics.median(reference):.2f}" if reference else ""
    return (f"| {hidden}, {embed}, {batch} | {count} | {sharing} | {median('examples_per_s'):.0f} | "
            f"{median('vertices_per_s'):.0f} | {median('gflops'):.0f} | {median('gemm_gflops'):.0f} | "
            f"{median('gemm_fraction'):.2f} | {100 * split['schedule'] / step:.1f} % | {ratio} |")


def main():
    arguments = parse_arguments()
    sizes = [tuple(map(int, size.split(","))) for size in arguments.sizes]
    runs, references = measure(arguments, sizes, list(map(int, arguments.threads.split(","))))
    print("\n".join(TABLE_HEAD))
    for row, events in runs.items():
        size, count, sharing = row
        reference = references[size, count]
        print(table_row(row, events, reference))
        if arguments.json:
            with open(arguments.json, "a", encoding="utf-8") as out:
                out.write(json.dumps({"size": size, "threads": count, "sharing": sharing, "runs": events,
                                      "reference": reference}) + "\n")


if __name__ == "__main__":
    main()
