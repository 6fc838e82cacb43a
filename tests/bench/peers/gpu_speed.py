#!/usr/bin/env python3
"""Workers on a GPU beside PyTorch on the same GPU, in one run.

Usage: gpu_speed.py [--programs build/release/bin] [--device cuda:0] [--seconds 3] [--json FILE]

- local steps: delta exchanges every 20 steps, one worker, one server, beside PyTorch eager;
- gradient exchange: its step beside the larger of the compute of a step and the model's time on the bus, one way;
- hidden: of 12 equal layers, how much of the shorter of compute and exchange a step hides;
- compressed: the gradient exchange once more, its contributions encoded on the GPU in int8 and sign;
- several workers on the one GPU.
PyTorch takes each batch from pinned memory, copied beside the step before. Examples are made by the seed: no file is
read. Where PyTorch is not installed, its columns are empty. Prints one compact table of each kind.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 512
EXAMPLES = 100 * BATCH
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


class Bench:
    def __init__(self, flags, folder):
        self.flags, self.folder, self.runs = flags, folder, 0

    def job(self, model, exchange, batch, epochs, steps=20):
        head = HEAD.format(layers="\n".join(f"    - {layer}" for layer in MODELS[model]), examples=batch * 100,
                           shape=SHAPES[model], batch=batch, epochs=epochs)
        return head + EXCHANGES[exchange].format(steps=steps)

    def train(self, model, exchange, precision, batch=BATCH, steps=20, workers=1, servers=1):
        """[rate, step]: samples a second of all workers, and what a step takes by its parts, in ms."""
        epochs = 2
        while True:
            self.runs += 1
            run = self.folder / f"run-{self.runs}"
            path = self.folder / f"job-{self.runs}.yaml"
            path.write_text(self.job(model, exchange, batch, epochs, steps))
            command = [str(self.flags.programs / "leeway"), "train", str(path), "--run-dir", str(run)]
            for setting in [f"workers.device={self.flags.device}", f"workers.precision={precision}",
                            f"workers.count={workers}", f"servers.count={servers}"]:
                command += ["--set", setting]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"gpu_speed: {model}, {exchange}: {done.stderr.strip() or done.stdout.strip()}")
            rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            began = next(row["time"] for row in rows if row["event"] == "job_started")
            seconds = max(max(row["time"] for row in rows if row["event"] == "step") - began, 0.02)
            measured = self.measure(rows)
            if measured is not None and seconds >= self.flags.seconds * 0.6:
                return measured
            epochs = min(int(epochs * max(2, self.flags.seconds / seconds)), 100000)

    @staticmethod
    def measure(rows):
        """From the second report of a worker on: the first has its start in it. None: too few."""
        by_rank = {}
        for row in rows:
            if row["event"] == "step":
                by_rank.setdefault(row["rank"], []).append(row)
        measured = {"rate": 0.0}
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
        return measured if by_rank else None

    def torch(self, model, precision):
        """Samples a second; None: it is not installed, or sees no GPU."""
        command = [sys.executable, str(HERE / "torch_gpu.py"), "--json", "--momentum", "0.9", "--model", model,
                   "--precision", precision, "--batch", str(BATCH), "--seconds", "0.7"]
        done = subprocess.run(command, capture_output=True, text=True)
        return list(json.loads(done.stdout).values())[0] if done.returncode == 0 else None

    def report(self, *command):
        """What a command of leeway's writes by --json; None: it failed."""
        path = self.folder / "report.json"
        done = subprocess.run([str(self.flags.programs / "leeway"), *command, "--json", str(path)], capture_output=True)
        return json.loads(path.read_text()) if done.returncode == 0 else None

    def link(self):
        """Bytes a second, one way; None: not known."""
        found = self.report("doctor", "--seconds", "0.05")
        gpus = found["gpus"]["devices"] if found else []
        return min(gpus[0]["bytes_per_second_up"], gpus[0]["bytes_per_second_down"]) or None if gpus else None

    def exchange(self, parameters):
        """ms of an exchange of so many parameters by itself; None: not measured."""
        found = self.report("bench", "exchange", "--parameters", parameters, "--transports", "auto", "--workers", "1",
                            "--servers", str(self.flags.servers), "--rounds", "3", "--seconds", "0.3", "--no-raw")
        return 1e3 * found["results"]["rows"][0]["leeway"]["step_seconds"]["p50"] if found else None


def ratio(value, other):
    return f"{value / other:.2f}" if value and other else "-"


def beside_torch(bench, precisions, results):
    print("model precision | local samples/s, PyTorch's, ratio | a step, ms: all, compute, exchange, wait"
          " | gradient: a step, ms; bound, ms; bound / step")
    link = bench.link()
    for model in ["mlp", "cnn"]:
        for precision in precisions:
            local = bench.train(model, "local", precision)
            torch = bench.torch(model, precision) if bench.flags.device != "cpu" else None
            gradient = bench.train(model, "gradient", precision, servers=bench.flags.servers)
            bus = 1e3 * PARAMETERS[model] * 4 / link if link else 0
            bound = max(local["compute"], bus)
            results[f"{model} {precision}"] = {"local": local, "torch": torch, "gradient": gradient, "bus_ms": bus}
            parts = ", ".join(f"{local[part]:.3f}" for part in ["step", "compute", "exchange", "wait"])
            print(f"{model} {precision} | {local['rate']:,.0f}, {torch or 0:,.0f}, {ratio(local['rate'], torch)}"
                  f" | {parts} | {gradient['step']:.3f}; {bound:.3f}; {ratio(bound, gradient['step'])}", flush=True)


def hidden(bench, results):
    batch = 3072
    compute = bench.train("twelve", "local", "fp32", batch=batch, steps=200)["compute"]
    step = bench.train("twelve", "gradient", "fp32", batch=batch, servers=bench.flags.servers)
    exchange = bench.exchange("11.6M")
    share = (compute + exchange - step["step"]) / min(compute, exchange) if exchange else None
    results["twelve"] = {"compute_ms": compute, "exchange_ms": exchange, "step": step, "hidden": share}
    print(f"12 layers of 1024: compute {compute:.2f} ms, exchange {exchange or 0:.2f} ms, both {step['step']:.2f} ms: "
          f"{100 * (share or 0):.0f} % of the shorter is hidden", flush=True)


def compressed(bench, results):
    for codec in ["gradient", "int8", "sign"]:
        run = bench.train("mlp", codec, "tf32", servers=bench.flags.servers)
        results[f"mlp tf32, {codec}"] = run
        print(f"mlp tf32, contributions in {codec if codec != 'gradient' else 'float32'}: {run['step']:.3f} ms a step",
              flush=True)


def several(bench, results):
    for workers in [1, 2, 4]:
        run = bench.train("cnn", "gradient", "tf32", workers=workers, servers=bench.flags.servers)
        results[f"cnn tf32, {workers} workers"] = run
        print(f"cnn tf32, gradient, {workers} workers on the GPU: {run['rate']:,.0f} samples/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--precision", action="append", choices=["fp32", "tf32", "bf16", "fp16"])
    parser.add_argument("--servers", type=int, default=2, help="of gradient exchanges")
    parser.add_argument("--seconds", type=float, default=3, help="of each job, about")
    parser.add_argument("--json", type=pathlib.Path)
    flags = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(flags, pathlib.Path(folder))
        beside_torch(bench, flags.precision or ["tf32", "bf16"], results)
        hidden(bench, results)
        compressed(bench, results)
        several(bench, results)
    if flags.json:
        flags.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
