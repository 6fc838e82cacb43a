#!/usr/bin/python3
"""Compares what `leeway doctor` expects of a step with what then happens, for some jobs.

Usage: doctor_check.py --programs build/release/bin [--data DIR] [--rounds 3] [JOB ...]
By default the MNIST MLP and CNN (where --data has MNIST) and a 20 M-parameter MLP on random examples.
The machine should have nothing else to do. What happens is read from metrics.jsonl: wall time a clock, from heartbeat
to heartbeat, without the first fifth of a run. Evaluations are postponed to its end.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MLP = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: mlp-20m, seed: 1}
model:
  layers: [{flatten: {}}, {dense: {units: 4096}}, {relu: {}}, {dense: {units: 4096}}, {relu: {}}, {dense: {units: 10}}]
  loss: softmax_cross_entropy
data: {train: {type: generator, examples: 4000, shape: [28, 28, 1], classes: 10}, batch_size: 64}
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 0.001, momentum: 0.9}
servers: {count: 2}
workers: {count: 2}
stop: {clocks: 100}
"""


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def expected(options, job, folder):
    out = folder / "doctor.json"
    run([options.programs / "leeway", "doctor", job, "--data", options.data, "--json", out])
    return json.loads(out.read_text())["job"]


def happened(options, job, folder, number, clocks):
    """Returns the wall seconds of a clock."""
    where = folder / f"run-{number}"
    settings = ["--set", f"stop={{clocks: {clocks}}}"]
    if "evaluation" in job.read_text():
        settings += ["--set", f"evaluation.every={{clocks: {clocks}}}"]
    run([options.programs / "leeway", "train", job, "--data", options.data, "--run-dir", where, *settings])
    steps = [json.loads(line) for line in (where / "metrics.jsonl").read_text().splitlines()]
    # Rank 0 also evaluates. In sync mode any other rank stands for all.
    last = max(s["rank"] for s in steps if s["event"] == "step")
    # Lines come with heartbeats and have their time. The last line of each heartbeat says at which clock the worker
    # was.
    marks = {s["time"]: s["clock"] for s in steps if s["event"] == "step" and s["rank"] == last}
    times = [time for time, clock in marks.items() if clock >= clocks / 5]
    # The very last line comes when the worker leaves.
    first, end = times[0], times[-2] if len(times) > 2 else times[-1]
    return (end - first) / max(1, marks[end] - marks[first])


def check(options, job, folder):
    pairs = []
    for number in range(options.rounds):
        guess = expected(options, job, folder)
        clock = guess["step_seconds"] * guess["steps_per_clock"]
        clocks = max(20, int(options.seconds / clock))
        estimate = guess["estimated_step_seconds"] * guess["steps_per_clock"]
        pairs.append((clock, happened(options, job, folder, f"{job.stem}-{number}", clocks), estimate))
    ratio = statistics.median(a / b for a, b, _ in pairs)
    print(f"{job.name:20} expected {1e3 * statistics.median(a for a, _, _ in pairs):9.3f} ms, "
          f"happened {1e3 * statistics.median(b for _, b, _ in pairs):9.3f} ms, expected/happened {ratio:.2f}, "
          f"by the parts alone {statistics.median(c / b for _, b, c in pairs):.2f} "
          f"(load {os.getloadavg()[0]:.1f})", flush=True)
    return abs(ratio - 1) <= 0.2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, default=REPOSITORY / "data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of a run")
    parser.add_argument("jobs", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leeway-doctor-") as temporary:
        folder = pathlib.Path(temporary)
        jobs = options.jobs
        if not jobs:
            jobs = [folder / "mlp-20m.yaml"]
            jobs[0].write_text(MLP)
            if (options.data / "mnist").exists():
                jobs += [REPOSITORY / "config/jobs/mnist-sync.yaml", REPOSITORY / "config/jobs/mnist-cnn.yaml"]
            else:
                print(f"SKIPPED the MNIST jobs: {options.data} has no mnist")
        good = [check(options, job, folder) for job in jobs]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
