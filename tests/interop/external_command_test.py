#!/usr/bin/python3
"""Jobs whose workers are the user's own programs: `leeway train JOB -- COMMAND`, and what other commands say about
them.

    external_command_test.py CASE; the cases are the functions below."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import servers
from servers import BIN, SOURCE

sys.path.insert(0, str(SOURCE / "tests/store"))
from store import BUCKET, Missing, Store  # noqa: E402

PROGRAM = ["/usr/bin/python3", str(SOURCE / "tests/interop/external_worker.py")]
JOB = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: external, seed: 3}
model: {type: external}
data: {type: external, batch_size: 64, examples: 3823}
exchange: {type: gradient}
consistency: {mode: sync}
servers: {count: 2, block_bytes: 1024}
workers: {count: 2, threads: 3, max_restarts: 1}
stop: {clocks: 200}
checkpoint: {every: {clocks: 50}}
limits: {start_seconds: 60}
"""


class Runs:
    """A folder with a job, and the output of `leeway` there."""

    def __init__(self, folder):
        self.folder = folder
        self.job = folder / "job.yaml"
        self.job.write_text(JOB)
        self.run_dir = folder / "run"

    def leeway(self, *arguments, code=0, environment=None):
        """Runs the command and returns its output, including standard error."""
        done = subprocess.run([BIN / "leeway", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, cwd=self.folder, timeout=200, env={**os.environ, **(environment or {})})
        print(f"$ leeway {' '.join(map(str, arguments))}\n{done.stdout}")
        assert done.returncode == code, f"exit code {done.returncode}, not {code}"
        return done.stdout

    def train(self, *arguments, program=PROGRAM, code=0, **more):
        return self.leeway("train", self.job, "--run-dir", self.run_dir, *arguments, "--", *program, code=code, **more)

    def log(self, rank):
        return (self.run_dir / f"logs/worker-{rank}.log").read_text()

    def summary(self):
        return json.loads((self.run_dir / "summary.json").read_text())

    def events(self):
        lines = (self.run_dir / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def has(text, *parts):
    for part in parts:
        assert part in text, f"'{part}' is not in:\n{text}"


def trains(runs):
    """One worker is killed while it trains. The model is exported, and only its program can evaluate it."""
    told = runs.train("--set", "evaluation.every.epochs=1", program=[*PROGRAM, "--die-at", "20", "--evaluate"])
    has(told, "worker 1 crashed with signal 9 (Killed); restart 1 of 1", "finished: ", "test accuracy 9", "1 restart")
    summary = runs.summary()
    assert summary["state"] == "finished" and summary["parameters"] == 650, summary
    assert summary["test_accuracy"] > 0.9 and summary["test_loss"] == 0.25, summary
    for rank in range(2):
        has(runs.log(rank), "threads 3\n", "rate 0.2\n")
    brought = [event["message"] for event in runs.events() if event["event"] == "update_brought"]
    assert len(brought) == 1, brought
    has(brought[0], "{type: sgd, momentum: 0.5, weight_decay: 0.0001, learning_rate: 0.2}, brought by worker ")
    job = (runs.run_dir / "job.yaml").read_text()
    has(job, "model: {type: external}\n", "data: {batch_size: 64, type: external, examples: 3823}\n")
    assert "update" not in job, job
    has(runs.leeway("export", runs.run_dir), "model.safetensors: 650 parameters in 2 tensors")
    assert (runs.folder / "model.safetensors").read_bytes() == (runs.run_dir / "model.safetensors").read_bytes()
    has(runs.leeway("export", runs.run_dir, "--format", "onnx", code=1),
        "--format onnx needs the layers of the model: model.type: the job's model is external")
    has(runs.leeway("evaluate", runs.run_dir, code=1),
        "leeway: model.type: the job's model is external: only the job's own program can compute it, and this command cannot")
    runs.leeway("report", runs.run_dir)
    has((runs.run_dir / "report.html").read_text(), "server sgd with momentum", "learning_rate: 0.2")


def server_0_of(launcher):
    """Returns the process of a launcher's server 0."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == launcher.pid and b"--index\x000\x00" in (process / "cmdline").read_bytes():
                return int(process.name)
        except OSError:
            continue  # It has ended.
    raise AssertionError("there is no server 0")


def loses_server_0(runs):
    """The rule that a worker has brought outlives the coordinator that accepted it."""
    command = [BIN / "leeway", "train", runs.job, "--run-dir", runs.run_dir, "--set", "stop.clocks=1000", "--", *PROGRAM]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    metrics = runs.run_dir / "metrics.jsonl"
    while not (metrics.exists() and '"event":"checkpoint"' in metrics.read_text()):
        assert launcher.poll() is None
        time.sleep(0.005)
    os.kill(server_0_of(launcher), signal.SIGKILL)
    told, _ = launcher.communicate(timeout=100)
    print(told)
    assert launcher.returncode == 0, launcher.returncode
    has(told, "server 0 crashed with signal 9 (Killed); restart 1 of 3", "finished: 2,000 steps of 2 workers")
    events = [event["event"] for event in runs.events()]
    assert events.count("job_started") == 2 and events.count("update_brought") == 1, events
    # The last line is a digest.
    rule = json.loads((runs.run_dir / "coordinator.json").read_text().rsplit("sha256 ", 1)[0])["update"]
    assert rule["learning_rate"] == 0.2 and rule["sgd"]["momentum"] == 0.5, rule


def resumes(runs):
    """The same program continues, and may change the learning rate."""
    runs.train("--set", "stop.clocks=60")
    told = runs.train("--resume", "--set", "stop.clocks=120",
                      program=[*PROGRAM, "--rate-of", "0", "0.05", "--rate-of", "1", "0.05"])
    has(told, "  - stop: {clocks: 60}\n  + stop: {clocks: 120}\n", "finished: ")
    assert "update" not in told, told
    has(runs.log(0), "rate 0.2\n", "rate 0.05\n")
    assert runs.summary()["clock"] == 120, runs.summary()
    has(runs.train("--resume", "--set", "stop.clocks=120"), "The run has finished already: nothing to train.")


def differs(runs):
    """Two programs with two different optimizers are refused."""
    told = runs.train(program=[*PROGRAM, "--rate-of", "1", "0.3"], code=3)
    has(told, "failed for good (exit code 3)", "its optimizer is {type: sgd, momentum: 0.5, weight_decay: 0.0001, "
        "learning_rate: 0.", ", that of worker ", "; start every worker with the same program and options")


def crashes(runs):
    """A program with a mistake ends the job after a few attempts, and its last words are shown."""
    program = ["sh", "-c", "echo attempt; echo 'NameError: name modle is not defined' >&2; exit 1"]
    began = time.monotonic()
    told = runs.train(program=program, code=1)
    assert time.monotonic() - began < 20
    has(told, "crashed with exit code 1 after 1 restart within 600 s (workers.max_restarts allows no more)",
        "; restart 1 of 1 within 600 s; its last line: NameError: name modle is not defined")
    assert runs.log(0).count("attempt") + runs.log(1).count("attempt") >= 3
    has(told, "the job failed: worker ")


def ends_early(runs):
    """A program that exits with 0 in the middle of the job, by itself or below a shell, is started again as after a
    crash."""
    program = [*PROGRAM, "--end-at", "20"]
    for program in (program, ["sh", "-c", '"$@"; exit 0', "sh", *program]):
        runs.run_dir = runs.folder / f"run-{len(program)}"
        told = runs.train("--set", "limits.lease_seconds=2", program=program)
        has(told, "worker 1 crashed with exit code 0 before the job's end; restart 1 of 1", "finished: ")


def ends_what_it_started(runs):
    """The command runs below a shell. When the shell dies its program ends with it, even if the launcher is killed."""
    began = pathlib.Path(runs.folder / "began")
    shell = ["sh", "-c", 'echo $$ $LEEWAY_RANK >> "$0"; "$@"', began, "sleep", "1000"]

    def below(shell_pid):
        return [process.name for process in pathlib.Path("/proc").glob("[0-9]*") if group_of(process) == shell_pid]

    launcher = subprocess.Popen([BIN / "leeway", "train", runs.job, "--run-dir", runs.run_dir, "--", *shell])
    shells = await_lines(began, 2, launcher)
    first = int(shells[0].split()[0])
    while len(below(first)) < 2:
        time.sleep(0.005)
    os.kill(first, signal.SIGKILL)
    shells = await_lines(began, 3, launcher)
    all_end(lambda: below(first), "the second life of a rank runs beside what the first one has left")
    launcher.kill()
    launcher.wait()
    all_end(lambda: [process for line in shells for process in below(int(line.split()[0]))], "the launcher was killed")


def all_end(left, when):
    deadline = time.monotonic() + 20
    while found := left():
        assert time.monotonic() < deadline, f"{when}, and these still run: {found}"
        time.sleep(0.005)


def group_of(process):
    """Returns the process's group; 0 if the process has ended."""
    try:
        state, _, group = (process / "stat").read_text().rsplit(")", 1)[1].split()[:3]
    except OSError:
        return 0
    return 0 if state == "Z" else int(group)


def await_lines(file, count, process):
    while not file.exists() or len(file.read_text().splitlines()) < count:
        assert process.poll() is None
        time.sleep(0.005)
    return file.read_text().splitlines()


def never_joins(runs):
    """A program that exits with 0 without having joined is not waited for."""
    began = time.monotonic()
    told = runs.train(program=["echo", "hello"], code=3)
    assert time.monotonic() - began < 20
    has(told, "ended with exit code 0 before the job began: its program has not joined the job", "hello")


def refused(runs):
    """Impossible requests start nothing and make no folder."""
    has(runs.leeway("train", runs.job, "--run-dir", runs.run_dir, code=2),
        "the job's model is external: name the program that trains it, as in leeway train JOB -- python3 train.py")
    has(runs.train(program=["no-such-program"], code=1), "leeway: -- no-such-program: there is no such program in the PATH")
    has(runs.train(program=["./job.yaml"], code=1), "leeway: -- ./job.yaml: there is no such program, or it cannot be")
    has(runs.leeway("train", SOURCE / "config/jobs/quickstart.yaml", "--", "true", code=2),
        "-- true: the job's model is Leeway's own")
    assert not runs.run_dir.exists()
    plan = runs.leeway("plan", runs.job)
    has(plan, "# synchronous, gradient exchange, server with the program's own optimizer\n",
        "Model: external; its tensors come with the program", "Length: 30 steps an epoch, 200 steps and 200 exchanges")
    has(runs.leeway("plan", runs.job, "--model", code=1),
        "job.yaml:5:15: model.type: the job's model is external: only the job's own program can compute it")
    has(runs.leeway("doctor", runs.job, code=1), "model.type: the job's model is external")
    assert not runs.run_dir.exists()


def by_hand(runs):
    """Servers without the launcher; leeway-worker is refused as a worker of the job."""
    first, coordinator = servers.start_server(runs.folder, 0, "--job", str(runs.job), "--run-dir", str(runs.run_dir))
    processes = [first, servers.start_server(runs.folder, 1, "--coordinator", coordinator)[0]]
    try:
        other = subprocess.run([BIN / "leeway-worker", "--coordinator", coordinator, "--rank", "0"], timeout=60,
                               capture_output=True, text=True)
        assert other.returncode == 3, other
        has(other.stdout + other.stderr, "only the job's own program can compute it, and leeway-worker cannot")
        place = {**os.environ, "LEEWAY_COORDINATOR": coordinator, "LEEWAY_RUN_DIR": str(runs.run_dir),
                 "LEEWAY_TOKEN": "none-is-asked-for-here", "OMP_NUM_THREADS": "1"}
        processes += [subprocess.Popen(PROGRAM, env={**place, "LEEWAY_RANK": str(rank)}) for rank in range(2)]
        assert [process.wait(100) for process in processes] == [0, 0, 0, 0]
    finally:
        for process in processes:
            process.kill()
    assert runs.summary()["state"] == "finished"


def stored(runs):
    """The run folder is in an object store: the programs get a folder on this machine to write to."""
    try:
        with Store(runs.folder / "store") as store:
            runs.run_dir, here = f"s3://{BUCKET}/external", runs.folder / "runs/s3" / BUCKET / "external"
            told = runs.train(program=[*PROGRAM, "--die-at", "20"], environment=store.environment())
            has(told, "worker 1 crashed with signal 9 (Killed); restart 1 of 1", "finished: ", f"{runs.run_dir}/summary.json")
            has((here / "logs/worker-0.log").read_text(), "threads 3\n")
            assert (here / "died").exists() and "external/died" not in store.keys_below(), store.keys_below()
            has(runs.leeway("export", runs.run_dir, environment=store.environment()), "650 parameters in 2 tensors")
    except Missing as why:
        print(f"SKIPPED: {why}")
        sys.exit(77)


CASES = {case.__name__: case
         for case in (trains, loses_server_0, resumes, differs, crashes, ends_early, ends_what_it_started,
                      never_joins, refused, by_hand, stored)}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="leeway-external-") as name:
        CASES[sys.argv[1]](Runs(pathlib.Path(name)))
