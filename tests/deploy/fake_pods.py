#!/usr/bin/python3
"""Runs the rendered manifests: each pod is a process in a network namespace of its own, with the names, volumes, probes
and restarts of a cluster (fake_cluster.py). Jobs train to their end, undisturbed and in trouble, with the bits of
`leeway train` on the same job file.

    tests/deploy/fake_pods.py CASE                as ctest runs them; as root
    tests/deploy/fake_pods.py seeds [--runs N] [--first SEED] [--job digits|mnist]    random trouble
    tests/deploy/fake_pods.py scenes [--runs N] [--first SEED]    what people do with runs, at random moments
"""

import argparse
import base64
import collections
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))

import fake_cluster
import manifests
from fake_cluster import Cluster, draw
from manifests import SECRETS, compose, find, runs
import references  # beside runs.py

SIGTERMED, KILLED = 143, 137
DATA = {"digits": "optdigits/optdigits.tra", "mnist": "mnist/train-images-idx3-ubyte.gz"}
ACCURACY = {"digits": 0.95, "mnist": 0.98}
STEPS = 80  # of an epoch of the digits
START_SECONDS = 40


class Keys:
    """Certificates and a token, as Secrets."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="leeway-pods-keys-")
        self.path = pathlib.Path(self.folder.name)
        self.make()

    def make(self):
        subprocess.run([str(runs.BIN / "leeway"), "certificates", str(self.path)], check=True, capture_output=True)

    def secrets(self):
        """Returns what the commands of docs/kubernetes.md make of the folder."""
        for name, files in SECRETS.items():
            role = name.removeprefix("leeway-").removesuffix("-tls")
            at = self.path if role == "token" else self.path / role
            data = {file: base64.b64encode((at / file).read_bytes()).decode() for file in files}
            yield {"apiVersion": "v1", "kind": "Secret", "data": data,
                   "metadata": {"name": name, "namespace": manifests.NAMESPACE}}

    def roll(self, cluster):
        """Renews the certificates, in the Secrets and then in the pods' volumes."""
        self.make()
        for secret in self.secrets():
            find(cluster.objects, "Secret", secret["metadata"]["name"])["data"] = secret["data"]
        for pod in cluster.live():
            pod.write_keys()
        cluster.say("the certificates are new")


def slow(milliseconds, epochs=None):
    """Settings that make the job last long enough to be disturbed. The padding changes no bit."""
    sets = [f"workers.emulate={{step_milliseconds: {milliseconds}}}"]
    return sets + ([f"stop.epochs={epochs}"] if epochs else [])


# With these, an evicted pod loses nothing, and a StatefulSet can grow.
MNIST = ["servers={count: 2, replicas: 2, max: 4}", "workers.count=3", "checkpoint={every: {epochs: 2}, keep: 2}"]
JOBS = {"digits": (manifests.DIGITS, []), "mnist": (runs.JOBS / "mnist-sync.yaml", MNIST)}


def job_objects(shape, job="digits", features=(), sets=(), run="leeway"):
    file, own = JOBS[job]
    return compose(shape, ["data", *features], run, file, [*own, *sets])


def cluster_of(shape, job="digits", tls=True, sets=(), keys=None, change=lambda objects: None):
    objects = job_objects(shape, job, ["tls"] if tls else [], sets)
    change(objects)
    cluster = Cluster(objects + list(keys.secrets() if keys else []), runs.data_with(DATA[job]))
    cluster.job, cluster.sets = job, list(sets)
    return cluster


def check_end(cluster, allowed=(), timeout=240):
    """Checks that the job has finished as it must: accuracy, bits, and no exit code except 0 and those allowed."""
    summary = cluster.finish(timeout)
    runs.check(summary["test_accuracy"] >= ACCURACY[cluster.job], f"test accuracy {summary['test_accuracy']:.4f}")
    file, own = JOBS[cluster.job]
    here = references.undisturbed(file, [*own, *cluster.sets], cluster.data)["weights_sha256"]
    runs.check(summary["weights_sha256"] == here, f"the bits of leeway train: {here[:16]}")
    codes = collections.Counter(code for pod in cluster.pods for code in pod.codes)
    runs.check(not set(codes) - {0, *allowed}, f"exit codes {dict(codes)}")
    runs.check(not cluster.failed_probes, f"probes that failed: {cluster.failed_probes}")
    # Pods must not be called by names that are in no certificate.
    alarms = [str(pod) for pod in cluster.pods if "No match found for server name" in pod.said()]
    runs.check(not alarms, f"no false alarm in a log: {alarms}")
    return summary


def trains(shape, job="digits", tls=True):
    with cluster_of(shape, job, tls, keys=Keys() if tls else None) as cluster:
        summary = check_end(cluster)
        if shape != "statefulset":
            return
        # Its servers are started again for ever, and must change nothing.
        until = time.monotonic() + 8
        cluster.wait_for(lambda: time.monotonic() > until, "some restarts", 20)
        codes = {str(pod): pod.codes for pod in cluster.live("server")}
        runs.check(not {code for some in codes.values() for code in some} - {0}, f"servers that restart: {codes}")
        runs.check(cluster.run.check_whole(report=False) == summary, "the result is as it was")


def all_reduce(shape, troubles=()):
    """Workers hold the blocks. The job has the bits of servers, also if pods are killed or evicted."""
    pace = slow(15)
    with cluster_of(shape, sets=[*manifests.ALL_REDUCE, *pace], keys=Keys()) as cluster:
        cluster.sets = pace
        cluster.wait_for(lambda: cluster.pods and all(pod.ready for pod in cluster.live()), "all pods to be ready", 60)
        cluster.wait_for_clock(60)
        allowed = set()
        for trouble in troubles:
            allowed |= trouble(cluster)
            train_on(cluster)
        check_end(cluster, allowed)


# ---- trouble. Each takes a cluster that trains, and returns the exit codes that it causes.

def train_on(cluster, clocks=40):
    cluster.wait_for_clock(cluster.run.max_clock() + clocks)


def is_whole(cluster):
    """Whether every pod is ready again, and so is every block's second copy."""
    return all(pod.ready for pod in cluster.live()) and cluster.run.events("replicas_synced")


def kill(cluster):
    pod = draw(cluster)
    cluster.kill(pod)
    cluster.wait_for(lambda: pod.ended or pod.restarts, f"the end of {pod}")
    return {KILLED}


def evict(cluster, component):
    pod = draw(cluster, component)
    before = pod.address
    # A process 1 that is still being loaded ignores SIGTERM: SIGKILL would end it when its grace is over.
    cluster.wait_for(lambda: pod.ready, f"{pod} to be ready")
    cluster.evict(pod)
    cluster.wait_for(lambda: pod.ended, f"the end of {pod}", 40)
    runs.check(pod.codes == [SIGTERMED], f"{pod} has ended with {pod.codes}")
    again = lambda: [p for p in cluster.live() if p.pod.hostname == pod.pod.hostname and p.ready]
    cluster.wait_for(again, f"{pod} to come back")
    runs.check(again()[0].address != before, f"it is back at {again()[0].address}")
    return {SIGTERMED}


def evict_server(cluster):
    return evict(cluster, "server")


def evict_worker(cluster):
    return evict(cluster, "worker")


def roll_servers(cluster):
    before = {pod.address for pod in cluster.live("server")}
    cluster.servers.restart()
    cluster.wait_for(lambda: not cluster.servers.rolling, "the rollout", 120)
    runs.check(not before & {pod.address for pod in cluster.live("server")}, "every server has moved")
    return {SIGTERMED}


def scale(cluster):
    """2 -> 4 -> 2 servers. The new servers get shards, and the old ones get them back."""
    for replicas in 4, 2:
        cluster.servers.scale(replicas)
        cluster.wait_for(lambda n=replicas: len(cluster.live("server")) == n and is_whole(cluster),
                         f"{replicas} servers that hold their part", 120)
        train_on(cluster)
        _, said = cluster.leeway("worker", "status", "leeway-server-0.leeway-server:7100")
        runs.check(f"{replicas} servers" in said, said.strip().splitlines()[0])
    return {SIGTERMED, 0}


def roll_certificates(cluster):
    from secure import serial  # pylint: disable=import-outside-toplevel
    pod = cluster.live("server")[0]
    shown = lambda: serial(f"{pod.address}:7100", cluster.keys.path)
    before = shown()
    cluster.keys.roll(cluster)
    cluster.wait_for(lambda: shown() != before, "server 0 to show its new certificate", 30)
    return set()


TROUBLES = {"kill": kill, "evict-server": evict_server, "evict-worker": evict_worker}
STATEFUL = {"roll-servers": roll_servers, "scale": scale}


def disturbed(shape, troubles, job="digits", sets=tuple(slow(15))):
    keys = Keys()
    with cluster_of(shape, job, sets=sets, keys=keys) as cluster:
        cluster.keys = keys
        cluster.wait_for_clock(60)
        allowed = set()
        for trouble in troubles:
            allowed |= trouble(cluster)
            train_on(cluster)
        runs.check(not all(c.done for c in cluster.finite), "the job has outlived it")
        check_end(cluster, allowed)


# ---- ends that are not success

def ended(cluster, timeout=60):
    """Returns why the workload has failed, and the exit codes of its pods."""
    try:
        cluster.finish(timeout)
    except runs.Failed as failure:
        failed = [c.failed for c in cluster.controllers if getattr(c, "failed", None)]
        if not failed:
            raise
        until = time.monotonic() + 40
        while any(not pod.ended for pod in cluster.pods) and time.monotonic() < until:
            for pod in cluster.pods:
                pod.tick()
            time.sleep(0.02)
        cluster.say(str(failure))
        return failed[0], {str(pod): pod.codes for pod in cluster.pods}
    raise runs.Failed("the job has finished")


def misconfigured():
    """A job that can never be right ends the JobSet at once: no pod of its first index is tried twice."""
    with cluster_of("jobset", tls=False) as cluster:
        config = find(cluster.objects, "ConfigMap", "leeway-job")["data"]
        config["job.yaml"] = config["job.yaml"].replace("learning_rate: 0.015", "learning_rate: -1")
        why, codes = ended(cluster)
        runs.check("exited with 2" in why, why)
        runs.check(cluster.lives("server", 0) == 1, f"exit codes {codes}")


def stopped():
    """`leeway stop` ends all pods in order, and no controller restarts them."""
    with cluster_of("jobset", tls=False, sets=slow(15)) as cluster:
        cluster.wait_for_clock(60)
        code, said = cluster.leeway("server", "stop", "leeway-server-0-0.leeway:7100", "--no-wait")
        runs.check(code == 0, f"leeway stop: {said.strip()}")
        why, codes = ended(cluster)
        runs.check("exited with 4" in why, why)
        runs.check(len(codes) == 5 and all(4 in c or SIGTERMED in c for c in codes.values()), f"exit codes {codes}")
        runs.check(cluster.run.events("job_finished")[-1]["state"] == "stopped", "there is a checkpoint to go on from")


def again():
    """The same run once more, on its claim: nothing is trained, and all pods end at once with the job's code."""
    with cluster_of("jobset", tls=False) as cluster:
        summary = check_end(cluster)
        cluster.apply_again(cluster.objects)
        before = len(cluster.pods)
        runs.check(cluster.finish(60) == summary, "the result is as it was")
        codes = {str(pod): pod.codes for pod in cluster.pods[before:]}
        runs.check(len(codes) == 5 and all(c == [0] for c in codes.values()), f"exit codes {codes}")


def paused():
    """After `leeway stop` the run continues with --resume, even if server 0 is killed. Its bits stay the same."""
    with cluster_of("jobset", tls=False, sets=slow(15)) as cluster:
        cluster.wait_for_clock(60)
        code, said = cluster.leeway("server", "stop", "leeway-server-0-0.leeway:7100", "--no-wait")
        runs.check(code == 0, f"leeway stop: {said.strip()}")
        ended(cluster)
        cluster.apply_again(job_objects("jobset", features=["resume"], sets=slow(15)))
        train_on(cluster, 60)
        cluster.kill(cluster.find("server", 0))
        train_on(cluster, 60)
        check_end(cluster, {runs.STOPPED, SIGTERMED, KILLED})


def longer():
    """A stopped run goes on with more epochs: its ConfigMap is deleted with the workload, as docs/kubernetes.md says."""
    with cluster_of("jobset", tls=False, sets=slow(15, epochs=3)) as cluster:
        cluster.wait_for_clock(60)
        cluster.leeway("server", "stop", "leeway-server-0-0.leeway:7100", "--no-wait")
        ended(cluster)
        cluster.apply_again(job_objects("jobset", features=["resume"], sets=slow(15, epochs=4)))
        summary = cluster.finish(120)
        runs.check(summary["clock"] == 4 * STEPS, f"it has ended at clock {summary['clock']}")


def preempted():
    """Kueue suspends the JobSet, and lets it go on later: no flag, no other manifest, and its bits are as ever."""
    with cluster_of("jobset", tls=False, sets=slow(15)) as cluster:
        cluster.wait_for_clock(random.randint(170, 300))  # after the first checkpoint
        jobset = cluster.controllers[0]
        jobset.suspend()
        cluster.wait_for(lambda: not cluster.live(), "all pods to end", 35)
        codes = {str(pod): pod.codes for pod in cluster.pods}
        runs.check(all(c == [SIGTERMED] for c in codes.values()), f"exit codes {codes}")
        jobset.resume()
        train_on(cluster, 60)
        again = cluster.run.events("job_started")[-1]
        runs.check(again["clock"] >= 160, again["message"])
        check_end(cluster, {SIGTERMED})


def wait_less(objects):
    """Pods of a JobSet look for server 0 for START_SECONDS."""
    for role in find(objects, "JobSet", "leeway")["spec"]["replicatedJobs"]:
        role["template"]["spec"]["template"]["spec"]["containers"][0]["args"] = [f"--start-seconds={START_SECONDS}"]


def last_second():
    """A pod is evicted while the job ends. Its next life hears how. A server that no longer finds server 0 reads it
    in the run folder, after --start-seconds. A server 0 writes the summary in its next life, and tells the workers that wait."""
    with cluster_of("jobset", tls=False, sets=slow(15, epochs=3), change=wait_less) as cluster:
        cluster.wait_for_clock(3 * STEPS - random.randint(0, 6))
        began = time.monotonic()
        cluster.evict(random.choice([pod for pod in cluster.live() if pod.running]))
        cluster.finish(START_SECONDS + 60)
        runs.check(True, f"the job ended after {time.monotonic() - began:.1f} s")
        check_end(cluster, {SIGTERMED})


def two_runs():
    """Two runs in one namespace at the same time; each has its own bits."""
    with cluster_of("jobset", tls=False) as cluster:
        cluster.apply(job_objects("jobset", run="second-leeway"))
        check_end(cluster)
        cluster.run = cluster.run_of("second-leeway")
        check_end(cluster)


def watched():
    """`leeway status` in a pod, and the health of each pod, are as docs/kubernetes.md says."""
    with cluster_of("statefulset", tls=True, sets=slow(15), keys=Keys()) as cluster:
        cluster.wait_for_clock(60)
        code, said = cluster.leeway("worker", "status", "leeway-server-0.leeway-server:7100")
        runs.check(code == 0 and "3 workers" in said, said.strip().splitlines()[0])
        for address in "localhost:7101", "leeway-server-1.leeway-server:7101", "leeway-worker-2.leeway-worker:7101":
            code, said = cluster.leeway("server", "health", address)
            runs.check(code == 0, f"{address}: {said.strip()}")
        check_end(cluster)


def program():
    """A PyTorch script trains MNIST in pods of an image of its own, with certificates, and is killed once."""
    objects = manifests.render(manifests.PROGRAM, "--name", "leeway", "--set", "stop={clocks: 600}",
                               "--set", "evaluation={every: {clocks: 300}}",
                               *manifests.flags_of("jobset", ["tls", "data"]), *manifests.OWN)
    with Cluster(objects + list(Keys().secrets()), runs.data_with(DATA["mnist"])) as cluster:
        cluster.wait_for_clock(100)
        cluster.kill(cluster.find("worker", 1))
        summary = cluster.finish(240)
        runs.check(summary["test_accuracy"] >= 0.9, f"test accuracy {summary['test_accuracy']:.4f}")
        codes = {code for pod in cluster.pods for code in pod.codes}
        runs.check(codes == {0, KILLED}, f"exit codes {codes}")


def late_names():
    """The cluster's DNS knows no names for some seconds: pods wait, and do not end."""
    with cluster_of("jobset", tls=False) as cluster:
        cluster.names_after = time.monotonic() + 8
        cluster.finish(60)
        runs.check(not any(set(pod.codes) - {0} for pod in cluster.pods), "no pod ended before")
        took = time.monotonic() - cluster.began
        runs.check(took < 45, f"the job took {took:.1f} s")


# ---- random rounds

def draw_trouble(_, options):
    """Random trouble in a random shape."""
    shape = random.choice(("jobset", "statefulset"))
    known = [*TROUBLES.items(), *(STATEFUL.items() if shape == "statefulset" else ()),
             ("roll-certificates", roll_certificates)]
    drawn = random.choices(known, k=random.randint(2, 4))
    sets = slow(15 if options.job == "digits" else 1)
    return (f"{shape}, {', '.join(name for name, _ in drawn)}",
            lambda: disturbed(shape, [trouble for _, trouble in drawn], options.job, sets))


def draw_scene(seed, _):
    """What people do with runs, in turn; the seed draws the moments and the pods."""
    scene = SCENES[seed % len(SCENES)]
    return scene, CASES[scene]


def outcome(play):
    """Returns the outcome of one round, as a sentence."""
    began = time.monotonic()
    try:
        play()
    except runs.Failed as failure:
        return f"FAILED: {failure}"
    except SystemExit as left:
        if left.code != runs.SKIPPED:
            raise
        return "skipped"
    return f"passed in {time.monotonic() - began:.1f} s"


def rounds(options):
    """Prints a line for the beginning and the end of each round."""
    failed = []
    for seed in range(options.first, options.first + options.runs):
        random.seed(seed)
        title, play = DRAWS[options.draw](seed, options)
        print(f"seed {seed}: {title}", flush=True)
        ended = outcome(play)
        failed += [seed] if ended.startswith("FAILED") else []
        print(f"seed {seed}: {ended}", flush=True)
    print(f"{options.runs} rounds, {len(failed)} failed: {failed}")
    return 1 if failed else 0


DRAWS = {"seeds": draw_trouble, "scenes": draw_scene}
SCENES = ("two-runs", "again", "paused", "preempted", "last-second", "program")
CASES = {f"trains-{shape}": lambda shape=shape: trains(shape) for shape in manifests.SHAPES}
CASES |= {f"mnist-{shape}": lambda shape=shape: trains(shape, "mnist") for shape in ("jobset", "statefulset")}
CASES |= {f"{shape}-{name}": lambda shape=shape, trouble=trouble: disturbed(shape, [trouble])
          for shape in ("jobset", "statefulset")
          for name, trouble in [*TROUBLES.items(), ("roll-certificates", roll_certificates)]}
CASES |= {f"all-reduce-{shape}": lambda shape=shape: all_reduce(shape) for shape in manifests.SHAPES}
CASES |= {f"all-reduce-{name}": lambda trouble=trouble: all_reduce("jobset", [trouble]) for name, trouble in TROUBLES.items()}
CASES |= {name: lambda trouble=trouble: disturbed("statefulset", [trouble]) for name, trouble in STATEFUL.items()}
CASES |= {"misconfigured": misconfigured, "stopped": stopped, "watched": watched, "late-names": late_names,
          "again": again, "paused": paused, "longer": longer, "preempted": preempted, "last-second": last_second,
          "two-runs": two_runs, "program": program}


def main():
    # The remaining processes are ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERMED))
    fake_cluster.enter_node()
    if sys.argv[1] not in DRAWS:
        CASES[sys.argv[1]]()
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("draw", choices=DRAWS)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--job", choices=DATA, default="digits")
    return rounds(parser.parse_args())


if __name__ == "__main__":
    runs.ends_with(main)
