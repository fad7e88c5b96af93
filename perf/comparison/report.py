"""Rows of figures, and what is written about them: JSON lines, a page in Markdown, a picture."""
import datetime
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys

from comparison import chart

NAMES = {"cavs": "Cavs", "dynet": "DyNet", "pytorch": "PyTorch", "dgl": "DGL"}
FORMATS = {"fp32": "f32", "bf16": "bf16"}
TITLES = {"train": "Training", "infer": "Inference", "latency": "Latency of one example, one thread"}
MEGABYTE = 1e6


def make_row(workload, mode, system, rounds):
    """The medians over a system's rounds."""
    speeds = [figures["examples_per_s"] for figures in rounds]
    row = {"workload": workload.name, "mode": mode, "system": system.system, "precision": system.precision,
           "settings": system.setting, "threads": system.threads, "examples_per_s": statistics.median(speeds),
           "vertices_per_s": statistics.median(figures["vertices_per_s"] for figures in rounds),
           "peak_bytes": max(figures["peak_bytes"] for figures in rounds)}
    if mode == "latency":
        row["latency_s"] = 1 / row["examples_per_s"]
    return {**row, "rounds": speeds, "tried": system.tried}


def make_failure(workload, mode, system, precision, reason, setting=""):
    """The row of a system that did not run."""
    figures = ("threads", "examples_per_s", "vertices_per_s", "peak_bytes")
    return {"workload": workload.name, "mode": mode, "system": system, "precision": precision, "settings": setting,
            **dict.fromkeys(figures), "failure": reason}


def measured(rows):
    return [row for row in rows if "failure" not in row]


def fastest(rows, precision, system=None):
    """The fastest row of the peers, or of one system; None: there is none."""
    found = [row for row in measured(rows) if row["precision"] == precision
             and (row["system"] == system if system else row["system"] != "cavs")]
    return max(found, key=lambda row: row["examples_per_s"], default=None)


def ratio(row, other):
    return row["examples_per_s"] / other["examples_per_s"] if row and other and "failure" not in row else None


def with_ratios(rows):
    """Compares like precision with like; rows in bf16 also against peers in f32, under names of their own."""
    for row in rows:
        for prefix, precision in (("", row["precision"]), ("bf16_to_fp32_", "fp32")):
            if prefix and row["precision"] != "bf16":
                continue
            row[f"{prefix}ratio_to_best_peer"] = ratio(row, fastest(rows, precision))
            for system in ("dynet", "pytorch"):
                row[f"{prefix}ratio_to_{system}"] = ratio(row, fastest(rows, precision, system))
    return rows


def label(row):
    setting = f", {row['settings']}" if row["system"] == "cavs" and row["precision"] == "fp32" else ""
    return f"{NAMES[row['system']]} {FORMATS[row['precision']]}{setting}"


def number(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def times(value):
    return "" if value is None else f"{value:.2f}"


def one_line(rows):
    return ", ".join(f"{label(row)} {number(row['examples_per_s'])}/s" for row in measured(rows))


def failures(rows):
    """A sentence for each system and reason that it did not run, with all that it did not run for that reason."""
    found = {}
    for row in rows:
        if "failure" in row:
            workloads = found.setdefault((label(row), row["failure"]), {})
            workloads.setdefault(row["workload"], []).append(row["mode"])
    sentences = []
    for (name, reason), workloads in found.items():
        places = ", ".join(f"{workload} ({' '.join(modes)})" for workload, modes in workloads.items())
        sentences.append(f"{name} did not run {places}: {reason}")
    return sentences


def groups(rows, mode):
    """The rows of each workload, in order."""
    found = {}
    for row in rows:
        if row["mode"] == mode:
            found.setdefault(row["workload"], []).append(row)
    return found


def markdown(header, body):
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure_table(rows, mode, value):
    """A line for each workload, a column for each system."""
    labels = list(dict.fromkeys(label(row) for row in rows if row["mode"] == mode))
    body = []
    for workload, group in groups(rows, mode).items():
        cells = {label(row): "failed" if "failure" in row else value(row) for row in group}
        body.append([workload] + [cells.get(name, "") for name in labels])
    return markdown(["workload"] + labels, body)


def ratio_table(rows, mode):
    header = ["workload", "f32 over DyNet", "f32 over PyTorch", "f32 over the best peer", "bf16 over PyTorch bf16",
              "bf16 over f32 DyNet", "bf16 over f32 PyTorch", "best f32 setting"]
    body = []
    for workload, group in groups(rows, mode).items():
        ours, lowered = fastest(group, "fp32", "cavs"), fastest(group, "bf16", "cavs")
        peers = [("fp32", "dynet"), ("fp32", "pytorch"), ("fp32", None)]
        cells = [times(ratio(ours, fastest(group, *peer))) for peer in peers]
        cells += [times(ratio(lowered, fastest(group, *peer))) for peer in [("bf16", "pytorch"), *peers[:2]]]
        body.append([workload, *cells, ours["settings"] if ours else ""])
    return markdown(header, body)


def latency(row):
    return f"{1e3 * row['latency_s']:.3g}"


def tables(rows):
    parts = []
    for mode, title in TITLES.items():
        if not groups(rows, mode):
            continue
        parts.append(f"## {title}\n")
        if mode == "latency":
            parts.append("Milliseconds.\n\n" + figure_table(rows, mode, latency) + "\n")
        else:
            parts.append("Examples a second.\n\n"
                         + figure_table(rows, mode, lambda row: number(row["examples_per_s"])) + "\n")
        parts.append(ratio_table(rows, mode) + "\n")
        parts.append("Peak memory in MB: resident, less what the process held before it made the model.\n\n"
                     + figure_table(rows, mode, lambda row: number(row["peak_bytes"] / MEGABYTE)) + "\n")
        parts.append("Fastest settings of the peers.\n\n"
                     + figure_table([row for row in rows if row["system"] != "cavs"], mode,
                                    lambda row: f"{row['settings']}, {row['threads']} threads") + "\n")
    if failures(rows):
        parts.append("## What did not run\n\n" + "\n".join(f"- {sentence}" for sentence in failures(rows)) + "\n")
    return "\n".join(parts)


def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def revision():
    done = subprocess.run(["git", "-C", os.path.dirname(__file__), "describe", "--always", "--dirty"], text=True,
                          capture_output=True, check=False)
    return done.stdout.strip() or "unknown"


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of {processor()}, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}"


def describe_versions(found):
    """The peer's own version, and in brackets those of what it runs on."""
    (peer, *others) = [f"{name} {version}" for name, version in found.items()]
    return f"{peer} ({', '.join(others)})" if others else peer


def write(arguments, rows, versions):
    """PREFIX.jsonl, PREFIX.md, PREFIX.svg; the tables on standard output."""
    os.makedirs(os.path.dirname(os.path.abspath(arguments.out)), exist_ok=True)
    today = datetime.date.today().isoformat()
    with open(arguments.out + ".jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    peers = ", ".join(describe_versions(found) for found in versions.values() if found) or "none"
    text = tables(rows)
    with open(arguments.out + ".md", "w", encoding="utf-8") as out:
        out.write(f"# Cavs and its peers, {today}\n\n"
                  f"Machine: {machine()}. Cavs at revision {revision()}. Peers: {peers}.\n\n"
                  f"Command: `{shlex.join(['perf/compare', *shown(sys.argv[1:])])}`. Systems in turn, "
                  f"{arguments.rounds} rounds of {arguments.seconds:g} s each; medians. At most {arguments.threads} "
                  f"threads; a peer uses fewer where that is faster.\n\n{text}")
    with open(arguments.out + ".svg", "w", encoding="utf-8") as out:
        out.write(chart.draw([(TITLES[mode], chart_groups(rows, mode)) for mode in TITLES if groups(rows, mode)],
                             f"{machine()}; {today}"))
    print(text)
    print(f"written: {arguments.out}.jsonl, .md, .svg")


def shown(words):
    """Without the paths of this machine."""
    return [word.split("=")[0] + "=" + os.path.basename(word) if "=/" in word else
            os.path.basename(word.rstrip("/")) if word.startswith("/") else word for word in words]


def chart_groups(rows, mode):
    """For the picture: every system's speed over that of the fastest peer in f32."""
    found = []
    for workload, group in groups(rows, mode).items():
        base = fastest(group, "fp32")
        if base:
            found.append((workload, [(label(row), row["system"], ratio(row, base), figure(row)) for row in group]))
    return found


def figure(row):
    if "failure" in row:
        return "did not run"
    return f"{latency(row)} ms" if row["mode"] == "latency" else f"{number(row['examples_per_s'])}/s"
