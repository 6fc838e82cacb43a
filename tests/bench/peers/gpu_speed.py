#!/usr/bin/env python3
"""Compares workers on a GPU with PyTorch on the same GPU, in one run.

Usage: gpu_speed.py [--programs build/release/bin] [--device cuda:0] [--parts local,gradient] [--minutes 10] [--json FILE]

- local: steps with delta exchanges every 20 steps, one worker, one server, beside PyTorch eager;
- gradient: a step with its exchange beside the larger of its compute and the model's time on the bus, one way;
- compressed: the gradient exchange once more, its contributions encoded on the GPU in int8 and sign;
- hidden: of 12 equal layers, how much of the shorter of compute and exchange a step hides;
- several: workers on the one GPU.
PyTorch takes each batch from pinned memory and copies it during the step before. The seed makes the examples, so no
file is read. The most valuable rows run first. Each row is appended to FILE as a line of JSON when it ends, even if it
failed.
Exits with 0 if all rows were measured, 1 if one failed, 77 if none failed but time or PyTorch was missing.
"""

import argparse
import collections
import json
import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import limited  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 512
HEAD = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: gpu-speed, seed: 42}}
model:
  layers:
{layers}
  loss: softmax_cross_entropy
data:
  train: {{type: generator, examples: {examples}, shape: {shape}, classes: 10}}
  test: {{type: generator, examples: 512, shape: {shape}, classes: 10, split: 1}}
  batch_size: {batch}
consistency: {{mode: sync}}
servers: {{count: 1}}
workers: {{count: 1}}
stop: {{epochs: {epochs}}}
evaluation: {{every: {{epochs: {epochs}}}}}
"""
EXCHANGES = {
    "local": """exchange:
  type: delta
  local_steps: {steps}
  optimizer: {{type: sgd, learning_rate: 0.001, momentum: 0.9}}
update: {{type: sgd, learning_rate: 1}}
""",
    "gradient": """exchange: {{type: gradient}}
update: {{type: sgd, learning_rate: 0.001, momentum: 0.9}}
""",
}
for codec in ["int8", "sign"]:
    EXCHANGES[codec] = EXCHANGES["gradient"] + f"compression: {{{{contributions: {{{{type: {codec}}}}}}}}}\n"
MODELS = {
    "mlp": ["flatten: {}", *["dense: {units: 4096}", "relu: {}"] * 2, "dense: {units: 10}"],
    "cnn": ["conv2d: {filters: 16, kernel: 5}", "relu: {}", "max_pool: {size: 2}", "conv2d: {filters: 32, kernel: 5}",
            "relu: {}", "max_pool: {size: 2}", "flatten: {}", "dense: {units: 128}", "relu: {}", "dense: {units: 10}"],
    "twelve": ["dense: {units: 1024}", "relu: {}"] * 12 + ["dense: {units: 10}"],
}
PARAMETERS = {"mlp": 20037642, "cnn": 80202}
SHAPES = {"mlp": "[28, 28, 1]", "cnn": "[28, 28, 1]", "twelve": "[64]"}


class Failure(Exception):
    """One row failed; the others go on."""


class Missing(Exception):
    """A row is incomplete, because something that it compares with is missing. The exception has what was measured, and
    why."""

    def __init__(self, figures, why):
        super().__init__(why)
        self.figures = figures


class Bench:
    def __init__(self, flags, folder, budget):
        self.flags, self.folder, self.budget, self.runs = flags, folder, budget, 0
        self.bytes_per_second = None

    def run(self, what, command, deadline, env=None):
        """Runs a program and returns what it printed. The deadline is for all programs of a job together."""
        self.runs += 1
        ended = limited.run(command, self.folder / f"{self.runs}.log", min(deadline.left(), self.budget.left()), env)
        if ended.code is None:
            raise Failure(f"{what}: not done after {ended.seconds:.0f} s: {limited.last_line(ended.text)}")
        if ended.code != 0:
            raise Failure(f"{what}: exit code {ended.code}: {limited.last_line(ended.text)}")
        return ended.text

    @staticmethod
    def job(model, exchange, batch, epochs, steps=20):
        head = HEAD.format(layers="\n".join(f"    - {layer}" for layer in MODELS[model]), examples=batch * 100,
                           shape=SHAPES[model], batch=batch, epochs=epochs)
        return head + EXCHANGES[exchange].format(steps=steps)

    def train(self, model, exchange, precision, batch=BATCH, steps=20, workers=1, servers=1, env=None):
        """Returns the samples a second of all workers, and the time of each part of a step, in ms."""
        epochs = 2
        deadline = limited.Budget(self.flags.job_seconds)
        while True:
            folder = self.folder / f"run-{self.runs}"
            path = self.folder / f"job-{self.runs}.yaml"
            path.write_text(self.job(model, exchange, batch, epochs, steps))
            command = [self.flags.programs / "leeway", "train", path, "--run-dir", folder]
            for setting in [f"workers.device={self.flags.device}", f"workers.precision={precision}",
                            f"workers.count={workers}", f"servers.count={servers}"]:
                command += ["--set", setting]
            self.run(f"{model}, {exchange}", command, deadline, env)
            measured = measure([json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()])
            if measured and measured["seconds"] >= self.flags.seconds * 0.6:
                return measured
            growth = self.flags.seconds / max(measured["seconds"], 0.05) if measured else 5
            epochs = min(int(epochs * max(2, growth)), 100000)

    def torch(self, model, precision):
        """Returns PyTorch's samples a second."""
        command = [sys.executable, HERE / "torch_gpu.py", "--json", "--momentum", "0.9", "--model", model,
                   "--precision", precision, "--batch", BATCH, "--seconds", "0.7", "--device", self.flags.device]
        text = self.run("PyTorch", command, limited.Budget(self.flags.job_seconds))
        return next(iter(json.loads(limited.last_line(text)).values()))

    def report(self, *command):
        """Returns what a command of leeway writes by --json."""
        path = self.folder / f"report-{self.runs}.json"
        self.run(command[0], [self.flags.programs / "leeway", *command, "--json", path],
                 limited.Budget(self.flags.job_seconds))
        return json.loads(path.read_text())

    def bus_ms(self, parameters):
        """Returns the time that these parameters take on the bus, one way; 0 if it is not known."""
        if self.bytes_per_second is None:
            found = self.report("doctor", "--seconds", "0.05").get("gpus", {}).get("devices", [])
            self.bytes_per_second = min((gpu[f"bytes_per_second_{way}"] for gpu in found[:1] for way in ["up", "down"]),
                                        default=0)
        return 1e3 * parameters * 4 / self.bytes_per_second if self.bytes_per_second else 0.0

    def exchange_ms(self, parameters):
        """Returns the time of an exchange of these parameters alone."""
        found = self.report("bench", "exchange", "--parameters", parameters, "--transports", "auto", "--workers", "1",
                            "--servers", str(self.flags.servers), "--rounds", "3", "--seconds", "0.3", "--no-raw")
        return 1e3 * found["results"]["rows"][0]["leeway"]["step_seconds"]["p50"]


def measure(rows):
    """Computes the rates from metrics.jsonl, from a worker's second report on: the first report includes its start.
    Returns None if there are too few reports."""
    by_rank = collections.defaultdict(list)
    for row in rows:
        if row["event"] == "step":
            by_rank[row["rank"]].append(row)
    measured = {"rate": 0.0, "seconds": float("inf")}
    for rows in by_rank.values():
        if len(rows) < 3:
            return None
        seconds = rows[-1]["time"] - rows[0]["time"]
        rows = rows[1:]
        steps = sum(row["steps"] for row in rows)
        measured["rate"] += sum(row["examples"] for row in rows) / seconds
        for part in ["data", "compute", "forward", "backward", "exchange", "wait"]:
            measured[part] = 1e3 * sum(row[f"{part}_seconds"] for row in rows) / steps
        measured["step"] = 1e3 * seconds / steps
        measured["seconds"] = min(measured["seconds"], seconds)
    return measured if by_rank else None


def ratio(value, other):
    return round(value / other, 3) if value and other else None


def local(bench, model, precision, cudnn=None):
    env = {"LEEWAY_CUDA_CUDNN": cudnn} if cudnn else None
    figures = {"local": bench.train(model, "local", precision, env=env)}
    if bench.flags.device == "cpu" or cudnn:
        return figures
    try:
        figures["torch_rate"] = bench.torch(model, precision)
    except Failure as failure:
        raise Missing(figures, str(failure)) from failure
    figures["ratio"] = ratio(figures["local"]["rate"], figures["torch_rate"])
    return figures


def gradient(bench, model, servers, codec="gradient"):
    step = bench.train(model, codec, "tf32", servers=servers)
    bus = bench.bus_ms(PARAMETERS[model])
    bound = max(step["compute"], bus)
    return {"gradient": step, "bus_ms": bus, "bound_ms": bound, "bound_share": ratio(bound, step["step"])}


def hidden(bench):
    batch = 3072
    compute = bench.train("twelve", "local", "fp32", batch=batch, steps=200)["compute"]
    step = bench.train("twelve", "gradient", "fp32", batch=batch, servers=bench.flags.servers)
    exchange = bench.exchange_ms("11.6M")
    share = (compute + exchange - step["step"]) / min(compute, exchange)
    return {"compute_ms": compute, "exchange_ms": exchange, "gradient": step, "hidden": share}


def several(bench, workers):
    return {"gradient": bench.train("cnn", "gradient", "tf32", workers=workers, servers=bench.flags.servers)}


# (kind, name, what measures it), the most valuable first. LEEWAY_CUDA_CUDNN 0: no cuDNN; 1: cuDNN wherever it can be
# used.
def table(servers):
    rows = [("local", f"{model} {precision}", lambda b, m=model, p=precision: local(b, m, p))
            for model, precision in [("mlp", "tf32"), ("cnn", "tf32")]]
    rows += [("gradient", "mlp tf32, 1 server", lambda b: gradient(b, "mlp", 1))]
    rows += [("local", f"{model} {precision}", lambda b, m=model, p=precision: local(b, m, p))
             for model, precision in [("mlp", "bf16"), ("cnn", "bf16"), ("cnn", "fp32")]]
    rows += [("local", f"cnn fp32, LEEWAY_CUDA_CUDNN={value}", lambda b, v=value: local(b, "cnn", "fp32", v))
             for value in "01"]
    rows += [("gradient", f"{model} tf32, {servers} servers", lambda b, m=model: gradient(b, m, servers))
             for model in ["mlp", "cnn"]]
    rows += [("compressed", f"mlp tf32, contributions in {codec}", lambda b, c=codec: gradient(b, "mlp", servers, c))
             for codec in ["int8", "sign"]]
    rows += [("hidden", "12 layers of 1024", hidden)]
    rows += [("several", f"cnn tf32, workers on the GPU: {count}", lambda b, c=count: several(b, c)) for count in [1, 2, 4]]
    return rows


def line(figures):
    """Formats the figures of a row for people."""
    said = []
    for kind in ["local", "gradient"]:
        if kind in figures:
            run = figures[kind]
            parts = ", ".join(f"{part} {run[part]:.3f}" for part in ["compute", "exchange", "wait"])
            said.append(f"{run['rate']:,.0f} samples/s; a step {run['step']:.3f} ms ({parts})")
    said += [f"{name} {value:,.2f}" for name, value in figures.items() if isinstance(value, float)]
    return "; ".join(said)


def measure_row(bench, measuring):
    """Returns (state, why, figures). A missing figure or file fails this row alone."""
    if bench.budget.left() < bench.flags.row_seconds_min:
        return limited.NOT_RUN, "the time was over", {}
    try:
        figures = measuring(bench)
        return limited.PASSED, "", figures
    except Missing as missing:
        return limited.NOT_RUN, str(missing), missing.figures
    except (Failure, OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        # The total limit cut the row off, which says nothing about the row.
        state = limited.NOT_RUN if bench.budget.left() == 0 else limited.FAILED
        return state, f"{type(error).__name__}: {error}", {}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parts", default="local,gradient,compressed,hidden,several", help="kinds of rows")
    parser.add_argument("--servers", type=int, default=2, help="of gradient exchanges that do not name it")
    parser.add_argument("--seconds", type=float, default=2, help="of each job, about")
    parser.add_argument("--job-seconds", type=float, default=60, help="limit of each job, its repetitions included")
    parser.add_argument("--row-seconds-min", type=float, default=5, help="a row does not begin with less")
    parser.add_argument("--minutes", type=float, default=15, help="limit of all rows; the others are not run")
    parser.add_argument("--json", type=pathlib.Path, help="a line is appended for each row")
    return parser.parse_args()


def main():
    flags = parse()
    limited.CUT_OFFS.expect()
    limited.lead_to_python_libraries()
    flags.programs = flags.programs.resolve()
    journal = limited.Journal(flags.json)
    budget = limited.Budget(60 * flags.minutes)
    kinds = flags.parts.split(",")
    with tempfile.TemporaryDirectory(prefix="leeway-gpu-speed-") as folder:
        bench = Bench(flags, pathlib.Path(folder), budget)
        for kind, name, measuring in table(flags.servers):
            if kind not in kinds:
                continue
            began = time.monotonic()
            state, why, figures = measure_row(bench, measuring)
            journal.add("rates beside PyTorch", state, why, time.monotonic() - began, kind=kind, row=name, figures=figures)
            print(f"{state:8} {kind:10} {name:36} {line(figures)}{' | ' if figures and why else ''}{why}", flush=True)
    states = [entry["state"] for entry in journal.entries]
    print(", ".join(f"{states.count(state)} rows {state}" for state in sorted(set(states))) or "no such row")
    return limited.exit_code(states)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except limited.CutOff as cut_off:
        sys.exit(f"gpu_speed: cut off by {cut_off}; the rows above are in the journal")
