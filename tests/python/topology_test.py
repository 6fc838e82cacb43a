#!/usr/bin/python3
"""Programs whose workers hold the blocks (topology.type: all_reduce): the same bits as with servers, the bytes of the
formula, and deaths. The programs have no line for it."""

import collections
import itertools
import re
import shutil
import subprocess

import numpy as np

from jobs import BIN, check, job_of, job_yaml, main, need_torch, skip

ALL_REDUCE = "topology: {type: all_reduce}"
def topology(algorithm):
    return f"topology: {{type: all_reduce, algorithm: {algorithm}}}"


# Waits at two clocks, until a file says go on. Writes the digest of its last weights.
PROGRAM = """
import hashlib, pathlib, sys, time
import numpy as np
import leeway
elements, pauses = int(sys.argv[1]), [int(clock) for clock in sys.argv[2:]]
job = leeway.join({"w": elements}, update={"type": "sgd", "learning_rate": 0.5, "momentum": 0.9})
for clock, weights in job:
    if clock in pauses:
        pathlib.Path(f"at-{clock}-{job.rank}").touch()
        while not pathlib.Path(f"go-{clock}").exists():
            time.sleep(0.01)
    draw = np.random.default_rng([clock, job.rank])
    job.push_pull({"w": weights["w"] - draw.standard_normal(elements, dtype=np.float32)}, examples=32)
np.save(f"end-{job.rank}.npy", job.weights["w"])
print("digest", hashlib.sha256(job.weights["w"].tobytes()).hexdigest()[:16], flush=True)
"""


def job(workers, clocks, more="", start=True):
    return job_of(job_yaml(workers=workers, servers=1, stop=f"{{clocks: {clocks}}}", more=more), servers=1, start=start)


def start(job, workers, *arguments):
    for rank in range(workers):
        job.start_worker(rank, PROGRAM, *arguments)


def paused(job, workers, clock):
    """Waits until all workers wait at the clock."""
    job.wait_until(lambda: all((job.folder / f"at-{clock}-{rank}").exists() for rank in range(workers)),
                   f"all workers to reach clock {clock}")


def go_on(job, clock):
    (job.folder / f"go-{clock}").touch()


def digests(job, workers):
    job.wait()
    found = {re.search("digest (\\w+)", job.said(rank))[1] for rank in range(workers)}
    check(len(found) == 1, f"all workers end with the same weights: {found}")
    return found.pop()


def bits():
    for workers in 1, 2, 4:
        found = []
        for more in "", ALL_REDUCE:
            with job(workers, 20, more) as each:
                start(each, workers, 5000)
                found.append(digests(each, workers))
        check(found[0] == found[1], f"{workers} workers: the bits of servers and of all_reduce: {found}")


def ends(job):
    return np.load(job.folder / "end-0.npy").astype(np.float64)


def passed_on():
    """Sums that travel from worker to worker: the same bits in each run, and servers' values."""
    for workers in 2, 3, 5:
        with job(workers, 20, ALL_REDUCE) as each:
            start(each, workers, 5000)
            digests(each, workers)
            wanted = ends(each)
        for algorithm in "ring", "tree":
            found = []
            for _ in range(2):
                with job(workers, 20, topology(algorithm)) as each:
                    start(each, workers, 5000)
                    found.append(digests(each, workers))
                    off = np.abs(ends(each) - wanted).max() / np.abs(wanted).max()
            check(found[0] == found[1] and off < 1e-6,
                  f"{workers} workers, {algorithm}: the same bits twice, and off by {off:.1e} from direct")


TORCH = """
import numpy as np, torch
import leeway.torch
torch.manual_seed(0)
x = torch.randn(640, 20)
data = torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.5)
job = leeway.torch.join(model, optimizer)
schedule = job.keep(schedule)
loader = job.batches(torch.utils.data.DataLoader(data, batch_size=32, shuffle=True))
for epoch in job.epochs(3):
    for features, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        schedule.step()
np.save(f"end-{job.rank}.npy", np.concatenate([each.detach().numpy().ravel() for each in model.state_dict().values()]))
"""


def torch_script():
    """A PyTorch script whose gradients leave during the backward pass, with a schedule: the weights of servers."""
    need_torch()
    found = {}
    for name, more in ("servers", ""), ("direct", ALL_REDUCE), ("ring", topology("ring")), ("tree", topology("tree")):
        with job_of(job_yaml(workers=3, servers=1, stop="{epochs: 3}", more=more), servers=1) as each:
            for rank in range(3):
                each.start_worker(rank, TORCH)
            each.wait()
            found[name] = ends(each)
    for name, weights in found.items():
        off = np.abs(weights - found["servers"]).max() / np.abs(found["servers"]).max()
        check(off < 1e-5, f"{name}: off by {off:.1e} from servers")


def sent_by(pids):
    """Returns the bytes that each of these processes has sent to the others over TCP."""
    said = subprocess.run(["ss", "-tinpH", "state", "established"], capture_output=True, text=True, check=True).stdout
    # By port, because all are on one host, in two spellings.
    owners, sent = {}, []
    for head, facts in re.findall(r"^(\S.*)\n\s+(.*)", said, re.MULTILINE):
        words = head.split()
        pid = re.search(r"pid=(\d+)", head)
        if not pid:
            continue
        owners[words[2].rpartition(":")[2]] = int(pid[1])
        acked = re.search(r"bytes_acked:(\d+)", facts)
        sent.append((int(pid[1]), words[3].rpartition(":")[2], int(acked[1]) if acked else 0))
    total = collections.Counter()
    for pid, peer, count in sent:
        if pid in pids and owners.get(peer) in pids and owners[peer] != pid:
            total[pid] += count
    return [total[pid] for pid in pids]


def bytes_sent():
    """2 (n - 1) / n of the model a clock, and at most 2 % more."""
    if not shutil.which("ss"):
        skip("ss is not installed (iproute2)")
    elements, first, last = 400000, 3, 23
    for algorithm, workers in itertools.product(("direct", "ring", "tree"), (2, 3, 4, 8)):
        with job(workers, last + 1, topology(algorithm) + "\ntransport: {type: tcp}") as each:
            start(each, workers, elements, first, last)
            counts = []
            for clock in first, last:
                paused(each, workers, clock)
                counts.append(sent_by([each.workers[rank].pid for rank in range(workers)]))
                go_on(each, clock)
            each.wait()
        wanted = 2 * (workers - 1) / workers * 4 * elements * (last - first)
        shares = [(after - before) / wanted for before, after in zip(*counts)]
        check(all(0.98 <= share <= 1.02 for share in shares),
              f"{algorithm}, {workers} workers: {min(shares):.4f} to {max(shares):.4f} of 2 (n - 1) / n N")


def killed():
    """A worker dies in the middle of the job, with a third of the blocks: the same bits."""
    for algorithm in "direct", "ring", "tree":
        killed_with(topology(algorithm))


def killed_with(more):
    found = []
    for victim in None, 1:
        with job(3, 40, more) as each:
            start(each, 3, 5000, 10)
            paused(each, 3, 10)
            if victim is not None:
                each.kill_worker(victim)
                each.start_worker(victim, PROGRAM, 5000)
            go_on(each, 10)
            found.append(digests(each, 3))
    check(found[0] == found[1], f"{more}: the same bits with a worker killed: {found}")


def leeway(*arguments):
    done = subprocess.run([str(BIN / "leeway"), *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def refused():
    """Without a rank."""
    with job(2, 5, ALL_REDUCE) as each:
        each.start_worker(0, PROGRAM, 500, LEEWAY_RANK="")
        each.workers[0].wait(60)
        check("set LEEWAY_RANK" in each.said(0), "a program without a rank hears that it needs one")
        each.servers[0].kill()


def secure():
    """With mutual TLS a worker needs a peer's certificate, and has the bits of a job without it."""
    found = []
    for keys in False, True:
        with job(2, 20, ALL_REDUCE, start=False) as each:
            if keys:
                leeway("certificates", each.folder / "keys")
            each.start_server(0, *(["--tls-dir", each.folder / "keys/server"] if keys else []))
            if keys:
                each.start_worker(0, PROGRAM, 500, LEEWAY_TLS_DIR=str(each.folder / "keys/worker"))
                each.workers[0].wait(60)
                check("needs a peer's ('leeway certificates DIR' makes DIR/peer)" in each.said(0), "a worker's certificate is refused")
            for rank in range(2):
                each.start_worker(rank, PROGRAM, 500, **({"LEEWAY_TLS_DIR": str(each.folder / "keys/peer")} if keys else {}))
            found.append(digests(each, 2))
    check(found[0] == found[1], f"the bits without and with mutual TLS: {found}")


if __name__ == "__main__":
    main({"bits": bits, "bytes": bytes_sent, "killed": killed, "passed-on": passed_on, "torch-script": torch_script, "refused": refused, "secure": secure})
