#!/usr/bin/python3
"""Checks the manifests by the schemas of Kubernetes and of its extensions, in each release that docs/kubernetes.md
names: types, enumerations, unknown fields. Needs node, npm with a registry the first time, and the
CustomResourceDefinitions beside the checkout; without them the test is skipped and says so.

    tests/deploy/schemas.py                       all that `leeway kubernetes` prints
"""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

import admission
import manifests
from manifests import runs

HERE = pathlib.Path(__file__).resolve().parent
SCHEMAS = runs.SOURCE.parent / "shared/k8s"
# Volcano has no release there.
DEVELOPMENT = {"volcano": {"files": ["crds/batch.volcano.sh_jobs.yaml"], "lacks": {}}}
PACKAGES = pathlib.Path(os.environ.get("LEEWAY_NPM", runs.SOURCE / "build/npm"))


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(runs.SKIPPED)


def packages():
    """Returns the folder with the packages of package.json. Several tests may want them at the same time."""
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


def definitions():
    """Returns {release: {files, lacks}} of the extensions."""
    found = {name: {"files": [f"released/{file}.yaml.gz" for file in release["definitions"]],
                    "lacks": release.get("lacks", {})} for name, release in admission.releases().items()} | DEVELOPMENT
    missing = [file for release in found.values() for file in release["files"] if not (SCHEMAS / file).exists()]
    if missing:
        skip(f"no schemas of extensions in {SCHEMAS}: {', '.join(missing)}")
    return {name: {**release, "files": [str(SCHEMAS / file) for file in release["files"]]}
            for name, release in found.items()}


def by_release(sets):
    """Turns {name: objects} into {name: [(release, sentence)]}. For Kubernetes itself the release is empty."""
    for program in "node", "npm":
        if not shutil.which(program):
            skip(f"no {program} is installed")
    request = json.dumps({"sets": sets, "releases": definitions()})
    done = subprocess.run(["node", HERE / "schemas.mjs", packages()], input=request, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise runs.Failed(done.stderr)
    return json.loads(done.stdout)


def findings(sets):
    """Turns {name: objects} into {name: sentences}."""
    return {name: [f"{release + ': ' if release else ''}{text}" for release, text in found]
            for name, found in by_release(sets).items()}


def check_optional():
    """A flag that needs more than a stock installation is refused by each other release, and accepted by the ones that
    it names."""
    for flag, needs in admission.table()["optional"].items():
        for shape, project in ("jobset", "jobset"), ("kubeflow", "trainer"):
            objects = manifests.render(manifests.DIGITS, "--data", runs.SOURCE / "data",
                                       *manifests.flags_of(shape, []), flag)
            refused = {release for release, _ in by_release({shape: objects})[shape]}
            known = {name for name in admission.releases() if name.startswith(project)}
            yield from (f"{shape} with {flag}: {name} takes it" for name in known - refused - set(needs["releases"]))
            yield from (f"{shape} with {flag}: {name} refuses it" for name in refused & set(needs["releases"]))
            if not admission.findings(objects):
                yield f"{shape} with {flag}: stock installations have its gate on"


def main():
    found = findings(manifests.everything())
    wrong = [f"{name}: {text}" for name, texts in found.items() for text in texts]
    wrong += check_optional()
    return manifests.verdict(wrong, f"{len(found)} sets of manifests fit the schemas of {', '.join(definitions())}")


if __name__ == "__main__":
    runs.ends_with(main)
