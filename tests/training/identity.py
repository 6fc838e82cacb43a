#!/usr/bin/python3
"""In sync mode the same seed gives the same bits: with any number of servers, in a second run, after a stop and
resumption, and with a worker killed. Without real data these tests run on optdigits, which ships with Leeway."""

import os
import random
import signal
import time

import references
import runs

# Momentum, dropout and batch norm: each has state that a checkpoint could lose.
SETS = ["servers.count=2", "workers.count=3", "update={type: sgd, learning_rate: 0.05, momentum: 0.9}",
        "stop={epochs: 8}", "checkpoint={every: {clocks: 50}, keep: 100}",
        "model.layers=[{flatten: {}}, {dense: {units: 32}}, {batch_norm: {}}, {relu: {}}, "
        "{dropout: {rate: 0.2}}, {dense: {units: 10}}]"]
# Makes the run last long enough to stop it, and changes nothing else. A run that will be interrupted has no end of its
# own, so that it is interrupted on any machine.
SLOWLY = "workers.emulate={step_milliseconds: 3}"
ENDLESS = "stop={epochs: 3000}"
# Clocks from a resumption to the end.
CLOCKS_MORE = 100
# The longest time of an orderly stop on a busy machine: the processes' own deadlines are longer.
STOP_SECONDS_MAX = 8
DATA = "optdigits/optdigits.tra"
MNIST = "mnist/train-images-idx3-ubyte.gz"


# A tree with every layer that has weights or running statistics, and with branches that read the same value.
TREE = ("model.layers=[{conv2d: {filters: 8, kernel: 3, padding: 1}}, {repeat: {times: 2, layers: [{residual: {layers: "
        "[{conv2d: {filters: 8, kernel: 3, padding: 1, groups: 8}}, {batch_norm: {}}, {relu: {}}, "
        "{dropout: {rate: 0.2}}], shortcut: [{conv2d: {filters: 8, kernel: 1, groups: 2}}, "
        "{group_norm: {groups: 4}}]}}, {relu6: {}}]}}, "
        "{concat: {branches: [{layers: [{max_pool: {}}]}, {layers: [{avg_pool: {}}, {layer_norm: {}}]}]}}, "
        "{dense: {units: 10}}]")


# A transformer of characters, whose text is the rows of the digits.
GPT = ["model.layers=[{gpt: {vocabulary: 12, layers: 2, width: 16, heads: 2, dropout: 0.1}}]",
       f"data={{train: {{type: text, files: {DATA}, context: 16}}, holdout: 0.1, batch_size: 8}}",
       "update={type: adamw, learning_rate: 0.001}"]


def digest(sets=()):
    """Returns the digest of a run's weights."""
    run = runs.Run("quickstart.yaml", [*SETS, "consistency.mode=sync", *sets], runs.data_with(DATA))
    sha = run.train()["weights_sha256"]
    run.clean()
    return sha


def reference(sets=()):
    """Returns the digest of an uninterrupted run, which is trained once for all tests."""
    sets = [*SETS, "consistency.mode=sync", *sets]
    return references.undisturbed("quickstart.yaml", sets, runs.data_with(DATA))["weights_sha256"]


def topologies():
    """Parts of a run, with servers and with workers that hold the blocks, have the bits of one run with servers. Other
    numbers of workers load them, too."""
    run = runs.Run("quickstart.yaml", [*SETS, "consistency.mode=sync"], runs.data_with(DATA))
    run.learns = False
    for epochs, topology in (2, "servers"), (5, "all_reduce"), (8, "servers"):
        summary = run.train(resume=epochs > 2, more=[f"stop={{epochs: {epochs}}}", f"topology.type={topology}"])
    runs.check(summary["weights_sha256"] == reference(), "servers, all_reduce, servers: the bits of one run")
    for workers, topology in (2, "all_reduce"), (4, "servers"):
        summary = run.train(resume=True, more=[f"stop={{epochs: {10 + workers}}}", f"topology.type={topology}",
                                               f"workers.count={workers}"])
        runs.check(summary["state"] == "finished", f"resumed by {workers} workers with {topology}")
    run.clean()


SMALL_BLOCKS = ["servers.count=3", "servers.block_bytes=256"]


def servers(sets=(), others=(["servers.count=2"], ["servers.count=1"], ["servers.count=3"], SMALL_BLOCKS)):
    first = reference(sets)
    for other in others:
        runs.check(digest([*sets, *other]) == first, f"{other}: the same bits as with two servers ({first[:16]})")


def stopped(sets, clock=60):
    """Returns a run that was stopped in order, some clocks after its beginning, and its clock."""
    run = runs.Run("quickstart.yaml", [*SETS, "consistency.mode=sync", *sets], runs.data_with(DATA))
    run.start(more=[SLOWLY, ENDLESS])
    run.wait_for(lambda r: r.max_clock() >= clock)
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED)
    runs.check(summary["state"] == "stopped", f"stopped in order at clock {summary['clock']}")
    return run, summary["clock"]


def resumed(sets=(), then=()):
    """The run is resumed, with the settings `then`, and ends as one that was never interrupted."""
    run, clock = stopped(sets)
    end = f"stop={{clocks: {references.round_up(clock + CLOCKS_MORE)}}}"
    sha, whole = run.train(resume=True, more=[end, *then])["weights_sha256"], reference([*sets, end])
    runs.check(sha == whole, f"resumed {' '.join([*sets, *then])}: the same bits as unbroken ({whole[:16]})")
    run.clean()


def resumed_adam():
    """The schedule knows the end from the beginning."""
    sets = ["update={type: adamw, learning_rate: 0.002, schedule: {type: cosine, warm_up: {epochs: 1}}}"]
    whole = reference(sets)
    run = runs.Run("quickstart.yaml", [*SETS, "consistency.mode=sync", *sets], runs.data_with(DATA))
    run.start(more=["workers.emulate={step_milliseconds: 15}"])
    run.wait_for(lambda r: r.max_clock() >= 60)
    run.process.send_signal(signal.SIGTERM)
    runs.check(run.wait(expect=runs.STOPPED)["state"] == "stopped", "SIGTERM stops in order")
    runs.check(run.train(resume=True)["weights_sha256"] == whole, "AdamW resumed: the same bits")
    run.clean()


def resumed_exchange(exchange, update):
    """What a worker keeps between clocks (local weights, its optimizer's momentum) is in the checkpoint."""
    resumed([exchange, *update])


def resumed_elastic():
    resumed_exchange("exchange={type: elastic, alpha: 0.3, every: 5}", [])


def resumed_delta():
    resumed_exchange("exchange={type: delta, local_steps: 5, optimizer: "
                     "{type: adam, learning_rate: 0.002}}", ["update={type: sgd, learning_rate: 1}"])


def resumed_spread():
    """Blocks leave spread over the steps: both exchanges, more than one group of blocks."""
    resumed_exchange("exchange={type: delta, local_steps: 5, spread: true, optimizer: "
                     "{type: adam, learning_rate: 0.002}}",
                     ["update={type: sgd, learning_rate: 1}", "servers.block_bytes=1024"])
    resumed_exchange("exchange={type: elastic, alpha: 0.3, every: 5, spread: true}", ["servers.block_bytes=1024"])


def resumed_compressed(contributions, weights, sets=()):
    """The residuals of compressed contributions are in the checkpoint, and so is what the workers have when servers
    answer with changes."""
    resumed_exchange(f"compression={{contributions: {contributions}, weights: {weights}}}", sets)


def other_exchange():
    """A job continues with another exchange or optimizer: the state that its workers kept is not misread."""
    momentum = "{type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}}"
    adagrad = "{type: delta, local_steps: 2, optimizer: {type: adagrad, learning_rate: 0.01}}"
    run = runs.Run("quickstart.yaml", [*SETS, "consistency.mode=sync", "compression.contributions={type: int8}"],
                   runs.data_with(DATA))
    run.train(more=["stop={clocks: 60}"])
    for clocks, exchange, was in ((120, momentum, "gradient: a residual of"), (180, adagrad, "delta: momentum"),
                                  (240, "{type: gradient}", "delta: sum_of_squares")):
        summary = run.train(resume=True, more=[f"exchange={exchange}", f"stop={{clocks: {clocks}}}"])
        runs.check(summary["state"] == "finished", f"goes on with {exchange}")
        logs = "".join(path.read_text() for path in run.dir.glob("logs/worker*"))
        runs.check(f"the saved state ({was}" in logs, f"and says what was there: {was}...")
        loss = run.events("evaluation")[-1]["test_loss"]
        runs.check(loss < 1, f"with a test loss of {loss:.3f}")
    run.clean()


LION = ("update={type: lion, learning_rate: 0.001, scaling: square_root, weight_decay: 0.1, "
        "schedule: {type: constant, warm_up: {clocks: 40}}}")
FACTORS = ("update={type: adamw, learning_rate: 0.002, weight_decay: 0.1, scaling: square_root, factors: "
           "{biases: {weight_decay: 0, learning_rate: 2}, norms: {weight_decay: 0}}}")
LOCAL_FACTORS = ("exchange={type: delta, local_steps: 5, optimizer: {type: lion, learning_rate: 0.001, weight_decay: "
                 "0.1, factors: {biases: {learning_rate: 2}, norms: {weight_decay: 0}}}}")
DELTA = ["exchange={type: delta, local_steps: 5, optimizer: {type: sgd, learning_rate: 0.05}}"]


def finished_async():
    """A finished async job stays finished when it is resumed, and its model is the last one."""
    slow = "workers.emulate={slow: [{ranks: [2], factor: 10}], step_milliseconds: 1}"
    run = runs.Run("quickstart.yaml", [*SETS, "stop={epochs: 20}", "consistency.mode=async", slow,
                                       "update={type: sgd, learning_rate: 0.01}"], runs.data_with(DATA))
    first = run.train()
    again = run.train(resume=True, more=["checkpoint.keep=99"])
    runs.check(again["weights_sha256"] == first["weights_sha256"], "resuming it changes nothing")
    last = run.events("evaluation")[-1]
    runs.check(abs(last["test_loss"] - first["test_loss"]) < 0.05,
               f"the model's test loss {first['test_loss']:.3f} is that of the last evaluation")
    run.clean()


def stopped_early():
    """Ctrl-C at any moment of the start stops the job quickly."""
    for delay in (0.01, 0.05, 0.1, 0.15, 0.2, 0.3):
        run = runs.Run("quickstart.yaml", [*SETS, SLOWLY], runs.data_with(DATA))
        run.start()
        time.sleep(delay)
        run.interrupt()
        began = time.monotonic()
        run.process.wait(60)
        took = time.monotonic() - began
        code = run.process.returncode
        runs.check(took < STOP_SECONDS_MAX, f"Ctrl-C after {delay} s ends it in {took:.1f} s")
        # Before the launcher handles the signal, the signal ends it like any program.
        summary = {"state": "no run"} if code == -signal.SIGINT else run.summary()
        expected = runs.TEMPORARY if summary.get("clock") is None else runs.STOPPED
        runs.check((code, summary["state"]) in ((expected, "stopped"), (-signal.SIGINT, "no run")),
                   f"status {code}: {summary['state']}, checkpoint at clock {summary.get('clock')}")
        run.clean()


def killed_worker(job="mnist-sync.yaml", sets=("update={type: sgd, learning_rate: 0.05, momentum: 0.9}",), data=MNIST):
    data = runs.data_with(data)
    random.seed(7)
    run = runs.Run(job, sets, data)
    run.start(more=[SLOWLY, ENDLESS])
    for _ in range(2):
        at = run.max_clock() + 40
        run.wait_for(lambda r, at=at: r.max_clock() >= at)
        pid, command = random.choice(run.children("leeway-worker"))
        os.kill(pid, signal.SIGKILL)
        print(f"killed {' '.join(command[:6])} at clock {run.max_clock()}")
    at = run.max_clock() + 40
    run.wait_for(lambda r: r.max_clock() >= at)
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED)
    runs.check(summary["restarts"] == 2, "both were restarted")
    run.clean()
    whole = runs.Run(job, [*run.sets, f"stop={{clocks: {summary['clock']}}}"], data)
    sha = whole.train()["weights_sha256"]
    runs.check(summary["weights_sha256"] == sha, f"the same bits as undisturbed ({sha[:16]})")
    whole.clean()


def batches():
    """4 workers of batch 32 do the same as one worker of batch 128."""
    data = runs.data_with(MNIST)
    base = ["update={type: sgd, learning_rate: 0.1}", "stop={clocks: 50}", "servers.count=2"]
    models = []
    for workers, batch in ((4, 32), (1, 128)):
        run = runs.Run("mnist-sync.yaml", [*base, f"workers.count={workers}", f"data.batch_size={batch}"],
                       data)
        run.train()
        models.append(run.model())
        run.clean()
    worst = 0.0
    for name, many in models[0].items():
        one = models[1][name]
        scale = max(abs(v) for v in one)
        worst = max(worst, max(abs(a - b) for a, b in zip(many, one)) / scale)
    runs.check(worst < 1e-4, f"weights differ by {worst:.2e} of the largest at most")


CASES = {"servers": servers, "topologies": topologies,
         "few-servers": lambda: servers(["stop={epochs: 2}"], [["servers.count=1"], SMALL_BLOCKS]),
         "resumed": lambda: [resumed(then=[f"servers.count={n}"]) for n in (2, 3)],
         "resumed-adam": resumed_adam,
         "resumed-elastic": resumed_elastic, "resumed-delta": resumed_delta, "resumed-spread": resumed_spread,
         "resumed-int8": lambda: resumed_compressed("{type: int8}", "{type: int8}"),
         "resumed-top-k": lambda: resumed_compressed("{type: top_k, share: 0.05}", "{type: top_k, share: 0.1}"),
         "resumed-delta-top-k": lambda: resumed_compressed("{type: top_k, share: 0.05}", "{type: sign}", DELTA),
         "resumed-lion": lambda: resumed([LION]), "factors-servers": lambda: servers([FACTORS, "stop={epochs: 2}"]),
         "resumed-factors": lambda: resumed_exchange(LOCAL_FACTORS, ["update={type: sgd, learning_rate: 1}"]),
         "other-exchange": other_exchange, "finished-async": finished_async, "stopped-early": stopped_early,
         "killed-worker": killed_worker, "batches": batches,
         "tree-servers": lambda: servers([TREE, "stop={epochs: 1}"]), "tree-resumed": lambda: resumed([TREE]),
         "tree-killed-worker": lambda: killed_worker("quickstart.yaml", [*SETS, TREE], DATA),
         "gpt-servers": lambda: servers([*GPT, "stop={clocks: 100}"]), "gpt-resumed": lambda: resumed(GPT),
         "gpt-killed-worker": lambda: killed_worker("quickstart.yaml", [*SETS, *GPT, "stop={clocks: 400}"], DATA)}

if __name__ == "__main__":
    runs.main(CASES)
