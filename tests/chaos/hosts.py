#!/usr/bin/env python3
"""`leeway train --hosts`: a job on several machines, which are network namespaces here. They are reached by a program
that stands for ssh (fake_ssh.py), or by ssh itself. The job has the bits of a job on one machine; dead processes are
started again; nothing is left behind, however the launcher ends.

    tests/chaos/hosts.py CASE                     as ctest runs them; as root, in namespaces that it makes and removes
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from cluster import runs  # puts the folder of references.py on the path
import references
from network import Network

HERE = pathlib.Path(__file__).resolve().parent
LEEWAY = str(runs.BIN / "leeway")
DATA = "optdigits/optdigits.tra"
# A clock takes long enough to kill a process in the middle of the job.
SLOW = ["servers.count=2", "stop={clocks: 200}", "workers.emulate={step_milliseconds: 15}",
        "checkpoint={every: {clocks: 30}}"]
ENDLESS = [*SLOW, "stop={clocks: 100000}"]
# The job takes a minute: processes that are left behind do not end by themselves while the test looks for them.
SLOWER = [*SLOW, "workers.emulate={step_milliseconds: 300}", "checkpoint={every: {clocks: 10}}"]
AS_FAST = SLOW[2]
STOPPING = "stopping in order, with a checkpoint; a second signal kills the job"
KEYS = pathlib.Path("/dev/shm")


class HostsRun(runs.Run):
    """A run on hosts a and b; the launcher is on a third one."""

    def __init__(self, network, sets, hosts="a:1,b:2", apart=None, job="quickstart.yaml", program=(), **more):
        super().__init__(job, sets, None if program else runs.data_with(DATA), **more)
        self.network, self.hosts, self.program = network, hosts, program
        self.tools = pathlib.Path(tempfile.mkdtemp(prefix="leeway-test-ssh-"))
        (self.tools / "ssh").symlink_to(HERE / "fake_ssh.py")
        path = f"{runs.BIN}:{os.environ['PATH']}"
        self.world = {"prefix": network.prefix, "addresses": network.addresses, "path": path, "apart": apart or {}}

    def command(self, resume=False, more=(), options=()):
        command = super().command(resume, more, [*options, "--hosts", self.hosts])
        environment = [f"PATH={self.tools}:{os.environ['PATH']}", f"LEEWAY_FAKE_SSH={json.dumps(self.world)}"]
        return [*self.network.within("launcher"), "env", *environment, *command, *(["--", *self.program] if self.program else [])]

    def on(self, host):
        """Returns the Leeway programs that run on a host: {pid: words of its command}."""
        found = {}
        pids = subprocess.run(["ip", "netns", "pids", self.network.namespace(host)], capture_output=True, text=True,
                              check=True).stdout.split()
        for pid in pids:
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            is_program = self.program and self.program[-1] in words and not words[0].endswith("leeway")
            if (is_program or "leeway" in os.path.basename(words[0])) and runs.is_alive(int(pid)):
                found[int(pid)] = words
        return found

    def find(self, host, role, number):
        option = "--index" if role == "server" else "--rank"
        for pid, words in self.on(host).items():
            if words[0].endswith(f"leeway-{role}") and words[words.index(option) + 1] == str(number):
                return pid
        raise runs.Failed(f"{role} {number} is not on {host}: {self.on(host)}\n{self.tail()}")

    def kill_one(self, host, role, number, how=signal.SIGKILL):
        pid = self.find(host, role, number)
        os.kill(pid, how)
        print(f"  killed {role} {number} on {host} (process {pid}) at clock {self.max_clock()}", flush=True)

    def nothing_left(self, seconds=20):
        until = time.monotonic() + seconds
        while any(map(self.on, ("a", "b"))) and time.monotonic() < until:
            time.sleep(0.05)
        left = {host: self.on(host) for host in ("a", "b")}
        for pid in [pid for found in left.values() for pid in found]:
            os.kill(pid, signal.SIGKILL)
        runs.check(not any(left.values()), f"nothing runs on the hosts any more: {left}")

    def leeway(self, *words):
        done = subprocess.run([*self.network.within("launcher"), LEEWAY, *map(str, words)], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def clean(self):
        super().clean()
        for file in self.tools.iterdir():
            file.unlink()
        self.tools.rmdir()


def three():
    return Network(["launcher", "a", "b"])


def plain_digest(sets):
    return references.undisturbed("quickstart.yaml", sets, runs.data_with(DATA))["weights_sha256"]


def at(run, clock):
    run.wait_for(lambda r: r.max_clock() >= clock)


def authority(run):
    return (run.dir / "tls/ca.crt").read_bytes()


def keys_of(ca):
    """Returns the key files of one run, which its authority identifies: other tests run at the same time."""
    found = []
    for file in KEYS.glob("leeway-keys-*/**/ca.crt"):
        try:
            found += [file] if file.read_bytes() == ca else []
        except OSError:
            continue
    return found


def no_keys(ca):
    until = time.monotonic() + 20
    while keys_of(ca) and time.monotonic() < until:
        time.sleep(0.05)
    runs.check(not keys_of(ca), "no keys are left")


def seen_by_all(secret):
    """Returns the command lines on this machine that contain the secret."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            found += [line] if secret in line else []
    return found


def trains():
    """The bits of one machine; each process on its host; no secret on a command line, and no keys left behind."""
    plain = plain_digest(SLOW)
    with three() as network:
        run = HostsRun(network, SLOW).start()
        at(run, 30)
        for place in ("a", "server", 0), ("a", "worker", 0), ("b", "server", 1), ("b", "worker", 1), ("b", "worker", 2):
            run.find(*place)
        told = (run.dir / "hosts").read_text().splitlines()[1:]
        runs.check(told == ["a (10.77.0.2): server 0, worker 0", "b (10.77.0.3): server 1, worker 1, worker 2"],
                   f"RUN/hosts says it: {told}")
        token = (run.dir / "token").read_text().strip()
        runs.check(not seen_by_all(token), "the token is on no command line")
        ca = authority(run)
        # The launcher has four, and each process has one.
        runs.check(len(keys_of(ca)) == 4 + 5, "mutual TLS, where nothing is said: each process has its key")
        code, said = run.leeway("status", run.dir)
        runs.check(code == 0, f"leeway status RUN: {said.splitlines()[0]}")
        summary = run.wait()
        runs.check(summary["weights_sha256"] == plain, "the bits of a run on one machine")
        runs.check(summary["restarts"] == 0, "nobody was restarted")
        run.nothing_left()
        no_keys(ca)
        names = {file.name for file in (run.dir / "logs").iterdir()}
        runs.check(names == {"server-0.log", "server-1.log", "worker-0.log", "worker-1.log", "worker-2.log"}, "all logs")
        runs.check("done" in (run.dir / "logs/worker-2.log").read_text(), "with what the processes said")
        runs.check(not (run.dir / "hosts").exists(), "RUN/hosts goes with the run")
        run.clean()


def killed():
    """Servers and workers that die on their hosts are started again there, and the bits are those of an undisturbed
    run."""
    plain = plain_digest(SLOW)
    with three() as network:
        run = HostsRun(network, SLOW).start()
        for clock, victim in (40, ("b", "server", 1)), (80, ("b", "worker", 2)), (120, ("a", "server", 0)), \
                (160, ("a", "worker", 0)):
            at(run, clock)
            run.kill_one(*victim)
        summary = run.wait()
        runs.check(summary["weights_sha256"] == plain, "the bits of an undisturbed run")
        runs.check(summary["server_restarts"] == [1, 1] and summary["restarts"] == 4, "four restarts")
        runs.check("worker 2 crashed with signal 9 (Killed) on b" in run.said(), "named with its host")
        run.nothing_left()
        run.clean()


def all_reduce():
    """Workers that hold the blocks reach each other across hosts, with certificates that let them answer. One dies, and
    the bits are those of servers on one machine."""
    plain = plain_digest(SLOW)
    with three() as network:
        run = HostsRun(network, [*SLOW, "topology.type=all_reduce", "servers.replicas=2"]).start()
        at(run, 40)
        told = (run.dir / "hosts").read_text().splitlines()[1:]
        runs.check(told == ["a (10.77.0.2): server 0, worker 0", "b (10.77.0.3): worker 1, worker 2"],
                   f"no server but the coordinator: {told}")
        ca = authority(run)
        run.kill_one("b", "worker", 2)
        at(run, 80)
        run.kill_one("a", "server", 0)
        summary = run.wait()
        runs.check(summary["weights_sha256"] == plain, "the bits of servers on one machine")
        runs.check(summary["restarts"] == 2, f"restarts: {summary['restarts']}")
        listen = [line for rank in (0, 1, 2) for line in (run.dir / f"logs/worker-{rank}.log").read_text().splitlines()
                  if "listening on" in line]
        runs.check(all(f"listening on {host}:" in " ".join(listen) for host in ("10.77.0.2", "10.77.0.3")),
                   "workers listen at their hosts' addresses")
        run.nothing_left()
        no_keys(ca)
        run.clean()


def disconnected():
    """A connection that breaks takes its process with it, and both are started again. A process that stands still is
    killed on its host."""
    with three() as network:
        run = HostsRun(network, [*ENDLESS, "limits.lease_seconds=1"]).start(options=["--insecure"])
        at(run, 20)
        old = run.find("b", "worker", 2)
        for pid, words in launcher_children(run):
            if words[-2:] == ["b", "leeway remote"] and str(old) in descendants(pid):
                os.kill(pid, signal.SIGKILL)
        run.wait_for(lambda r: "the connection to b" in r.said(), 30)
        run.wait_for(lambda r: not runs.is_alive(old), 30)
        print(f"  the connection of worker 2 is cut, and process {old} has ended")
        at(run, run.max_clock() + 20)
        old = run.find("b", "worker", 1)
        os.kill(old, signal.SIGSTOP)
        run.wait_for(lambda r: not runs.is_alive(old), 60)
        runs.check(f"worker 1 on b (process {old}) is running but does not respond" in run.said(), "one that stood still is killed")
        at(run, run.max_clock() + 20)
        run.interrupt()
        summary = run.wait(expect=runs.STOPPED, timeout=60)
        runs.check(summary["restarts"] == 2, "two restarts")
        run.nothing_left()
        run.clean()


def launcher_children(run):
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and parent_of(entry.name) == run.process.pid:
            yield int(entry.name), (entry / "cmdline").read_bytes().decode().rstrip("\0").split("\0")


def parent_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def descendants(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and parent_of(entry.name) == pid:
            found += [entry.name, *descendants(int(entry.name))]
    return found


def launcher_killed():
    """After kill -9 of the launcher its processes on all hosts end, their keys are removed, and the run can be
    continued."""
    plain = plain_digest(SLOW)
    with three() as network:
        run = HostsRun(network, SLOWER).start()
        at(run, 12)
        ca = authority(run)
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        run.nothing_left()
        no_keys(ca)
        summary = run.start(resume=True, more=[AS_FAST]).wait()
        runs.check(summary["weights_sha256"] == plain, "--resume ends with the bits of an undisturbed run")
        run.nothing_left()
        run.clean()


def interrupted():
    """Ctrl-C stops in order, with a checkpoint. A second one kills all processes at once."""
    with three() as network:
        run = HostsRun(network, ENDLESS).start(options=["--insecure"])
        at(run, 20)
        run.interrupt()
        summary = run.wait(expect=runs.STOPPED, timeout=60)
        runs.check(summary["state"] == "stopped" and summary["restarts"] == 0, f"stopped at clock {summary['clock']}")
        run.nothing_left()
        run.start(resume=True, options=["--insecure"])
        at(run, summary["clock"] + 20)
        for worker in run.find("a", "worker", 0), run.find("b", "worker", 1):
            os.kill(worker, signal.SIGSTOP)
        told = run.said().count(STOPPING)
        run.interrupt()
        # Two signals at the same moment would count as one.
        run.wait_for(lambda r: r.said().count(STOPPING) > told, 30)
        run.interrupt()
        run.wait(expect=runs.TEMPORARY, timeout=60, whole=False)
        run.nothing_left()
        run.clean()


def resized():
    """A server that is added while the job trains is started on the next host in turn."""
    with three() as network:
        run = HostsRun(network, [*ENDLESS, "servers.shards=4"]).start()
        at(run, 20)
        code, said = run.leeway("resize", run.dir, "--servers", 3)
        runs.check(code == 0, f"leeway resize: {said.strip().splitlines()[-1]}")
        run.find("a", "server", 2)
        run.interrupt()
        run.wait(expect=runs.STOPPED, timeout=60)
        run.nothing_left()
        run.clean()


OTHER = """#!/bin/sh
read line
echo 'leeway-remote {"hello": {"version": "0.0.9", "address": "", "missing_programs": []}}'
"""
SILENT = """#!/bin/sh
echo hello
"""
OLDER = """#!/bin/sh
echo "leeway: unknown command 'remote'" >&2
exit 2
"""


def refused(network, code, words, hosts="a:1,b:2", options=(), apart=None, sets=SLOW, **more):
    run = HostsRun(network, [] if "program" in more else sets, hosts, apart, **more)
    began = time.monotonic()
    run.start(options=options)
    status = run.process.wait(60)
    said = run.said()
    missing = [word for word in words if word not in said]
    runs.check(status == code and not missing,
               f"status {status} after {time.monotonic() - began:.1f} s, missing {missing}:\n    {said.strip()}")
    run.nothing_left()
    run.clean()


def remote_bin(folder, name, text):
    (folder / name).mkdir()
    program = folder / name / "leeway"
    program.write_text(text)
    program.chmod(0o755)
    return ["--remote-bin", str(folder / name)]


def errors():
    """Mistakes are reported before anything is started, for each host, with what to do."""
    with three() as network, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        refused(network, runs.USAGE, ["a is listed twice"], "a:1,b:1,a:1")
        refused(network, runs.USAGE, ["have 4 workers, but the job has 3", "--set workers.count=4"], "a:2,b:2")
        refused(network, runs.USAGE, ["'x' is not a number of workers"], "a:x,b:2")
        refused(network, runs.USAGE, ["rsh-of-nobody: there is no such program in the PATH"], options=["--ssh", "rsh-of-nobody"])
        refused(network, runs.TEMPORARY, ["c cannot be reached by", "Could not resolve hostname c", "d cannot be"],
                "a:1,c:1,d:1")
        refused(network, runs.TEMPORARY, ["a has no program /nowhere/leeway", "b has no program", "--remote-bin DIR"],
                options=["--remote-bin", "/nowhere"])
        refused(network, runs.TEMPORARY, ["a has Leeway 0.0.9, but this is Leeway"],
                options=remote_bin(folder, "other", OTHER))
        refused(network, runs.TEMPORARY, ["of another version, without `leeway remote`"],
                options=remote_bin(folder, "older", OLDER))
        refused(network, runs.TEMPORARY, ["a is reached, but 'leeway remote' does not answer there"],
                options=remote_bin(folder, "silent", SILENT))
        refused(network, runs.USAGE, ["--insecure"], options=["--tls", "tls"])
        refused(network, runs.USAGE, ["give its address in the network, b=ADDRESS:2"], "a:1,b=127.0.0.1:2")
        refused(network, runs.USAGE, ["hosts is missing on this host: all hosts with servers, or with workers that hold blocks, must see the run folder"],
                apart={"b": [str(folder)]}, parent=folder / "shared")


PROGRAM = """
import hashlib, os, time
import leeway
job = leeway.join({"w": (64, 8)}, update={"type": "sgd", "learning_rate": 0.1})
for clock, weights in job:
    time.sleep(0.02)
    job.push_pull({"w": weights["w"] - job.rank - 1}, examples=4)
print("ended", job.ended, hashlib.sha256(job.weights["w"].tobytes()).hexdigest()[:16], os.getcwd(), flush=True)
"""
EXTERNAL = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: programs}
model: {type: external}
data: {type: external, batch_size: 4, examples: 100}
exchange: {type: gradient}
consistency: {mode: sync}
servers: {count: 2}
workers: {count: 3}
stop: {clocks: 200}
"""


def programs():
    """The user's own programs run on the hosts, in the launcher's folder, and are started again there when they die."""
    package = f"PYTHONPATH={runs.SOURCE / 'python'}"
    library = f"LEEWAY_LIBRARY={runs.BIN.parent / 'lib/libleeway-client.so'}"
    program = ["sh", "-c", '"$@" & wait $!', "sh", "env", package, library, "/usr/bin/python3", "train.py"]
    with three() as network, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "work"
        folder.mkdir()
        (folder / "train.py").write_text(PROGRAM)
        (folder / "job.yaml").write_text(EXTERNAL)
        os.chdir(folder)
        digests = []
        for victims in (0, 1):
            run = HostsRun(network, [], job=folder / "job.yaml", program=program)
            run.learns = False
            run.start()
            at(run, 30)
            on_b = {pid for pid, words in run.on("b").items() if "train.py" in words and "python3" in words[0]}
            runs.check(len(on_b) == 2, f"two programs on b: {run.on('b')}")
            if victims:
                shell = next(pid for pid, words in run.on("b").items() if words[0].endswith("/sh"))
                os.kill(shell, signal.SIGKILL)
                run.wait_for(lambda r, before=on_b: not before <= set(r.on("b")), 60)
                print("  a shell is killed, and the program that it had started has ended")
            summary = run.wait()
            runs.check(summary["restarts"] == victims, f"{victims} were started again")
            said = [(run.dir / f"logs/worker-{rank}.log").read_text().splitlines()[-1] for rank in range(3)]
            runs.check(len(set(said)) == 1 and said[0].endswith(str(folder)), f"all end in the launcher's folder: {said[0]}")
            digests.append(said[0])
            run.nothing_left()
            run.clean()
        runs.check(len(set(digests)) == 1, "with the same bits")
        refused(network, runs.USAGE, ["-- no-such-program: there is no such program in the PATH"], job=folder / "job.yaml",
                program=["no-such-program"])
        refused(network, runs.USAGE, [f"the folder {folder}, in which the program must run, does not exist on this host"],
                job=folder / "job.yaml", program=program, apart={"b": [name]}, hosts="a:2,b:1")
        os.chdir("/")


def real():
    """Uses ssh itself, with an sshd on each host."""
    sshd = pathlib.Path("/usr/sbin/sshd")
    if not sshd.exists():
        print("SKIPPED: there is no sshd (openssh-server)")
        sys.exit(runs.SKIPPED)
    plain = plain_digest(SLOW)
    with three() as network, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for key in "host", "user":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        daemons = [subprocess.Popen([*network.within(host), str(sshd), "-D", "-e", "-f", "/dev/null", "-h",
                                     folder / "host", "-o", f"AuthorizedKeysFile={folder / 'authorized'}",
                                     "-o", "StrictModes=no", "-o", f"PidFile={folder / host}.pid"],
                                    stderr=open(folder / f"{host}.log", "w", encoding="utf-8"))
                   for host in ("a", "b")]
        addresses = network.addresses
        try:
            options = ["--ssh", f"ssh -F none -i {folder / 'user'} -o BatchMode=yes -o StrictHostKeyChecking=no -o "
                       f"UserKnownHostsFile=/dev/null -o LogLevel=ERROR", "--remote-bin", str(runs.BIN)]
            run = HostsRun(network, SLOWER, f"{addresses['a']}:1,{addresses['b']}:2")
            (run.tools / "ssh").unlink()
            run.start(options=options)
            at(run, 5)
            run.kill_one("b", "worker", 1)
            at(run, 15)
            ca = authority(run)
            os.kill(run.process.pid, signal.SIGKILL)
            run.process.wait()
            run.nothing_left()
            summary = run.start(resume=True, more=[AS_FAST], options=options).wait()
            runs.check(summary["weights_sha256"] == plain, "by ssh: the bits of an undisturbed run on one machine")
            run.nothing_left()
            no_keys(ca)
            run.clean()
        finally:
            for daemon in daemons:
                daemon.terminate()
                daemon.wait()


CASES = {"trains": trains, "killed": killed, "all-reduce": all_reduce, "disconnected": disconnected, "programs": programs, "launcher-killed": launcher_killed,
         "interrupted": interrupted, "resized": resized, "errors": errors, "real-ssh": real}

if __name__ == "__main__":
    runs.main(CASES)
