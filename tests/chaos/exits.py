#!/usr/bin/env python3
"""The exit codes that docs/operations.md promises (common/exit_code.h), with real processes.

    tests/chaos/exits.py CASE                     as ctest runs them
"""

import os
import signal
import subprocess
import tempfile
import time

import kills
from cluster import Cluster, runs

LEEWAY = str(runs.BIN / "leeway")
DATA = str(runs.SOURCE / "data")
JOB = (runs.JOBS / "quickstart.yaml").read_text(encoding="utf-8")


def running(sets=()):
    run = kills.in_trouble([kills.MODES["sync"], kills.SGD, *sets])
    kills.forward(run)
    return run


def stopped_by(*numbers):
    """Each signal leaves a checkpoint, from which the job goes on to its end."""
    for number in numbers:
        run = running()
        reached = run.max_clock()
        run.process.send_signal(number)
        if number == signal.SIGTERM:
            # First to the process and then to its group, as timeout(1) does.
            run.wait_for(lambda r: "stopping in order" in r.said())
            run.process.send_signal(number)
        summary = run.wait(expect=runs.STOPPED)
        runs.check(summary["state"] == "stopped" and summary["clock"] >= reached,
                   f"{number.name}: exit code 4, a checkpoint at clock {summary['clock']}")
        done = run.train(resume=True, more=[f"stop={{clocks: {summary['clock'] + 50}}}"])
        runs.check(done["state"] == "finished" and done["clock"] == summary["clock"] + 50, "--resume: exit code 0")
        run.clean()


def signalled_twice():
    run = running()
    # They are still computing when the second signal comes.
    for role in ("leeway-worker", "leeway-server"):
        for pid, _ in run.children(role):
            os.kill(pid, signal.SIGSTOP)
    run.interrupt()
    # Two signals at the same moment would count as one.
    run.wait_for(lambda r: "stopping in order" in r.said())
    run.interrupt()
    summary = run.wait(expect=runs.TEMPORARY, timeout=20)
    runs.check(summary["state"] == "failed", f"exit code 1: {summary['message']}")
    run.clean()


def dies_too_often():
    run = running(["workers.max_restarts=0"])
    kills.kill(run, "worker", 1)
    summary = run.wait(expect=runs.TEMPORARY)
    runs.check(summary["state"] == "failed", f"exit code 1: {summary['message'].splitlines()[0]}")
    run.clean()


def fails_for_good():
    run = kills.job([kills.MODES["sync"], "update={type: sgd, learning_rate: 1000000}"])
    run.start()
    summary = run.wait(expect=runs.PERMANENT)
    runs.check(summary["state"] == "failed", f"exit code 3: {summary['message'].splitlines()[0]}")
    run.clean()


def code_of(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, timeout=60, check=False).returncode


def child_signals_ignored():
    """A parent that ignores SIGCHLD hands that on to its children. The job still ends normally, with its exit code and
    its model."""
    folder = runs.RunFolder()
    command = [LEEWAY, "train", str(runs.JOBS / "quickstart.yaml"), "--data", DATA, "--run-dir", folder.dir,
               "--set", "stop.epochs=1"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False,
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    runs.check(done.returncode == 0 and (folder.dir / "model.safetensors").exists(),
               f"exit code {done.returncode}: {done.stdout.splitlines()[-1:]} {done.stderr}")
    folder.clean()


def said_by(*command, **more):
    """(exit code, what it said, how many seconds it took)."""
    began = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60, check=False, **more)
    return done.returncode, done.stdout + done.stderr, time.monotonic() - began


def taken():
    """A folder that holds something, and a rank that the job has not, are wrong usage; where another launcher runs, this
    one leaves it the place."""
    run = running()
    train = [LEEWAY, "train", runs.JOBS / "quickstart.yaml", "--data", DATA, "--run-dir"]
    for more in ([], ["--resume"]):
        code, said, _ = said_by(*train, run.dir, *more)
        runs.check(code == runs.REPLACED and "another launcher is running" in said, f"{more}: exit code {code}: {said}")
    worker = [runs.BIN / "leeway-worker", "--coordinator", (run.dir / "coordinator").read_text().strip(), "--data", DATA,
              "--token-file", run.dir / "token", "--rank", 99]
    code, said, _ = said_by(*worker)
    runs.check(code == runs.USAGE and "--rank 99 does not exist: the job has 2 workers" in said, f"exit code {code}: {said}")
    run.interrupt()
    run.wait(expect=runs.STOPPED)
    for folder, words in ((run.dir, "already has a run"), (run.parent, "already exists and is not empty")):
        code, said, _ = said_by(*train, folder)
        runs.check(code == runs.USAGE and words in said, f"exit code {code}: {said}")
    run.clean()


def no_such_job():
    """What cannot be a job is told at once, with the runs that there are."""
    folder = runs.RunFolder(name="runs")
    run = folder.dir / "first"
    run.mkdir(parents=True)
    (run / "job.yaml").touch()
    for command in (["stop"], ["status"], ["resize", "--servers", 2]):
        for target, words in (("frist", "did you mean 'runs/first'?"), ("other", "runs here are runs/first"),
                              ("no host:7100", "the host no host is not known here: ")):
            code, said, took = said_by(LEEWAY, command[0], target, *command[1:], cwd=folder.parent)
            runs.check(code == runs.USAGE and words in said and took < 20, f"exit code {code} after {took:.1f} s: {said}")
    code, said, _ = said_by(LEEWAY, "evaluate", "runs/frist", cwd=folder.parent)
    runs.check(code == runs.TEMPORARY and "no such folder; did you mean 'runs/first'?" in said, f"exit code {code}: {said}")
    away = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "none", "LEEWAY_S3_RETRY_SECONDS": "1"}
    code, said, _ = said_by(LEEWAY, "evaluate", "s3://bucket/run", env={**os.environ, **away})
    runs.check(code == runs.TEMPORARY and "HeadObject" in said and "ListObjects" not in said,
               f"a store that does not answer is asked for long once: exit code {code}: {said.splitlines()[-1:]}")
    code, said, took = said_by(runs.BIN / "leeway-server", "--listen", "no host:7100", "--job", runs.JOBS / "quickstart.yaml",
                               "--run-dir", folder.dir / "second")
    runs.check(code == runs.USAGE and "the host no host is not known here: " in said and "--insecure" not in said,
               f"exit code {code}: {said}")
    folder.clean()


def empty_values():
    """An option whose value is empty, as of a variable that is not set, is refused by its name."""
    job = runs.JOBS / "quickstart.yaml"
    for command, name in (([LEEWAY, "train", job, "--run-dir", ""], "--run-dir"), ([LEEWAY, "train", job, "--run-dir="], "--run-dir"),
                          ([LEEWAY, "train", ""], "JOB"), ([LEEWAY, "plan", job, "--set", ""], "--set"),
                          ([LEEWAY, "stop", ""], "JOB"), ([LEEWAY, "evaluate", "x", "--data", ""], "--data"),
                          ([runs.BIN / "leeway-server", "--run-dir", ""], "--run-dir"),
                          ([runs.BIN / "leeway-worker", "--coordinator", ""], "--coordinator")):
        code, said, _ = said_by(*command)
        runs.check(code == runs.USAGE and f": {name}: the value is empty" in said, f"exit code {code}: {said.splitlines()[:1]}")


def usage():
    folder = runs.RunFolder()
    folder.parent.joinpath("bad.yaml").write_text("kind: Nonsense\n", encoding="utf-8")
    bad = folder.parent / "bad.yaml"
    for command in ([LEEWAY], [LEEWAY, "train"], [LEEWAY, "train", bad], [LEEWAY, "plan", bad],
                    [LEEWAY, "train", runs.JOBS / "quickstart.yaml", "--set", "no.such=1"],
                    [runs.BIN / "leeway-server", "--index", "1"],
                    [runs.BIN / "leeway-server", "--index", "1", "--coordinator", "foo"],
                    [runs.BIN / "leeway-server", "--listen", "foo"],
                    [runs.BIN / "leeway-worker", "--coordinator", "foo"],
                    [runs.BIN / "leeway-server", "--job", bad, "--run-dir", folder.dir],
                    [runs.BIN / "leeway-worker"]):
        runs.check(code_of(*command) == runs.USAGE, f"{' '.join(str(c) for c in command[:4])}: exit code 2")
    folder.clean()


class ByHand(Cluster):
    """The quickstart with `sets`, started by hand."""

    def __init__(self, *sets):
        super().__init__(JOB, worker=[str(runs.BIN / "leeway-worker"), "--data", DATA])
        self.sets = ["workers={count: 2, emulate: {step_milliseconds: 3}}", *sets]

    def server_command(self, number):
        more = [argument for one in self.sets for argument in ("--set", one)]
        return super().server_command(number) + (more if number == 0 else [])


def codes(run):
    return {str(p): p.process.wait(60) for p in run.programs}


def by_hand_finished():
    with ByHand("stop={clocks: 50}") as run:
        ended = codes(run)
        runs.check(set(ended.values()) == {0}, f"a job that finishes: {ended}")


def by_hand_stopped():
    """A terminal's signal to any server stops the job; every process reports that it was stopped."""
    for index, number in ((1, signal.SIGINT), (1, signal.SIGHUP), (0, signal.SIGINT)):
        with ByHand(kills.ENDLESS) as run:
            run.wait_for(lambda c: c.max_clock() >= 30, "training")
            run.find("server", index).process.send_signal(number)
            ended = codes(run)
            runs.check(set(ended.values()) == {runs.STOPPED}, f"{number.name} to server {index}: {ended}")
            if number != signal.SIGINT or index == 0:
                continue
            # The same commands again: the job is over, and each process learns at once how it ended.
            began = time.monotonic()
            again = codes(run.start())
            runs.check(set(again.values()) == {runs.STOPPED} and time.monotonic() - began < 40,
                       f"once more, for {time.monotonic() - began:.0f} s: {again}")
            # Without a server 0 the run folder says how the job ended.
            os.environ["LEEWAY_RUN_DIR"] = str(run.dir)
            late = code_of(*run.find("server", 1).command, "--start-seconds", "1")
            del os.environ["LEEWAY_RUN_DIR"]
            runs.check(late == runs.STOPPED, f"server 1 alone: exit code {late}")


def by_hand_paused():
    """A stopped job goes on with the same commands, as often as server 0 is started. A server that was replaced by
    another one does not report that it is done."""
    with ByHand("stop={clocks: 400}") as run:
        run.wait_for(lambda c: c.max_clock() >= 30, "training")
        runs.check(code_of(LEEWAY, "stop", run.coordinator("leeway", 0)) == 0, "it is paused")
        codes(run)
        os.environ["LEEWAY_RESUME"] = "1"
        try:
            run.start()
            run.wait_for(lambda c: c.max_clock() >= 150, "training again")
            server = run.find("server", 0)
            server.process.kill()
            server.process.wait()
            run.begin(server)
            ended = codes(run)
        finally:
            del os.environ["LEEWAY_RESUME"]
        runs.check(set(ended.values()) == {0}, f"it goes on to its end: {ended}")
        runs.check([e["state"] for e in run.events("job_finished")] == ["stopped", "finished"], "which comes once")
    with ByHand(kills.ENDLESS, "checkpoint={every: {clocks: 20}}") as run:
        run.wait_for(lambda c: c.events("checkpoint"), "a checkpoint")
        server = run.find("server", 0)
        server.process.kill()
        server.process.wait()
        server.command.append("--resume")
        run.begin(server)
        other = run.find("server", 1).process.wait(60)
        runs.check(other == runs.TEMPORARY, f"server 1 of a job that has another in its place: exit code {other}")


def by_hand_asked():
    """leeway stop, which is given the coordinator's address or the run folder."""
    with ByHand(kills.ENDLESS) as run:
        run.wait_for(lambda c: c.max_clock() >= 30, "training")
        runs.check(code_of(LEEWAY, "stop", run.coordinator("leeway", 0)) == 0, "leeway stop has waited for the end")
        ended = codes(run)
        runs.check(set(ended.values()) == {runs.STOPPED}, f"every process says that it was stopped: {ended}")
        runs.check(run.events("job_finished")[-1]["message"] == "leeway stop", "and the log who has asked")
    folder = kills.in_trouble([kills.SGD])
    kills.forward(folder)
    runs.check(code_of(LEEWAY, "stop", folder.dir) == 0, "by the run folder of leeway train")
    runs.check(folder.wait(expect=runs.STOPPED)["state"] == "stopped", "which says that it was stopped")
    runs.check(code_of(LEEWAY, "stop", folder.dir) == 1, "nobody is there any more to be stopped")
    folder.clean()


def closed_output():
    """The reader of server 0's output is gone, as when Ctrl-C has ended `2>&1 | tee log`: server 0 still ends in order.
    Until then no other server can use its run folder."""
    with tempfile.TemporaryDirectory(prefix="leeway-closed-") as folder:
        command = [str(runs.BIN / "leeway-server"), "--listen", "127.0.0.1:0", "--job", str(runs.JOBS / "quickstart.yaml"),
                   "--run-dir", f"{folder}/run", "--start-seconds", "0.1"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        server.stdout.readline()
        server.stdout.close()
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        runs.check(second.returncode == runs.TEMPORARY and "another server 0 runs a job in --run-dir" in second.stderr,
                   f"a second server 0, at another port: {second.stderr.strip()[-200:]}")
        server.send_signal(signal.SIGINT)
        code = server.wait(60)
        runs.check(code == runs.STOPPED, f"it stops in order: exit code {code}")


def by_hand_failed():
    with ByHand(kills.ENDLESS, "update={type: sgd, learning_rate: 1000000}") as run:
        ended = codes(run)
        servers = {code for name, code in ended.items() if name.startswith("server")}
        runs.check(servers == {runs.PERMANENT}, f"a job that diverges: {ended}")
        runs.check(runs.PERMANENT in ended.values(), "and a worker that says so")


def by_hand_replaced():
    for role in ("worker", "server"):
        with ByHand(kills.ENDLESS) as run:
            run.wait_for(lambda c: c.max_clock() >= 30, "training")
            old = run.find(role, 1).process
            run.begin(run.find(role, 1))
            code = old.wait(60)
            runs.check(code == runs.REPLACED, f"a {role} whose place another process took: exit code {code}")


CASES = {"signals": lambda: stopped_by(signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
         "hung-up": lambda: stopped_by(signal.SIGHUP), "second-signal": signalled_twice, "dies-too-often": dies_too_often,
         "fails-for-good": fails_for_good, "usage": usage, "taken": taken, "no-such-job": no_such_job,
         "empty-values": empty_values, "child-signals-ignored": child_signals_ignored,
         "by-hand-finished": by_hand_finished, "by-hand-stopped": by_hand_stopped, "by-hand-paused": by_hand_paused,
         "by-hand-asked": by_hand_asked, "closed-output": closed_output,
         "by-hand-failed": by_hand_failed, "by-hand-replaced": by_hand_replaced}

if __name__ == "__main__":
    runs.main(CASES)
