#!/usr/bin/python3
"""Whole jobs of Python workers: jobs_test.py CASE."""

import pathlib
import random
import re
import sys
import tempfile
import time

from jobs import SOURCE, check, job_of, job_yaml, main, need_torch

HERE = pathlib.Path(__file__).resolve().parent
WORKER = HERE / "torch_worker.py"


def digests(job, ranks=(0, 1)):
    found = [re.search(r"ended finished digest (\w+)", job.said(rank)) for rank in ranks]
    check(all(found), f"ranks {list(ranks)} have finished")
    return {match.group(1) for match in found}


def equals_torch(optimizer, tolerance, model="mlp", yaml=None, clocks=50):
    """Compares two workers with batches of 32 with one process with batches of 64."""
    need_torch()
    import torch
    import torch_worker
    with tempfile.TemporaryDirectory() as folder, job_of(yaml or job_yaml()) as job:
        for rank in range(2):
            job.fork_worker(rank, WORKER, model, optimizer, folder)
        job.wait()
        check(len(digests(job)) == 1, "both ranks have the same bits")
        found = torch.load(f"{folder}/rank-0.pt")
        import leeway.torch as leeway
        saved = leeway.load(f"{folder}/saved.safetensors")
        check(all(torch.equal(saved[name], value) for name, value in found.items()), "job.save() wrote the same bits")
        alone = torch_worker.alone(model, optimizer, clocks, 64)
        worst = torch_worker.furthest(found, alone.state_dict())
        check(worst <= tolerance, f"{optimizer}: after {clocks} steps weights are within {worst:.1e} of torch's, relatively; "
              f"{tolerance:.0e} is allowed")
        untrained = torch_worker.furthest(found, torch_worker.make_model(model).state_dict())
        check(untrained > 0.05, f"and they have moved by {untrained:.2f}")


def sync():
    equals_torch("sgd", 1e-5)
    equals_torch("nesterov", 1e-5)


def momentum():
    equals_torch("momentum", 1e-5)


def adam():
    equals_torch("adam", 1e-4)
    equals_torch("adagrad", 1e-4)


def adamw():
    equals_torch("adamw", 1e-4)


def groups():
    equals_torch("groups", 1e-5)


UNEQUAL = """
import sys, leeway
gradient, counts = float(sys.argv[1]), [int(count) for count in sys.argv[2:]]
job = leeway.join({"w": 3}, update={"type": "sgd", "learning_rate": 1})
for clock, weights in job:
    print("clock", clock, "weight", weights["w"][1], flush=True)
    job.push_pull({"w": [gradient] * 3}, examples=counts[clock])
print("ended with", job.weights["w"][1], flush=True)
"""


def unequal():
    """A clock's gradient is the mean over examples, not over workers; a worker without examples does not count."""
    with job_of(job_yaml(workers=3, stop="{clocks: 3}")) as job:
        job.fork_worker(0, UNEQUAL, 1, 3, 0, 2)
        job.fork_worker(1, UNEQUAL, 5, 1, 0, 2)
        job.fork_worker(2, UNEQUAL, 9, 0, 7, 4)
        job.wait()
        for rank in range(3):
            said = [float(line.split()[-1]) for line in job.said(rank).splitlines() if line.startswith(("clock", "ended"))]
            check(said == [0, -2, -11, -17], f"rank {rank}: the weights were {said}")


def digits_yaml(**options):
    return job_yaml(batch_size=64, examples=3823, **options)


def seen_of(folder):
    """Returns what each rank read at each clock. A clock that was broken off because the job went back does not
    count."""
    by_clock = {}
    for path in pathlib.Path(folder).glob("seen-*.txt"):
        seen = [(int(clock), digest) for clock, digest in map(str.split, path.read_text().splitlines())]
        for (clock, digest), (following, _) in zip(seen, seen[1:] + [(seen[-1][0] + 1, "")] if seen else []):
            if following == clock + 1:
                by_clock.setdefault(clock, set()).add(digest)
    return by_clock


def numpy():
    with tempfile.TemporaryDirectory() as folder, job_of(digits_yaml(stop="{clocks: 400}")) as job:
        for rank in range(2):
            job.start_worker(rank, HERE / "numpy_worker.py", SOURCE / "data", folder)
        job.wait()
        accuracy = float(re.search(r"ended finished accuracy (\S+)", job.said(0)).group(1))
        check(accuracy > 0.93, f"two numpy workers: test accuracy {accuracy:.4f}")
        seen = seen_of(folder)
        check(len(seen) == 400 and all(len(digests) == 1 for digests in seen.values()), "both read the same bits at 400 clocks")


LAYERS = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: digits, seed: 3}
model: {layers: [{flatten: {}}, {dense: {units: 10, initializer: zeros}}], loss: softmax_cross_entropy}
data:
  train: {type: csv, files: optdigits/optdigits.tra}
  test: {type: csv, files: optdigits/optdigits.tes}
  batch_size: 64
  normalize: {mean: 0, std: 16}
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 0.5}
servers: {count: 2, block_bytes: 1024}
workers: {count: 3, emulate: {step_milliseconds: 4}}
stop: {clocks: 400}
checkpoint: {every: {clocks: 50}}
"""


def accuracy_of(run_dir, names):
    import numpy as np
    from leeway import safetensors
    weights = safetensors.load(run_dir / "model.safetensors")
    rows = np.loadtxt(SOURCE / "data/optdigits/optdigits.tes", delimiter=",", dtype=np.float32)
    scores = rows[:, :-1] / 16 @ weights[names[0]] + weights[names[1]]
    return float((scores.argmax(axis=1) == rows[:, -1]).mean())


def beside_cpp():
    """A numpy worker beside two C++ workers. A server is killed meanwhile."""
    names = ("dense_1/weight", "dense_1/bias")
    accuracies = []
    for mixed in (False, True):
        with tempfile.TemporaryDirectory() as folder, job_of(LAYERS) as job:
            for rank in range(2 if mixed else 3):
                job.start_cpp_worker(rank, SOURCE / "data")
            if mixed:
                job.start_worker(2, HERE / "numpy_worker.py", SOURCE / "data", folder, "named")
                job.wait_until(lambda: len(seen_of(folder)) > 120, "clock 120")
                job.restart_server(1)
            job.wait()
            accuracies.append(accuracy_of(job.run_dir, names))
            if mixed:
                seen = seen_of(folder)
                check(len(seen) == 400, "the numpy worker has seen 400 clocks")
                check(all(len(digests) == 1 for digests in seen.values()), "and the same bits at clocks that it saw twice")
                said = float(re.search(r"ended finished accuracy (\S+)", job.said(2)).group(1))
                check(abs(said - accuracies[-1]) < 1e-6, "what it has at the end is the job's model")
    check(abs(accuracies[0] - accuracies[1]) <= 0.005, f"test accuracy {accuracies[1]:.4f}, of C++ workers {accuracies[0]:.4f}")


def job_of_norm(exchange="{type: gradient}", clocks=60, checkpoint=10, update="", **options):
    return job_yaml(exchange=exchange, stop=f"{{clocks: {clocks}}}",
                    more=f"checkpoint: {{every: {{clocks: {checkpoint}}}}}\n{update}", **options)


def undisturbed(yaml, model, optimizer):
    with tempfile.TemporaryDirectory() as folder, job_of(yaml) as job:
        for rank in range(2):
            job.fork_worker(rank, WORKER, model, optimizer, folder)
        job.wait()
        return digests(job)


def clock_of(job, rank):
    found = re.findall(r"^clock (\d+)", job.said(rank), re.M)
    return int(found[-1]) if found else -1


def killed(job, folder, model, optimizer, draws):
    """Kills a random worker at a random clock with SIGKILL, and starts its next life."""
    victim, clock = draws.randrange(2), draws.randrange(2, 50)
    for rank in range(2):
        job.fork_worker(rank, WORKER, model, optimizer, folder, SLOW_SECONDS="0.01")
    job.wait_until(lambda: clock_of(job, victim) >= clock, f"clock {clock}")
    job.kill_worker(victim)
    print(f"rank {victim} was killed at clock {clock_of(job, victim)}", flush=True)
    job.fork_worker(victim, WORKER, model, optimizer, folder)


def killed_worker_once():
    killed_worker(1)


def killed_worker(runs=3):
    need_torch()
    yaml = job_of_norm()
    expected = undisturbed(yaml, "norm", "momentum")
    check(len(expected) == 1, "both ranks of an undisturbed run have the same bits")
    draws = random.Random(time.time_ns())
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else runs):
        with tempfile.TemporaryDirectory() as folder, job_of(yaml) as job:
            killed(job, folder, "norm", "momentum", draws)
            job.wait()
            check(digests(job) == expected, "the final weights are the same bits")
            for rank in range(2):
                passes = [int(number) for number in re.findall(r"^epoch (\d+) done", job.said(rank), re.M)]
                check(passes == sorted(passes) and passes[-1] == 5, f"rank {rank} went on at the pass where the job was: {passes}")


def killed_server():
    need_torch()
    yaml = job_of_norm()
    expected = undisturbed(yaml, "mlp", "adam")
    with tempfile.TemporaryDirectory() as folder, job_of(yaml) as job:
        for rank in range(2):
            job.fork_worker(rank, WORKER, "mlp", "adam", folder, SLOW_SECONDS="0.01")
        job.wait_until(lambda: clock_of(job, 0) >= 25, "clock 25")
        job.restart_server(1)
        job.wait()
        check(digests(job) == expected, "the job went back to its checkpoint, and the final weights are the same bits")


LOCAL = {"delta": ("{type: delta, local_steps: 5}", "update: {type: sgd, learning_rate: 0.7, momentum: 0.5, nesterov: true}"),
         "elastic": ("{type: elastic, every: 5, alpha: 0.3}", "")}


def learns(exchange, update, optimizer, mode="sync"):
    """Returns the loss on the training data, of untrained weights and at the end."""
    import torch
    import torch_worker
    with tempfile.TemporaryDirectory() as folder, job_of(
            job_of_norm(exchange, 40, 100, update, consistency=f"{{mode: {mode}}}")) as job:
        for rank in range(2):
            job.fork_worker(rank, WORKER, "norm", optimizer, folder)
        job.wait()
        from leeway.torch import load
        model = torch_worker.make_model("norm").eval()
        x, y = torch_worker.data()
        before = float(torch.nn.functional.cross_entropy(model(x), y))
        model.load_state_dict(load(job.run_dir / "model.safetensors"), strict=False)
        after = float(torch.nn.functional.cross_entropy(model(x), y))
        # In async mode some gradients are stale.
        check(after < before / (3 if mode == "sync" else 2), f"{exchange}, {mode}, {optimizer}: the loss went from {before:.3f} to {after:.3f}")


def delta():
    need_torch()
    exchange, update = LOCAL["delta"]
    learns(exchange, update, "adamw")
    learns(exchange, "update: {type: sgd, learning_rate: 1}", "groups")
    learns(exchange, "update: {type: sgd, learning_rate: 0.5}", "adamw", "async")


def elastic():
    need_torch()
    exchange, update = LOCAL["elastic"]
    learns(exchange, update, "adamw")
    learns(exchange, update, "nesterov", "async")


def resumed():
    """The job is stopped in the middle by SIGINT to server 0, and resumed: AdamW's state comes back from the
    checkpoint."""
    need_torch()
    for kind in ("gradient", "delta"):
        exchange, update = LOCAL.get(kind, ("{type: gradient}", ""))
        clocks = 40 if kind == "delta" else 200
        yaml = job_of_norm(exchange, clocks, clocks // 5, update)
        expected = undisturbed(yaml, "norm", "adamw")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            with job_of(yaml, folder=folder / "job") as job:
                for rank in range(2):
                    job.fork_worker(rank, WORKER, "norm", "adamw", folder, SLOW_SECONDS="0.01")
                job.wait_until(lambda: clock_of(job, 0) >= 8, "clock 8")
                job.stop()
                for output in job.outputs.values():
                    output.unlink()
            with job_of(yaml, folder=folder / "job", start=False) as job:
                job.resume()
                for rank in range(2):
                    job.fork_worker(rank, WORKER, "norm", "adamw", folder)
                job.wait()
                check(clock_of(job, 0) == clocks - 1 and "clock 0\n" not in job.said(0), "it went on where it was stopped")
                check(digests(job) == expected, f"{kind}: the final weights are those of a run in one go")


CASES = {case.__name__.replace("_", "-"): case
         for case in (sync, momentum, adam, adamw, groups, unequal, numpy, beside_cpp, killed_server, killed_worker,
                      killed_worker_once, delta, elastic, resumed)}

if __name__ == "__main__":
    main(CASES)
