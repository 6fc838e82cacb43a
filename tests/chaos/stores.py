#!/usr/bin/env python3
"""Jobs whose run folder is in an object store (tests/store), started by hand as on several machines. Requests of their
checkpoints fail, and processes are killed at these requests. A checkpoint is whole or absent, older ones stay intact,
and the job ends with the bits of an undisturbed one in a folder.

    tests/chaos/stores.py CASE                    as ctest runs them
    tests/chaos/stores.py faults --runs 200       each fault at requests all over the job; --first 50 continues there
"""

import argparse
import os
import signal
import subprocess
import tempfile
import threading
import time

from cluster import Cluster, runs
from in_store import BUCKET, CLOCKS, SETS, InStore, leeway, open_store, undisturbed
from store import Cut, Slow, Status
from sts import GARBAGE, SILENCE, TokenService

JOB = (runs.JOBS / "quickstart.yaml").read_text(encoding="utf-8")


class StoreCluster(InStore, Cluster):
    """A job whose run folder is s3://bucket/NAME."""

    def __init__(self, store, name, resume=False, sets=()):
        super().__init__(JOB)
        self.store, self.name, self.resume, self.sets = store, name, resume, [*SETS, *sets]
        data = runs.data_with("optdigits/optdigits.tra")
        self.worker = [str(runs.BIN / "leeway-worker"), "--data", str(data)]

    def server_command(self, number):
        command = super().server_command(number)
        if number > 0:
            return command
        command[command.index("--run-dir") + 1] = self.location
        for one in self.sets:
            command += ["--set", one]
        return command + (["--resume"] if self.resume else [])

    def begin(self, program):
        super().begin(program)
        # Later lives of server 0 continue what the first one began.
        if (program.role, program.number) == ("server", 0) and "--resume" in program.command:
            program.command.remove("--resume")

    @property
    def over(self):
        """Server 0 has done its part. A process that was killed at the very end and started again finds no server."""
        return self.find("server", 0).done

    def finish(self, timeout=120, state="finished"):
        self.wait_for(lambda c: False, "the end of the job", timeout)
        summary = self.summary()
        if summary["state"] != state or summary["warnings"]:
            raise runs.Failed(f"the job is {summary['state']}, {summary['warnings']}\n{self.tail()}")
        return summary

    def kill_all(self):
        for program in self.programs:
            if program.alive:
                program.killed = True
                program.process.kill()
                program.process.wait()

    def check_manifests(self, least):
        """With all processes ended: each checkpoint with a manifest verifies, and the newest one is of clock `least` or
        later."""
        clocks = self.manifests()
        for clock in clocks:
            done = leeway("export", self.location, "--checkpoint", clock, "-o", self.parent / "exported")
            if done.returncode != 0:
                raise runs.Failed(f"the checkpoint at {clock} has a manifest and is not whole: {done.stderr}")
        if max(clocks, default=0) < least:
            raise runs.Failed(f"there was a checkpoint at {least}; now there are {clocks}")


def by_hand():
    """Servers without a shared folder: the job is finished, evaluated and exported, and is stopped and resumed."""
    store = open_store()
    with StoreCluster(store, "by hand+1") as cluster:
        summary = cluster.finish()
        runs.check(summary["weights_sha256"] == undisturbed(), "the bits of a run in a folder")
        kept = cluster.manifests()
        runs.check(CLOCKS in kept and len(kept) == 2, f"checkpoints at {kept} are kept")
        runs.check(not store.uploads, "no upload is unfinished")
        kinds = {e["event"] for e in cluster.events()}
        runs.check({"job_started", "step", "checkpoint", "job_finished"} <= kinds, "metrics are there")
        data = ["--data", str(runs.data_with("optdigits/optdigits.tra"))]
        told = leeway("evaluate", cluster.location, *data)
        runs.check(told.returncode == 0 and "clock 60" in told.stdout, f"evaluated: {told.stdout.strip()} {told.stderr}")
        told = leeway("export", cluster.location, "--checkpoint", kept[0], "-o", cluster.parent / "model")
        runs.check(told.returncode == 0, f"exported: {told.stdout.strip()} {told.stderr}")
        told = leeway("report", cluster.location)
        runs.check(told.returncode == 0, f"reported: {told.stdout.strip()} {told.stderr}")
        told = leeway("train", runs.JOBS / "quickstart.yaml", "--run-dir", cluster.location, *data, cwd=cluster.parent)
        runs.check(told.returncode == runs.USAGE and "continue the run with --resume" in told.stderr, f"train: {told.stderr}")
        told = leeway("status", cluster.location)
        runs.check(told.returncode == runs.TEMPORARY and "HOST:PORT" in told.stderr, f"status: {told.stderr.strip()}")
        for key in ("model.safetensors", "job.yaml", "coordinator.json", "report.html", "curves.svg"):
            runs.check(cluster.object(key) is not None, f"{key} is there")
    with StoreCluster(store, "stopped", sets=["stop={epochs: 1000}"]) as cluster:
        cluster.wait_for(lambda c: c.manifests(), "a checkpoint")
        cluster.find("server", 0).process.send_signal(signal.SIGINT)
        stopped = cluster.finish(state="stopped")["clock"]
    clocks = stopped + 20
    with StoreCluster(store, "stopped", resume=True, sets=[f"stop={{clocks: {clocks}}}"]) as cluster:
        summary = cluster.finish()
        runs.check(summary["weights_sha256"] == undisturbed(clocks), f"stopped at {stopped}, resumed: the same bits")
    store.__exit__()


def server(store, settings, location=f"s3://{BUCKET}/refused"):
    """Returns the exit code of a server 0, and its output."""
    done = subprocess.run(
        [str(runs.BIN / "leeway-server"), "--job", str(runs.JOBS / "quickstart.yaml"), "--run-dir", location,
         "--start-seconds", "5"], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, **store.environment(), "LEEWAY_S3_RETRY_SECONDS": "1", "HOME": "/nonexistent", **settings})
    return done.returncode, done.stdout + done.stderr


def refused():
    """Wrong settings are found at the start, with the exit code of a wrong configuration."""
    store = open_store()
    cases = [("a wrong secret", {"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "SignatureDoesNotMatch"),
             ("no credentials", {"AWS_ACCESS_KEY_ID": ""}, "AWS_ACCESS_KEY_ID"),
             ("a wrong endpoint", {"AWS_ENDPOINT_URL": "store:9000"}, "AWS_ENDPOINT_URL")]
    for name, settings, word in cases:
        code, text = server(store, settings)
        runs.check(code == runs.USAGE and word in text and "wrong-secret" not in text, f"{name}: {code}: {text[-300:]}")
    code, text = server(store, {}, "s3://none-such/run")
    runs.check(code == runs.USAGE and "NoSuchBucket" in text and "none-such" in text, f"no bucket: {code}: {text[-300:]}")
    code, text = server(store, {}, "s3://bucket/a//b")
    runs.check(code == runs.USAGE, f"no location: {code}: {text[-300:]}")
    store.fault = lambda request: Status(403, "AccessDenied") if request.operation == "PutObject" else None
    code, text = server(store, {})
    runs.check(code == runs.USAGE and "AccessDenied" in text and "docs/storage.md" in text, f"read only: {code}: {text[-300:]}")
    store.fault = lambda request: Status(503, "SlowDown")
    code, text = server(store, {})
    runs.check(code == runs.TEMPORARY and "SlowDown" in text, f"overloaded: {code}: {text[-300:]}")
    code, text = server(store, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    runs.check(code == runs.TEMPORARY, f"nobody answers: {code}: {text[-300:]}")
    store.__exit__()


def open_service(life):
    """Opens a store that accepts the keys of a token service."""
    store = open_store()
    store.service = TokenService(tempfile.mkdtemp(prefix="leeway-service-"), life).__enter__()
    return store, store.service


def temporary():
    """Credentials of a role, by a token that changes, are renewed before they expire, during a whole job."""
    store, service = open_service(life=5)
    os.environ.update(service.web_identity())
    clocks = 600
    with StoreCluster(store, "web-identity", sets=[f"stop={{clocks: {clocks}}}"]) as cluster:
        cluster.wait_for(lambda c: c.manifests(), "a checkpoint")
        service.rotate("second.token")
        summary = cluster.finish()
        runs.check(summary["weights_sha256"] == undisturbed(clocks), "by a web identity: the same bits")
    tokens = [request["WebIdentityToken"] for request in service.requests]
    runs.check(sorted(tokens) == tokens and len(set(tokens)) == 2, f"{tokens.count('first.token')} requests by the first token, "
               f"then {tokens.count('second.token')} by the second")
    runs.check(len(store.keys_used) >= 6 and store.expired == 0, f"requests by {len(store.keys_used)} keys, none of them expired")
    store.keys_used.clear()
    for name in service.web_identity():
        os.environ.pop(name)
    os.environ.update(service.agent())
    with StoreCluster(store, "agent") as cluster:
        runs.check(cluster.finish()["weights_sha256"] == undisturbed(), "by the agent beside a container: the same bits")
    runs.check(store.keys_used and all(key.startswith("ASIA") for key in store.keys_used), f"requests by {store.keys_used}")
    # Keys that the store refuses are replaced, whatever this host's clock says.
    given = len(service.keys)
    store.fault = lambda request: Status(400, "ExpiredToken") if len(service.keys) == given + 1 else None
    told = leeway("evaluate", f"s3://{BUCKET}/agent", "--data", runs.data_with("optdigits/optdigits.tra"))
    runs.check(told.returncode == 0 and len(service.keys) == given + 2, f"refused keys are replaced: {told.stdout.strip()}")
    service.__exit__()
    store.__exit__()


def not_given():
    """A process that gets no credentials is told what to do; after an error that may pass it asks again."""
    store, service = open_service(life=3600)
    wrong = [("a role that is not for it", {}, "AccessDenied", "trust policy", runs.USAGE),
             ("a token of yesterday", {}, "ExpiredTokenException", "clock", runs.USAGE),
             ("an answer that is none", {}, GARBAGE, "no credentials", runs.TEMPORARY),
             ("no answer in time", {}, SILENCE, "AssumeRoleWithWebIdentity", runs.TEMPORARY),
             ("nobody", {"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:9"}, "", "127.0.0.1:9", runs.TEMPORARY),
             ("no file", {"AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent/token"}, "", "'/nonexistent/token'", runs.USAGE),
             ("no role", {"AWS_ROLE_ARN": ""}, "", "AWS_ROLE_ARN", runs.USAGE)]
    for name, settings, service.trouble, word, wanted in wrong:
        code, text = server(store, {**service.web_identity(), **settings})
        runs.check(code == wanted and word in text and service.token not in text, f"{name}: {code}: {text[-400:]}")
    wrong = [("no association", {}, "AccessDeniedException", "association", runs.USAGE),
             ("no JSON", {}, GARBAGE, "lacks AccessKeyId", runs.TEMPORARY),
             ("no agent's address", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://store/x"}, "", "FULL_URI", runs.USAGE)]
    for name, settings, service.trouble, word, wanted in wrong:
        code, text = server(store, {**service.agent(), **settings})
        runs.check(code == wanted and word in text and service.token not in text, f"{name}: {code}: {text[-400:]}")
    service.__exit__()
    store.__exit__()


# Kinds of trouble: what happens to a request, to how many requests it happens, and who is killed at the first one.
KINDS = {
    "all killed": (Cut("before"), 1, "all"),
    "all killed after it": (Cut("after"), 1, "all"),
    "server 0 killed": (Cut("before"), 1, 0),
    "server 1 killed in the body": (Cut("body"), 1, 1),
    "server 1 killed after it": (Cut("after"), 1, 1),
    "500": (Status(500, "InternalError"), 2, None),
    "503": (Status(503, "SlowDown"), 3, None),
    "cut in the body": (Cut("body"), 2, None),
    "answer lost": (Cut("after"), 1, None),
    "slow": (Slow(1), 3, None),
    "no answer in time": (Slow(4), 1, None),
}


class Trouble:
    """One kind of trouble, which begins at the n-th of the requests that change something in the run or read its
    checkpoints."""

    def __init__(self, cluster, kind, at):
        self.cluster, self.at = cluster, at
        self.fault, self.times, self.victim = KINDS[kind]
        self.seen, self.done, self.newest = 0, 0, 0
        self.reached, self.all_dead = threading.Event(), threading.Event()
        self.hit = ""

    def __call__(self, request):
        if not request.key.startswith(self.cluster.name + "/"):
            return None
        if request.method in ("GET", "HEAD") and "/checkpoints/" not in request.key:
            return None
        self.seen += 1
        if self.seen <= self.at or self.done >= self.times:
            return None
        self.done += 1
        if self.done == 1:
            self.hit = f"{request.operation} {request.key.removeprefix(self.cluster.name + '/')}"
            self.newest = max(self.cluster.manifests(), default=0)
            if self.victim == "all":
                # The main thread kills it, because that thread starts dead processes again.
                self.reached.set()
                self.all_dead.wait(30)
            elif self.victim is not None:
                program = self.cluster.find("server", self.victim)
                program.killed = True
                program.process.kill()
        return self.fault


def count_requests(store):
    """Counts the requests of an undisturbed job."""
    with StoreCluster(store, "counted") as cluster:
        trouble = store.fault = Trouble(cluster, "slow", 1 << 30)
        summary = cluster.finish()
        runs.check(summary["weights_sha256"] == undisturbed(), f"undisturbed, {trouble.seen} requests")
        return trouble.seen


def disturbed(store, number, kind, at):
    with StoreCluster(store, f"run-{number}") as cluster:
        trouble = store.fault = Trouble(cluster, kind, at)
        if KINDS[kind][2] == "all":
            while not trouble.reached.wait(0.01) and not cluster.over:
                cluster.tend()
            cluster.kill_all()
            trouble.all_dead.set()
            cluster.check_manifests(trouble.newest)
        summary = cluster.finish()
        # Unfinished uploads of old cuts are removed with their folders.
        left = [key for key in store.uploads.values() if key.startswith(cluster.name + "/")]
        kept = [f"/checkpoints/clock-{clock:09}/" for clock in cluster.manifests()]
        gone = [key for key in left if not any(folder in key for folder in kept)]
        if gone:
            raise runs.Failed(f"uploads are left: {gone}")
        cluster.check_manifests(CLOCKS)
        runs.check(summary["weights_sha256"] == undisturbed(),
                   f"{number}: {kind}, request {at}: {trouble.hit or 'never reached'}: the same bits")
    for path in (store.folder / BUCKET / f"run-{number}").rglob("*"):
        if path.is_file():
            path.unlink()
    return bool(trouble.hit)


def faults(count, first=0):
    """Makes the runs from `first` to `count`: each kind of trouble in turn, at requests spread evenly over the job."""
    begun = time.monotonic()
    store = open_store()
    total = count_requests(store)
    kinds = list(KINDS)
    reached = sum(disturbed(store, i, kinds[i % len(kinds)], (i * 7919 + i // len(kinds)) * 13 % total)
                  for i in range(first, count))
    store.__exit__()
    runs.check(reached >= (count - first) * 3 // 4,
               f"{count - first} runs, {reached} of them disturbed, in {time.monotonic() - begun:.0f} s")


def some_faults(arguments):
    parser = argparse.ArgumentParser(prog="stores.py faults")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    faults(options.runs, options.first)


CASES = {"by-hand": by_hand, "refused": refused, "temporary": temporary, "not-given": not_given,
         "few-faults": lambda: faults(3)}

if __name__ == "__main__":
    runs.main(CASES, faults=some_faults)
