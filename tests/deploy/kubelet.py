"""A fake pod: its network namespace, volumes, container, probes and end, as kubelet handles them."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

# This process starts others while it probes. They exec at once, so gRPC needs no fork support, which sometimes aborts.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
import grpc  # noqa: E402

from environment import command, environment, keys_of
from manifests import find, runs

CONTAINER = pathlib.Path(__file__).resolve().with_name("container.py")
PROGRAMS = ("leeway", "leeway-server", "leeway-worker")
# The image of a user's own program: Python with its libraries, and Leeway's package.
IMAGE_PYTHON = [("/usr/bin/python3", "/usr/bin/python3"), ("/etc/alternatives", "/etc/alternatives"),
                (str(runs.SOURCE / "python"), "/opt/python"), (str(runs.BIN.parent / "lib"), "/opt/lib")]
IMAGE_VARIABLES = {"PYTHONPATH": "/opt/python", "LEEWAY_LIBRARY": "/opt/lib/libleeway-client.so"}
SERVING = b"\x08\x01"  # HealthCheckResponse {status: SERVING}
# Kubelet waits 10 s, 20 s, 40 s before it restarts a container. Tests have less time.
BACK_OFF_SECONDS = (0, 1, 2, 4, 8)


def ip(lines, *options):
    done = subprocess.run(["ip", *options, "-batch", "-"], input="\n".join(lines), capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise OSError(f"ip {'; '.join(lines)}: {done.stderr.strip()}")


def health(address, service, timeout):
    """Calls grpc.health.v1.Health/Check in plain text, as kubelet's grpc probe does."""
    name = service.encode()
    request = b"\x0a" + bytes([len(name)]) + name if name else b""
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return check(request, timeout=timeout) == SERVING
        except grpc.RpcError:
            return False


class Probe:
    """One probe of a container: when it is due, and its successes and failures in a row."""

    def __init__(self, spec):
        self.grpc = spec["grpc"]
        self.period, self.timeout = spec.get("periodSeconds", 10), spec.get("timeoutSeconds", 1)
        self.limit = spec.get("failureThreshold", 3)
        self.due, self.future, self.failures, self.ok, self.asked = 0.0, None, 0, False, 0

    def tick(self, pool, address):
        """Returns True or False if an answer has come, else None."""
        now = time.monotonic()
        if self.future is None and now >= self.due:
            # Kubelet's period, shortened because a test that waits for it would be slow.
            self.due = now + min(self.period, 2)
            target = f"{address}:{self.grpc['port']}"
            self.future = pool.submit(health, target, self.grpc.get("service", ""), self.timeout)
        if self.future is None or not self.future.done():
            return None
        self.ok, self.future = self.future.result(), None
        self.asked += 1
        self.failures = 0 if self.ok else self.failures + 1
        return self.ok


class FakePod:
    """A pod from its creation to its removal. `ended` is its phase at the end, Succeeded or Failed, and None before."""

    def __init__(self, cluster, pod, owner):
        self.cluster, self.pod, self.owner = cluster, pod, owner
        self.address = cluster.next_address()
        self.namespace = f"{cluster.prefix}{self.address.replace('.', '-')}"
        self.folder = cluster.folder / "pods" / f"{pod.name}-{self.address}"
        self.process, self.number, self.ended, self.disrupted = None, None, None, False
        self.deadline, self.restarts, self.codes, self.again = None, 0, [], 0.0
        self.signalled = None
        self.make_network()
        self.make_volumes()
        self.start()

    def __str__(self):
        return self.pod.name

    # ---- its parts

    def make_network(self):
        node = f"v{self.address.split('.', 1)[1].replace('.', '-')}"
        ip([f"netns add {self.namespace}"])
        ip([f"link add {node} type veth peer name eth0 netns {self.namespace}", f"link set {node} master bridge up"])
        ip([f"addr add {self.address}/16 dev eth0", "link set eth0 up", "link set lo up"], "-n", self.namespace)

    def make_volumes(self):
        self.folder.mkdir(parents=True)
        (self.folder / "root").mkdir()
        self.group = self.pod.spec["securityContext"]["fsGroup"]
        self.volumes = {}
        for volume in self.pod.spec.get("volumes", []):
            if "persistentVolumeClaim" in volume:
                self.volumes[volume["name"]] = self.cluster.claim(volume["persistentVolumeClaim"]["claimName"])
                continue
            path = self.folder / "volumes" / volume["name"]
            path.mkdir(parents=True)
            self.volumes[volume["name"]] = path
            if "emptyDir" in volume:
                path.chmod(0o777)
        self.write_keys()

    def sources(self, volume):
        """Returns the ConfigMaps and Secrets of a volume, and their mode."""
        for key in ("configMap", "secret"):
            if key in volume:
                yield key, volume[key].get("name") or volume[key].get("secretName")
        for source in volume.get("projected", {}).get("sources", []):
            yield from self.sources(source)

    def write_keys(self):
        """Writes as kubelet does: all files of a volume change at one moment."""
        for volume in self.pod.spec.get("volumes", []):
            found = list(self.sources(volume))
            if not found:
                continue
            files = {}
            for key, name in found:
                owner = find(self.cluster.objects, {"configMap": "ConfigMap", "secret": "Secret"}[key], name)
                if owner is None:
                    raise runs.Failed(f"{self}: {key} {name} is not there")
                files |= keys_of(owner)
            mode = (volume.get("projected") or volume.get("configMap") or volume["secret"]).get("defaultMode", 0o644)
            self.write_files(self.volumes[volume["name"]], files, mode)

    def write_files(self, folder, files, mode):
        data = folder / f"..{time.monotonic_ns()}"
        data.mkdir()
        for name, blob in files.items():
            (data / name).write_bytes(blob)
            os.chown(data / name, 0, self.group)
            (data / name).chmod(mode)
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(f"..data/{name}")
        before = os.readlink(folder / "..data") if (folder / "..data").is_symlink() else None
        (folder / "..next").symlink_to(data.name)
        (folder / "..next").rename(folder / "..data")
        if before:
            shutil.rmtree(folder / before)

    # ---- the container

    def specification(self):
        container, context = self.pod.container, self.pod.spec["securityContext"]
        values = environment(self.pod, container, self.cluster.objects, self.address)
        values = {"PATH": "/usr/bin", "HOSTNAME": self.pod.hostname, **IMAGE_VARIABLES, **values}
        mounts = [{"source": str(self.volumes[mount["name"]]), "target": mount["mountPath"],
                   "readOnly": mount.get("readOnly", False)} for mount in container.get("volumeMounts", [])]
        image = [(str(runs.BIN / name), f"/usr/bin/{name}") for name in PROGRAMS]
        image += [(str(file), f"/etc/{file.name}") for file in (self.cluster.folder / "etc").iterdir()]
        image.append((str(runs.SOURCE / "data"), "/usr/share/leeway/data"))
        image += IMAGE_PYTHON
        return {"namespace": self.namespace, "hostname": self.pod.hostname, "root": str(self.folder / "root"),
                "image": image, "mounts": mounts, "environment": values, "command": command(container, values),
                "folder": container.get("workingDir", "/"), "user": context["runAsUser"], "group": context["runAsGroup"], "fsGroup": context["fsGroup"]}

    def start(self):
        path = self.folder / "container.json"
        path.write_text(json.dumps(self.specification()), encoding="utf-8")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([sys.executable, str(CONTAINER), str(path)], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log)
        self.number = int(self.process.stdout.readline())
        # Waits until the program runs.
        self.process.stdout.read()
        container = self.pod.container
        self.startup, self.live, self.ready_probe = (Probe(container[name]) if name in container else None for name in (
            "startupProbe", "livenessProbe", "readinessProbe"))

    @property
    def log(self):
        return self.folder / "log"

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def ready(self):
        if not self.running or (self.startup and not self.startup.ok):
            return False
        return self.ready_probe.ok if self.ready_probe else True

    def signal(self, number):
        try:
            os.kill(self.number, number)
        except ProcessLookupError:
            pass

    def delete(self, disrupted=False):
        """Does `kubectl delete pod`, or an eviction, which sets a condition."""
        self.disrupted = self.disrupted or disrupted
        if self.deadline is None:
            self.deadline = time.monotonic() + self.pod.spec.get("terminationGracePeriodSeconds", 30)
            self.signal(signal.SIGTERM)

    # ---- time

    def tick(self):
        if self.ended:
            return
        if self.running:
            self.probe()
            if self.deadline is not None and time.monotonic() > self.deadline:
                self.cluster.say(f"{self} has not ended in its time: killed")
                self.deadline = float("inf")
                self.signal(signal.SIGKILL)
        elif self.process is not None:
            self.codes.append(self.process.wait())
            self.process.stdout.close()
            self.process = None
            self.settle(self.codes[-1])
        elif time.monotonic() >= self.again:
            self.start()

    def settle(self, code):
        """The container has ended: starts another life in the same pod, or ends the pod."""
        policy = self.pod.spec.get("restartPolicy", "Always")
        if self.deadline is None and (policy == "Always" or (policy == "OnFailure" and code != 0)):
            wait = BACK_OFF_SECONDS[min(self.restarts, len(BACK_OFF_SECONDS) - 1)]
            self.again, self.restarts = time.monotonic() + wait, self.restarts + 1
            self.cluster.say(f"{self} exited with {code}; its container starts again")
            return
        self.ended = "Succeeded" if code == 0 else "Failed"
        self.cluster.say(f"{self} exited with {code}: {self.ended}")
        self.remove_network()

    def probe(self):
        pool = self.cluster.pool
        if self.startup and not self.startup.ok:
            if self.startup.tick(pool, self.address) is False and self.startup.failures >= self.startup.limit:
                self.fail_probe("startup")
            return
        if self.live and self.live.tick(pool, self.address) is False and self.live.failures >= self.live.limit:
            self.fail_probe("liveness")
        if self.ready_probe:
            self.ready_probe.tick(pool, self.address)

    def fail_probe(self, name):
        if self.deadline is None:
            self.cluster.say(f"{self} fails its {name} probe")
            self.cluster.failed_probes.append(f"{self} {name}")
            self.signal(signal.SIGKILL)

    def remove_network(self):
        subprocess.run(["ip", "netns", "del", self.namespace], check=False, capture_output=True)

    def end(self):
        """Ends the pod, however the test went."""
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
        self.remove_network()


def pool():
    return concurrent.futures.ThreadPoolExecutor(16, thread_name_prefix="probe")
