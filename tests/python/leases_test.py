#!/usr/bin/python3
"""Python workers whose batches the job leases: leases_test.py CASE. Each worker records which examples its
contributions had. Every example of every epoch is in a contribution that counts."""

import collections
import json
import pathlib
import re
import signal
import sys
import tempfile

from jobs import check, job_of, job_yaml, main, need_torch

EXAMPLES, BATCH = 640, 8
DATA = f"""
import os, sys, time
import numpy as np
import leeway
x = np.arange({EXAMPLES}, dtype=np.float32)
seen = open(f"seen-{{os.environ['LEEWAY_RANK']}}.txt", "a")
slow = float(os.environ.get("SLOW_SECONDS", "0.001"))
def trained(clock, rows):
    print(clock, *(int(row) for row in rows), file=seen, flush=True)
    time.sleep(slow)
"""
NUMPY = DATA + """
job = leeway.join({"w": 3}, update={"type": "sgd", "learning_rate": 1})
for rows in job.batches(x):
    trained(job.clock, rows)
    if job.info.exchange != "gradient":
        job.weights["w"] -= 1
    job.push_pull(None if job.info.exchange != "gradient" else {"w": np.ones(3)})
print("ended", job.ended, flush=True)
"""
TORCH = DATA + """
import torch
import leeway.torch as leeway
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return len(x)
    def __getitem__(self, index):
        return torch.tensor([x[index]]), os.getpid()

torch.set_num_threads(1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
job = leeway.join(model, optimizer)
loader = DataLoader(Numbers(), shuffle=True, num_workers=int(sys.argv[1]), multiprocessing_context="fork" if sys.argv[1] != "0" else None)
elsewhere = 0

def passes(batches):
    for epoch in job.epochs():
        for batch in batches:
            assert job.epoch == epoch
            yield batch

for rows, pids in passes(job.batches(loader)):
    trained(job.clock, rows[:, 0])
    elsewhere += int((pids != os.getpid()).all())
    model(rows).sum().backward()
    if job.last_batch:
        optimizer.step()
        optimizer.zero_grad()
print("ended", job.ended, "epoch", job.epoch, "read elsewhere", elsewhere, flush=True)
"""
ASYNC = dict(batch_size=BATCH, examples=EXAMPLES, assignment="leased", consistency="{mode: async}", workers=3,
             stop="{epochs: 3}")


def leased_yaml(**options):
    return job_yaml(**{**ASYNC, **options})


def seen_by(job, ranks):
    """Returns, for each rank, (clock, rows) of each batch."""
    lines = {rank: (job.folder / f"seen-{rank}.txt").read_text().splitlines() for rank in ranks}
    return {rank: [tuple(map(int, line.split())) for line in text] for rank, text in lines.items()}


def check_whole(job, ranks, epochs=3, twice=0):
    """Each example came once for each epoch; at most `twice` batches came once more."""
    seen = seen_by(job, ranks)
    counts = collections.Counter(row for batches in seen.values() for _, *rows in batches for row in rows)
    batches = {rank: len(each) for rank, each in seen.items()}
    check(len(counts) == EXAMPLES and min(counts.values()) >= epochs, f"every example came in each of {epochs} epochs")
    more = sum(counts.values()) - epochs * EXAMPLES
    check(0 <= more <= twice * BATCH, f"{more / BATCH:g} batches came twice, of {batches}; {twice} may")
    return batches


def epoch_done(job):
    events = [json.loads(line) for line in (job.run_dir / "metrics.jsonl").read_text().splitlines()]
    done = [event["message"] for event in events if event["event"] == "epoch_done"]
    check(done and "every batch of epochs below 3 has been trained on" in done[-1], f"the job says: {done[-1:]}")


def numpy():
    """A slow worker takes fewer batches."""
    with job_of(leased_yaml()) as job:
        for rank in range(3):
            job.start_worker(rank, NUMPY, SLOW_SECONDS="0.04" if rank == 2 else "0.005")
        job.wait()
        batches = check_whole(job, range(3))
        epoch_done(job)
        check(batches[2] < batches[0] / 2, "the slow worker had less than half of a fast one's")


def local_steps():
    """Clocks have more steps than a worker has batches left: they end with those that there are."""
    for exchange, more in (("{type: delta, local_steps: 40}", "update: {type: sgd, learning_rate: 1}"),
                           ("{type: elastic, every: 7}", ""), ("{type: gradient, accumulation: 6}", "")):
        with job_of(leased_yaml(exchange=exchange, more=more)) as job:
            for rank in range(3):
                job.start_worker(rank, NUMPY, SLOW_SECONDS="0.002")
            job.wait()
            if "gradient" not in exchange:
                check_whole(job, range(3))
            else:  # A line has all batches of its clock.
                seen = seen_by(job, range(3))
                check(sum(len(rows) for each in seen.values() for _, *rows in each) == 3 * EXAMPLES,
                      f"{exchange}: each example came three times")


def lost():
    """A worker is killed for good. The others train on what it had."""
    more = "limits: {lease_seconds: 1}"
    yaml = leased_yaml(more=more).replace("workers: {count: 3}", "workers: {count: 3, on_worker_loss: continue}")
    with job_of(yaml) as job:
        for rank in range(3):
            job.start_worker(rank, NUMPY, SLOW_SECONDS="0.01")
        job.wait_until(lambda: (job.folder / "seen-1.txt").exists() and len(seen_by(job, [1])[1]) > 5, "some batches")
        job.workers.pop(1).send_signal(signal.SIGKILL)
        job.wait()
        # What it had contributed within a quarter of a second and not reported.
        check_whole(job, range(3), twice=60)
        epoch_done(job)


def bounded():
    """Every worker makes its clocks, and each pass is complete, even the last one, and even if batches are left
    over."""
    for workers, stop, exchange in ((3, "{clocks: 80}", "{type: gradient}"), (4, "{epochs: 1}", "{type: gradient}"),
                                    (3, "{epochs: 2}", "{type: gradient, accumulation: 4}"),
                                    (3, "{epochs: 2}", "{type: elastic, every: 5}")):
        yaml = leased_yaml(consistency="{mode: bounded, staleness: 3}", stop=stop, workers=workers, exchange=exchange)
        with job_of(yaml) as job:
            for rank in range(workers):
                job.start_worker(rank, NUMPY, SLOW_SECONDS="0.004" if rank == 1 else "0.001")
            job.wait()
            passes = 3 if "clocks" in stop else int(stop[-2])
            seen = seen_by(job, range(workers))
            batches = sum(len(rows) // BATCH for each in seen.values() for _, *rows in each)
            each_pass = EXAMPLES // BATCH
            counts = collections.Counter(row for each in seen.values() for _, *rows in each for row in rows)
            whole = len(counts) == EXAMPLES and min(counts.values()) == passes
            check(whole and batches <= passes * each_pass + 2 * workers,
                  f"{workers} workers, {stop}, {exchange}: {batches} batches, {passes} passes, each whole")


def always_late():
    """A worker that is late in every clock does not keep batches from the others."""
    yaml = leased_yaml(consistency="{mode: sync, backup_workers: 1}", stop="{epochs: 6}")
    with job_of(yaml) as job:
        for rank in range(3):
            job.start_worker(rank, NUMPY, SLOW_SECONDS="0.1" if rank == 1 else "0.005")
        job.wait(timeout=200)
        events = [json.loads(line) for line in (job.run_dir / "metrics.jsonl").read_text().splitlines()]
        done = [event["message"] for event in events if event["event"] == "epoch_done"]
        # Four passes are made; the late worker has a few batches of some of them.
        check(done and int(re.search(r"epochs below (\d+)", done[-1]).group(1)) >= 2, f"epochs were whole: {done[-1:]}")


OWN_LOOP = """
import leeway
job = leeway.join({"w": 3}, update={"type": "sgd", "learning_rate": 1})
for clock, weights in job:
    job.push_pull({"w": [1, 1, 1]})
"""


def never_asks():
    """A loop without batches does not make endless clocks, and neither does calling step() twice."""
    with job_of(leased_yaml(workers=1)) as job:
        job.start_worker(0, OWN_LOOP)
        job.wait(codes=(3,), servers=False)
        check("take the batches from leeway_next_batch, or in Python from job.batches" in job.said(0), "a loop of its own is refused")
    need_torch()
    given = "for rows, pids in passes(job.batches(loader)):"
    for loop, text in ((given, "this clock has not asked for a batch"),
                       ("for rows, pids in job.over(loader):", "take them from job.batches")):
        script = TORCH.replace(given, loop)
        again = "        optimizer.step()\n        model(rows).sum().backward()\n        optimizer.step()\n"
        script = script.replace("        optimizer.step()\n", again)
        with job_of(leased_yaml(workers=1)) as job:
            job.fork_worker(0, script, 0)
            job.wait(codes=(3,), servers=False)
            check(text in job.said(0), f"{loop} with two steps a batch is refused")


def resumed():
    """The job is stopped and resumed from the checkpoint: batches that it has are not trained on again."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "job"
        yaml = leased_yaml(more="checkpoint: {every: {clocks: 20}}")
        with job_of(yaml, folder=folder) as job:
            for rank in range(3):
                job.start_worker(rank, NUMPY, SLOW_SECONDS="0.01")
            job.wait_until(lambda: (job.folder / "seen-0.txt").exists() and len(seen_by(job, [0])[0]) > 20, "20 batches")
            job.stop()
            before = sum(len(each) for each in seen_by(job, range(3)).values())
            check(before < 240, f"{before} of 240 batches came before")
        with job_of(yaml, folder=folder, start=False) as job:
            job.resume()
            for rank in range(3):
                job.start_worker(rank, NUMPY)
            job.wait()
            check_whole(job, range(3))


def stopped_waiting():
    """A worker that waits for another worker's last batch is also asked to stop."""
    with job_of(leased_yaml(workers=2, stop="{epochs: 1}")) as job:
        job.start_worker(0, NUMPY, SLOW_SECONDS="0.001")
        job.start_worker(1, NUMPY, SLOW_SECONDS="3")
        job.wait_until(lambda: len(seen_by(job, [0])[0]) > 60 if (job.folder / "seen-0.txt").exists() else False, "60 batches")
        job.stop()


def torch():
    """A DataLoader's processes read leased batches ahead."""
    need_torch()
    for exchange, loaders in (("{type: gradient}", 2), ("{type: gradient, accumulation: 3}", 2), ("{type: gradient}", 0),
                              ("{type: delta, local_steps: 9}", 1)):
        more = "update: {type: sgd, learning_rate: 1}" if "delta" in exchange else ""
        with job_of(leased_yaml(exchange=exchange, more=more)) as job:
            for rank in range(3):
                job.fork_worker(rank, TORCH, loaders, SLOW_SECONDS="0.02" if rank == 2 else "0.002")
            job.wait()
            batches = check_whole(job, range(3))
            check(batches[2] < min(batches[0], batches[1]), "the slow worker had fewer")
            for rank in range(3):
                found = re.search(r"ended finished epoch 2 read elsewhere (\d+)", job.said(rank))
                check(found and int(found.group(1)) == (batches[rank] if loaders else 0),
                      f"{exchange}, {loaders} loaders: rank {rank} read {found and found.group(1)} of {batches[rank]} elsewhere")


CASES = {"leased-" + case.__name__.replace("_", "-"): case
         for case in (numpy, local_steps, lost, bounded, always_late, never_asks, resumed, stopped_waiting, torch)}

if __name__ == "__main__":
    main(CASES)
