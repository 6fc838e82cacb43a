#!/usr/bin/env python3
"""`leeway train --run-dir s3://BUCKET/PREFIX`: lasting files are in the store, and secrets are not. Whichever process
is killed, the job ends with the bits of an undisturbed one in a folder, even when a machine continues it that has never
seen it.

    tests/chaos/stored.py CASE                    as ctest runs them
"""

import os
import pathlib
import signal
import tempfile
import time

from cluster import runs
from in_store import CLOCKS, SETS, InStore, leeway, open_store, ssh_with_nothing, undisturbed
from store import Status

DATA = runs.data_with("optdigits/optdigits.tra")
JOB = str(runs.JOBS / "quickstart.yaml")
# A step takes long enough to kill a process in the middle of the job.
SLOW = ["workers.emulate={step_milliseconds: 60}"]


class StoredRun(InStore, runs.Run):
    """One launcher's run. A folder stands for each machine on which it is started: files outside the folder are not on
    that machine."""

    def __init__(self, store, name, sets=()):
        super().__init__("quickstart.yaml", [*SETS, *sets], DATA)
        self.store, self.name = store, name
        self.move()

    def move(self):
        """Moves to a machine that has never seen the run."""
        self.machine = pathlib.Path(tempfile.mkdtemp(prefix="machine-", dir=self.parent))
        self.here = self.machine / "runs/s3/bucket" / self.name

    def command(self, resume=False, more=(), options=()):
        words = super().command(resume, more, options)
        words[words.index("--run-dir") + 1] = self.location
        return ["env", "-C", str(self.machine), *words]

    def train(self, expect=0, **how):
        return self.start(**how).wait(expect=expect, whole=False)

    def go_on(self, *options, expect=0):
        """Continues with the run's own job."""
        done = leeway("train", "--resume", "--run-dir", self.location, "--data", DATA, *options, cwd=self.machine)
        runs.check(done.returncode == expect, f"--resume: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def at_checkpoint(self):
        self.wait_for(lambda r: r.manifests())

    def kill_one(self, role, number):
        os.kill(self.process_of(role, number), signal.SIGKILL)


def same_bits(run, what):
    runs.check(run.summary()["weights_sha256"] == undisturbed(), f"{what}: the same bits")


def ended(command, run, *options):
    done = leeway(command, run.location, *options, cwd=run.machine)
    runs.check(done.returncode == 0, f"{command}: {done.stdout.strip()} {done.stderr}")
    return done.stdout


def trained():
    """The run finishes, and every command sees it. The store has the lasting files, this machine has the logs, and the
    token is nowhere."""
    store = open_store()
    run = StoredRun(store, "first/run", SLOW).start()
    run.at_checkpoint()
    token = (run.here / "token").read_text().strip().encode()
    address = (run.here / "coordinator").read_text().strip()
    for target, options in ((run.location, []), (run.here, []), (address, ["--token-file", run.here / "token"])):
        told = leeway("status", target, *options, cwd=run.machine)
        runs.check(told.returncode == 0 and "clock" in told.stdout, f"status {target}: {told.stderr}")
    told = leeway("train", JOB, "--run-dir", run.location, "--data", DATA, cwd=run.machine)
    runs.check(told.returncode == runs.USAGE and "already has a run" in told.stderr, f"at once again: {told.stderr}")
    told = leeway("train", "--resume", "--run-dir", run.location, "--data", DATA, cwd=run.machine)
    runs.check(told.returncode == runs.REPLACED and "another launcher" in told.stderr, f"resumed while it runs: {told.stderr}")
    run.wait(whole=False)
    told = run.said()
    same_bits(run, "trained")
    for words in (f"report      {run.location}/report.html", f"metrics     {run.location}/metrics\n",
                  f"checkpoints {run.location}/checkpoints\n", f"logs        {run.here}/logs\n"):
        runs.check(words in told, f"it says where: {words.strip()}")
    kinds = {name.split("/")[0] for name in run.names()}
    wanted = {"job.yaml", "coordinator.json", "metrics", "checkpoints", "model.safetensors", "summary.json", "report.html",
              "curves.svg"}
    runs.check(kinds == wanted, f"the store has {sorted(kinds)}")
    here = {file.name for file in run.here.iterdir()}
    runs.check(here == {"logs", "launcher.log"}, f"this machine has {sorted(here)}")
    logs = {file.name for file in (run.here / "logs").iterdir()}
    runs.check(logs == {"server-0.log", "server-1.log", "worker-0.log", "worker-1.log"}, f"logs: {sorted(logs)}")
    files = [file for folder in (store.folder, run.machine) for file in folder.rglob("*") if file.is_file()]
    runs.check(not any(token in file.read_bytes() for file in files), "no file has the token")
    runs.check("clock 60" in ended("evaluate", run, "--data", DATA), "evaluated")
    ended("export", run, "-o", run.parent / "exported")
    runs.check((run.parent / "exported").read_bytes() == run.object("model.safetensors"), "exported: the same model")
    written = run.object("report.html")
    ended("report", run)
    runs.check(run.object("report.html") == written, "the report is the same again")
    run.move()
    runs.check("nothing to train" in run.go_on(), "a finished run stays as it is")
    same_bits(run, "finished again")
    run.clean()
    store.__exit__()


def killed():
    """The launcher is killed by SIGKILL, and another machine continues the run. A server and a worker are killed and
    started again."""
    store = open_store()
    run = StoredRun(store, "killed", SLOW).start()
    run.at_checkpoint()
    run.kill()
    run.move()
    told = run.go_on()
    runs.check("on another machine" in told and "--resume" not in told, f"it warns of the other machine: {told}")
    same_bits(run, "the launcher was killed")
    run.clean()
    for role, number in (("server", 0), ("server", 1), ("worker", 1)):
        run = StoredRun(store, f"killed {role} {number}", SLOW).start()
        run.at_checkpoint()
        run.kill_one(role, number)
        summary = run.wait(whole=False)
        runs.check(sum(summary["worker_restarts"] + summary["server_restarts"]) == 1, f"{role} {number} was started again")
        same_bits(run, f"{role} {number} was killed")
        run.clean()
    store.__exit__()


def stopped():
    """The run is stopped by Ctrl-C, and another machine continues it; before the first checkpoint it starts anew."""
    store = open_store()
    run = StoredRun(store, "stopped", SLOW).start()
    run.at_checkpoint()
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED, whole=False)
    runs.check(summary["state"] == "stopped" and f"--resume --run-dir {run.location}" in run.said(), "it says how to go on")
    run.move()
    told = run.go_on("--set", f"stop={{clocks: {CLOCKS}}}")
    runs.check("on another machine" not in told, "it was ended in order: no warning")
    same_bits(run, f"stopped at {summary['clock']}")
    run.clean()
    # The first metrics reach the store after ten seconds.
    run = StoredRun(store, "early", ["workers.emulate={step_milliseconds: 400}", "checkpoint={every: {clocks: 1000}}"]).start()
    run.wait_for(lambda r: "coordinator.json" in r.names() and "metrics/000000.jsonl" in r.names())
    run.kill()
    run.move()
    told = leeway("train", JOB, "--run-dir", run.location, "--data", DATA, cwd=run.machine)
    runs.check(told.returncode == runs.USAGE and "already has a run" in told.stderr, f"not over another's: {told.stderr}")
    told = run.go_on("--set", "checkpoint={every: {clocks: 20}, keep: 2}", "--set",
                     "workers.emulate={step_milliseconds: 20}")
    runs.check("It is replaced: coordinator.json, metrics" in told, f"begun anew: {told}")
    same_bits(run, "begun anew by --resume")
    run.clean()
    store.__exit__()


def refused():
    """Mistakes are refused before anything is started or a folder is made."""
    store = open_store()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-refused-"))

    def train(location, *options, environment=(), job=JOB):
        return leeway("train", *([job] if job else []), "--run-dir", location, "--data", DATA, *options, cwd=folder,
                      env={**os.environ, "LEEWAY_S3_RETRY_SECONDS": "1", "HOME": "/nonexistent", **dict(environment)})
    readable = "s3://bucket/refused"
    wrong = [("no credentials", readable, {"AWS_ACCESS_KEY_ID": ""}, "AWS_ACCESS_KEY_ID", runs.USAGE),
             ("a wrong secret", readable, {"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "SignatureDoesNotMatch", runs.USAGE),
             ("no bucket", "s3://none-such/run", {}, "make the bucket", runs.USAGE),
             ("no location", "s3://bucket/a//b", {}, "s3://bucket/a//b", runs.USAGE),
             ("nobody answers", readable, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "127.0.0.1:9", runs.TEMPORARY)]
    for name, location, environment, word, code in wrong:
        for job, options in ((JOB, []), (None, ["--resume"])):
            told = train(location, *options, environment=environment, job=job)
            runs.check(told.returncode == code and word in told.stderr and "wrong-secret" not in told.stderr,
                       f"{name} {' '.join(options)}: {told.returncode}: {told.stderr[-300:]}")
    store.fault = lambda request: Status(403, "AccessDenied") if request.operation == "PutObject" else None
    told = train(readable)
    runs.check(told.returncode == runs.USAGE and "AccessDenied" in told.stderr, f"read only: {told.stderr[-300:]}")
    store.fault = lambda request: None
    told = train(readable, "--resume")
    runs.check(told.returncode == runs.TEMPORARY and "no run to continue" in told.stderr, f"nothing there: {told.stderr}")
    told = train("here", "--local-dir", "there")
    runs.check(told.returncode == runs.USAGE and "--local-dir" in told.stderr, f"a folder and --local-dir: {told.stderr}")
    store.forward("PUT", "/bucket/taken/notes.txt", {}, b"somebody's")
    told = train("s3://bucket/taken")
    runs.check(told.returncode == runs.USAGE and "not empty" in told.stderr, f"somebody else's: {told.stderr}")
    runs.check(not list(folder.iterdir()), "nothing was made")
    told = leeway("status", readable, cwd=folder)
    runs.check(told.returncode == runs.TEMPORARY and "--local-dir" in told.stderr, f"status: {told.stderr}")
    store.__exit__()


class Joining:
    """A fault of the store that begins when server 1 tries the store out: the launcher and server 0 have done so
    before."""

    def __init__(self, store, seconds):
        self.tries, self.until, self.seconds = 0, None, seconds
        store.fault = self

    def __call__(self, request):
        if request.operation != "ListObjectsV2" or request.query.get("max-keys") != "1":
            return None
        self.tries += 1
        if self.tries <= 2:
            return None
        self.until = self.until or time.monotonic() + self.seconds
        return Status(503, "SlowDown") if time.monotonic() < self.until else None


def joining():
    """The store fails while server 1 joins: once for longer than the server's lease, which it keeps all the same, and
    once for good, which the last message reports."""
    store = open_store()
    fault = Joining(store, seconds=10)
    run = StoredRun(store, "joining", ["limits.lease_seconds=2"])
    summary = run.train()
    runs.check(fault.tries > 3, f"server 1 tried {fault.tries - 2} times")
    runs.check(summary["server_restarts"] == [0, 0], f"no server was started again: {summary['server_restarts']}")
    same_bits(run, "10 s without a store while server 1 joined")
    run.clean()
    os.environ["LEEWAY_S3_RETRY_SECONDS"] = "3"
    Joining(store, seconds=1000)
    run = StoredRun(store, "not joining", ["limits.lease_seconds=2", "servers.max_restarts=1"]).start()
    run.wait(expect=runs.TEMPORARY, whole=False)
    end = run.said().rpartition("the job failed:")[2]
    runs.check(f"trying out {run.location}" in end and "SlowDown" in end, f"the end names the store: {end}")
    runs.check("not ready yet" not in run.said(), "and nothing else")
    runs.check("does not respond" not in run.said() and "hung" not in run.said(), "no server was taken for hung")
    run.clean()
    store.__exit__()


def hosts():
    """By ssh: servers on another machine get the credentials through standard input, and need no shared folder."""
    store = open_store()
    run = StoredRun(store, "hosts")
    ssh = ssh_with_nothing(run.parent)
    summary = run.train(options=["--hosts", "a=127.0.0.1:2", "--ssh", str(ssh), "--remote-bin", str(runs.BIN),
                                 "--local-dir", str(run.parent / "logs of it")])
    same_bits(run, f"{summary['servers']} servers by ssh")
    runs.check((run.parent / "logs of it/logs/server-1.log").exists(), "--local-dir has the logs")
    runs.check(not list(run.machine.iterdir()), "and no other folder was made")
    run.clean()
    store.__exit__()


if __name__ == "__main__":
    runs.main({"trained": trained, "killed": killed, "stopped": stopped, "refused": refused, "hosts": hosts,
               "joining": joining})
