#!/usr/bin/python3
"""Fake pods whose run folder and data are in the object store of tests/store, by the manifests that `leeway kubernetes`
prints for one.

    tests/deploy/stored_pods.py CASE              as ctest runs them; as root
"""

import contextlib
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))

import fake_cluster
import fake_pods
import manifests
from in_store import BUCKET, InStore, Missing, Store
from store import Status
from manifests import NAMESPACE, runs
import references

FILES = ("optdigits/optdigits.tra", "optdigits/optdigits.tes")
OUTAGE_SECONDS = 10
SETS = ["stop.epochs=4", "checkpoint={every: {epochs: 1}, keep: 2}", "workers.emulate={step_milliseconds: 15}"]


class Run(InStore):
    """A run in the store, for a fake cluster."""

    def __init__(self, store, name):
        self.store, self.name = store, f"runs/{name}"

    def max_clock(self):
        return max(self.manifests(), default=0)

    def check_whole(self, **_):
        return self.summary()


class Cluster(fake_cluster.Cluster):
    def __init__(self, objects, store):
        self.store = store
        super().__init__(objects)

    def run_of(self, name):
        return Run(self.store, name)


@contextlib.contextmanager
def opened_store():
    """A store at the node's address, where pods reach it. The data is below `data`."""
    try:
        with tempfile.TemporaryDirectory() as folder, Store(folder, fake_cluster.NODE) as store:
            for name in FILES:
                content = (runs.data_with(name) / name).read_bytes()
                status, _, said = store.forward("PUT", f"/{BUCKET}/data/{name}", {}, content)
                runs.check(status == 200, f"{name} is in the store {said[:100]!r}")
            yield store
    except Missing as why:
        fake_cluster.skip(why)


def cluster_of(store, **values):
    """A run in the store. `values` replace values of its Secret."""
    objects = manifests.render(
        manifests.DIGITS, "--name", "leeway", *manifests.flags_of("jobset", []), "--store-secret", "store",
        "--run-dir", f"s3://{BUCKET}/runs", "--data", f"s3://{BUCKET}/data", "--server-memory", "512Mi", "--worker-memory",
        "1Gi", "--store-port", store.endpoint.rpartition(":")[2], *(word for one in SETS for word in ("--set", one)))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store", "namespace": NAMESPACE},
              "stringData": store.environment() | values}
    return Cluster([*objects, secret], store)


def outage():
    """A server is killed, and its next life joins while the store fails. The run waits for the store, and its bits are
    those of a run in a folder."""
    refused = []
    with opened_store() as store, cluster_of(store) as cluster:
        cluster.wait_for(lambda: cluster.run.manifests(), "the first checkpoint")
        until = time.monotonic() + OUTAGE_SECONDS

        def fault(request):
            if time.monotonic() < until:
                refused.append(request)
                return Status(503, "SlowDown")
            return None

        store.fault = fault
        cluster.kill(cluster.find("server", 1))
        summary = cluster.finish(120)
        runs.check(refused and time.monotonic() > until, f"the store has refused {len(refused)} requests")
        codes = {code for pod in cluster.pods for code in pod.codes}
        runs.check(codes == {0, fake_pods.KILLED}, f"exit codes {codes}")
    here = references.undisturbed(manifests.DIGITS, SETS, runs.data_with(FILES[0]))["weights_sha256"]
    runs.check(summary["weights_sha256"] == here, f"the bits of a folder: {here[:16]}")


def wrong_keys():
    """The run ends at once, and the log of server 0 says what the store has refused, and where."""
    with opened_store() as store, cluster_of(store, AWS_SECRET_ACCESS_KEY="another-secret") as cluster:
        why, codes = fake_pods.ended(cluster, 60)
        runs.check("exited with 2" in why and cluster.lives("server", 0) <= 1, f"{why}: {codes}")
        said = "".join(pod.said() for pod in cluster.pods)
        runs.check("SignatureDoesNotMatch" in said and f"s3://{BUCKET}/" in said, "the log names the store's refusal")
        runs.check("another-secret" not in said, "and not the secret")


CASES = {"outage": outage, "wrong-keys": wrong_keys}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(fake_pods.SIGTERMED))
    fake_cluster.enter_node()
    CASES[sys.argv[1]]()
    return 0


if __name__ == "__main__":
    runs.ends_with(main)
