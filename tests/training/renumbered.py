#!/usr/bin/python3
"""A run that is stopped in the middle and resumed with other workers, batches, local steps or modes continues after the
examples that were already seen.

    tests/training/renumbered.py CASE"""

import os
import subprocess

import runs

DATA = "optdigits/optdigits.tra"
EXAMPLES = 3823
MIDDLE, EPOCHS = 2, 4
COSINE = "update={type: sgd, learning_rate: 0.02, schedule: {type: cosine, over: {epochs: 4}}}"
SMALL = ["servers.count=2", "workers.count=3", "data.batch_size=16", "evaluation={}", COSINE,
         "model.layers=[{flatten: {}}, {dense: {units: 10}}]", f"stop={{epochs: {MIDDLE}}}"]
LOCAL = "exchange={type: delta, local_steps: 5, optimizer: {type: sgd, learning_rate: 0.05}}"


def goes_on(before, after, workers, batch, per_clock=1):
    """`workers`, `batch` and `per_clock` are the larger values of before and after."""
    run = runs.Run("quickstart.yaml", [*SMALL, *before], runs.data_with(DATA))
    run.train()
    first = run.events("step")
    seen = sum(e["examples"] for e in first)
    state = run.train(resume=True, more=[*after, f"stop={{epochs: {EPOCHS}}}"])["state"]
    steps = run.events("step")[len(first):]
    total = seen + sum(e["examples"] for e in steps)
    # One clock of all workers at the border, and in async mode what was under way at each end.
    one = 3 * workers * batch * per_clock
    says = f"{' '.join(after)}: {seen} examples, then {total - seen}, of {EPOCHS * EXAMPLES}"
    runs.check(state == "finished" and abs(total - EPOCHS * EXAMPLES) <= one, says)
    # In async mode a fast worker makes more of them than a slow one.
    last = {e["rank"]: e["epoch"] for e in steps}
    mean = sum(last.values()) / len(last)
    runs.check(min(e["epoch"] for e in steps) > MIDDLE and abs(mean - EPOCHS) < 0.2, f"epochs go on, and end at {mean:.2f}")
    run.clean()


def workers():
    for count in (1, 2, 5, 6):
        goes_on([], [f"workers.count={count}"], max(count, 3), 16)


def batches():
    for size in (8, 32):
        goes_on([], [f"data.batch_size={size}"], 3, max(size, 16))


def modes():
    bounded, asynchronous = "consistency={mode: bounded, staleness: 2}", "consistency={mode: async}"
    for before, after in (([], [bounded]), ([], [asynchronous, "workers.count=2"]),
                          ([asynchronous], ["workers.count=5"]), ([bounded], ["data.batch_size=32"]),
                          ([asynchronous], ["consistency={mode: sync}"])):
        goes_on(before, after, 5, 32)


def local_steps():
    goes_on([], [LOCAL, "update={type: sgd, learning_rate: 1}"], 3, 16, 5)
    goes_on([LOCAL, "update={type: sgd, learning_rate: 1}"], ["workers.count=2"], 3, 16, 5)


def leased():
    """Batches have numbers: another number of workers continues with them, and another batch size is refused by
    name."""
    sets = ["consistency={mode: async}", "data.assignment=leased"]
    goes_on(sets, ["workers.count=5"], 5, 16)
    run = runs.Run("quickstart.yaml", [*SMALL, *sets], runs.data_with(DATA))
    run.train()
    run.start(resume=True, more=["data.batch_size=32", f"stop={{epochs: {EPOCHS}}}"]).process.wait(120)
    runs.check(run.process.returncode not in (0, None) and "batches_per_epoch is 239" in run.said(), run.tail()[-300:])
    run.clean()


SCRIPT = """import sys, numpy as np, leeway
job = leeway.join({"w": 3}, update={"type": "sgd", "learning_rate": 0.01})
with open(f"{sys.argv[1]}-{job.rank}", "a", encoding="utf-8") as seen:
    for rows in job.batches(np.arange(600)):
        print(*rows, file=seen)
        job.push_pull({"w": np.ones(3)}, examples=len(rows))
"""


def program():
    """The user's own program: a pass that two workers begin and three workers with other batches end has each example
    once."""
    run = runs.RunFolder()
    (run.parent / "job.yaml").write_text("model: {type: external}\ndata: {type: external, batch_size: 10, examples: 600}\n"
                                         "workers: {count: 2}\nstop: {epochs: 0.5}\n")
    (run.parent / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(runs.SOURCE / "python"),
                   "LEEWAY_LIBRARY": str(runs.BIN.parent / "lib/libleeway-client.so")}
    for part, options in enumerate(([run.parent / "job.yaml"],
                                    ["--resume", "--set", "workers.count=3", "--set", "data.batch_size=20",
                                     "--set", "stop.epochs=1"])):
        command = [runs.BIN / "leeway", "train", *options, "--run-dir", run.dir, "--", "/usr/bin/python3",
                   run.parent / "script.py", run.parent / f"seen-{part}"]
        said = subprocess.run([str(each) for each in command], env=environment, capture_output=True, text=True, timeout=120,
                              check=False)
        runs.check(said.returncode == 0, f"part {part} has finished {said.stderr[-2000:] if said.returncode else ''}")
    seen = [int(row) for path in run.parent.glob("seen-*") for row in path.read_text().split()]
    runs.check(sorted(seen) == list(range(600)), f"{len(seen)} examples, {len(set(seen))} of 600")
    run.clean()


def hardest():
    """More workers, larger batches and another mode at once; and then fewer."""
    goes_on([], ["workers.count=5", "data.batch_size=32", "consistency={mode: async}"], 5, 32)


if __name__ == "__main__":
    runs.main({"hardest": hardest, "workers": workers, "batches": batches, "modes": modes, "local-steps": local_steps,
               "leased": leased, "program": program})
