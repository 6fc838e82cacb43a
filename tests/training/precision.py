#!/usr/bin/python3
"""Jobs in the precisions of workers.precision are as accurate as in fp32. In fp16, steps that overflow are left out and
counted, in the same way in every life of a worker. LEEWAY_BIN may have programs whose worker computes on a fake
device."""

import os
import signal

import runs

MNIST = "mnist/train-images-idx3-ubyte.gz"
DATA = "optdigits/optdigits.tra"
# How much lower the test accuracy may be.
LESS_AT_MOST = 0.003
# The digits as numbers from 0 to 9, two at a time: their errors are too large for the first scales.
OVERFLOWS = ["workers.precision=fp16", "model.layers=[{flatten: {}}, {dense: {units: 32}}, {relu: {}}, {dense: {units: 1}}]",
             "model.loss=squared", "data.batch_size=2", "update={type: sgd, learning_rate: 0.002, momentum: 0.5}",
             "servers.count=2", "workers.count=3"]


def overflows(run):
    return sum(step.get("overflowed_steps", 0) for step in run.events("step"))


def train(job, precision, sets):
    run = runs.Run(job, [f"workers.precision={precision}", *sets], runs.data_with(MNIST))
    summary = run.train(timeout=1200)
    steps = run.events("step")
    text = f"{job} in {precision}: test accuracy {summary['test_accuracy']:.4f} in {summary['seconds']:.1f} s"
    if precision == "fp16":
        runs.check(all("loss_scale" in step for step in steps), "every line of steps has the loss scale")
        runs.check(overflows(run) == summary["overflowed_steps"], "the summary counts them, too")
        text += f", {overflows(run)} of {summary['steps']} steps overflowed, loss scale {steps[-1]['loss_scale']:.0f}"
    else:
        runs.check(not any("loss_scale" in step for step in steps), f"no line of {precision} has a loss scale")
    print(text, flush=True)
    run.clean()
    return summary["test_accuracy"]


def as_accurate(job, sets=()):
    exact = train(job, "fp32", sets)
    for precision in ("bf16", "fp16"):
        lost = exact - train(job, precision, sets)
        runs.check(lost <= LESS_AT_MOST, f"{job}: {precision} loses {100 * lost:.2f} points, at most "
                                         f"{100 * LESS_AT_MOST:.1f}")


def job_that_overflows(sets=(), name="run"):
    run = runs.Run("quickstart.yaml", [*OVERFLOWS, "consistency.mode=sync", *sets], runs.data_with(DATA), name)
    # Its labels are not classes, and it is stopped shortly after its beginning.
    run.learns = False
    return run


WORKERS = ([], [("worker", 0, 1), ("worker", 1, 40)])
SERVER = (["checkpoint={every: {clocks: 20}}"], [("worker", 2, 3), ("server", 0, 50)])


def killed(*deaths):
    """Workers are killed with SIGKILL in the clocks that overflow and after them, and so is server 0, which has the
    scales on record: the bits are those of an undisturbed run."""
    clocks = "stop={clocks: 120}"
    whole = job_that_overflows([clocks])
    expected = whole.train()["weights_sha256"]
    count = overflows(whole)
    scales = {step["rank"]: step["loss_scale"] for step in whole.events("step")}
    runs.check(count > 0, f"{count} steps overflow; the scales at the end: {scales}")
    runs.check(all(scale < 65536 for scale in scales.values()), "every worker's scale was halved")
    for sets, blows in deaths:
        run = job_that_overflows([clocks, "workers.emulate={step_milliseconds: 40}", *sets], "killed")
        run.start()
        for role, number, clock in blows:
            run.wait_for(lambda r, clock=clock: r.max_clock() >= clock)
            os.kill(run.process_of(role, number), signal.SIGKILL)
            print(f"killed {role} {number} at clock {run.max_clock()}", flush=True)
        summary = run.wait()
        runs.check(summary["restarts"] >= len(blows), f"{summary['restarts']} restarts")
        runs.check(summary["weights_sha256"] == expected, f"the same bits as undisturbed ({expected[:16]})")
        run.clean()
    whole.clean()


def local_steps():
    """The part of the scale that delta and elastic workers keep is in the checkpoint: a stopped and resumed run has the
    same bits."""
    delta = ["exchange={type: delta, local_steps: 4, optimizer: {type: sgd, learning_rate: 0.002}}",
             "update={type: sgd, learning_rate: 1}"]
    whole = job_that_overflows([*delta, "stop={clocks: 60}"])
    expected = whole.train()["weights_sha256"]
    runs.check(overflows(whole) > 0, f"{overflows(whole)} local steps overflow")
    run = job_that_overflows(delta, "resumed")
    run.train(more=["stop={clocks: 2}"])
    sha = run.train(resume=True, more=["stop={clocks: 60}"])["weights_sha256"]
    runs.check(sha == expected, f"resumed: the same bits as unbroken ({expected[:16]})")
    whole.clean()
    run.clean()


CASES = {"mnist-mlp": lambda: as_accurate("mnist-sync.yaml", ["stop={epochs: 3}"]),
         "mnist-cnn": lambda: as_accurate("mnist-cnn.yaml", ["stop={epochs: 1}"]),
         # Not part of the tests, because the jobs are long.
         "mnist-mlp-whole": lambda: as_accurate("mnist-sync.yaml"),
         "mnist-cnn-whole": lambda: as_accurate("mnist-cnn.yaml"),
         "killed": lambda: killed(WORKERS, SERVER), "killed-server": lambda: killed(SERVER), "local-steps": local_steps}

if __name__ == "__main__":
    runs.main(CASES)
