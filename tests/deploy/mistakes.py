#!/usr/bin/python3
"""Common mistakes in manifests, seeded one at a time into correct sets. The lint or a schema must find each of them.

    tests/deploy/mistakes.py
"""

import copy
import pathlib

import admission
import lint
import manifests
import schemas
from manifests import runs

HERE = pathlib.Path(__file__).resolve().parent
SETS = {"jobset": lambda: manifests.compose("jobset", ["tls", "data"]) + manifests.shared(),
        "statefulset": lambda: manifests.compose("statefulset", ["tls", "gpu"]) + manifests.shared(),
        "kubeflow": lambda: manifests.compose("kubeflow") + manifests.shared(),
        "volcano": lambda: manifests.compose("volcano") + manifests.shared(),
        "tfjob": lambda: manifests.compose("tfjob") + manifests.shared(),
        "queued": lambda: manifests.compose("jobset", ["queue"]) + manifests.shared(),
        "queued-kubeflow": lambda: manifests.compose("kubeflow", ["queue"]) + manifests.shared(),
        "all-reduce": lambda: manifests.all_reduce("jobset") + manifests.shared(),
        "all-reduce-statefulset": lambda: manifests.all_reduce("statefulset") + manifests.shared(),
        "all-reduce-stored": lambda: manifests.all_reduce("jobset", ["store"]) + manifests.shared(),
        "stored": lambda: manifests.stored("jobset") + manifests.shared(),
        "program": lambda: manifests.render(manifests.PROGRAM, "--name", "leeway", *manifests.flags_of(
            "jobset", ["tls", "store"]), *manifests.OWN) + manifests.shared()}
# The path of a role's pod, in each kind.
ROLES = {("program", "server"): "JobSet.spec.replicatedJobs.0.template.spec.template.spec",
         ("program", "worker"): "JobSet.spec.replicatedJobs.1.template.spec.template.spec",
         ("all-reduce", "worker"): "JobSet.spec.replicatedJobs.1.template.spec.template.spec",
         ("all-reduce-stored", "worker"): "JobSet.spec.replicatedJobs.1.template.spec.template.spec",
         ("queued", "worker"): "JobSet.spec.replicatedJobs.1.template.spec.template.spec",
         ("stored", "server"): "JobSet.spec.replicatedJobs.0.template.spec.template.spec",
         ("stored", "worker"): "JobSet.spec.replicatedJobs.1.template.spec.template.spec",
         ("jobset", "server"): "JobSet.spec.replicatedJobs.0.template.spec.template.spec",
         ("jobset", "worker"): "JobSet.spec.replicatedJobs.1.template.spec.template.spec",
         ("statefulset", "server"): "StatefulSet.spec.template.spec",
         ("statefulset", "worker"): "Job.spec.template.spec",
         ("kubeflow", "server"): "TrainingRuntime.spec.template.spec.replicatedJobs.0.template.spec.template.spec",
         ("kubeflow", "worker"): "TrainingRuntime.spec.template.spec.replicatedJobs.1.template.spec.template.spec",
         ("volcano", "server"): "Job.spec.tasks.0.template.spec",
         ("volcano", "worker"): "Job.spec.tasks.1.template.spec",
         ("tfjob", "server"): "TFJob.spec.tfReplicaSpecs.PS.template.spec",
         ("tfjob", "worker"): "TFJob.spec.tfReplicaSpecs.Worker.template.spec"}


def step(value, key):
    """Goes one step down; into a list by number, or by the name of an entry."""
    if isinstance(value, list):
        if key.isdigit():
            return int(key)
        return next(i for i, entry in enumerate(value) if entry.get("name") == key)
    return key


def place(objects, path):
    """Returns the owner and the key of a path: KIND.a.b, KIND:NAME.a.b, or server.a.b below its pod."""
    head, *keys = path.split(".")
    kind, _, name = head.partition(":")
    value = next(o for o in objects if o["kind"] == kind and (not name or o["metadata"]["name"].startswith(name)))
    keys = [key.replace("!", ".") for key in keys]
    for key in keys[:-1]:
        value = value[step(value, key)]
    return value, step(value, keys[-1])


def seed(objects, name, mistake):
    head, _, rest = mistake["at"].partition(".")
    role, _, beside = head.partition("-")
    if (name, role) in ROLES:
        pod = ROLES[name, role]
        owner, key = place(objects, f"{pod.removesuffix('spec') + beside if beside else pod}.{rest}")
    else:
        owner, key = place(objects, mistake["at"])
    if "to" in mistake:
        owner[key] = mistake["to"]
    elif "replace" in mistake:
        owner[key] = owner[key].replace(*mistake["replace"])
    elif "merge" in mistake:
        owner[key].update(mistake["merge"])
    elif "rename" in mistake:
        before, after = mistake["rename"]
        owner[key][after] = owner[key].pop(before)
    elif "move" in mistake:
        owner.append(owner.pop(key))
    else:
        del owner[key]


def seeded():
    """Returns {(set, title): (objects, why `kubectl apply` of them is refused, the releases that refuse them or None)},
    made from correct sets."""
    clean = {name: make() for name, make in SETS.items()}
    before = schemas.findings(clean)
    for name, objects in clean.items():
        if found := lint.findings(objects) + before[name]:
            raise runs.Failed(f"{name} is not in order: {found}")
    made = {}
    known = manifests.load((HERE / "mistakes.yaml").read_text(encoding="utf-8"))[0]
    for name, objects in clean.items():
        for mistake in [*(known["both"] if name in ("jobset", "statefulset") else []), *known[name]]:
            wrong = copy.deepcopy(objects)
            seed(wrong, name, mistake)
            if wrong == objects or (name, mistake["title"]) in made:
                raise runs.Failed(f"{name}, {mistake['title']}: changes nothing, or is there twice")
            refused = admission.updates(objects, wrong) if mistake.get("change") else []
            made[name, mistake["title"]] = wrong, refused, mistake.get("releases")
    return made


def lint_of(objects, schema):
    """The lint expects objects that fit the schemas; other values may be of any type."""
    try:
        return lint.findings(objects)
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError):
        if not schema:
            raise
        return []


def main():
    made = seeded()
    by_release = schemas.by_release({" / ".join(key): objects for key, (objects, *_) in made.items()})
    missed, counts = [], {"lint": 0, "schema": 0, "both": 0}
    for key, (objects, refused, releases) in made.items():
        schema = [f"{release}: {text}" for release, text in by_release[" / ".join(key)]]
        if releases is not None and (by := {release for release, _ in by_release[" / ".join(key)]}) != set(releases):
            missed.append(f"{' / '.join(key)} by {sorted(by)}")
        found = refused or lint_of(objects, schema)
        counts["both" if found and schema else "lint" if found else "schema"] += 1 if found or schema else 0
        if not found and not schema:
            missed.append(" / ".join(key))
        print(f"{' / '.join(key)}: {(found or schema or ['NOT FOUND'])[0]}")
    print(f"{len(made)} mistakes, {counts['lint']} found by the lint alone, {counts['schema']} by a schema alone, "
          f"{counts['both']} by both; missed: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    runs.ends_with(main)
