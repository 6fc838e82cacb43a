"""Runs whose folder is in the object store of tests/store, for tests that inspect them from outside."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from cluster import runs  # puts the folder of references.py on the path
import references

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "store"))
from store import BUCKET, Missing, Store  # noqa: E402

LEEWAY = str(runs.BIN / "leeway")
CLOCKS = 60
# 140,000 parameters with momentum: each shard is uploaded in nine parts of 64 KiB.
SETS = ["servers.count=2", "workers.count=2", "checkpoint={every: {clocks: 20}, keep: 2}",
        "update={type: sgd, learning_rate: 0.02, momentum: 0.9}", "evaluation={}", f"stop={{clocks: {CLOCKS}}}",
        "model.layers=[{flatten: {}}, {dense: {units: 1800}}, {relu: {}}, {dense: {units: 10}}]",
        "limits.start_seconds=30", "workers.emulate={step_milliseconds: 20}"]
# How long a failing request is repeated, and after how long without a byte it is given up.
LIMITS = {"LEEWAY_S3_PART_BYTES": "65536", "LEEWAY_S3_RETRY_SECONDS": "20", "LEEWAY_S3_STALL_SECONDS": "2"}


class InStore:
    """What the store has of the run in s3://bucket/NAME: a mixin for classes with `store` and `name`."""

    @property
    def location(self):
        return f"s3://{BUCKET}/{self.name}"

    def object(self, name):
        """Returns the object's content; None if it does not exist."""
        path = self.store.folder / BUCKET / self.name / f"{name}._S3rver_object"
        return path.read_bytes() if path.exists() else None

    def names(self, below=""):
        return [key.removeprefix(self.name + "/") for key in self.store.keys_below(f"{self.name}/{below}")]

    def events(self, kind=None):
        lines = b"".join(self.object(name) or b"" for name in self.names("metrics/")).splitlines()
        events = [json.loads(line) for line in lines]
        return [e for e in events if kind is None or e["event"] == kind]

    def summary(self):
        return json.loads(self.object("summary.json"))

    def manifests(self):
        """Returns the clocks that have a manifest."""
        names = self.names("checkpoints/")
        return [int(found.group(1)) for name in names if (found := re.search(r"clock-(\d+)/MANIFEST.json$", name))]


def leeway(*arguments, **more):
    return subprocess.run([LEEWAY, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
                          **more)


def ssh_with_nothing(folder):
    """Writes an ssh into the folder, which runs the command here without this environment."""
    ssh = folder / "ssh"
    ssh.write_text("#!/bin/sh\nexec env -i PATH=/usr/bin:/bin sh -c \"$2\"\n")
    ssh.chmod(0o755)
    return ssh


def open_store():
    """Opens a store in a folder of its own, and puts its settings into the environment of programs that are started
    from now on."""
    store = Store(pathlib.Path(tempfile.mkdtemp(prefix="leeway-store-")))
    try:
        store.__enter__()
    except Missing as why:
        print(f"SKIPPED: {why}")
        sys.exit(runs.SKIPPED)
    os.environ.update(store.environment() | LIMITS)
    return store


def undisturbed(clocks=CLOCKS):
    """Returns the digest of the weights of the same job in a folder."""
    return references.undisturbed("quickstart.yaml", [*SETS, f"stop={{clocks: {clocks}}}"],
                                  runs.data_with("optdigits/optdigits.tra"), learns=False)["weights_sha256"]
