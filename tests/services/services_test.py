#!/usr/bin/python3
"""Tests deploy/compose, deploy/systemd and deploy/slurm as far as that is possible without the engines. The programs
must accept the options that the files use, and the script for Slurm runs to its end with a replacement for srun.

    tests/services/services_test.py CASE          as ctest runs them
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

for folder in "training", "chaos":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
import compose_file  # noqa: E402
import references  # noqa: E402
import runs  # noqa: E402
from network import Network  # noqa: E402

DEPLOY = runs.SOURCE / "deploy"


def skip(why):
    print("SKIPPED:", why)
    sys.exit(runs.SKIPPED)


def help_of(program, *words):
    return subprocess.run([str(runs.BIN / program), *words, "--help"], capture_output=True, text=True, check=False).stdout


def knows_places():
    """Older programs have neither a health port nor a place from the environment."""
    return "--health" in help_of("leeway-server")


def check_variables(names, *programs):
    """Checks that each variable is in the help of a program, or in the tables of docs/."""
    known = "".join(help_of(program) for program in programs)
    known += "".join((runs.SOURCE / "docs" / name).read_text(encoding="utf-8") for name in ("operations.md", "security.md"))
    unknown = [name for name in names if name not in known]
    runs.check(not unknown, f"the programs know {', '.join(names)}" + (f", but not {unknown}" if unknown else ""))


# ---- compose

SERVICE_KEYS = {"image", "read_only", "cap_drop", "security_opt", "networks", "secrets", "restart", "stop_grace_period",
                "healthcheck", "command", "environment", "volumes", "deploy"}


def check_service(name, service, document):
    wrong = set(service) - SERVICE_KEYS
    runs.check(not wrong, f"{name}: keys of a service {sorted(wrong)}")
    runs.check(service["read_only"] and service["cap_drop"] == ["ALL"], f"{name}: a root that is not written to")
    runs.check(all(network in document["networks"] for network in service["networks"]), f"{name}: its network")
    runs.check(all(secret in document["secrets"] for secret in service["secrets"]), f"{name}: its secrets")
    volumes = [volume.split(":")[0] for volume in service["volumes"] if not volume.startswith("/")]
    runs.check(set(volumes) <= set(document["volumes"]), f"{name}: its volumes {volumes}")
    values = service["environment"]
    server_0 = document["services"]["server-0"]["environment"]["LEEWAY_ADVERTISE"]
    runs.check(values.get("LEEWAY_COORDINATOR", server_0) == server_0, f"{name}: finds server 0")
    runs.check(values.get("LEEWAY_ADVERTISE", name).partition(":")[0] == name, f"{name}: advertises its own name")
    runs.check(service["healthcheck"]["test"] == ["CMD", "leeway", "health", values["LEEWAY_HEALTH"]],
               f"{name}: asks the port that it opens")
    runs.check((runs.BIN / service["command"][0]).exists(), f"{name}: runs {service['command'][0]}")


def compose():
    """Checks the keys against the compose specification, the references, and the programs' commands and variables."""
    for file, names in ("docker-compose.yaml", {"server-0", "server-1", "worker"}), \
            ("all-reduce.yaml", {"server-0", "worker-0", "worker-1", "worker-2"}):
        document = compose_file.resolved(DEPLOY / "compose" / file)
        runs.check(set(document) == {"name", "services", "networks", "volumes", "secrets"}, f"{file}: its parts")
        runs.check(set(document["services"]) == names, f"{file}: services {', '.join(document['services'])}")
        for name, service in document["services"].items():
            check_service(name, service, document)
            runs.check(service["stop_grace_period"] == "30s", "30 s to stop")
            check_variables([variable for variable in sorted(service["environment"]) if "__" not in variable],
                            service["command"][0])


class Composed(runs.RunFolder):
    """The containers of a Compose file as processes, each in a network namespace of its own with the services' names. It
    has no images: paths of volumes are those of this machine."""

    def __init__(self, file):
        super().__init__()
        self.values = {"LEEWAY_JOB": str(runs.JOBS / "quickstart.yaml"),
                       "LEEWAY_DATA": str(runs.data_with("optdigits/optdigits.tra"))}
        self.services = compose_file.resolved(DEPLOY / "compose" / file, self.values)["services"]
        self.places = {f"{name}.{number}" if count > 1 else name: service for name, service in self.services.items()
                       for count in [int(service.get("deploy", {}).get("replicas", 1))] for number in range(count)}
        self.network = Network(list(self.places))
        (self.parent / "token").write_text("0123456789abcdef\n", encoding="utf-8")
        (self.parent / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in self.network.addresses.items()), encoding="utf-8")

    def within(self, place, *command):
        names = f"mount --bind {shlex.quote(str(self.parent / 'hosts'))} /etc/hosts"
        return [*self.network.within(place), "unshare", "-m", "sh", "-c", f'{names} && exec "$@"', "sh",
                str(runs.BIN / command[0]), *command[1:]]

    def environment(self, service):
        mounts = {"/run/secrets/token": str(self.parent / "token"), "/runs": str(self.parent)}
        mounts |= {target: source for source, target in (volume.split(":")[:2] for volume in service["volumes"])
                   if source.startswith("/")}
        def here(value):
            target = next((path for path in mounts if value == path or value.startswith(path + "/")), None)
            return value if target is None else mounts[target] + value[len(target):]
        return {"PATH": os.environ["PATH"], **{name: here(value) for name, value in service["environment"].items()}}

    def end_of(self, place, process):
        """Waits until a service is healthy, and then for its end. Returns its exit code, or 1 if it does not end."""
        until = time.monotonic() + 60
        check = self.within(place, *self.places[place]["healthcheck"]["test"][1:])
        while process.poll() is None and time.monotonic() < until:
            if subprocess.run(check, check=False, capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            return runs.TEMPORARY

    def train(self):
        """Returns the summary, once all services have ended with 0."""
        with self.network, open(self.parent / "log", "w", encoding="utf-8") as log:
            processes = {place: subprocess.Popen(self.within(place, *service["command"]), env=self.environment(service),
                                                 stdout=log, stderr=log, start_new_session=True)
                         for place, service in self.places.items()}
            try:
                codes = {place: self.end_of(place, process) for place, process in processes.items()}
            finally:
                for process in processes.values():
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
        said = (self.parent / "log").read_text(encoding="utf-8")[-3000:] if any(codes.values()) else ""
        runs.check(not any(codes.values()), f"exit codes {codes} {said}")
        return self.check_whole(report=False)


def composed():
    """The services of each Compose file train to the weights of `leeway train`."""
    digest = references.undisturbed("quickstart.yaml", [], runs.data_with("optdigits/optdigits.tra"))["weights_sha256"]
    for file, topology in ("docker-compose.yaml", None), ("all-reduce.yaml", "all_reduce"):
        job = Composed(file)
        runs.check(job.train()["weights_sha256"] == digest, f"{file}: the weights of leeway train")
        kept = (job.dir / "job.yaml").read_text(encoding="utf-8")
        runs.check(topology is None or f"type: {topology}" in kept, f"{file}: the topology of the run")
        job.clean()


# ---- systemd

UNITS_GROUP = 65532


def check_keys():
    """The commands of leeway.env.example put keys where only the units' user can read them."""
    text = (DEPLOY / "systemd/leeway.env.example").read_text(encoding="utf-8")
    commands = re.findall(r"^#   (.*)$", text, re.M)
    named = dict(re.findall(r"^(LEEWAY_T\w+)=(.*)$", text, re.M))
    if os.geteuid() != 0:
        print("not root: whether the user can read the keys was not looked at")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        here = lambda words: words.replace("/etc/leeway", f"{folder}/etc")
        script = "\n".join(["set -e", "umask 077", f"mkdir -m 755 {folder}/etc", *map(here, commands)])
        subprocess.run(["sh", "-c", script.replace("-g leeway", f"-g {UNITS_GROUP}")], check=True, cwd=folder,
                       capture_output=True, env={**os.environ, "PATH": f"{runs.BIN}:{os.environ['PATH']}"})
        files = [here(f"{named['LEEWAY_TLS_DIR']}/{name}") for name in ("ca.crt", "tls.crt", "tls.key")]
        files.append(here(named["LEEWAY_TOKEN_FILE"]))
        for group, wanted in (UNITS_GROUP, 0), (UNITS_GROUP + 1, 1):
            done = subprocess.run(["cat", *files], user=group, group=group, extra_groups=[], capture_output=True,
                                  check=False)
            runs.check(done.returncode == wanted, f"group {group} {'cannot' if wanted else 'can'} read the keys")


def systemd():
    """Runs systemd's own check on the units, and checks the exit codes and variables of the programs."""
    if shutil.which("systemd-analyze") is None:
        skip("systemd-analyze is not installed")
    check_keys()
    codes = (runs.SOURCE / "common/exit_code.h").read_text(encoding="utf-8")
    value = lambda name: re.search(rf"kExit{name} = (\d+)", codes).group(1)
    final = [value(name) for name in ("Usage", "Permanent", "Stopped", "Replaced")]
    with tempfile.TemporaryDirectory() as folder:
        for role in "server", "worker":
            unit = pathlib.Path(folder) / f"leeway-{role}@0.service"
            text = (DEPLOY / f"systemd/leeway-{role}@.service").read_text(encoding="utf-8")
            # systemd writes a space in this way.
            programs = str(runs.BIN).replace(" ", r"\x20")
            unit.write_text(text.replace("/usr/bin/leeway-", f"{programs}/leeway-"), encoding="utf-8")
            done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
            said = [line for line in done.stderr.splitlines() if unit.name in line]
            runs.check(done.returncode == 0 and not said, f"{role}: systemd-analyze verify says nothing {said}")
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],
                                  capture_output=True, text=True, check=False)
            last = (done.stdout.strip().splitlines() or ["?"])[-1]
            runs.check(done.returncode == 0, f"{role}: {last}")
            runs.check(re.search(r"^RestartPreventExitStatus=(.*)$", text, re.M).group(1).split() == final,
                       f"{role}: {final} are not started again, as common/exit_code.h says")
            start = re.search(r"^ExecStart=/usr/bin/(\S+) (--\S+) %i$", text, re.M)
            runs.check(start.group(2) in help_of(start.group(1)), f"{role}: {start.group(0)}")
    if not knows_places():
        skip("these programs have no --health: the variables were not looked at")
    example = (DEPLOY / "systemd/leeway.env.example").read_text(encoding="utf-8")
    check_variables(re.findall(r"^(LEEWAY_\w+)=", example, re.M), "leeway-server", "leeway-worker")


# ---- Slurm

SRUN = """#!/usr/bin/python3
import os, signal, subprocess, sys
words = sys.argv[1:]
tasks = 1
while words[0].startswith("--"):
    name, _, value = words.pop(0).partition("=")
    if name == "--ntasks":
        tasks = int(value)
    elif name == "--job-name" and not value:
        sys.exit("--job-name is empty")
    elif name not in ("--overlap", "--distribution", "--kill-on-bad-exit", "--wait", "--label", "--job-name",
                      "--nodes", "--nodelist"):
        sys.exit("unknown option " + name)
signal.signal(signal.SIGTERM, lambda *_: [os.killpg(task.pid, signal.SIGKILL) for task in started])
started = [subprocess.Popen(words, env={**os.environ, "SLURM_PROCID": str(rank)}, start_new_session=True) for rank in range(tasks)]
sys.exit(max(task.wait() % 256 for task in started))
"""
SCONTROL = """#!/bin/sh
[ "$1 $2 $3" = "show hostnames node[1-2]" ] || exit 1
printf '127.0.0.1\\nnode2\\n'
"""


class Slurm(runs.RunFolder):
    """The script in an allocation that is this machine."""

    def __init__(self, **environment):
        super().__init__()
        tools = self.parent / "tools"
        tools.mkdir()
        for name, text in ("srun", SRUN), ("scontrol", SCONTROL):
            (tools / name).write_text(text, encoding="utf-8")
            (tools / name).chmod(0o755)
        self.environment = {
            **os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "LEEWAY_BIN": str(runs.BIN), "SLURM_JOB_ID": "4711",
            "SLURM_JOB_NODELIST": "node[1-2]", "LEEWAY_JOB": str(self.parent / "job.yaml"),
            "LEEWAY_RUN_DIR": str(self.dir), "LEEWAY_DATA": str(runs.data_with("optdigits/optdigits.tra")),
            "LEEWAY_SERVERS": "2", "LEEWAY_WORKERS": "3", **environment}

    def start(self, *more, **environment):
        job = (runs.JOBS / "quickstart.yaml").read_text(encoding="utf-8")
        for old, new in more:
            job = job.replace(old, new)
        (self.parent / "job.yaml").write_text(job, encoding="utf-8")
        self.log = open(self.parent / "log", "a", encoding="utf-8")
        self.process = subprocess.Popen(["bash", str(DEPLOY / "slurm/leeway.sbatch")], stdout=self.log,
                                        stderr=subprocess.STDOUT, env={**self.environment, **environment},
                                        cwd=self.parent, start_new_session=True)
        return self

    def said(self):
        return (self.parent / "log").read_text(encoding="utf-8")[-4000:]

    def wait(self, expect):
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise runs.Failed(f"no end\n{self.said()}") from None
        if code != expect:
            raise runs.Failed(f"status {code}, not {expect}\n{self.said()}")


def slurm():
    """The job trains, with mutual TLS, to the same weights as `leeway train`. A worker that is killed is started again.
    At the end of its time the job stops in order, and is continued."""
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-e", "SC2317,SC2329", str(DEPLOY / "slurm/leeway.sbatch")], check=True)
    digest = references.undisturbed("quickstart.yaml", [], runs.data_with("optdigits/optdigits.tra"))["weights_sha256"]
    job = Slurm().start()
    job.wait(0)
    runs.check(job.check_whole(report=False)["weights_sha256"] == digest, "the weights of leeway train")
    runs.check((job.dir / "keys/token").stat().st_mode & 0o777 == 0o600, "its keys are its user's")
    job.clean()
    job = Slurm(LEEWAY_SERVERS="0").start(("servers: {count: 2}", "topology: {type: all_reduce}"))
    job.wait(0)
    runs.check(job.check_whole(report=False)["weights_sha256"] == digest, "the same weights where workers hold the blocks")
    job.clean()
    job = Slurm().start(("workers: {count: 3}", "workers: {count: 3, no_such_key: 1}"))
    began = time.monotonic()
    job.wait(runs.USAGE)
    took = time.monotonic() - began
    runs.check(took < 45, f"a job that server 0 refuses ends the allocation, after {took:.0f} s")
    job.clean()
    if "\n  stop " not in help_of("leeway"):
        skip("this leeway has no stop: the end of the allocation was not looked at")
    stopped(digest)


def stopped(digest):
    slow = ("workers: {count: 3}", "workers: {count: 3, emulate: {step_milliseconds: 30}}")
    job = Slurm().start(slow)
    deadline = time.monotonic() + 60
    while job.max_clock() < 40 and time.monotonic() < deadline:
        time.sleep(0.05)
    job.process.send_signal(signal.SIGTERM)
    job.wait(runs.STOPPED)
    runs.check(job.summary()["state"] == "stopped", f"stopped in order at clock {job.summary()['clock']}")
    job.start(slow, LEEWAY_RESUME="1").wait(0)
    runs.check(job.summary()["weights_sha256"] == digest, "continued, to the same weights")
    job.clean()


# ---- logs

def cut(log):
    """Cuts a log as logrotate does with copytruncate. Returns what was there."""
    text = log.read_text(encoding="utf-8")
    os.truncate(log, 0)
    return text


def check_log(log, before, words):
    """Checks that the lines are whole from the file's beginning on, and that all of `words` are there before or after
    the cut."""
    after = log.read_text(encoding="utf-8")
    runs.check(re.match(r"\d{4}-\d\d-\d\dT", after) and "\0" not in after, f"{log.name} goes on at its beginning")
    runs.check(all(word in before + after for word in words), f"{log.name} has {words}")


def logs():
    """Logs that are cut while a job runs: that of `leeway train`, and that of --log-file."""
    sets = ["stop={clocks: 200}", "workers.emulate={step_milliseconds: 15}", "evaluation={every: {clocks: 10}}",
            "checkpoint={every: {clocks: 10}}"]
    run = runs.Run("quickstart.yaml", sets, runs.data_with("optdigits/optdigits.tra")).start()
    run.wait_for(lambda r: r.max_clock() >= 60)
    names = {"server-0": ["listening on", "clock 10", "clock 200", "done"], "worker-0": ["registering", "clock 10:", "done"]}
    before = {name: cut(run.dir / f"logs/{name}.log") for name in names}
    run.wait()
    for name, words in names.items():
        check_log(run.dir / f"logs/{name}.log", before[name], words)
    log = run.parent / "by-hand.log"
    server = subprocess.Popen([str(runs.BIN / "leeway-server"), "--index", "0", "--listen", "127.0.0.1:0", "--job",
                               str(run.dir / "job.yaml"), "--run-dir", str(run.parent / "by-hand"), "--log-file", str(log)])
    until = time.monotonic() + 30
    while not (log.exists() and "listening on" in log.read_text(encoding="utf-8")) and time.monotonic() < until:
        time.sleep(0.05)
    start = cut(log)
    server.send_signal(signal.SIGTERM)
    server.wait(60)
    check_log(log, start, ["listening on"])
    run.clean()


if __name__ == "__main__":
    runs.main({"compose": compose, "composed": composed, "systemd": systemd, "slurm": slurm, "logs": logs})
