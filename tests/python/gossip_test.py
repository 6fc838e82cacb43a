#!/usr/bin/python3
"""Programs that mix their weights with some others (topology.type: gossip): how fast all weights approach their mean,
that the mean stays, what is saved, and deaths. The programs have no line for it."""

import math
import re

import numpy as np

from jobs import check, job_of, job_yaml, main  # first: it finds the package

import leeway.safetensors

# In the first clock each worker takes random weights of its own. Then nobody changes any, or everybody adds to them.
PROGRAM = """
import sys, time
import numpy as np
import leeway
elements, step, pause, steps = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
job = leeway.join({"w": elements})
seen = []
for clock, weights in job:
    seen.append(weights["w"].copy())
    draw = np.random.default_rng([clock, job.rank]).standard_normal(elements, dtype=np.float32)
    weights["w"][:] += draw * (1 if clock == 0 else step if clock < steps else 0)
    time.sleep(pause)
    print("clock", clock, flush=True)
    job.push_pull(examples=32)
np.save(f"seen-{job.rank}.npy", np.array(seen))
"""


def job(workers, clocks, graph, mode="sync", more=""):
    gossip = f"topology: {{type: gossip, {graph}}}" if graph else "topology: {type: gossip}"
    return job_of(job_yaml(workers=workers, servers=1, exchange="{type: delta, local_steps: 1}",
                           consistency=f"{{mode: {mode}}}", stop=f"{{clocks: {clocks}}}", more=gossip + "\n" + more), servers=1)


def run(each, workers, elements=3000, step=0.0, pause=0.0, steps=10**9):
    for rank in range(workers):
        each.start_worker(rank, PROGRAM, elements, step, pause, steps)
    each.wait()
    return seen(each, workers)


def seen(each, workers):
    """Returns the weights that each worker had at the beginning of each clock."""
    return [np.load(each.folder / f"seen-{rank}.npy").astype(np.float64) for rank in range(workers)]


def deviations(all_weights):
    """By clock: the sum over all workers of the squared distance from the mean."""
    weights = np.array(all_weights)
    return ((weights - weights.mean(axis=0)) ** 2).sum(axis=(0, 2))


def contraction():
    """Without steps the distance shrinks by the factors of the graphs."""
    with job(8, 42, "graph: ring") as each:
        found = deviations(run(each, 8, 500))
    factor = math.sqrt(found[41] / found[21]) ** (1 / 20)
    check(abs(factor / 0.8047 - 1) < 0.03, f"ring of 8: a clock's factor is {factor:.4f}, and 0.8047 in the limit")
    with job(8, 6, "graph: exponential") as each:
        found = deviations(run(each, 8, 500))
    check(found[1] > 0 and found[4] < 1e-9 * found[1], f"exponential of 8: {found[4] / found[1]:.1e} is left after 3 clocks")
    with job(10, 24, "graph: random, group: 2") as each:
        found = deviations(run(each, 10, 500))
    # The mean of a few draws is not their expectation, which tests/config/gossip_graph_test.cc checks.
    factor = (found[16] / found[1]) ** (1 / 15)
    check(0.25 < factor < 0.6, f"random pairs of 10: a clock's squared factor is {factor:.3f}, and 4/9 in expectation")


def mean():
    """In sync mode mixing does not move the mean, and the job saves it exactly. In async mode the saved mean follows the
    workers, which stop to change their weights long before the end here."""
    with job(4, 40, "graph: ring, mean_every: 5") as each:
        run(each, 4, step=0.1)
        saved = saved_by(each)
    wanted = sum(np.random.default_rng([clock, rank]).standard_normal(3000, dtype=np.float32).astype(np.float64)
                 * (1 if clock == 0 else 0.1) for rank in range(4) for clock in range(40)) / 4
    off = np.abs(saved - wanted).max() / np.abs(wanted).max()
    check(off < 1e-5, f"sync: the saved mean is off by {off:.1e} from the mean of all steps")
    with job(4, 40, "mean_every: 5", "async") as each:
        weights = run(each, 4, step=0.1, pause=0.002, steps=12)
        saved = saved_by(each)
    wanted = np.mean([each_weights[-1] for each_weights in weights], axis=0)
    off = np.abs(saved - wanted).max() / np.abs(wanted).max()
    check(off < 1e-2, f"async: the saved mean is off by {off:.1e} from the mean of all weights")


def saved_by(each):
    return leeway.safetensors.load(each.run_dir / "model.safetensors")["w"]


def bits():
    """In sync mode each run has the same bits."""
    for graph in "graph: ring", "graph: exponential", "graph: random, group: 3":
        found = []
        for _ in range(2):
            with job(5, 20, graph) as each:
                weights = run(each, 5, step=0.1)
                found.append([each_weights[-1].tobytes() for each_weights in weights])
        check(found[0] == found[1], f"{graph}: the same bits in two runs")
        check(len(set(found[0])) > 1, f"{graph}: the workers have weights of their own")


def killed():
    """A worker dies. In async mode the others go on without it."""
    with job(4, 400, "graph: random", "async") as each:
        for rank in range(4):
            each.start_worker(rank, PROGRAM, 1000, 0.01, 0.02, 10**9)
        each.wait_until(lambda: clock_of(each, 0) >= 20, "clock 20")
        each.kill_worker(2)
        before = clock_of(each, 0)
        each.wait_until(lambda: clock_of(each, 0) >= before + 60, "60 more clocks, without worker 2")
        print(f"worker 0 went on from clock {before} to {clock_of(each, 0)} while worker 2 was dead", flush=True)
        each.start_worker(2, PROGRAM, 1000, 0.01, 0.02, 10**9)
        each.wait()


def clock_of(each, rank):
    found = re.findall(r"^clock (\d+)", each.said(rank), re.M)
    return int(found[-1]) if found else -1


if __name__ == "__main__":
    main({"contraction": contraction, "mean": mean, "gossip-bits": bits, "worker-lost": killed})
