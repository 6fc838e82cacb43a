#!/usr/bin/python3
"""What the manifests mean: selectors, counts, names, references, exit codes, flags. No schema sees these.

    tests/deploy/lint.py                          all that `leeway kubernetes` prints
"""

import argparse
import re

import admission
import manifests
import workloads
from lint_job import check_job
from lint_objects import check_object
from lint_pods import check_pod
from manifests import runs, version

NEEDED = ("ConfigMap", "ServiceAccount", "NetworkPolicy", "PodDisruptionBudget")


def findings(objects, on=()):
    """Returns sentences about what is wrong with the objects of a run. `on`: feature gates of the cluster's extensions
    that are on in addition to the defaults."""
    found = [f"no {kind}" for kind in NEEDED if not manifests.of_kind(objects, kind)]
    there = [o for o in manifests.shared() if not manifests.find(objects, o["kind"], o["metadata"]["name"])]
    objects = objects + there
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


def selectors(objects):
    """Yields (what, labels) of everything that selects pods."""
    for owner in objects:
        spec, name = owner.get("spec", {}), f"{owner['kind']} {owner['metadata']['name']}"
        if owner["kind"] == "Service":
            yield name, spec.get("selector")
        if owner["kind"] in ("PodDisruptionBudget", "StatefulSet"):
            yield name, spec["selector"].get("matchLabels")
        if owner["kind"] == "NetworkPolicy":
            yield name, spec["podSelector"].get("matchLabels")
            peers = [peer for way in ("ingress", "egress") for rule in spec.get(way) or []
                     for peer in [*rule.get("from", []), *rule.get("to", [])]]
            yield from ((f"{name}'s rule", peer.get("podSelector", {}).get("matchLabels")) for peer in peers)
    for pod in workloads.pods(objects):
        yield from ((f"{pod.name}'s spread", spread["labelSelector"]["matchLabels"])
                    for spread in pod.spec.get("topologySpreadConstraints", []))


def strangers(one, other):
    """Returns sentences about two runs in one namespace that have something in common."""
    keys = [{(o["kind"], o["metadata"]["name"]) for o in run} for run in (one, other)]
    yield from (f"both runs have {kind} {name}" for kind, name in sorted(keys[0] & keys[1]))
    pods = workloads.pods(other)
    for what, labels in selectors(one):
        selected = [pod.name for pod in pods if manifests.matches(labels, pod.labels)]
        if selected:
            yield f"{what} selects {selected[0]} of another run"


def two_runs():
    """Each shape, with the features that need objects of the namespace: it is right under another name, and apart from
    the other run."""
    for shape in manifests.SHAPES:
        first, second = (manifests.compose(shape, ["data", "tls"], run=run) for run in ("leeway", "second-leeway"))
        for text in [*findings(second), *strangers(first, second), *strangers(second, first)]:
            yield f"{shape} under another name: {text}"
        if not list(strangers(first, manifests.compose(shape))):
            yield f"{shape}: two runs of one name are not told apart from two of two"


def optional():
    """The sets of manifests with flags that need more than a stock installation. schemas.py says what of them is
    refused where."""
    for flag, needs in admission.table()["optional"].items():
        for shape in ("jobset", "kubeflow"):
            objects = manifests.render(manifests.DIGITS, "--name", "leeway", "--data", runs.SOURCE / "data",
                                       *manifests.flags_of(shape, ["tls"]), flag)
            found = findings(objects, needs["gates"])
            gated = [text for text in found if any(f"needs the gate {gate}:" in text for gate in needs["gates"])]
            yield from (f"{shape} with {flag}: {text}" for text in found if text not in gated)
            if not gated:
                yield f"{shape} with {flag}: needs no gate"


def images():
    """Returns sentences about pages and files that use another name of an image than the manifests."""
    known = {f"{name}:{version()}" for name in ("leeway", "leeway-cuda", "leeway-torch")}
    files = [*(runs.SOURCE / "docs").glob("*.md"), *(f for f in (runs.SOURCE / "deploy").rglob("*") if f.is_file())]
    for file in files:
        text = file.read_text(encoding="utf-8")
        for image in set(re.findall(r"(?:-t |-image |image: |docker-image |:-)(leeway[\w-]*(?::[\w.]+)?)(?![\w/])", text)):
            if image not in known:
                yield f"{file.relative_to(runs.SOURCE)}: the image {image} is none of {sorted(known)}"


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rendered = manifests.everything()
    wrong = [f"{name}: {text}" for name, objects in rendered.items() for text in findings(objects)]
    wrong += [*two_runs(), *optional(), *images()]
    return manifests.verdict(wrong, f"{len(rendered)} sets of manifests are in order")


if __name__ == "__main__":
    runs.ends_with(main)
