#!/usr/bin/env python3
"""Real jobs whose processes are killed (SIGKILL) at seeded moments. All of them complete, and in sync mode the weights
are those of the undisturbed run, bit for bit. Without real data they run on optdigits, which ships with Leeway.

A job in trouble has no end of its own, so that it outlasts the trouble on any machine. It is stopped in order, resumed,
and finished at the next of a few clocks at which an undisturbed job was run to its end (references.py).

    tests/chaos/kills.py CASE                     one of the cases below, as ctest runs them
    tests/chaos/kills.py random --runs 100 --seed 1 [--mode sync] [--odd] [--report FILE]
                                                  random victims at random times; prints how long each kind of
                                                  process took from its death to the next applied contribution. --odd:
                                                  the coordinator is deaf meanwhile, and the wall clock jumps
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import references  # noqa: E402
import runs  # noqa: E402

DATA = "optdigits/optdigits.tra"
# Momentum, dropout and batch norm: each has state that could be lost on the way back.
SGD = "update={type: sgd, learning_rate: 0.05, momentum: 0.9}"
SETS = ["servers.count=2", "workers.count=2", "checkpoint={every: {clocks: 40}}", "limits.lease_seconds=5",
        "model.layers=[{flatten: {}}, {dense: {units: 32}}, {batch_norm: {}}, {relu: {}}, "
        "{dropout: {rate: 0.2}}, {dense: {units: 10}}]"]
# Makes a job last long enough to kill a process, and changes nothing else.
SLOWLY = "workers.emulate={step_milliseconds: 3}"
QUICKLY = "workers.emulate={}"
ENDLESS = "stop={epochs: 3000}"
# Clocks from the job's resumption to its end.
CLOCKS_MORE = 40
# Enough clocks for an accuracy that further clocks hardly change.
CLOCKS_TRAINED = 1200
ELASTIC = "exchange={type: elastic, every: 4, alpha: 0.4}"
DELTA = "exchange={type: delta, local_steps: 4, optimizer: {type: adam, learning_rate: 0.002}}"
REPLICAS = "servers.replicas=2"
ALL_REDUCE = "topology.type=all_reduce"
RING, TREE = ("topology={type: all_reduce, algorithm: %s}" % algorithm for algorithm in ("ring", "tree"))
GOSSIP = ["topology={type: gossip}", "workers.count=4", "update={type: sgd, learning_rate: 1}",
          "exchange={type: delta, local_steps: 1, optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}}"]
# Who dies where workers hold the blocks, and their own server with each.
PEERS = (("worker", 1), ("server", 0), ("worker", 0))
# Worker 0 sends for all three workers.
COMBINE = ["workers.per_host=combine", "workers.count=3"]
MODES = {"sync": "consistency={mode: sync}", "bounded": "consistency={mode: bounded, staleness: 3}",
         "async": "consistency={mode: async}"}


def job(sets, name="run", programs=runs.BIN):
    return runs.Run("quickstart.yaml", [*SETS, *sets], runs.data_with(DATA), name, programs=programs)


def kill(run, role, number):
    pid = run.process_of(role, number)
    clock, now = run.max_clock(), time.time()
    os.kill(pid, signal.SIGKILL)
    print(f"  killed {role} {number} (process {pid}) at clock {clock}", flush=True)
    return {"role": role, "number": number, "clock": clock, "time": now}


def in_trouble(sets, programs=runs.BIN):
    """Starts a job without an end."""
    return job([*sets, SLOWLY, ENDLESS], programs=programs).start()


def forward(run, clocks=60):
    """Waits until the run, which goes on meanwhile, has made this number of further clocks."""
    reached = run.max_clock()
    run.wait_for(lambda r: r.max_clock() >= reached + clocks)


def finished(run, least=0):
    """Stops a job in trouble in order, resumes it and finishes it, after at least this number of clocks. Returns its
    summary."""
    run.interrupt()
    stopped = run.wait(expect=runs.STOPPED)
    clocks = references.round_up(max(stopped["clock"] + CLOCKS_MORE, least))
    summary = run.train(resume=True, more=[QUICKLY, f"stop={{clocks: {clocks}}}"])
    # Asynchronous workers end when all together have made this number of clocks, and each finishes what it has begun.
    runs.check(summary["state"] == "finished" and summary["clock"] >= clocks,
               f"stopped at clock {stopped['clock']}, resumed, and finished at {summary['clock']}")
    return summary


def undisturbed(sets, clocks):
    run = job([*sets, f"stop={{clocks: {clocks}}}"], "undisturbed")
    summary = run.train()
    run.clean()
    return summary


def check_bits(summary, sets):
    """Checks that the bits are those of an undisturbed job of as many clocks."""
    whole = references.undisturbed("quickstart.yaml", [*SETS, *sets, f"stop={{clocks: {summary['clock']}}}"],
                                   runs.data_with(DATA))
    runs.check(summary["weights_sha256"] == whole["weights_sha256"],
               f"the same bits as undisturbed ({whole['weights_sha256'][:16]})")


# The events by which the coordinator says that it has dealt with a lost server.
RECOVERED = ("job_started", "went_back", "placement_changed")


def recoveries(run):
    return sorted((e for kind in RECOVERED for e in run.events(kind)), key=lambda e: e["time"])


def registrations(run, rank):
    return sum(e["rank"] == rank for e in run.events("worker_registered"))


def strike(run, role, number):
    """Kills the process somewhere in a step, and waits until the coordinator has dealt with that."""
    time.sleep(random.random() / 50)
    count = recoveries if role == "server" else lambda r: [None] * registrations(r, number)
    before = len(count(run))
    kill(run, role, number)
    run.wait_for(lambda r: len(count(r)) > before)
    if role == "server":
        event = recoveries(run)[-1]
        print(f"  {event['event']} at clock {event.get('clock', '-')}: {event['message']}", flush=True)


def killed_once_each(sets, victims=(("server", 1), ("server", 0), ("worker", 1)), programs=runs.BIN):
    """Kills each victim once the run has come some clocks further. The run must go on."""
    run = in_trouble(sets, programs)
    for role, number in victims:
        forward(run)
        strike(run, role, number)
    forward(run)
    went_back = [e["message"] for e in run.events("went_back")]
    # State that only a worker keeps is in cuts only: the worker's death takes even a job with replicas back to one.
    if REPLICAS in sets and ELASTIC not in sets and DELTA not in sets:
        runs.check(not went_back, f"with replicas nothing goes back {went_back}")
    return run


def same_bits(*sets):
    sets = [MODES["sync"], *sets]
    held_by_workers = any(each.startswith("topology") for each in sets)
    run = killed_once_each(sets, PEERS) if held_by_workers else killed_once_each(sets)
    check_bits(finished(run), sets)
    run.clean()


def all_reduce_continues():
    """The others go on without a lost worker, whose blocks their replicas hold, and its next life joins them again."""
    sets = [MODES["sync"], SGD, ALL_REDUCE, REPLICAS, "workers={count: 3, on_worker_loss: continue}"]
    run = killed_once_each(sets, PEERS)
    summary = finished(run)
    runs.check(summary["test_accuracy"] > 0.8, f"test accuracy {summary['test_accuracy']:.4f}")
    run.clean()


def gossip_continues():
    """The others go on without a lost worker, and its next life goes on from the mean."""
    sets = [MODES["async"], *GOSSIP]
    run = killed_once_each(sets, PEERS)
    summary = finished(run)
    runs.check(summary["test_accuracy"] > 0.8, f"test accuracy {summary['test_accuracy']:.4f}")
    run.clean()


OF_A_HOST = [("worker", 0), ("worker", 2), ("server", 1), ("worker", 0), ("worker", 1), ("server", 0), ("worker", 0),
             ("worker", 2)]


def combined(*sets, victims=tuple(OF_A_HOST)):
    """Kills the worker that sends for its host, one of the other workers, and servers, at moments that differ from run
    to run."""
    sets = [MODES["sync"], *COMBINE, *sets]
    run = killed_once_each(sets, victims)
    check_bits(finished(run), sets)
    run.clean()


def same_accuracy(mode, *sets):
    sets = [MODES[mode], *sets]
    run = killed_once_each(sets)
    summary = finished(run, CLOCKS_TRAINED)
    got, wanted = summary["test_accuracy"], undisturbed(sets, summary["clock"])["test_accuracy"]
    runs.check(abs(got - wanted) < 0.03, f"test accuracy {got:.4f}, undisturbed {wanted:.4f}")
    run.clean()


def paused_owner(*sets):
    """A server stands still for three leases and wakes: whatever it still says is ignored."""
    sets = [MODES["sync"], *sets]
    run = in_trouble([*sets, "limits.lease_seconds=1"])
    forward(run, 100)
    pid = run.process_of("server", 1)
    os.kill(pid, signal.SIGSTOP)
    print(f"  server 1 (process {pid}) stands still at clock {run.max_clock()}", flush=True)
    run.wait_for(lambda r: r.events("server_lost"))
    # Not longer, because the launcher would kill it.
    time.sleep(2)
    before = len(recoveries(run))
    os.kill(pid, signal.SIGCONT)
    print(f"  wakes at clock {run.max_clock()}", flush=True)
    run.wait_for(lambda r: len(recoveries(r)) > before)
    forward(run)
    runs.check(process_of_server_was(run, pid), "the process that woke has stayed, as a replica or an owner again")
    check_bits(finished(run), sets)
    run.clean()


def process_of_server_was(run, pid):
    """Whether server 1 did not have to be started again."""
    return len(run.events("server_registered")) == 2 and run.process_of("server", 1) == pid


def clock_now(run):
    """Returns the coordinator's clock, which it also reports when metrics.jsonl cannot be written."""
    said = subprocess.run([str(runs.BIN / "leeway"), "status", str(run.dir), "--json"], capture_output=True, text=True,
                          timeout=60, check=True)
    return max(int(worker.get("clock", 0)) for worker in json.loads(said.stdout)["workers"])


def fill_disk(run):
    """Fills the disk with a file."""
    ballast = run.dir / "ballast"
    file = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(file, bytes(4096)) > 0:
            pass
    except OSError as error:
        print(f"  the disk is full: {error.strerror}", flush=True)
    os.close(file)
    return ballast


@contextlib.contextmanager
def small_disk(run, options="size=12m"):
    """The run folder is a small file system of its own."""
    if os.geteuid() != 0:
        print("SKIPPED: mounting a small file system needs root")
        sys.exit(runs.SKIPPED)
    run.dir.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", run.dir], check=False).returncode != 0:
        print("SKIPPED: no tmpfs can be mounted here")
        sys.exit(runs.SKIPPED)
    try:
        yield
    finally:
        if run.process is not None:
            run.process.kill()
        subprocess.run(["umount", "-l", run.dir], check=False)
    run.clean()


def full_disk():
    """The run folder's disk is full: checkpoints fail aloud, training goes on, and the older ones stay whole."""
    run = job([MODES["sync"], SGD, SLOWLY, ENDLESS])
    with small_disk(run):
        run.start()
        run.wait_for(lambda r: r.events("checkpoint"))
        ballast = fill_disk(run)
        full_since = clock_now(run)
        # Some checkpoints are due in these clocks, although the coordinator hears of a clock only twice a second.
        run.wait_for(lambda r: clock_now(r) > full_since + 300)
        print(f"  full at clock {full_since}; the job goes on", flush=True)
        ballast.unlink()
        run.wait_for(lambda r: r.events("checkpoint_failed"))
        print(f"  {run.events('checkpoint_failed')[0]['message']}", flush=True)
        forward(run, 200)
        # The last checkpoint is whole.
        finished(run)


def use_inodes(run, left):
    """Files of its own take all inodes but so many."""
    folder = run.dir / "ballast"
    folder.mkdir()
    taken = []
    with contextlib.suppress(OSError):
        while True:
            path = folder / str(len(taken))
            path.touch()
            taken.append(path)
    for path in taken[:left]:
        path.unlink()
    return folder


def fails_to_save(run, spoil, mend, reason):
    """Its last checkpoint cannot be written. It says which file and why, at once, and with the code of what may pass;
    once it can, --resume goes on to the end."""
    run.start()
    run.wait_for(lambda r: r.events("checkpoint"))
    spoil()
    began = time.monotonic()
    run.interrupt()
    code = run.process.wait(60)
    took, said = time.monotonic() - began, run.said()
    mend()
    last = [line for line in said.splitlines() if "the job failed: " in line]
    told = bool(last) and "the last checkpoint, at clock " in last[-1] and f"{run.dir}/" in last[-1] and reason in last[-1]
    runs.check(code == runs.TEMPORARY and told and took < 20, f"exit code {code} after {took:.1f} s: {last or said[-2000:]}")
    clocks = references.round_up(run.max_clock() + CLOCKS_MORE)
    summary = run.train(resume=True, more=[QUICKLY, f"stop={{clocks: {clocks}}}"])
    runs.check(summary["state"] == "finished", f"--resume goes on to the end, at clock {summary['clock']}")


def full_at_end():
    run = job([MODES["sync"], SGD, SLOWLY, ENDLESS])
    with small_disk(run):
        ballast = []
        fails_to_save(run, lambda: ballast.append(fill_disk(run)), lambda: ballast[0].unlink(), "No space left on device")


def no_inodes_at_end(left, reason="No space left on device"):
    """With `left` for the parts of the checkpoint, and no other checkpoint in between."""
    run = job([MODES["sync"], SGD, SLOWLY, ENDLESS, "checkpoint={every: {clocks: 400}}"])
    with small_disk(run, "size=40m,nr_inodes=200"):
        folder = []
        fails_to_save(run, lambda: folder.append(use_inodes(run, left)), lambda: shutil.rmtree(folder[0]), reason)


def read_only_at_end():
    run = job([MODES["sync"], SGD, SLOWLY, ENDLESS])
    with small_disk(run):
        def spoil():
            # What is open for writing keeps the file system itself from becoming so.
            subprocess.run(["mount", "--bind", run.dir, run.dir], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", run.dir], check=True)
        fails_to_save(run, spoil, lambda: subprocess.run(["umount", "-l", run.dir], check=True), "Read-only file system")


CASES = {
    "paused-owner": lambda: paused_owner(SGD),
    "paused-owner-replicas": lambda: paused_owner(SGD, REPLICAS),
    "full-disk": full_disk,
    "full-at-end": full_at_end,
    "no-inodes-at-end": lambda: no_inodes_at_end(0),
    "no-inode-for-manifest": lambda: no_inodes_at_end(3, "; its manifest: "),
    "read-only-at-end": read_only_at_end,
    "sync": lambda: same_bits(SGD),
    "sync-adam": lambda: same_bits("update={type: adam, learning_rate: 0.002}"),
    "sync-elastic": lambda: same_bits(SGD, ELASTIC),
    "sync-delta": lambda: same_bits("update={type: sgd, learning_rate: 1}", DELTA),
    "sync-int8": lambda: same_bits(SGD, "compression={contributions: {type: int8}, weights: {type: int8}}"),
    "sync-replicas": lambda: same_bits(SGD, REPLICAS),
    "sync-replicas-adam": lambda: same_bits("update={type: adam, learning_rate: 0.002}", REPLICAS, "servers.count=3"),
    "sync-replicas-elastic": lambda: same_bits(SGD, ELASTIC, REPLICAS),
    "sync-replicas-delta": lambda: same_bits("update={type: sgd, learning_rate: 1}", DELTA, REPLICAS),
    "all-reduce": lambda: same_bits(SGD, ALL_REDUCE),
    "all-reduce-replicas": lambda: same_bits(SGD, ALL_REDUCE, REPLICAS, "workers.count=3"),
    "all-reduce-delta": lambda: same_bits("update={type: sgd, learning_rate: 1}", DELTA, ALL_REDUCE),
    "all-reduce-continue": all_reduce_continues,
    "ring": lambda: same_bits(SGD, RING),
    "ring-replicas": lambda: same_bits(SGD, RING, REPLICAS, "workers.count=3"),
    "tree-replicas": lambda: same_bits(SGD, TREE, REPLICAS, "workers.count=4"),
    "gossip": lambda: same_bits(*GOSSIP),
    "gossip-async": gossip_continues,
    "combine": lambda: combined(SGD),
    "combine-delta": lambda: combined("update={type: sgd, learning_rate: 1}", DELTA),
    "combine-few": lambda: combined(SGD, REPLICAS, victims=OF_A_HOST[:3]),
    "combine-replicas": lambda: combined(SGD, REPLICAS),
    "bounded-replicas": lambda: same_accuracy("bounded", SGD, REPLICAS),
    "async-replicas": lambda: same_accuracy("async", SGD, REPLICAS),
    "bounded": lambda: same_accuracy("bounded", SGD),
    "async": lambda: same_accuracy("async", SGD),
}

# ---- many runs with random victims

LEASE_SECONDS = 3
MNIST = ["servers.count=2", "workers.count=2", "checkpoint={every: {clocks: 50}}"]


def mnist(options, name="run"):
    sets = [*MNIST, f"servers.replicas={options.replicas}", f"stop={{clocks: {options.clocks}}}"]
    if options.odd:
        sets.append(f"limits.lease_seconds={LEASE_SECONDS}")
    return runs.Run(f"mnist-{options.mode}.yaml", sets, runs.data_with("mnist/train-images-idx3-ubyte.gz"), name)


def seconds_to_next_step(run, blow):
    """Returns the seconds from a death to the next contribution that is known to be applied. Workers report twice a
    second, so this is up to half a second too much."""
    after = [e for e in run.events() if e["time"] > blow["time"]]
    if blow["role"] == "server":
        dealt = [e["time"] for e in after if e["event"] in RECOVERED]
        steps = [e["time"] for e in after if e["event"] == "step"]
    else:
        mine = [e for e in after if e.get("rank") == blow["number"]]
        dealt = [e["time"] for e in mine if e["event"] == "worker_registered"]
        steps = [e["time"] for e in mine if e["event"] == "step"]
    if not dealt:
        return None
    return next((at - blow["time"] for at in steps if at > dealt[0]), None)


@contextlib.contextmanager
def deaf_coordinator(run, draw):
    """Server 0 stands still for one to two leases. The block of this context runs during the first lease."""
    pid = run.process_of("server", 0)
    until = time.monotonic() + LEASE_SECONDS * (1 + draw.random())
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(LEASE_SECONDS * draw.random())
        yield
        time.sleep(max(0, until - time.monotonic()))
    finally:
        # It may be the process that was killed.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def random_run(options, seed, wanted):
    """Makes one run with one death, and returns its record. In sync mode the weights must be `wanted`."""
    draw = random.Random(seed)
    run = mnist(options)
    run.start()
    role, number = draw.choice([("worker", draw.randrange(2)), ("server", 1), ("server", 0)])
    at = draw.randrange(1, int(options.clocks * 0.95))
    run.wait_for(lambda r: r.max_clock() >= at)
    time.sleep(draw.random() * 0.5)
    if run.process.poll() is not None:
        return {"seed": seed, "skipped": "it was over before the blow"}
    try:
        with deaf_coordinator(run, draw) if options.odd else contextlib.nullcontext():
            blow = kill(run, role, number)
    except (runs.Failed, ProcessLookupError):
        run.wait()
        return {"seed": seed, "skipped": "it was over before the blow"}
    summary = run.wait()
    if summary["state"] != "finished":
        raise runs.Failed(f"seed {seed}: {summary['state']}: {summary.get('message')}\n{run.tail()}")
    if not 0 < summary["seconds"] < 3600:
        raise runs.Failed(f"seed {seed}: it took {summary['seconds']} s by its summary")
    if options.mode == "sync" and summary["weights_sha256"] != wanted["weights_sha256"]:
        raise runs.Failed(f"seed {seed}: other weights than undisturbed; kept in {run.dir}")
    record = {"seed": seed, "role": "coordinator" if (role, number) == ("server", 0) else role, "clock": blow["clock"],
              "seconds": None if options.odd else seconds_to_next_step(run, blow),
              "went_back": len(run.events("went_back")), "accuracy": summary["test_accuracy"]}
    if record["went_back"] and options.replicas > 1:
        raise runs.Failed(f"seed {seed}: it went back, with two holders of each block; kept in {run.dir}")
    run.clean()
    return record


def report(records, whole):
    done = [r for r in records if "role" in r]
    print(f"{len(done)} of {len(records)} runs had their death; all complete; "
          f"{sum(r['went_back'] > 0 for r in done)} went back")
    for role in ("worker", "server", "coordinator"):
        times = sorted(r["seconds"] for r in done if r["role"] == role and r["seconds"] is not None)
        if times:
            late = times[min(len(times) - 1, int(0.99 * len(times)))]
            print(f"  {role:11} {len(times):3} deaths, seconds to the next step: median "
                  f"{statistics.median(times):.2f}, p99 {late:.2f}, most {times[-1]:.2f}")
    worst = max((abs(r["accuracy"] - whole["test_accuracy"]) for r in done), default=0)
    print(f"  test accuracy {100 * whole['test_accuracy']:.2f} % undisturbed, {100 * worst:.2f} points away at most")


def random_runs(arguments):
    parser = argparse.ArgumentParser(prog="kills.py random")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=MODES, default="sync")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--clocks", type=int, default=600)
    parser.add_argument("--odd", action="store_true", help="a deaf coordinator and a clock that jumps besides")
    parser.add_argument("--report", help="file for the records, as JSON")
    options = parser.parse_args(arguments)
    if options.odd:
        os.environ |= {"LD_PRELOAD": runs.preloadable(runs.BIN / "libleeway_set_back.so"), "LEEWAY_CLOCK_JUMPS": "1"}
    run = mnist(options, "undisturbed")
    whole = run.train()
    run.clean()
    records = []
    for seed in range(options.seed, options.seed + options.runs):
        print(f"seed {seed}", flush=True)
        records.append(random_run(options, seed, whole))
        if options.report:
            pathlib.Path(options.report).write_text(json.dumps(records, indent=1))
    report(records, whole)


if __name__ == "__main__":
    runs.main(CASES, random=random_runs)
