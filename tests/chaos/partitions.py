#!/usr/bin/env python3
"""Real partitions: the programs run in network namespaces of their own, and packets between two of them are dropped,
both ways or one way, for less and for more than a lease. After each partition the job must go on by itself. At the end
every contribution counts once (ledger.py), and in sync mode real training has the bits of an undisturbed run.

    tests/chaos/partitions.py CASE                as ctest runs them; as root, in namespaces that it makes and removes
"""

import time

import ledger
from cluster import Cluster, runs
from network import Network

LEASE = 1.5
SHORT, LONG = LEASE / 2, 2 * LEASE
PORT = 7000
WATCHED = ("server_lost", "worker_lost", "worker_returned", "placement_changed", "replicas_synced", "server_registered",
           "worker_registered", "going_back", "went_back")


def host(role, number):
    return f"{role[0]}{number}"


def placed(cluster, network):
    """Puts each program of the cluster on a host of its own."""
    at = network.addresses
    cluster.within = lambda role, number: network.within(host(role, number))
    cluster.reached = lambda number: ["--listen", f"{at[host('server', number)]}:{PORT}"]
    cluster.coordinator = lambda role, number: f"{at[host('server', 0)]}:{PORT}"
    return cluster


def hosts(servers, workers):
    return [host("server", n) for n in range(servers)] + [host("worker", n) for n in range(workers)]


def clocks_by_rank(run):
    clocks = {rank: 0 for rank in range(run.workers)}
    for event in run.events("step"):
        clocks[event["rank"]] = max(clocks[event["rank"]], event["clock"])
    return clocks


def gone_on(run, clocks):
    now = clocks_by_rank(run)
    return all(now[rank] >= clocks[rank] + 5 for rank in clocks)


def cut(run, network, drops, seconds, one_holder=False):
    """Drops packets for `seconds`. Then every worker must get further. Returns how long that took."""
    since = time.time()
    for source, target in drops:
        network.drop(source, target)
    run.say(f"lost for {seconds:.2f} s: {', '.join(f'{a} -> {b}' for a, b in drops)}")
    until = time.monotonic() + seconds
    run.wait_for(lambda r: time.monotonic() > until, "the cut's end", seconds + 30)
    lost = network.heal()
    # Where nothing arrives there may be nothing to answer.
    runs.check(len(lost) == len(drops) and any(lost), f"something was lost: {lost} packets")
    healed, clocks = time.monotonic(), clocks_by_rank(run)
    run.wait_for(lambda r: gone_on(r, clocks), "everybody to go on", 45)
    gone = time.monotonic() - healed
    # A program that was taken for lost must be back before the next partition.
    run.wait_for(lambda r: one_holder or r.whole(since), "two holders of each block", 45)
    runs.check(not run.over, "the job has outlived the cut")
    happened = [e["event"] for e in run.events() if e["time"] > since and e["event"] in WATCHED]
    run.say(f"all go on {gone:.2f} s after it healed, all is whole after {time.monotonic() - healed:.2f} s; {happened}")


def cuts_of(a, b):
    both = [(a, b), (b, a)]
    return [(both, SHORT), (both, LONG), (both[:1], LONG), (both[1:], LONG)]


def link(a, b, mode, servers=2):
    """Cuts the link between two programs. Then the ledger must be right."""
    with Network(hosts(servers, 2)) as network:
        cluster = ledger.cluster(mode, lease=LEASE, servers=servers)
        with placed(cluster, network) as run:
            run.wait_for(lambda r: r.max_clock() > 20, "the beginning")
            for drops, seconds in cuts_of(a, b):
                cut(run, network, drops, seconds)
            blow = ledger.hasten(run)
            run.finish()
            runs.check(not run.events("went_back"), "nothing went back")
            ledger.verdict(run, [blow])


def killed_alone(mode):
    """An owner that cannot reach its replica sends no answers: when it is killed then, nothing is lost with it."""
    with Network(hosts(3, 2)) as network:
        with placed(ledger.cluster(mode, servers=3), network) as run:
            for _ in range(3):
                clock = run.max_clock() + 30
                run.wait_for(lambda r, clock=clock: r.max_clock() > clock, "some clocks")
                since, until = time.time(), time.monotonic() + SHORT
                for source, target in (("s1", "s2"), ("s2", "s1")):
                    network.drop(source, target)
                run.wait_for(lambda r, until=until: time.monotonic() > until, "the cut's end")
                run.kill(("server", 1))
                runs.check(any(network.heal()), "something was lost")
                run.wait_for(lambda r, since=since: ledger.recovered(r, [("server", 1)], since), "the recovery")
            runs.check(not run.over, "the job has outlived it")
            blow = ledger.hasten(run)
            run.finish()
            runs.check(not run.events("went_back"), "nothing went back")
            ledger.verdict(run, [blow])


# ---- training itself

TRAINING = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: partitions, seed: 7}}
model:
  layers: [{{flatten: {{}}}}, {{dense: {{units: 32}}}}, {{batch_norm: {{}}}}, {{relu: {{}}}}, {{dropout: {{rate: 0.2}}}},
           {{dense: {{units: 10}}}}]
  loss: softmax_cross_entropy
data: {{train: {{type: csv, files: optdigits/optdigits.tra}}, batch_size: 16}}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
update: {{type: sgd, learning_rate: 0.05, momentum: 0.9}}
servers: {{count: 2, replicas: {replicas}}}
workers: {{count: 2, emulate: {{step_milliseconds: {milliseconds}}}}}
stop: {{{stop}}}
checkpoint: {{every: {{clocks: 100}}}}
limits: {{lease_seconds: {lease}}}
"""


def trainer():
    return [str(runs.BIN / "leeway-worker"), "--data", str(runs.SOURCE / "data")]


def undisturbed(clocks, **names):
    with Cluster(TRAINING.format(milliseconds=0, stop=f"clocks: {clocks}", **names), worker=trainer()) as run:
        run.finish()
        return run.export()


def same_bits(replicas):
    """The coordinator's server is alone on its side, and then a worker is cut off from one server: the bits stay the
    same."""
    names = {"replicas": replicas, "lease": LEASE}
    with Network(hosts(2, 2)) as network:
        cluster = Cluster(TRAINING.format(milliseconds=8, stop="epochs: 3000", **names), worker=trainer())
        with placed(cluster, network) as run:
            run.wait_for(lambda r: r.max_clock() > 120, "the first checkpoint's clock")
            for drops in ([("s1", "s0"), ("s0", "s1")], [("w0", "s1")]):
                cut(run, network, drops, LONG, one_holder=replicas == 1)
            clocks, weights = run.stop_in_order(), run.export()
            runs.check(weights == undisturbed(clocks, **names), f"the same bits as undisturbed, at clock {clocks}")


CASES = {f"{name}-{mode}": lambda ends=ends, mode=mode, servers=servers: link(*ends, mode, servers)
         for mode in ("sync", "async")
         for name, ends, servers in (("worker-server", ("w0", "s1"), 2), ("worker-coordinator", ("w1", "s0"), 2),
                                     ("server-coordinator", ("s1", "s0"), 2), ("replica-link", ("s1", "s2"), 3))}
CASES |= {f"killed-alone-{mode}": lambda mode=mode: killed_alone(mode) for mode in ("sync", "async")}
CASES |= {"training": lambda: same_bits(1), "training-replicas": lambda: same_bits(2)}

if __name__ == "__main__":
    runs.main(CASES)
