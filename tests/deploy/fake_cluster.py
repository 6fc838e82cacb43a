"""A cluster of fake pods on this machine: the rendered manifests run as processes, each pod in a network namespace of
its own, with the names that the cluster's DNS would give. Needs root; without it the test is skipped and says so."""

import ctypes
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import manifests  # puts the folder of runs.py on the path
import controllers
import dns
import kubelet
from manifests import NAMESPACE, runs
from workloads import host_names, is_published

NODE = "10.77.0.1"
USER = 65532
ETC = {"hosts": "127.0.0.1 localhost\n", "nsswitch.conf": "passwd: files\nhosts: files dns\n",
       "resolv.conf": f"nameserver {NODE}\noptions ndots:5\n"
                      f"search {NAMESPACE}.svc.cluster.local svc.cluster.local cluster.local\n",
       "passwd": f"leeway:x:{USER}:{USER}::/:/none\n", "group": f"leeway:x:{USER}:\n"}


def skip(why):
    print(f"SKIPPED: this machine does not permit it: {why}")
    sys.exit(runs.SKIPPED)


def enter_node():
    """Makes this process the node: the bridge of all pods, and the kubelet that probes them."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        skip("pods need root and ip")
    if ctypes.CDLL(None).unshare(0x40000000) != 0:
        skip("no network namespace of its own")
    try:
        # The bridge gets an address of its own. Otherwise it would take the address of some pod and change it when that
        # pod goes, and for some seconds the node's DNS could not be found.
        kubelet.ip(["link set lo up", "link add bridge address 02:00:00:00:00:01 type bridge",
                    f"addr add {NODE}/16 dev bridge", "link set bridge up"])
    except OSError as error:
        skip(error)


class Run(runs.RunFolder):
    """The run folder, as the servers see it on their volume."""

    def __init__(self, claim, name):
        self.parent, self.dir = claim, claim / name
        self.read_events, self.read_to, self.torn = [], 0, False


class Cluster:
    """`objects` are what `leeway kubernetes` prints, with the Secrets. A context: remaining pods are ended, and the
    folder is removed if all went well."""

    prefix = f"leeway-{os.getpid()}-pod-"
    # How many addresses this process has given out.
    made = 0

    def __init__(self, objects, data=None, run="leeway"):
        self.objects, self.pods, self.began = objects, [], time.monotonic()
        # Servers run as another user, who must be able to enter the folder.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-pods-"))
        self.folder.chmod(0o755)
        self.failed_probes = []
        self.data, self.keys = data, None
        # The DNS of a cluster learns of pods a while after they begin.
        self.names_after = 0.0
        for name, text in ETC.items():
            (self.folder / "etc").mkdir(exist_ok=True)
            (self.folder / "etc" / name).write_text(text, encoding="utf-8")
        self.run = self.run_of(run)
        self.pool = kubelet.pool()
        self.dns = dns.Dns(NODE)
        self.controllers = controllers.controllers(self, objects)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for pod in self.pods:
            pod.end()
        self.pool.shutdown()
        self.dns.close()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print(self.tail())

    def say(self, text):
        print(f"  {time.monotonic() - self.began:6.2f} s  clock {self.run.max_clock():5}  {text}", flush=True)

    def tail(self):
        texts = [f"kept in {self.folder}"]
        for pod in self.pods:
            texts.append(f"--- {pod} {pod.address} {pod.codes}\n{pod.said()[-1500:]}")
        return "\n".join(texts)

    def run_of(self, name):
        """Returns the Run of that name."""
        return Run(self.claim(f"{name}-run"), name)

    # ---- what pods ask for

    def next_address(self):
        Cluster.made += 1
        return f"10.77.{1 + Cluster.made // 250}.{1 + Cluster.made % 250}"

    def claim(self, name):
        """Returns the folder of a PersistentVolumeClaim, which the pods' group can write to."""
        if name == "leeway-data":
            return self.data
        path = self.folder / "claims" / name
        if not path.exists():
            path.mkdir(parents=True)
            os.chown(path, 0, USER)
            path.chmod(0o2775)
        return path

    def add(self, pod):
        self.pods.append(pod)
        self.say(f"{pod} begins at {pod.address}")

    def apply(self, objects):
        """Adds another run beside the existing ones."""
        self.objects = self.objects + objects
        self.controllers += controllers.controllers(self, objects)

    def apply_again(self, objects):
        """Does `kubectl delete` of the workload by its name, and `kubectl apply`: its claim stays."""
        self.say("applied again")
        self.objects, self.began = objects, time.monotonic()
        self.controllers = controllers.controllers(self, objects)

    # ---- time

    def names(self):
        """Returns {full name: addresses} of the existing pods."""
        table = {}
        for pod in self.pods if time.monotonic() >= self.names_after else ():
            if pod.ended or not (pod.ready or is_published(pod.pod, self.objects)):
                continue
            for name in host_names(pod.pod, self.objects):
                if name.endswith(".svc.cluster.local"):
                    table.setdefault(name, []).append(pod.address)
        return table

    def tick(self):
        for pod in self.pods:
            pod.tick()
        for controller in self.controllers:
            controller.tick()
        self.dns.table = self.names()
        failed = [controller.failed for controller in self.controllers if getattr(controller, "failed", None)]
        if failed:
            raise runs.Failed(f"the workload has failed: {failed}")

    def wait_for(self, condition, what, timeout=60):
        deadline = time.monotonic() + timeout
        while not condition():
            self.tick()
            if time.monotonic() > deadline:
                raise runs.Failed(f"waited {timeout} s in vain for {what}")
            time.sleep(0.02)

    @property
    def finite(self):
        """Returns the workloads that end."""
        return [c for c in self.controllers if not isinstance(c, controllers.StatefulSet)]

    @property
    def servers(self):
        return next(c for c in self.controllers if isinstance(c, controllers.StatefulSet))

    def finish(self, timeout=180):
        """Waits until the job is over, and returns the summary. Servers of a StatefulSet have exited with 0 once."""
        def over():
            if not all(c.done for c in self.finite):
                return False
            servers = [p for p in self.live("server") if isinstance(p.owner, controllers.StatefulSet)]
            return all(0 in pod.codes for pod in servers)
        self.wait_for(over, "the end of the job", timeout)
        return self.run.check_whole(report=False, learned=True)

    # ---- pods

    def live(self, component=None):
        """Returns the pods that have not ended, in the order of their indices."""
        return [pod for pod in self.pods if not pod.ended and component in (None, pod.pod.component)]

    def find(self, component, rank):
        """Returns the pod with this index."""
        return next(pod for pod in self.live(component) if self.rank(pod) == rank)

    def lives(self, component, rank):
        return sum(self.rank(pod) == rank for pod in self.pods if pod.pod.component == component)

    @staticmethod
    def rank(pod):
        return int(pod.pod.labels.get("jobset.sigs.k8s.io/job-index", pod.pod.index)) or pod.pod.index

    def wait_for_clock(self, clock, timeout=120):
        self.wait_for(lambda: self.run.max_clock() >= clock, f"clock {clock}", timeout)

    def kill(self, pod):
        self.say(f"kill -9 of {pod}")
        pod.signal(9)

    def evict(self, pod):
        self.say(f"{pod} is evicted")
        pod.delete(disrupted=True)

    def leeway(self, component, *arguments):
        """Does `kubectl exec` of a command in the first pod of a role."""
        pod = self.live(component)[0]
        with open(f"/proc/{pod.number}/environ", "rb") as file:
            values = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
        words = ["nsenter", "-t", str(pod.number), "--net", "--mount", "--pid", "--root", "--wd=/",
                 "--setuid", str(USER), "--setgid", str(USER), "/usr/bin/leeway", *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=values)
        return done.returncode, done.stdout + done.stderr


def draw(cluster, component=None):
    return random.choice([pod for pod in cluster.live(component) if pod.running])
