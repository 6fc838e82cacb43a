#!/usr/bin/python3
"""Compares Leeway with all-reduce (OpenMPI, gloo), PyTorch's DistributedDataParallel and ps-lite, in one run.

The subjects take turns. Prints the medians of the rounds, and the medians of the ratios of neighbouring rounds. Says so
and skips what is not installed. An unfair comparison is refused before anything is measured: a PyTorch on the reference
BLAS, or ps-lite under BBR.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

import congestion
import pslite
import torch_blas
from busy import busy
from commands import PYTHON, run, skip

HERE = pathlib.Path(__file__).resolve().parent
WHAT = ("allreduce", "training", "pslite")
METHODS = ("push", "pull", "push_pull")
SIZES = {"64K": 64 << 10, "1M": 1 << 20, "4M": 4 << 20}


class AllReduce:
    """Measures the seconds that summing a vector of floats of two processes takes, the same vector for all subjects."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.subjects = {"leeway": self.leeway}
        if shutil.which("mpicc") and shutil.which("mpirun"):
            run(["mpicc", "-O3", HERE / "allreduce_mpi.c", "-o", folder / "allreduce_mpi"])
            self.subjects["openmpi"] = self.openmpi
        else:
            skip("OpenMPI", "no mpicc and mpirun (openmpi-bin, libopenmpi-dev)")
        if options.torch:
            self.subjects["gloo"] = self.gloo
        else:
            skip("gloo", f"{PYTHON} has no torch (python3-torch)")

    def leeway(self):
        out = self.folder / "exchange.json"
        run([self.options.programs / "leeway", "bench", "exchange", "--parameters", self.options.floats, "--workers", 2,
             "--servers", self.options.servers, "--transports", "auto", "--rounds", 1, "--seconds", 1.5, "--no-raw",
             "--json", out])
        return json.loads(out.read_text())["results"]["rows"][0]["leeway"]["step_seconds"]["p50"]

    def openmpi(self):
        return self.median(run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2,
                                self.folder / "allreduce_mpi", self.options.floats, 15]))

    def gloo(self):
        return self.median(run([PYTHON, HERE / "allreduce_gloo.py", self.options.floats, 15]))

    @staticmethod
    def median(lines):
        return statistics.median(float(line) for line in lines.split())


class Training:
    """Measures the samples a second of two workers."""

    def __init__(self, options, folder, model):
        self.options, self.folder, self.model = options, folder, model
        self.clocks = 500
        self.runs = 0
        self.leeway()  # to learn how many clocks take the time
        self.subjects = {"leeway": self.leeway}
        if options.torch:
            self.subjects["ddp"] = self.ddp
        else:
            skip("DistributedDataParallel", f"{PYTHON} has no torch (python3-torch)")

    def leeway(self):
        self.runs += 1
        where = self.folder / f"{self.model}-{self.runs}"
        run([self.options.programs / "leeway", "train", HERE / f"{self.model}.yaml", "--run-dir", where,
             "--set", f"stop.clocks={self.clocks}", "--set", f"servers.count={self.options.servers}",
             "--data", self.folder])
        summary = json.loads((where / "summary.json").read_text())
        seconds = summary["seconds"]
        self.clocks = max(100, int(self.clocks * self.options.seconds / max(seconds, 0.01)))
        return summary["samples_per_second"]

    def ddp(self):
        return float(run([PYTHON, HERE / "ddp.py", self.model, self.options.seconds]))


class Transfers:
    """Measures the GB/s of payload between one worker and one server over TCP loopback, both directions added."""

    def __init__(self, options, folder, peer, method, size):
        self.options, self.out, self.peer, self.method, self.size = options, folder / "transport.json", peer, method, size
        # ps-lite keeps as many messages in flight and has as many blocks. Fewer make it slower.
        self.plan = self.leeway_row(0.05)
        self.subjects = {"leeway": self.leeway, "ps-lite": self.pslite}

    def leeway_row(self, seconds):
        run([self.options.programs / "leeway", "bench", "transport", "--transports", "tcp", "--methods", self.method,
             "--sizes", self.size, "--transfers-only", "--rounds", 1, "--seconds", seconds, "--json", self.out])
        return json.loads(self.out.read_text())["results"]["transfers"][0]

    def leeway(self):
        return self.leeway_row(self.options.transfer_seconds)["leeway"]["gigabytes_per_second"]

    def pslite(self):
        return self.peer.gigabytes_per_second(self.method, SIZES[self.size], self.plan["blocks"], self.plan["in_flight"],
                                              self.options.transfer_seconds)


def measure(name, unit, more_is_better, subjects, options):
    values = {subject: [] for subject in subjects}
    with busy(options.load):
        for number in range(options.rounds):
            order = list(subjects) if number % 2 == 0 else list(reversed(subjects))
            for subject in order:
                values[subject].append(subjects[subject]())
    if options.load:
        name += f", beside {options.load} busy processes"
    result = {"name": name, "unit": unit, "load_1_minute": os.getloadavg()[0], "busy_processes": options.load, "rounds": values,
              "median": {subject: statistics.median(v) for subject, v in values.items()}, "leeway_against": {}}
    print(f"{name} (load average {result['load_1_minute']:.1f})")
    for subject, median in result["median"].items():
        line = f"  {subject:10} {median:12,.4g} {unit}"
        if subject != "leeway":
            pairs = zip(values["leeway"], values[subject])
            ratio = statistics.median(l / o if more_is_better else o / l for l, o in pairs)
            result["leeway_against"][subject] = ratio
            line += f"    leeway is {ratio:.2f} times as fast"
        print(line, flush=True)
    return result


def allreduce_rows(options, folder):
    subjects = AllReduce(options, folder).subjects
    name = f"sync exchange of {options.floats:,} floats, 2 workers, against all-reduce"
    yield measure(name, "s", False, subjects, options)


def training_rows(options, folder):
    for model in ("mlp", "cnn"):
        subjects = Training(options, folder, model).subjects
        yield measure(f"training, {model}, 2 workers, sync", "samples/s", True, subjects, options)


def pslite_rows(options, folder):
    peer, control = options.peer, congestion.current()
    print(f"ps-lite {peer.commit}, -O3 -march={peer.march}, TCP under {control}", flush=True)
    for method in METHODS:
        for size in SIZES:
            peer.hangs = 0
            subjects = Transfers(options, folder, peer, method, size).subjects
            row = measure(f"{method} of {size} over TCP, 1 worker, 1 server", "GB/s", True, subjects, options)
            yield row | {"pslite_commit": peer.commit, "pslite_hangs": peer.hangs, "congestion_control": control}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder with leeway and leeway-server")
    parser.add_argument("--what", default=",".join(WHAT), help="of " + ",".join(WHAT))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of a training")
    parser.add_argument("--transfer-seconds", type=float, default=0.5, help="of a round beside ps-lite")
    parser.add_argument("--floats", type=int, default=25_000_000)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--pslite", type=pathlib.Path, metavar="DIR", help="a checkout or git directory of dmlc/ps-lite")
    parser.add_argument("--any-congestion-control", action="store_true", help="ps-lite also under BBR")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="busy processes beside all that is measured")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.programs = options.programs.resolve()
    options.what = options.what.split(",")
    if unknown := [what for what in options.what if what not in WHAT]:
        parser.error(f"--what {','.join(unknown)}: choose of {','.join(WHAT)}")
    return options


def settle(options, folder):
    """Before anything is measured, refuses unfair subjects and leaves out those that cannot be measured."""
    if "pslite" in options.what and not pslite.can_be_measured(options.pslite):
        options.what.remove("pslite")
    why = congestion.refusal(congestion.current())
    if "pslite" in options.what and why and not options.any_congestion_control:
        sys.exit(why)
    options.torch = torch_blas.installed_torch() if {"allreduce", "training"} & set(options.what) else None
    if options.torch:
        print(f"PyTorch's BLAS: {options.torch}", flush=True)
    if "pslite" in options.what:
        options.peer = pslite.PsLite(options.pslite, options.programs, folder)


def main():
    options = parse()
    rows = {"allreduce": allreduce_rows, "training": training_rows, "pslite": pslite_rows}
    results = []
    with tempfile.TemporaryDirectory(prefix="leeway-peers-") as temporary:
        folder = pathlib.Path(temporary)
        settle(options, folder)
        for what in options.what:
            results += rows[what](options, folder)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
