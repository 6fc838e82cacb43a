#!/usr/bin/python3
"""The manifests by the schemas of Kubernetes and of its extensions: types, enumerations, unknown fields. Needs node,
npm with a registry the first time, and the CustomResourceDefinitions beside the checkout; skipped aloud without them.

    tests/deploy/schemas.py                       all of deploy/kubernetes
"""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

import manifests
from manifests import runs

HERE = pathlib.Path(__file__).resolve().parent
CRDS = runs.SOURCE.parent / "shared/k8s/crds"
PACKAGES = pathlib.Path(os.environ.get("LEEWAY_NPM", runs.SOURCE / "build/npm"))


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(runs.SKIPPED)


def packages():
    """The folder with the packages of package.json; several tests may want them at once."""
    wanted = (HERE / "package.json").read_bytes()
    PACKAGES.mkdir(parents=True, exist_ok=True)
    with open(PACKAGES / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (PACKAGES / "installed").exists() and (PACKAGES / "installed").read_bytes() == wanted:
            return PACKAGES
        (PACKAGES / "package.json").write_bytes(wanted)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=PACKAGES,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            skip(f"npm install: {done.stderr.strip()[-500:]}")
        (PACKAGES / "installed").write_bytes(wanted)
    return PACKAGES


def findings(sets):
    """{name: sentences} of {name: objects}."""
    for program in "node", "npm":
        if not shutil.which(program):
            skip(f"no {program} is installed")
    if not CRDS.exists():
        skip(f"no schemas of extensions in {CRDS}")
    done = subprocess.run(["node", HERE / "schemas.mjs", packages(), CRDS], input=json.dumps(sets), capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise runs.Failed(done.stderr)
    return json.loads(done.stdout)


def main():
    found = findings(manifests.everything())
    wrong = [f"{name}: {text}" for name, texts in found.items() for text in texts]
    return manifests.verdict(wrong, f"{len(found)} kustomizations fit their schemas")


if __name__ == "__main__":
    runs.ends_with(main)
