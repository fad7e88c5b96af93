#!/usr/bin/env python3
"""Tests of perf/compare: compare_test.py PERF_FOLDER CAVS. None needs an installed peer."""
import array
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree

PERF, CAVS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, PERF)
sys.dont_write_bytecode = True

from comparison import chart, check, corpora, report, systems
from comparison.workloads import MODES, QUICK, WORKLOADS
from peers import tensor_file

# Speaks the protocol of peers/worker.py; a hundred examples a second with setting "slow", two hundred with "fast". It
# answers "broken" with an error and dies of "fatal".
STAND_IN = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "load":
        answer = {"settings": ["slow", "broken", "fatal", "fast"], "versions": {"StandIn": "1.0"}}
    elif request.get("setting") == "broken":
        answer = {"error": "no such luck"}
    elif request.get("setting") == "fatal":
        sys.exit("no memory left")
    elif request["do"] == "run":
        examples = request["batch_size"] * request["minibatches"]
        speed = 200 if request["setting"] == "fast" else 100
        answer = {"examples": examples, "vertices": 3 * examples, "seconds": examples / speed, "peak_bytes": 7}
    else:
        answer = {"losses": [1.0] * request["steps"]}
    print(json.dumps(answer), flush=True)
"""


class Files(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


class TensorFile(Files):
    def test_reads_what_was_written(self):
        values = array.array("f", [1.5, -2, 3, 4])
        tensor_file.write(self.path("t"), {"a": ("I32", [2], array.array("i", [7, -1])), "b": ("F32", [2, 2], values)},
                          {"who": "é"})
        metadata, tensors = tensor_file.read(self.path("t"))
        self.assertEqual(metadata, {"who": "é"})
        self.assertEqual(tensors["b"][:2], ("F32", [2, 2]))
        self.assertEqual(bytes(tensors["a"][2]), array.array("i", [7, -1]).tobytes())
        self.assertEqual(bytes(tensors["b"][2]), values.tobytes())


class Corpora(Files):
    def test_trees(self):
        text = "(3 (2 not) (1 (0 -LRB-) (4 and\\/or)))\n\n(1 (1 not) (1 x\u00a0y))\n"
        corpus = corpora.read("sst:" + self.write("a", text))
        self.assertEqual(corpus.words, ["<unk>", "not", "(", "and/or", "x\u00a0y"])
        self.assertEqual(list(corpus.example_begin), [0, 5, 8])
        self.assertEqual(list(corpus.label), [2, 0, 4, 1, 3, 1, 1, 1])
        self.assertEqual(list(corpus.word), [1, 2, 3, -1, -1, 1, 4, -1])
        self.assertEqual(list(corpus.child_begin), [0, 0, 0, 0, 2, 4, 4, 4, 6])
        self.assertEqual(list(corpus.child), [1, 2, 0, 3, 0, 1])

    def test_the_limit_bounds_the_vocabulary(self):
        path = self.write("a", "(1 (1 a) (1 b))\n(1 (1 c) (1 d))\n")
        self.assertEqual(corpora.read("sst:" + path, 1).words, ["<unk>", "a", "b"])

    def test_sentences(self):
        corpus = corpora.read("lm:" + self.write("a", " b <unk> b\n"))
        self.assertEqual(corpus.words, ["<unk>", "<eos>", "b"])
        self.assertEqual(list(corpus.word), [1, 2, 0, 2])
        self.assertEqual(list(corpus.label), [2, 0, 2, 1])
        self.assertEqual(list(corpus.child), [-1, 0, 1, 2])
        self.assertEqual(corpus.classes, 3)

    def test_pairs(self):
        for name, line in [("a.toks", "a b c d e"), ("a.parents", "5 4 4 5 0"), ("b.toks", "b"), ("b.parents", "0"),
                           ("sim.txt", "3.25")]:
            self.write("pairs/" + name, line + "\n")
        corpus = corpora.read("treelstm:" + self.path("pairs"))
        self.assertEqual([corpus.words[row] for row in corpus.word[:6]], ["a", "b", "c", "d", "e", "b"])
        self.assertEqual(list(corpus.child_begin), [0, 0, 0, 0, 2, 4, 4, 6])
        self.assertEqual(list(corpus.child), [1, 2, 0, 3, 4, 5])
        self.assertEqual(list(corpus.target), [0, 0, 0.75, 0.25, 0])

    def test_complete_trees_have_a_label_at_the_root_alone(self):
        corpora.write_complete_trees(self.path("c"), trees=2, leaves=8, vocabulary=5)
        corpus = corpora.read("tree:" + self.path("c"))
        self.assertEqual(list(corpus.example_begin), [0, 15, 30])
        self.assertEqual(sum(label >= 0 for label in corpus.label), 2)
        self.assertGreaterEqual(corpus.label[14], 0)

    def test_the_vocabulary_is_that_of_the_command(self):
        path = self.write("a", "(3 (2 not) (1 (0 -LRB-) (4 and\\/or)))\n(1 (1 not) (1 x))\n")
        subprocess.run([CAVS, "train", "--train=sst:" + path, "--hidden=4", "--embed=4", "--epochs=1", "--quiet",
                        "--save=" + self.path("run")], check=True, stdout=subprocess.DEVNULL)
        model = tensor_file.read(os.path.join(self.path("run"), "last.safetensors"))[0]
        self.assertEqual(json.loads(model["vocabulary"]), corpora.read("sst:" + path).words)


def row(system, precision, speed, mode="train", settings=""):
    return {"workload": "w<1>", "mode": mode, "system": system, "precision": precision, "settings": settings,
            "threads": 2, "examples_per_s": speed, "vertices_per_s": 2 * speed, "peak_bytes": 1e6,
            "latency_s": 1 / speed}


class Report(unittest.TestCase):
    def test_ratios_compare_like_precision_with_like(self):
        rows = report.with_ratios([row("cavs", "fp32", 800.0), row("cavs", "bf16", 1600.0), row("dynet", "fp32", 100.0),
                                   row("pytorch", "fp32", 200.0), row("pytorch", "bf16", 400.0)])
        f32, bf16 = rows[:2]
        self.assertEqual([f32[f"ratio_to_{peer}"] for peer in ("best_peer", "dynet", "pytorch")], [4, 8, 4])
        self.assertEqual([bf16[f"ratio_to_{peer}"] for peer in ("best_peer", "dynet", "pytorch")], [4, None, 4])
        self.assertEqual(bf16["bf16_to_fp32_ratio_to_dynet"], 16)
        self.assertNotIn("bf16_to_fp32_ratio_to_dynet", f32)

    def test_a_missing_peer_leaves_its_cells_empty(self):
        rows = report.with_ratios([row("cavs", "fp32", 800.0, settings="defaults"), row("dynet", "fp32", 100.0)])
        self.assertIn("| w<1> | 8.00 |  | 8.00 |  |  |  | defaults |", report.tables(rows))

    def test_a_peer_that_fails_is_named_with_its_reason(self):
        workload = types.SimpleNamespace(name="w<1>")
        failed = [report.make_failure(workload, mode, "pytorch", "fp32", "no luck") for mode in ("train", "infer")]
        rows = report.with_ratios([row("cavs", "fp32", 800.0), row("dynet", "fp32", 100.0), *failed])
        page = report.tables(rows)
        self.assertIn("| workload | Cavs f32,  | DyNet f32 | PyTorch f32 |", page)
        self.assertIn("| w<1> | 800 | 100 | failed |", page)
        self.assertIn("- PyTorch f32 did not run w<1> (train infer): no luck", page)
        self.assertEqual(rows[0]["ratio_to_best_peer"], 8)
        self.assertIsNone(failed[0]["ratio_to_dynet"])
        bars = report.chart_groups(rows, "train")[0][1]
        self.assertEqual(bars[-1], ("PyTorch f32", "pytorch", None, "did not run"))
        self.assertIn(">did not run</text>", chart.draw([("Training", [("w", bars)])], ""))

    def test_medians_over_rounds(self):
        system = types.SimpleNamespace(system="cavs", precision="fp32", setting="defaults", threads=1, tried={})
        rounds = [{"examples_per_s": speed, "vertices_per_s": 3 * speed, "peak_bytes": speed} for speed in (5, 1, 2)]
        made = report.make_row(WORKLOADS[0], "train", system, rounds)
        self.assertEqual((made["examples_per_s"], made["vertices_per_s"], made["peak_bytes"]), (2, 6, 5))

    def test_the_picture_is_well_formed(self):
        rows = report.with_ratios([row("cavs", "fp32", 800.0), row("dynet", "fp32", 100.0)])
        picture = chart.draw([("Training", report.chart_groups(rows, "train"))], "a & b")
        texts = [element.text for element in xml.etree.ElementTree.fromstring(picture).iter() if element.text]
        self.assertIn("w<1>", texts)
        self.assertIn("8.00× · 800/s", texts)

    def test_paths_of_the_machine_stay_out(self):
        self.assertEqual(report.shown(["--data=/a/b/data", "--quick", "/x/y/"]), ["--data=data", "--quick", "y"])


class Check(unittest.TestCase):
    def test_a_wrong_gradient_shows_in_the_descent(self):
        off, descent = check.differences([100.0, 99.9, 99.8], [100.0, 99.905, 99.81])
        self.assertLess(off, 1e-3)
        self.assertAlmostEqual(descent, 0.05, places=6)

    def test_numbers_that_are_none_are_wrong(self):
        self.assertEqual(check.differences([1.0, 0.5], [1.0, float("nan")])[1], float("inf"))


class Workers(Files):
    def test_last_words_of_a_worker_that_dies(self):
        self.write("environments/dynet/ready.json", json.dumps({"command": [sys.executable, self.write("worker.py", (
            "import sys\nsys.stdin.readline()\nsys.exit('no memory left')\n"))]}))
        environment = systems.Environment("dynet", self.path("environments"))
        self.addCleanup(environment.log.close)
        worker = environment.start()
        with self.assertRaisesRegex(systems.Unavailable, "its worker ended with code 1, having said: no memory left"):
            worker.ask(do="load")
        worker.close()

    def test_choices_are_kept_unless_nothing_ran_or_settings_are_new(self):
        choices, calls = systems.Choices(self.path("choices.json"), forget=False), []

        def find(*trials):
            calls.append(trials)
            return list(trials)

        ran = {"setting": "a", "threads": 1, "examples_per_s": 3.0}
        failed = {"setting": "a", "threads": 1, "failure": "no luck"}
        choices.get(["key"], ["a"], lambda: find(failed))
        choices.get(["key"], ["a"], lambda: find(ran))
        choices.get(["key"], ["a"], lambda: find(failed))
        self.assertEqual(calls, [(failed,), (ran,)])
        again = systems.Choices(self.path("choices.json"), forget=False)
        self.assertEqual(again.get(["key"], ["a"], lambda: find(failed)), [ran])
        again.get(["key"], ["a", "b"], lambda: find(ran))
        self.assertEqual(len(calls), 3)

    def test_quick_runs_believe_full_trials_and_never_the_other_way_round(self):
        self.write("environments/dynet/ready.json", json.dumps({"command": [sys.executable,
                                                                            self.write("stand_in.py", STAND_IN)]}))
        environment = systems.Environment("dynet", self.path("environments"))
        self.addCleanup(environment.log.close)
        workload = next(workload for workload in WORKLOADS if workload.minibatches > 1)

        def lengths_tried(*runs):
            """Minibatches and seconds in the keys of all trials that these runs make, one after the other."""
            choices = systems.Choices(self.path("choices.json"), forget=True)
            for quick in runs:
                systems.Peer(environment, "data", workload.shortened() if quick else workload, "train", "fp32", 1,
                             choices, quick).close()
            return [key.split("|")[-2:] for key in choices.known]

        full = [f"{workload.minibatches} minibatches", f"{systems.TRIAL_SECONDS} s"]
        quick = [f"{workload.shortened().minibatches} minibatches", f"{systems.QUICK_TRIAL_SECONDS} s"]
        self.assertEqual(lengths_tried(True, False, True), [quick, full])
        self.assertEqual(lengths_tried(False, True), [full])


class Setup(Files):
    def setup_dynet(self, ready):
        self.write("dynet/ready.json", json.dumps(ready))
        command = [sys.executable, os.path.join(PERF, "peers", "setup"), "--folder", self.path(""),
                   "--dynet", self.path("no_such_install"), "dynet"]
        return subprocess.run(command, text=True, capture_output=True, check=False)

    def test_a_driver_of_other_sources_is_made_anew(self):
        done = self.setup_dynet({"command": ["driver"], "sources": "of old"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("peer dynet: not available: expected", done.stdout)
        self.assertFalse(os.path.exists(self.path("dynet/ready.json")))
        with open(self.path("dynet/failed"), encoding="utf-8") as reason:
            self.assertIn("setup failed: expected", reason.read())

    def test_what_does_not_name_its_sources_stands(self):
        self.assertIn("peer dynet: ready in", self.setup_dynet({"command": ["driver"]}).stdout)


class Names(unittest.TestCase):
    def test_quick_sizes_are_workloads(self):
        self.assertLessEqual(set(QUICK), {workload.name for workload in WORKLOADS})
        self.assertEqual(len({workload.name for workload in WORKLOADS}), len(WORKLOADS))
        self.assertEqual(MODES[0], "train")

    def test_a_shortened_workload_keeps_its_minibatches_as_large(self):
        for workload in WORKLOADS:
            short = workload.shortened()
            self.assertEqual(short.batch_size, workload.batch_size)
            self.assertTrue(1 <= short.minibatches <= workload.minibatches)


class Compare(Files):
    def setUp(self):
        super().setUp()
        self.write("data/sst/train.txt", "(3 (2 not) (1 (0 very) (4 bad)))\n(1 (1 not) (1 good))\n" * 20)
        command = [sys.executable, self.write("stand_in.py", STAND_IN)]
        self.write("environments/dynet/ready.json", json.dumps({"command": command}))
        self.write("environments/dgl/failed", "setup failed: no disk\n")

    def run_compare(self, *more):
        return subprocess.run(
            [sys.executable, os.path.join(PERF, "compare"), "--cavs", CAVS, "--data", self.path("data"),
             "--environments", self.path("environments"), "--out", self.path("out/it"), "--peers", "dynet,dgl",
             "--workloads", "tree_lstm_sst_h64_b25,child_sum_sick_h150_b25", "--threads", "1", "--rounds", "2",
             "--seconds", "0.01", *more], text=True, capture_output=True, check=False)

    def test_a_run_beside_a_stand_in(self):
        done = self.run_compare("--modes", "train,latency")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("peer dgl: not available: setup failed: no disk", done.stderr)
        self.assertIn("child_sum_sick_h150_b25: not run: expected sick/train", done.stderr)
        with open(self.path("out/it.jsonl"), encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        names = ["workload", "mode", "system", "precision", "settings", "threads", "examples_per_s", "vertices_per_s",
                 "peak_bytes", "ratio_to_best_peer", "ratio_to_dynet", "ratio_to_pytorch"]
        for found in rows:
            self.assertLessEqual(set(names), set(found))
        self.assertEqual([found["system"] for found in rows if "failure" in found], ["dgl", "dgl"])
        peer = next(found for found in rows if found["system"] == "dynet" and found["mode"] == "train")
        self.assertEqual((peer["settings"], peer["ratio_to_best_peer"]), ("fast", 1))
        self.assertEqual(peer["tried"]["broken, 1 threads"], "no such luck")
        self.assertIn("no memory left", peer["tried"]["fatal, 1 threads"])
        self.assertAlmostEqual(peer["examples_per_s"], 200)
        ours = next(found for found in rows if found["settings"] == "defaults" and found["mode"] == "train")
        self.assertGreater(ours["examples_per_s"], 0)
        self.assertGreater(ours["peak_bytes"], 0)
        self.assertAlmostEqual(ours["ratio_to_dynet"], ours["examples_per_s"] / 200)
        with open(self.path("out/it.md"), encoding="utf-8") as page:
            text = page.read()
        self.assertIn("StandIn 1.0", text)
        self.assertIn("DGL f32 did not run tree_lstm_sst_h64_b25 (train latency): setup failed: no disk", text)

    def test_check_finds_a_peer_that_computes_something_else(self):
        done = self.run_compare("--check", "--peers", "dynet")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("WRONG: losses off"), 2)
        self.assertIn("dynet fp32, broken: did not run: no such luck", done.stderr)
        self.assertIn("dynet fp32, fatal: did not run: its worker ended with code 1", done.stderr)
        self.assertIn("0 equal, 2 wrong, 2 did not run", done.stderr)

    def test_a_check_that_found_nothing_equal_fails(self):
        done = self.run_compare("--check", "--peers", "dgl")
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 equal, 0 wrong, 1 did not run", done.stderr)
        done = self.run_compare("--check", "--workloads", "child_sum_sick_h150_b25")
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 equal, 0 wrong, 0 did not run", done.stderr)

    def test_wrong_command_lines(self):
        for words, message in [(["--workloads", "x"], "expected workloads of"), (["--rounds", "-1"], "above 0"),
                               (["--data", self.path("none")], "expected a folder")]:
            done = self.run_compare(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
