#!/usr/bin/python3
"""A job of `leeway train` is not affected while an attacker sends every message of its three services with each field
missing or absurd, in a loop. The weights at the end are the bits of an undisturbed run, nothing was lost, restarted or
moved, the run folder is complete, and the servers' memory stays within bounds.

The job has no end of its own, so that it outlasts the attack on any machine. It is stopped in order and resumed, and so
is the undisturbed job.

    reflective_attack_test.py [--seconds 30] [--seed 1]

Environment as in stock_stubs_test.py."""

import argparse
import atexit
import contextlib
import hashlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import servers  # puts the stubs on the path
import absurd
import grpc

from leeway.v1 import coordinator_pb2 as control
from leeway.v1 import coordinator_pb2_grpc as control_grpc
from leeway.v1 import parameter_server_pb2 as data

JOB = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: attacked, seed: 3}
model:
  layers: [{flatten: {}}, {dense: {units: 32}}, {relu: {}}, {dense: {units: 10}}]
  loss: softmax_cross_entropy
data:
  train: {type: csv, files: optdigits/optdigits.tra}
  test: {type: csv, files: optdigits/optdigits.tes}
  batch_size: 32
  normalize: {mean: 0, std: 16}
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 0.1, momentum: 0.9}
servers: {count: 2, block_bytes: 1024}
workers: {count: 2, emulate: {step_milliseconds: STEP}}
stop: {epochs: 3000}
checkpoint: {every: {clocks: 500}}
limits: {lease_seconds: 20}
"""
# Clocks from the resumption to the end.
CLOCKS_MORE = 200
STOPPED = 4  # common/exit_code.h
# A server may hold 1 GiB in received messages that are not complete yet (common/rpc/channel.h).
MEMORY_MAX = 1400 << 20
MEMORY_LEFT_MAX = 700 << 20
SERVICES = {"Coordinator": control.DESCRIPTOR, "ShardControl": control.DESCRIPTOR, "ParameterServer": data.DESCRIPTOR}


class Launched:
    def __init__(self, folder, name, step):
        self.dir = folder / name
        job = folder / f"{name}.yaml"
        job.write_text(JOB.replace("STEP", str(step)))
        self.output = open(folder / f"{name}.txt", "w", encoding="utf-8")
        self.begin(str(job))

    def begin(self, *arguments):
        self.process = subprocess.Popen(
            [str(servers.BIN / "leeway"), "train", *arguments, "--run-dir", str(self.dir), "--data",
             str(servers.SOURCE / "data")], stdout=self.output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        atexit.register(self.process.kill)

    def address(self, index):
        log = self.dir / "logs" / f"server-{index}.log"
        for _ in range(2400):
            found = re.search(r"listening on (\S+)", log.read_text()) if log.exists() else None
            if found:
                return found.group(1)
            time.sleep(0.05)
        raise AssertionError(f"{log} names no address")

    def servers(self):
        """Returns the servers' process ids."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                parent = re.search(r"PPid:\s+(\d+)", (path.parent / "status").read_text()).group(1)
                if words[0].endswith(b"leeway-server") and int(parent) == self.process.pid:
                    found.append(int(path.parent.name))
        return sorted(found)

    def events(self):
        lines = (self.dir / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def show(self):
        print([event for event in self.events() if event["event"] not in ("step", "evaluation")])
        for path in [*sorted(self.dir.glob("logs/*.log")), pathlib.Path(self.output.name)]:
            print(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}")

    def end(self, code):
        """Waits for the run's end, and returns the summary."""
        ended = self.process.wait(180)
        assert ended == code, (ended, pathlib.Path(self.output.name).read_text()[-3000:])
        return json.loads((self.dir / "summary.json").read_text())

    def stop(self):
        """Stops the run, and returns its clock."""
        self.process.send_signal(signal.SIGINT)
        return self.end(STOPPED)["clock"]

    def finish(self, clocks):
        """Continues to this clock. Returns the weights' digest, and the summary."""
        self.begin("--resume", "--set", f"stop={{clocks: {clocks}}}", "--set", "workers.emulate={}")
        summary = self.end(0)
        return hashlib.sha256((self.dir / "model.safetensors").read_bytes()).hexdigest(), summary


def memory(pid, what):
    with contextlib.suppress(OSError):
        return int(re.search(rf"{what}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) << 10
    return 0


def fill(message, known):
    """Fills what an attacker knows into the fields of those names, at any depth, so that even new messages are nearly
    right."""
    for field in message.DESCRIPTOR.fields:
        if field.label == field.LABEL_REPEATED:
            continue
        if field.cpp_type == field.CPPTYPE_MESSAGE:
            if field.name == "header":
                fill(getattr(message, field.name), known)
                message.header.SetInParent()
        elif field.name in known:
            setattr(message, field.name, known[field.name])


class Attack:
    def __init__(self, run, seed):
        self.draw = absurd.seeded(seed)
        # The attacker has the token, which exists before a server listens.
        addresses = [run.address(i) for i in range(2)]
        bearer = servers.Bearer((run.dir / "token").read_text().strip())
        self.channels = [grpc.intercept_channel(
            grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)]), bearer)
                         for address in addresses]
        self.status_stub = control_grpc.CoordinatorStub(self.channels[0])
        self.once = set()
        self.sent = self.refused = self.let_in = 0

    def status(self):
        return self.status_stub.GetJobStatus(control.GetJobStatusRequest(), timeout=20)

    def known(self):
        status = self.status()
        return {"job": status.job_id, "rank": 0, "incarnation": status.workers[0].incarnation,
                "generation": status.generation, "index": 1, "protocol": 2}

    # A request for each method, as valid as possible without having an effect. Other methods' requests are made of
    # `known`.

    def request(self, service, method, known):
        message = getattr(control if service != "ParameterServer" else data, method.input_type.name)()
        fill(message, known)
        build = control.Build(protocol=2, version="0.2.0")
        if method.name == "RegisterServer":
            message.MergeFrom(control.RegisterServerRequest(build=build, address="127.0.0.1:9", nonce=4711))
        elif method.name == "RegisterWorker":
            message.ClearField("rank")  # all ranks are taken
            message.MergeFrom(control.RegisterWorkerRequest(build=build, host="attacker", pid=7, nonce=4711))
        elif method.name == "Heartbeat":
            step = control.StepMetrics(clock=1, epoch=0.1, steps=1, examples=32, train_loss=2, compute_seconds=0.1)
            message.steps.append(step)
            message.evaluations.append(control.EvaluationMetrics(clock=0, test_loss=2, test_accuracy=0.5, examples=9))
        elif method.name == "ServerHeartbeat":
            message.nonce = 815  # a process other than server 0
        elif method.name == "ResizeServers":
            message.servers = 2
        elif method.name == "Configure":
            message.generation += 1
        elif method.name == "SetLive":
            message.live = True
        elif method.name == "Shutdown":
            message.job = 1
        elif method.name == "Exchange":
            asked = message.requests.add(id=1, method=data.EXCHANGE_METHOD_PULL)
            fill(asked.header, known)
        return message

    # With these fields the message would be valid, and take effect.
    VALID = {
        "RegisterWorker": lambda name, value: name == "rank" and value == 0,
        "Leave": lambda name, value: name == "reason" and value in (1, 2),
        "StopJob": lambda name, value: True,
    }

    def send(self, service, method, message):
        channel = self.channels[0 if service == "Coordinator" else self.draw.randrange(2)]
        way = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        reply = getattr(control if service != "ParameterServer" else data, method.output_type.name)
        call = getattr(channel, way)(f"/leeway.v1.{service}/{method.name}", type(message).SerializeToString,
                                     reply.FromString)
        try:
            answer = call(iter([message]) if method.client_streaming else message, timeout=20)
            if method.server_streaming:
                for _ in answer:
                    pass
            self.let_in += 1
        except grpc.RpcError as error:
            assert len(error.details().encode()) < 2000, (method.name, len(error.details()))
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", error.details()), (method.name, error.details())
            self.refused += 1
        self.sent += 1

    def every(self, enough):
        """Sends every message once, or until `enough()`."""
        for service, file in SERVICES.items():
            for method in file.services_by_name[service].methods:
                if enough():
                    return
                self.attack(service, method)

    def attack(self, service, method):
        valid = self.VALID.get(method.name, lambda name, value: False)
        before = self.standing()
        request = self.request(service, method, self.known())
        for name, value, message in absurd.every(request, self.draw, self.once):
            if value == "60 MB":
                if f"{service}.{name}" in self.once:
                    continue
                self.once.add(f"{service}.{name}")
            if message == request or valid(name, value):
                continue
            self.send(service, method, message)
        if method.name == "RegisterServer":
            self.send(service, method, request)  # no claim to an index that can be guessed
        after = self.standing()
        assert before == after, f"{service}.{method.name} has changed the job:\n{before}\n{after}"

    def standing(self):
        """Returns state that only the job itself may change, and that it has no reason to change."""
        status = self.status()
        return [status.name, status.state, status.generation, status.servers_wanted, status.shards_to_move,
                [(s.index, s.address, s.state) for s in status.servers],
                [(w.rank, w.incarnation, w.state) for w in status.workers]]


def running(attack):
    for _ in range(2400):
        with contextlib.suppress(grpc.RpcError):
            status = attack.status()
            # By then a heartbeat of clock 1 has no effect any more.
            if status.state == control.JOB_RUNNING and all(worker.steps > 0 for worker in status.workers):
                return
        time.sleep(0.05)
    raise AssertionError("the job does not begin")


def attacked(folder, seconds, seed):
    """Returns the job, and the clock at which it was stopped."""
    run = Launched(folder, "attacked", step=20)
    try:
        attack = Attack(run, seed)
        running(attack)
        pids = run.servers()
        assert len(pids) == 2, pids
        deadline = time.monotonic() + seconds
        attack.every(lambda: False)
        while time.monotonic() < deadline:
            attack.every(lambda: time.monotonic() > deadline)
        assert attack.status().state == control.JOB_RUNNING
        assert run.servers() == pids, "a server has died"
        most, left = [max(memory(pid, what) for pid in pids) for what in ("VmHWM", "VmRSS")]
        clock = run.stop()
    except BaseException:
        run.show()
        raise
    print(f"{attack.sent} messages: {attack.refused} refused, {attack.let_in} without effect; "
          f"servers {most >> 20} MiB at most, {left >> 20} MiB at the end")
    assert most < MEMORY_MAX and left < MEMORY_LEFT_MAX, (most, left)
    return run, clock


def undisturbed(folder):
    run = Launched(folder, "quiet", step=20)
    running(Attack(run, 0))
    return run, run.stop()


def complete(run, summary):
    for name in ("model.safetensors", "summary.json", "report.html", "metrics.jsonl", "job.yaml"):
        assert (run.dir / name).stat().st_size > 0, name
    names = {event["event"] for event in run.events()}
    return names, {key: summary[key] for key in ("steps", "state") if key in summary}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=30, help="of the attack; everything is sent once in any case")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leeway-attack-") as name:
        folder = pathlib.Path(name)
        (quiet, early), (run, late) = undisturbed(folder), attacked(folder, options.seconds, options.seed)
        clocks = max(early, late) + CLOCKS_MORE
        (wanted, summary), (weights, attacked_summary) = quiet.finish(clocks), run.finish(clocks)
        left, wanted_left = complete(run, attacked_summary), complete(quiet, summary)
        assert left == wanted_left, f"attacked: {left}\nundisturbed: {wanted_left}"
        # If a worker's last reports were lost, its examples are estimated in proportion to its steps.
        examples = attacked_summary["examples"], summary["examples"]
        assert abs(examples[0] - examples[1]) <= 0.001 * examples[1], examples
        assert weights == wanted, "the weights are others"
        evil = [path for path in folder.rglob("*") if "evil" in path.name or "\x1b" in path.name]
        assert not evil, evil
        logs = "".join(path.read_text(errors="strict") for path in run.dir.rglob("*.log"))
        assert "\x1b" not in logs
    print("the same bits as undisturbed")


if __name__ == "__main__":
    sys.exit(main())
