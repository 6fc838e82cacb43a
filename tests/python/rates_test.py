#!/usr/bin/python3
"""Jobs of scripts with schedulers, whose processes die and come back: rates_test.py CASE."""

import pathlib
import re
import tempfile

from jobs import check, job_of, job_yaml, main, need_torch
from scripts_test import SCRIPT

CLOCKS = 60
STEPS = SCRIPT + """
print("begins", flush=True)
job = leeway.join(model, optimizer)
scheduler = job.keep({0})
for x, y in job.over(job.batches(data())):
    step(model, optimizer, x, y)
    print("clock", job.clock, "rate", repr(optimizer.param_groups[0]["lr"]), flush=True)
    with torch.no_grad():
        {1}
    time.sleep(float(os.environ.get("SLOW_SECONDS", 0.01)))
print("ended", job.ended, "digest", digest(model), flush=True)
"""
COSINE = STEPS.format("torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 7, 2)", "scheduler.step()")
PLATEAU = STEPS.format("torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, factor=0.7, threshold=0.05)",
                       "scheduler.step(float(nn.functional.cross_entropy(model(data()[0]), data()[1])))")
PASSES = SCRIPT + """
job = leeway.join(model, optimizer)
loader, scheduler = job.batches(data()), job.keep(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7))
for epoch in job.epochs():
    for x, y in loader:
        step(model, optimizer, x, y)
        print("clock", job.clock, "rate", repr(optimizer.param_groups[0]["lr"]), flush=True)
        time.sleep(0.03)
    scheduler.step()
print("ended", job.ended, "digest", digest(model), flush=True)
"""
CLOCK = r"^clock (\d+) rate (\S+)"
CHECKPOINTS = "checkpoint: {every: {clocks: 10}}"


def yaml_of(more=CHECKPOINTS, **options):
    return job_yaml(stop=f"{{clocks: {CLOCKS}}}", more=more, **options)


def started(job, script, ranks=(0, 1), **environment):
    for rank in ranks:
        job.fork_worker(rank, script, **environment)


def rates_of(job, rank):
    """Returns the rates by clock, of all lives."""
    return re.findall(CLOCK, job.said(rank), re.M)


def killed_worker(job, script, rank, clock):
    job.wait_until(lambda: f"clock {clock} " in job.said(rank), f"clock {clock}")
    job.kill_worker(rank)
    started(job, script, (rank,))


def undisturbed(script, yaml):
    with job_of(yaml) as job:
        started(job, script)
        job.wait()
        rates = dict(rates_of(job, 0))
        check(len(rates) == CLOCKS and len(set(rates.values())) > 2, f"{len(set(rates.values()))} rates in {len(rates)} clocks")
        return rates, re.search(r"digest (\w+)", job.said(0)).group(1)


def check_alike(job, expected, what):
    rates, digest = expected
    for rank in (0, 1):
        found, said = rates_of(job, rank), job.said(rank)
        wrong = [each for each in found if rates[each[0]] != each[1]]
        check(not wrong and f"digest {digest}" in said,
              f"{what}, rank {rank}: {len(found)} steps with their rates, and the same bits {wrong[:3]}")


def rates_killed():
    """A worker is killed before the first checkpoint and after it; then a server is killed."""
    need_torch()
    expected = undisturbed(COSINE, yaml_of())
    with job_of(yaml_of()) as job:
        started(job, COSINE)
        killed_worker(job, COSINE, 1, 4)
        killed_worker(job, COSINE, 0, 25)
        job.wait_until(lambda: "clock 40 " in job.said(0), "clock 40")
        job.restart_server(1)
        job.wait()
        check(len(rates_of(job, 0)) > CLOCKS, "the job went back")
        check_alike(job, expected, "killed")


def rates_passes():
    """A server is killed in the first clocks of a pass of 10, when the newest checkpoint, of clock 28, is in the
    previous pass."""
    need_torch()
    for exchange, more in (("{type: gradient}", ""), ("{type: delta, local_steps: 1}", "update: {type: sgd, learning_rate: 1}")):
        yaml = yaml_of("checkpoint: {every: {clocks: 7}}\n" + more, exchange=exchange)
        expected = undisturbed(PASSES, yaml)
        with job_of(yaml) as job:
            started(job, PASSES)
            job.wait_until(lambda: "clock 31 " in job.said(0), "clock 31")
            job.restart_server(1)
            job.wait()
            clocks = [int(clock) for clock, _ in rates_of(job, 0)]
            check(clocks.count(29) == 2 and clocks.count(31) == 2, f"{exchange}: the job went back over the end of a pass")
            check_alike(job, expected, f"{exchange}, killed")


def rates_resumed():
    """The job is stopped by SIGINT to server 0 and resumed, with a scheduler that looks at the loss."""
    need_torch()
    expected = undisturbed(PLATEAU, yaml_of())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "job"
        with job_of(yaml_of(), folder=folder) as job:
            started(job, PLATEAU, SLOW_SECONDS="0.1")
            job.wait_until(lambda: "clock 33 " in job.said(0), "clock 33")
            job.stop()
        with job_of(yaml_of(), folder=folder, start=False) as job:
            job.resume()
            started(job, PLATEAU)
            job.wait()
            check_alike(job, expected, "resumed")


def rates_more():
    """The job is resumed with one more worker, which has no state of its own."""
    need_torch()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "job"
        with job_of(yaml_of(), folder=folder) as job:
            # Slow, so that it is still training when the stop comes.
            started(job, COSINE, SLOW_SECONDS="0.1")
            job.wait_until(lambda: "clock 33 " in job.said(0), "clock 33")
            job.stop()
            for output in job.outputs.values():
                output.unlink()
        with job_of(yaml_of(workers=3), folder=folder, start=False) as job:
            job.resume()
            started(job, COSINE, (0, 1, 2))
            job.wait()
            rates = [dict(rates_of(job, rank)) for rank in (0, 1, 2)]
            # Rank 2 may have no batch in a pass's last clock.
            first, joined = min(map(int, rates[0])), min(map(int, rates[2]))
            check(first > 30 and joined - first < 2 and float(rates[2][str(joined)]) < 0.1, f"goes on at clock {first}")
            alike = all(rates[0][clock] == rate for each in rates for clock, rate in each.items())
            check(alike and len(rates[2]) < len(rates[0]), f"three ranks have the same rates, and rank 2 has {len(rates[2])} batches")


def rates_refused():
    """Workers of a sync job with different rates, and a worker that has lost its scheduler because there are no
    checkpoints."""
    need_torch()
    with job_of(yaml_of()) as job:
        started(job, COSINE, (0,))
        started(job, PLATEAU, (1,))
        job.wait(codes=(1, 3), servers=False)
        check(re.search("workers 0 and 1 have different learning rates: .*weight.* by 1 and 0.9|"
                        "workers 0 and 1 have different learning rates: .*weight.* by 0.9\\S* and 1", job.said(0) + job.said(1)),
              "different rates are refused by name")
    with job_of(yaml_of(more="")) as job:
        started(job, COSINE)
        killed_worker(job, COSINE, 1, 12)
        check(job.workers[1].wait(60) == 3, "by a code that says: not again")
        check(re.search(r"InvalidArgument: rank 1 goes on at clock \d+, and no checkpoint has the state of its scheduler",
                        job.said(1)), "a worker without its scheduler ends by name")


def rates_apart():
    """Outside of sync the job does not go back: a worker that was killed continues from its state in the newest
    checkpoint, which may be its state for the checkpoint before."""
    need_torch()
    rates, _ = undisturbed(COSINE, yaml_of())
    for mode in ("{mode: bounded, staleness: 3}", "{mode: async}"):
        with job_of(yaml_of(consistency=mode)) as job:
            started(job, COSINE, SLOW_SECONDS="0.03")
            job.wait_until((job.run_dir / "checkpoints/clock-000000020/MANIFEST.json").exists, "the second checkpoint")
            killed_worker(job, COSINE, 1, 25)
            job.wait()
            new = re.findall(CLOCK, job.said(1).rpartition("begins\n")[2], re.M)[:8]
            checkpoints = [clock for clock in range(10, int(new[0][0]) + 1, 10)
                           if [rate for _, rate in new] == [rates[str(each)] for each in range(clock, clock + 8)]]
            check("ended finished" in job.said(1) and len(checkpoints) == 1,
                  f"{mode}: from clock {new[0][0]} on it has the rates from clock {checkpoints} on")


CASES = {case.__name__.replace("_", "-"): case for case in (rates_killed, rates_passes, rates_resumed, rates_more, rates_refused,
                                                            rates_apart)}

if __name__ == "__main__":
    main(CASES)
