#!/usr/bin/python3
"""What the manifests mean: selectors, counts, names, references, exit codes, flags. No schema sees these.

    tests/deploy/lint.py [FOLDER ...]             kustomizations; all of deploy/kubernetes without any
"""

import sys

import admission
import manifests
import workloads
from lint_job import check_job
from lint_objects import check_object
from lint_pods import check_pod
from manifests import runs

NEEDED = ("Namespace", "ConfigMap", "ServiceAccount", "NetworkPolicy", "PodDisruptionBudget")


def findings(objects, on=()):
    """Sentences about what is wrong with the objects of a kustomization. `on`: feature gates of the cluster's extensions
    that are on besides the defaults."""
    found = [f"no {kind}" for kind in NEEDED if not manifests.of_kind(objects, kind)]
    keys = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    found += [f"{key} is there twice" for key in set(keys) if keys.count(key) > 1]
    pods = workloads.pods(objects)
    if not pods:
        return [*found, "no pod comes of it"]
    for owner in objects:
        found += [f"{owner['kind']} {owner['metadata']['name']}: {text}" for text in check_object(owner, objects, pods)]
    for pod in pods:
        found += [f"pod {pod.name}: {text}" for text in check_pod(pod, objects)]
    return found + list(check_job(pods, objects)) + admission.findings(objects, on)


def main():
    rendered = {folder: manifests.render(folder) for folder in sys.argv[1:]} or manifests.everything()
    wrong = [f"{name}: {text}" for name, objects in rendered.items() for text in findings(objects)]
    return manifests.verdict(wrong, f"{len(rendered)} kustomizations are in order")


if __name__ == "__main__":
    runs.ends_with(main)
