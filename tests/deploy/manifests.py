"""The manifests of deploy/kubernetes, rendered as `kubectl apply -k` would."""

import functools
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402

try:
    import yaml
except ImportError:
    print("SKIPPED: python3-yaml is not installed")
    sys.exit(runs.SKIPPED)

DEPLOY = runs.SOURCE / "deploy/kubernetes"
SHAPES = ("jobset", "statefulset", "kubeflow", "volcano", "tfjob")
COMPONENTS = ("data", "tls", "gpu", "kueue", "monitoring", "mnist", "resume")
NAMESPACE = "leeway"
INSTANCE = "app.kubernetes.io/instance"
# What `leeway certificates` makes and docs/kubernetes.md puts into the cluster.
SECRETS = {"leeway-server-tls": ("ca.crt", "tls.crt", "tls.key"), "leeway-worker-tls": ("ca.crt", "tls.crt", "tls.key"),
           "leeway-token": ("token",)}


class Loader(yaml.SafeLoader):
    """YAML 1.2 as Kubernetes reads it: `on` and `no` are words."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def load(text):
    return [document for document in yaml.load_all(text, Loader) if document]


@functools.cache
def kubectl():
    """A kubectl whose kustomize knows `labels` and components, or the test is skipped aloud."""
    found = shutil.which("kubectl")
    if not found:
        print("SKIPPED: no kubectl is installed")
        sys.exit(runs.SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "kustomization.yaml").write_text("labels: [{pairs: {a: b}}]\n", encoding="utf-8")
        done = subprocess.run([found, "kustomize", folder], capture_output=True, text=True, check=False)
    if "unknown field" in done.stderr:
        print(f"SKIPPED: {found} is too old: {done.stderr.strip()}")
        sys.exit(runs.SKIPPED)
    return found


def render(folder):
    """The objects of a kustomization."""
    done = subprocess.run([kubectl(), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise runs.Failed(f"{folder}: {done.stderr.strip()}")
    return load(done.stdout)


@functools.cache
def shared():
    """What all runs of a namespace have in common, and docs/kubernetes.md applies once."""
    return render(DEPLOY / "namespace") + render(DEPLOY / "data")


def compose(shape, components, patches=(), run=None):
    """A shape with components, as an overlay of a user has them; `run` is the name of one beside the first."""
    with tempfile.TemporaryDirectory() as folder:
        at = os.path.relpath(DEPLOY, os.path.realpath(folder))
        overlay = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                   "resources": [f"{at}/{shape}"], "components": [f"{at}/components/{name}" for name in components],
                   "patches": list(patches)}
        if run:
            overlay |= {"namePrefix": run.removesuffix("leeway"),
                        "labels": [{"pairs": {INSTANCE: run}, "includeSelectors": True}]}
        pathlib.Path(folder, "kustomization.yaml").write_text(yaml.safe_dump(overlay), encoding="utf-8")
        return render(folder)


def everything():
    """{name: objects} of each shape, each shape with each component and with all, and each overlay."""
    found = {shape: render(DEPLOY / shape) for shape in SHAPES}
    for shape, component in itertools.product(SHAPES, COMPONENTS):
        found[f"{shape} with {component}"] = compose(shape, [component])
    for shape in SHAPES:
        found[f"{shape} with all"] = compose(shape, COMPONENTS)
    for overlay in sorted((DEPLOY / "overlays").iterdir()):
        found[f"overlays/{overlay.name}"] = render(overlay)
    return found


def of_kind(objects, kind, group=None):
    return [o for o in objects if o["kind"] == kind and (group is None or o["apiVersion"].split("/")[0] == group)]


def find(objects, kind, name):
    return next((o for o in of_kind(objects, kind) if o["metadata"]["name"] == name), None)


def job_of(objects):
    """The job file of the ConfigMap: the servers and workers that it wants."""
    for config in of_kind(objects, "ConfigMap"):
        if "job.yaml" in config.get("data", {}):
            return load(config["data"]["job.yaml"])[0]
    raise runs.Failed("no ConfigMap holds job.yaml")


def matches(selector, labels):
    """matchLabels only, which is all that the manifests use."""
    return all(labels.get(key) == value for key, value in (selector or {}).items())


def verdict(wrong, good):
    """Prints what is wrong, or that all is good; the exit code."""
    print("\n".join(wrong) or good)
    return 1 if wrong else 0
