"""The programs of one job, started by hand as on several machines. Dead programs are started again, as the service
manager of a machine would do. The test decides where each program runs and how others reach it."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import pathlib
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402

# Exit codes (common/exit_code.h): the process has done its part; a restart does not help.
DONE = (0, runs.STOPPED)
PERMANENT = (2, 3, 5)

# Events that say which servers hold the blocks.
PLACEMENT = ("server_lost", "placement_changed", "replicas_synced", "going_back", "went_back")


# Sockets that are bound and never listen, until this process ends: they keep the ports of free_address.
kept = []


def free_address():
    """Returns an address with a port that the system assigns to no other process. A process that asks for it by number
    with SO_REUSEADDR, as servers do, can listen there."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    kept.append(holder)
    return f"127.0.0.1:{holder.getsockname()[1]}"


def digits_job(name, clocks, step_milliseconds=0):
    """Returns the YAML of a sync job on optdigits, with two workers and two servers that hold each block twice."""
    emulate = f", emulate: {{step_milliseconds: {step_milliseconds}}}" if step_milliseconds else ""
    return f"""
apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: {name}, seed: 5}}
model:
  layers: [{{flatten: {{}}}}, {{dense: {{units: 32}}}}, {{relu: {{}}}}, {{dense: {{units: 10}}}}]
  loss: softmax_cross_entropy
data:
  train: {{type: csv, files: optdigits/optdigits.tra}}
  batch_size: 32
  normalize: {{mean: 0, std: 16}}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
update: {{type: sgd, learning_rate: 0.1}}
servers: {{count: 2, replicas: 2, block_bytes: 1024}}
workers: {{count: 2{emulate}}}
stop: {{clocks: {clocks}}}
"""


@dataclasses.dataclass
class Program:
    """One server or worker, through all its lives."""
    role: str
    number: int
    command: list
    process: subprocess.Popen = None
    lives: int = 0
    done: bool = False

    def __str__(self):
        return f"{self.role} {self.number}"

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None


class Cluster(runs.RunFolder):
    """`job` is YAML. `within(role, number)` gives the beginning of a command (a network namespace), `reached(number)`
    the options by which server `number` listens, and `coordinator(role, number)` the address at which a program finds
    server 0. A context: it starts the programs, ends those that are left, and removes its folder if all went well."""

    def __init__(self, job, servers=2, workers=2, worker=None):
        super().__init__()
        self.servers, self.workers = servers, workers
        self.worker = worker or [str(runs.BIN / "leeway-worker")]
        self.programs = []
        self.begun = time.monotonic()
        self.parent.joinpath("job.yaml").write_text(job, encoding="utf-8")
        address = free_address()
        # Blocks have no replicas: the loss of a server takes the job back.
        self.one_holder = False
        self.within = lambda role, number: []
        self.reached = lambda number: ["--listen", address if number == 0 else "127.0.0.1:0"]
        self.coordinator = lambda role, number: address

    def say(self, text):
        print(f"  {time.monotonic() - self.begun:6.2f} s  clock {self.max_clock():5}  {text}", flush=True)

    def server_command(self, number):
        # Hosts in a network namespace are not reached on loopback, and no other process is there.
        command = [*self.within("server", number), str(runs.BIN / "leeway-server"), "--index", str(number),
                   *self.reached(number), "--insecure"]
        if number == 0:
            return command + ["--job", str(self.parent / "job.yaml"), "--run-dir", str(self.dir)]
        return command + ["--coordinator", self.coordinator("server", number)]

    def worker_command(self, number):
        more = [a.format(rank=number, folder=self.parent) for a in self.worker]
        return [*self.within("worker", number), *more, "--coordinator", self.coordinator("worker", number),
                "--rank", str(number)]

    def start(self):
        self.programs = [Program("server", n, self.server_command(n)) for n in range(self.servers)]
        self.programs += [Program("worker", n, self.worker_command(n)) for n in range(self.workers)]
        for program in self.programs:
            self.begin(program)
        return self

    def begin(self, program):
        log = self.parent / f"{program.role}-{program.number}.log"
        program.lives += 1
        program.killed = False
        with open(log, "a", encoding="utf-8") as output:
            program.process = subprocess.Popen(program.command, stdout=output, stderr=subprocess.STDOUT,
                                               stdin=subprocess.DEVNULL)

    def find(self, role, number):
        return next(p for p in self.programs if (p.role, p.number) == (role, number))

    def address(self, number):
        """Returns the address at which a server listens, as its command says."""
        command = self.find("server", number).command
        return command[command.index("--listen") + 1]

    def kill(self, *victims):
        """Kills all of them with SIGKILL at the same moment. Each is started again."""
        for role, number in victims:
            self.find(role, number).killed = True
            self.find(role, number).process.send_signal(signal.SIGKILL)
        self.say(f"killed {' and '.join(f'{role} {number}' for role, number in victims)}")

    def terminate(self, role, number):
        """Sends SIGTERM. The program is started again, with the command that it has then."""
        program = self.find(role, number)
        program.killed = True
        program.process.send_signal(signal.SIGTERM)
        self.say(f"SIGTERM to {program}")

    def tend(self):
        """Starts dead programs again. Raises if a restart does not help."""
        for program in self.programs:
            if program.done or program.alive:
                continue
            status = program.process.returncode
            if status in DONE:
                program.done = True
            elif status in PERMANENT or (status < 0 and not program.killed):
                raise runs.Failed(f"{program} ended by itself with status {status}\n{self.tail()}")
            else:
                self.begin(program)

    def wait_for(self, condition, what, timeout=60):
        """Waits until condition(self) holds, or until the job has ended, which the caller sees by `over`."""
        deadline = time.monotonic() + timeout
        while not condition(self) and not self.over:
            self.tend()
            if time.monotonic() > deadline:
                raise runs.Failed(f"waited {timeout} s in vain for {what}\n{self.tail()}")
            time.sleep(0.01)

    def whole(self, since):
        """Whether every block has two holders, or the job has gone back, and nothing has changed after that. An event
        that begins a new placement is in the log together with the one that ended the previous placement."""
        kinds = [e["event"] for e in self.events() if e["time"] > since and e["event"] in PLACEMENT]
        return not kinds or kinds[-1] == "replicas_synced"

    @property
    def over(self):
        return all(p.done for p in self.programs)

    def finish(self, timeout=120, state="finished"):
        """Waits until all programs have ended, and returns the summary. The job's last event must have this state."""
        self.wait_for(lambda c: False, "the end of the job", timeout)
        ends = self.events("job_finished")
        if not ends or ends[-1]["state"] != state:
            raise runs.Failed(f"the job is not {state}: {ends}\n{self.tail()}")
        # Server 0 has written the summary. A worker of a test's own does not train.
        return self.check_whole(report=False, learned=self.worker[0].endswith("leeway-worker"))

    def stop_in_order(self):
        """Stops the job and returns its clock. Workers of a test's own cannot stop in order."""
        self.find("server", 0).process.send_signal(signal.SIGINT)
        return self.finish(state="stopped")["clock"]

    def end(self):
        """Ends the programs that are left, however the test went."""
        for program in self.programs:
            if program.process is not None:
                program.process.kill()
                program.process.wait()

    def tail(self):
        texts = []
        for log in sorted(self.parent.glob("*.log")):
            texts.append(f"--- {log.name}\n" + log.read_text(encoding="utf-8", errors="replace")[-2500:])
        return "\n".join([f"kept in {self.parent}", *texts])

    def export(self, name="model.safetensors"):
        """Returns the weights of the newest checkpoint, as read_safetensors does."""
        path = self.parent / name
        subprocess.run([str(runs.BIN / "leeway"), "export", str(self.dir), "-o", str(path)], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ})
        return runs.read_safetensors(path)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        self.end()
        if kind is None:
            self.clean()
