#!/usr/bin/python3
"""Runs the commands of docs/kubernetes.md as far as that is possible without a cluster. Those of the five minutes run
in fake pods; the others must name what the manifests and `leeway certificates` make.

    tests/deploy/page.py
"""

import pathlib
import re
import shlex
import subprocess
import tempfile

import admission
import fake_cluster
import lint
import manifests
import workloads
from manifests import SECRETS, runs

PAGE = runs.SOURCE / "docs/kubernetes.md"
KINDS = {"jobset": "JobSet", "statefulset": "StatefulSet", "pvc": "PersistentVolumeClaim",
         "configmap": "ConfigMap"}
WORKLOADS = ("JobSet", "StatefulSet", "Job", "TrainJob", "TFJob")
ROW = re.compile(r"^\| `(\w+)` \| `(\S+):7100` \| `(\w+)/(\S+)`.* \| `([^`]+)` \|$", re.MULTILINE)
MINUTES = "## Five minutes to a running job"


def commands(text):
    """Returns the lines of the page's shell blocks, with continuations joined."""
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    lines = "\n".join(block for kind, block in blocks if not kind).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


def words_of(command):
    """Returns the words without `kubectl` and its namespace."""
    words = command[1:]
    return words[2:] if words[:1] == ["-n"] else words


def before(words, *ends):
    """Returns the words before the first of `ends`."""
    return words[: next((i for i, word in enumerate(words) if word in ends), len(words))]


class Page:
    """Does what kubectl would do with one set of objects."""

    def __init__(self):
        self.cluster = None

    def apply(self, words):
        """Applies what `leeway kubernetes` prints, in the namespace of the fake cluster."""
        job, *flags = words[: words.index("|")]
        objects = manifests.render(runs.SOURCE / job, "--data", runs.SOURCE / "data", "--namespace", manifests.NAMESPACE,
                                   *flags)
        runs.check(not lint.findings(objects), f"{job} is in order")
        self.cluster = fake_cluster.Cluster(objects, run="digits")

    def wait(self, condition, target):
        kind, _, name = target.partition("/")
        found = [o for o in self.cluster.objects if o["kind"].lower() == kind and o["metadata"]["name"] == name]
        runs.check(condition == "--for=condition=Completed" and len(found) == 1, f"waits for {target}")
        summary = self.cluster.finish(240)
        runs.check(summary["test_accuracy"] > 0.95, f"test accuracy {summary['test_accuracy']:.4f}")
        runs.check(all(pod.codes == [0] for pod in self.cluster.pods), "all pods have ended with 0")

    def logs(self, target):
        name = target.removeprefix("job/")
        pod = next(p for p in self.cluster.pods if p.pod.labels.get("batch.kubernetes.io/job-name") == name)
        runs.check(pod.said().rstrip().endswith("done"), f"the log of {pod} ends with `done`")

    def run(self, command):
        words = words_of(command)
        print("$", shlex.join(command), flush=True)
        if command[:2] == ["leeway", "kubernetes"]:
            self.apply(command[2:])
        elif words[0] == "wait":
            self.wait(words[1], words[2])
        elif words[0] == "logs":
            self.logs(words[1])
        else:
            raise runs.Failed("a command that this test does not know")


def five_minutes(text):
    section = text.split(MINUTES)[1].split("\n## ")[0]
    found = commands(section)
    runs.check(len(found) == 3, f"{len(found)} commands")
    page = Page()
    try:
        for command in found:
            page.run(command)
    except BaseException:
        if page.cluster:
            page.cluster.__exit__(runs.Failed)
        raise
    page.cluster.__exit__(None)


def check_secrets(found):
    """Checks that the page puts into Secrets what the pods mount."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(runs.BIN / "leeway"), "certificates", f"{folder}/keys"], check=True, capture_output=True)
        made = {}
        for command in found:
            words = words_of(command)
            if words[:2] != ["create", "secret"]:
                continue
            source = pathlib.Path(folder, next(w for w in words if w.startswith("--from-file=")).partition("=")[2])
            made[words[3]] = {f.name for f in source.iterdir()} if source.is_dir() else {source.name}
            runs.check(source.exists(), f"{words[3]} from {source.name}")
    wanted = {name: set(files) for name, files in SECRETS.items()}
    runs.check(made == wanted, f"the Secrets are {sorted(made)}")


def check_names(found):
    """Checks that the workloads, claims and addresses that commands name are those of a run called `first`."""
    targets, addresses = set(), set()
    for shape in ("jobset", "statefulset"):
        objects = manifests.compose(shape, run="first")
        targets |= {f"{kind}/{o['metadata']['name']}" for kind, word in KINDS.items() for o in manifests.of_kind(objects, word)}
        for group in workloads.groups(objects):
            targets.add(f"{group.kind.lower()}/{group.name}")
            for index in range(group.count):
                addresses.update(f"{name}:7100" for name in workloads.host_names(group.pod(index), objects))
    for command in found:
        words = words_of(command)
        if command[0] == "kubectl" and words[0] in ("exec", "scale", "rollout", "delete"):
            named = [word for word in before(words, "--") if re.fullmatch(r"[a-z]+/[\w.-]+", word)]
            runs.check(named and set(named) <= targets, f"{words[0]} of {' and '.join(named)}")
        for word in words:
            if re.fullmatch(r"[\w.-]+:7100", word):
                runs.check(word in addresses, f"{word} is a server")


def kubectl_name(owner):
    kind = "vcjob" if owner["apiVersion"].startswith("batch.volcano.sh") else owner["kind"].lower()
    return f"{kind}/{owner['metadata']['name']}"


def check_shapes(text):
    """Checks that the table has server 0, its pod and the workloads of a run `first` in each shape."""
    rows = ROW.findall(text)
    runs.check([row[0] for row in rows] == list(manifests.SHAPES), f"a table of the shapes {[row[0] for row in rows]}")
    for shape, address, kind, name, targets in rows:
        objects = manifests.compose(shape, run="first")
        group = next(g for g in workloads.groups(objects) if g.pod(0).component == "server")
        pod = group.pod(0)
        runs.check(address in workloads.host_names(pod, objects), f"{shape}: {address} is server 0")
        runs.check(name == (group.name if kind == "job" else pod.name), f"{shape}: {kind}/{name} is its pod")
        made = {kubectl_name(o) for o in objects if o["kind"] in WORKLOADS}
        runs.check(set(targets.split()) == made, f"{shape}: {targets} starts the pods")


def check_flags(found):
    """Checks that `leeway kubernetes` accepts each of its lines. Job, script, Secret and bucket of the reader have
    replacements."""
    stands_for = {"job.yaml": manifests.DIGITS, "SCRIPT": manifests.PROGRAM.with_suffix(".py"), "NAME": "store",
                  "s3://BUCKET/PREFIX": "s3://bucket/prefix"}
    lines = [command[2:] for command in found if command[:2] == ["leeway", "kubernetes"]]
    for words in lines:
        words = before(words, "|", ">")
        names = {**stands_for, "job.yaml": manifests.PROGRAM} if "--" in words else stands_for
        named = [names.get(word, word) for word in words]
        # With the memory stated, the data is not read.
        here = ["--server-memory", "1Gi", "--worker-memory", "1Gi"] if "--data" in words else ["--data", runs.SOURCE / "data"]
        manifests.render(runs.SOURCE / named[0], *here, *named[1:])
        print("leeway kubernetes", shlex.join(words))
    runs.check(len(lines) == 5, f"{len(lines)} lines of leeway kubernetes")


def span(versions):
    """Turns versions such as `0.8.2` into "0.8 to 0.12", and checks that no minor version between is missing."""
    minor = [tuple(map(int, version.split(".")[:2])) for version in versions]
    runs.check(minor == [(minor[0][0], number) for number in range(minor[0][1], minor[-1][1] + 1)], f"all of {minor}")
    return f"{minor[0][0]}.{minor[0][1]} to {minor[-1][0]}.{minor[-1][1]}"


def check_versions(text):
    """The page names the releases by whose schemas and rules the tests judge, and no others."""
    known = admission.table()["releases"]
    said = {"jobset": r"JobSet(?:\]\(\S+\))? (\d\.\d+ to \d\.\d+)", "trainer": r"Kubeflow Trainer (\d\.\d+ to \d\.\d+)"}
    for project, pattern in said.items():
        wanted, found = span(known[project]), set(re.findall(pattern, text.replace("\n", " ")))
        runs.check(found == {wanted}, f"{project} {wanted}, as the page says: {found}")
    fit = admission.table()["kueue"]
    runs.check(set(fit) == {f"trainer {version}" for version in known["trainer"]}, f"Kueue for {sorted(fit)}")
    for kueue in fit.values():
        ends = r"\b(?:or|to)\b"
        runs.check(re.search(rf"{kueue[0]} {ends} {kueue[-1]} for Trainer", text.replace("\n", " ")), f"Kueue {kueue}")


def main():
    text = PAGE.read_text(encoding="utf-8")
    fake_cluster.enter_node()
    check_secrets(commands(text))
    check_names(commands(text))
    check_shapes(text)
    check_versions(text)
    check_flags(commands(text))
    five_minutes(text)
    return 0


if __name__ == "__main__":
    runs.ends_with(main)
