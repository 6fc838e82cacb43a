#!/usr/bin/python3
"""Jobs of scripts with several optimizers, whose processes die within a batch and come back: apart_test.py CASE."""

import pathlib
import re
import tempfile

from jobs import check, job_of, job_yaml, main, need_torch
from rates_test import killed_worker, started
from scripts_test import SCRIPT

CLOCKS = 60
GAN = SCRIPT + """
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1 + rank)
        self.generator = nn.Sequential(nn.Linear(8, 30), nn.Tanh(), nn.Linear(30, 10))
        self.critic = nn.Sequential(nn.Linear(10, 30), nn.Tanh(), nn.Linear(30, 1))
gan = Gan()
first = torch.optim.Adam(gan.generator.parameters(), lr=0.01, betas=(0.5, 0.999), weight_decay=0.01)
second = torch.optim.Adam(gan.critic.parameters(), lr=0.02, betas=(0.5, 0.999))
sure = nn.functional.binary_cross_entropy_with_logits
job = leeway.join(gan, {optimizers})
{keep}
loader = job.batches((torch.randn(960, 10, generator=torch.Generator().manual_seed(3)),))
print("begins", flush=True)
for epoch in job.epochs():
    for real, in loader:
        noise = torch.randn(len(real), 8)
        fake, ones = gan.generator(noise), torch.ones(len(real), 1)
        second.zero_grad()
        (sure(gan.critic(real), ones) + sure(gan.critic(fake.detach()), 0 * ones)).backward()
        second.step()
        print("clock", job.clock, "half", flush=True)
        time.sleep(float(os.environ.get("SLOW_SECONDS", 0.01)))
        if job.clock % {every} == {every} - 1:
            first.zero_grad()
            sure(gan.critic(gan.generator(noise)), ones).backward()
            first.step()
        {after}
print("ended", job.ended, "digest", digest(gan), flush=True)
"""
CHECKPOINTS = "checkpoint: {every: {clocks: 10}}"


def script_of(every=1, keep="", after="pass", optimizers="[first, second]"):
    return GAN.replace("{optimizers}", optimizers).replace("{every}", str(every)).replace("{keep}", keep).replace("{after}", after)


def yaml_of(more="", **options):
    return job_yaml(batch_size=16, examples=960, stop=f"{{clocks: {CLOCKS}}}", more=more,
                    **{"servers": 2, "workers": 2, "exchange": "{type: gradient}", **options})


def digest_of(job, rank=0):
    found = re.search(r"ended finished digest (\w+)", job.said(rank))
    return found and found.group(1)


def undisturbed(script, yaml):
    with job_of(yaml) as job:
        started(job, script)
        job.wait()
        check(digest_of(job) and digest_of(job) == digest_of(job, 1), "both workers have the same weights")
        return digest_of(job)


def apart_killed():
    """A worker is killed between the two steps of a batch, without checkpoints; the generator steps with each third batch."""
    need_torch()
    for every in (1, 3):
        script = script_of(every)
        expected = undisturbed(script, yaml_of())
        with job_of(yaml_of()) as job:
            started(job, script, SLOW_SECONDS="0.05")
            killed_worker(job, script, 1, 8)
            killed_worker(job, script, 0, 25)
            job.wait()
            check(digest_of(job) == digest_of(job, 1) == expected, f"a step of the generator each {every}: the same bits")


def apart_killed_server():
    """The job goes back to a checkpoint; with schedulers of both optimizers."""
    need_torch()
    script = script_of(1, "kept = [job.keep(torch.optim.lr_scheduler.ExponentialLR(each, factor)) "
                          "for each, factor in ((first, 0.99), (second, 0.97))]", "[scheduler.step() for scheduler in kept]")
    expected = undisturbed(script, yaml_of(CHECKPOINTS))
    with job_of(yaml_of(CHECKPOINTS)) as job:
        started(job, script)
        killed_worker(job, script, 1, 14)
        job.wait_until(lambda: "clock 33 " in job.said(0), "clock 33")
        job.restart_server(1)
        job.wait()
        check(digest_of(job) == digest_of(job, 1) == expected, "the same bits")


def apart_resumed():
    need_torch()
    script = script_of(3)
    expected = undisturbed(script, yaml_of(CHECKPOINTS))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "job"
        with job_of(yaml_of(CHECKPOINTS), folder=folder) as job:
            started(job, script, SLOW_SECONDS="0.1")
            job.wait_until(lambda: "clock 31 " in job.said(0), "clock 31")
            job.stop()
        with job_of(yaml_of(CHECKPOINTS), folder=folder, start=False) as job:
            job.resume()
            started(job, script)
            job.wait()
            check(digest_of(job) == expected, "resumed: the same bits")


def apart_modes():
    """Outside of sync, with more servers than blocks of one optimizer, and with two holders of each block."""
    need_torch()
    for options in ({"consistency": "{mode: async}"}, {"consistency": "{mode: bounded, staleness: 2}"}, {"servers": 3}):
        with job_of(yaml_of(**options), servers=options.get("servers", 2)) as job:
            started(job, script_of(3))
            job.wait()
            check(digest_of(job), f"{options}: trains to the end")


def apart_refused():
    """Ranks whose steps differ; codecs that keep a residual; norms of the whole gradient; a job's own rule."""
    need_torch()
    with job_of(yaml_of()) as job:
        started(job, script_of(2), (0,))
        started(job, script_of(3), (1,))
        job.wait(codes=(1, 3), servers=False)
        check(re.search(r"workers \d and \d update different tensors: worker \d updates .*generator.*, but worker \d leaves it out; "
                        ".*Several optimizers", job.said(0) + job.said(1)), "different steps are refused by name")
    for more, text in (("compression: {contributions: {type: int8}}", "compression.contributions keeps what is lost"),
                       ("update: {type: adam, learning_rate: 0.02, beta1: 0.5, weight_decay: 0.01}",
                        "steps_by_element: true.*make them equal"),):
        with job_of(yaml_of(more)) as job:
            started(job, script_of(3))
            job.wait(codes=(1, 3), servers=False)
            check(re.search(text, job.said(0) + job.said(1)), f"{more}: refused by name")
    with job_of(yaml_of(exchange="{type: gradient, max_norm: 1}")) as job:
        started(job, script_of(1))
        job.wait(codes=(1, 3), servers=False)
        check("exchange.max_norm and exchange.on_bad_gradient need the whole gradient" in job.said(0) + job.said(1),
              "max_norm: refused by name")


CASES = {case.__name__.replace("_", "-"): case for case in (apart_killed, apart_killed_server, apart_resumed, apart_modes,
                                                            apart_refused)}

if __name__ == "__main__":
    main(CASES)
