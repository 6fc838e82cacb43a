#!/usr/bin/python3
"""The moving average of the weights: how it is computed, that it is evaluated and exported, and that nothing disturbs
it."""

import json
import os
import random
import signal
import subprocess

import runs

DATA = "optdigits/optdigits.tra"
DECAY = 0.8
AVERAGE_FILE = "model-average.safetensors"
AVERAGE = f"update={{type: sgd, learning_rate: 0.05, momentum: 0.9, average: {{decay: {DECAY}}}}}"
SETS = ["servers.count=2", "workers.count=3", AVERAGE]
EVALUATED = "evaluation={every: {clocks: 20}, weights: average}"


def job(sets, name="run", parent=None):
    return runs.Run("quickstart.yaml", [*SETS, *sets], runs.data_with(DATA), name=name, parent=parent)


def leeway(*arguments):
    done = subprocess.run([str(runs.BIN / "leeway"), *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def exported(run, clock, *more):
    path = run.parent / "exported.safetensors"
    code, said = leeway("export", run.dir, "--checkpoint", clock, "-o", path, *more)
    runs.check(code == 0, said.strip())
    return runs.read_safetensors(path)


def formula():
    """average = decay average + (1 - decay) weights, from the first update's weights on, over all tensors."""
    clocks = 12
    run = job([f"stop={{clocks: {clocks}}}", "checkpoint={every: {clocks: 1}, keep: 99}",
               "workers.emulate={step_milliseconds: 250}"])
    run.learns = False
    run.train()
    wanted = exported(run, 1)
    for clock in range(2, clocks + 1):
        weights = exported(run, clock)
        wanted = {name: [DECAY * a + (1 - DECAY) * w for a, w in zip(wanted[name], weights[name])] for name in weights}
        given = exported(run, clock, "--average")
        apart = max(abs(a - w) for name in wanted for a, w in zip(given[name], wanted[name]))
        runs.check(apart < 1e-6, f"clock {clock}: {apart:.1e} from the formula")
    runs.check(average(run) == exported(run, clocks, "--average"), "model-average.safetensors is the last of them")
    runs.check(run.model() == exported(run, clocks), "and model.safetensors has the weights")
    run.clean()


def evaluated():
    """Evaluations use the average: during training, at the end, and in `leeway evaluate`."""
    run = job([EVALUATED, "stop={clocks: 60}", "checkpoint={every: {clocks: 20}, keep: 99}",
               "workers.emulate={step_milliseconds: 20}"])
    summary = run.train()
    # A slow disk may leave a cut out, but never the last one.
    saved = {int(cut.name.removeprefix("clock-")) for cut in (run.dir / "checkpoints").glob("clock-*")}
    runs.check(60 in saved, f"checkpoints at clocks {sorted(saved)}")
    for event in run.events("evaluation"):
        if event["clock"] not in saved:
            continue
        told = run.parent / "told.json"
        code, said = leeway("evaluate", run.dir, "--checkpoint", event["clock"], "--data", run.data, "--json", told)
        runs.check(code == 0, said.strip())
        loss = json.loads(told.read_text())["test_loss"]
        runs.check(abs(loss - event["test_loss"]) < 1e-5, f"clock {event['clock']}: a test loss of {loss:.6f}")
    runs.check(abs(summary["test_loss"] - run.events("evaluation")[-1]["test_loss"]) < 1e-5, "the summary's is the last")
    losses = {}
    for file in "model.safetensors", AVERAGE_FILE:
        told = run.parent / "told.json"
        code, said = leeway("evaluate", run.dir, "--model", run.dir / file, "--data", run.data, "--json", told)
        runs.check(code == 0, said.strip())
        losses[file] = json.loads(told.read_text())["test_loss"]
    runs.check(abs(losses[AVERAGE_FILE] - summary["test_loss"]) < 1e-5, "it is the average's")
    runs.check(losses["model.safetensors"] != losses[AVERAGE_FILE], "and not that of the weights")
    run.clean()


def average(run):
    return runs.read_safetensors(run.dir / AVERAGE_FILE)


def same(run, whole):
    """Checks that both runs have the same result, to the bit."""
    runs.check(run.model() == whole.model(), "the same weights")
    runs.check(average(run) == average(whole), "and the same average")
    for each in run, whole:
        each.clean()


def resumed():
    """A run that is resumed on another number of servers has the same bits."""
    whole = job(["stop={clocks: 80}"])
    whole.train()
    run = job(["stop={clocks: 40}"])
    run.learns = False
    run.train()
    run.learns = True
    run.train(resume=True, more=["stop={clocks: 80}", "servers.count=3"])
    same(run, whole)


def killed():
    """A server is killed in the middle: its replica has the average, too."""
    slowly = "workers.emulate={step_milliseconds: 3}"
    run = job([EVALUATED, "servers.replicas=2", slowly, "stop={clocks: 100000}"])
    run.start()
    random.seed(11)
    for _ in range(2):
        at = run.max_clock() + 40
        run.wait_for(lambda r, at=at: r.max_clock() >= at)
        pid, _ = random.choice(run.children("leeway-server")[1:])
        os.kill(pid, signal.SIGKILL)
    at = run.max_clock() + 60
    run.wait_for(lambda r: r.max_clock() >= at)
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED)
    runs.check(summary["restarts"] == 2, f"killed twice, stopped at clock {summary['clock']}")
    whole = job([f"stop={{clocks: {summary['clock']}}}"])
    whole.train()
    same(run, whole)


def begun_later():
    """A run that had no average continues with one, which begins with the weights of that moment; and then without it
    again."""
    plain = "update={type: sgd, learning_rate: 0.05, momentum: 0.9}"
    run = job([plain, "stop={clocks: 20}", "checkpoint={every: {clocks: 10}, keep: 99}"])
    run.learns = False
    run.train()
    runs.check(not (run.dir / AVERAGE_FILE).exists(), "no average is kept, none is written")
    code, said = leeway("export", run.dir, "--average", "-o", run.parent / "none.safetensors")
    runs.check(code != 0 and "update.average" in said, said.strip())
    run.sets.remove(plain)
    run.train(resume=True, more=["stop={clocks: 21}"])
    before, after = exported(run, 20), exported(run, 21)
    given = exported(run, 21, "--average")
    apart = max(abs(DECAY * b + (1 - DECAY) * a - x) for name in given
                for b, a, x in zip(before[name], after[name], given[name]))
    runs.check(apart < 1e-6, f"after one update {apart:.1e} from the formula")
    run.sets.append(plain)
    run.train(resume=True, more=["stop={clocks: 30}"])
    runs.check(run.summary()["state"] == "finished", "and goes on without one")
    runs.check(not (run.dir / AVERAGE_FILE).exists(), "whose file is not left behind")
    run.clean()


if __name__ == "__main__":
    runs.main({"formula": formula, "evaluated": evaluated, "resumed": resumed, "killed": killed,
               "begun-later": begun_later})
