"""The objects that `leeway kubernetes` prints (deploy/kubernetes)."""

import functools
import itertools
import pathlib
import re
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
DIGITS = DEPLOY / "digits.yaml"
# Flags by their purpose. A StatefulSet and a Job are in no queue, because Kueue would admit one without the other.
FEATURES = {"data": ["--data-claim", "leeway-data"], "tls": [], "gpu": ["--gpus", "1"], "queue": ["--queue", "leeway"],
            "alerts": ["--alerts"], "resume": ["--resume"],
            "store": ["--run-dir", "s3://models/runs", "--store-secret", "store", "--store-port", "9000"],
            "class": ["--storage-class", "fast", "--access-mode", "ReadWriteOnce", "--storage", "1Gi"]}
# A run in a store has no claim, and so no storage class.
ALL = [feature for feature in FEATURES if feature != "class"]
# The data of a store is not read to compute the memory.
STORED = ["--data", "s3://models/data", "--store-secret", "store", "--server-memory", "512Mi", "--worker-memory", "1Gi",
          "--worker-storage", "8Gi"]
# A PyTorch script's job.
PROGRAM = runs.SOURCE / "examples/python/torch_mnist.yaml"
OWN = ["--server-memory", "512Mi", "--worker-memory", "2Gi", "--file", PROGRAM.with_suffix(".py"), "--", "python3",
       "torch_mnist.py"]
NAMESPACE = "leeway"
INSTANCE = "app.kubernetes.io/instance"
# What `leeway certificates` makes and docs/kubernetes.md puts into the cluster.
SECRETS = {**{f"leeway-{role}-tls": ("ca.crt", "tls.crt", "tls.key") for role in ("server", "worker", "peer")},
           "leeway-token": ("token",)}
# A job whose workers hold the blocks.
ALL_REDUCE = ["topology.type=all_reduce", "servers.replicas=2"]


class Loader(yaml.SafeLoader):
    """Reads YAML 1.2 as Kubernetes does: `on` and `no` are words."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def load(text):
    return [document for document in yaml.load_all(text, Loader) if document]


@functools.cache
def version():
    text = (runs.SOURCE / "common/protocol.h").read_text(encoding="utf-8")
    return re.search(r'kVersion\[\] = "([^"]+)"', text).group(1)


def render(*arguments):
    """Returns the objects that `leeway kubernetes` prints."""
    done = subprocess.run([str(runs.BIN / "leeway"), "kubernetes", *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise runs.Failed(f"leeway kubernetes {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return load(done.stdout)


def shared():
    """Returns what the runs of a namespace have in common, and docs/kubernetes.md makes once."""
    named = lambda name, **more: {"name": name, "namespace": NAMESPACE, **more}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": named("leeway-data"),
             "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "50Gi"}}}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": named("store"),
             "stringData": {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}}]


def flags_of(shape, features):
    """Returns the flags of `leeway kubernetes` for a shape with some of FEATURES."""
    worker_image = "leeway-cuda" if "gpu" in features else "leeway"
    flags = ["--shape", shape, "--namespace", NAMESPACE, "--image", f"leeway:{version()}",
             "--worker-image", f"{worker_image}:{version()}"]
    for feature in features:
        flags += FEATURES[feature] if feature != "queue" or shape != "statefulset" else []
    return flags if "tls" in features else [*flags, "--insecure"]


def compose(shape, features=(), run="leeway", job=DIGITS, sets=()):
    """Returns the objects of a run, as a user would print them."""
    words = [word for value in sets for word in ("--set", value)]
    return render(job, "--name", run, "--data", runs.SOURCE / "data", *flags_of(shape, features), *words)


def stored(shape):
    """Returns the objects of a run whose data is in an object store."""
    return render(DIGITS, "--name", "leeway", *flags_of(shape, ["tls"]), *STORED)


def with_keys(shape, *more):
    """Returns the objects of a run with its Secrets."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(runs.BIN / "leeway"), "certificates", folder], check=True, capture_output=True)
        return render(DIGITS, "--name", "leeway", "--data", runs.SOURCE / "data", *flags_of(shape, ["tls"]), "--keys", folder,
                      *more)


def all_reduce(shape, features=("data", "tls")):
    """Returns the objects of a run whose workers hold the blocks."""
    return compose(shape, features, sets=ALL_REDUCE)


def everything():
    """Returns {name: objects} of each shape, of each shape with each feature, and of each shape with all features."""
    found = {shape: compose(shape) for shape in SHAPES}
    for shape, feature in itertools.product(SHAPES, FEATURES):
        found[f"{shape} with {feature}"] = compose(shape, [feature])
    for shape in SHAPES:
        found[f"{shape} with all"] = compose(shape, ALL)
        found[f"{shape} with data of a store"] = stored(shape)
        found[f"{shape} with keys"] = with_keys(shape)
        found[f"{shape} with all_reduce"] = all_reduce(shape)
        found[f"{shape} with all_reduce and all"] = all_reduce(shape, ALL)
        found[f"{shape} with all_reduce and no keys"] = all_reduce(shape, ())
        found[f"{shape} with all_reduce and keys"] = with_keys(shape, "--set", ALL_REDUCE[0])
        found[f"{shape} with a program"] = render(PROGRAM, "--name", "leeway", *flags_of(shape, ["tls", "data"]), *OWN)
    return found


def of_kind(objects, kind, group=None):
    return [o for o in objects if o["kind"] == kind and (group is None or o["apiVersion"].split("/")[0] == group)]


def find(objects, kind, name):
    return next((o for o in of_kind(objects, kind) if o["metadata"]["name"] == name), None)


def job_of(objects):
    """Returns the job file of the ConfigMap, which names the servers and workers that it wants."""
    for config in of_kind(objects, "ConfigMap"):
        if "job.yaml" in config.get("data", {}):
            return load(config["data"]["job.yaml"])[0]
    raise runs.Failed("no ConfigMap holds job.yaml")


def workers_hold(objects):
    """Whether the job's workers hold the blocks. A missing job is reported elsewhere."""
    try:
        return job_of(objects).get("topology", {}).get("type", "servers") != "servers"
    except (runs.Failed, KeyError):
        return False


def holders_of(objects):
    """Returns the component whose pods hold the blocks."""
    return "worker" if workers_hold(objects) else "server"


def matches(selector, labels):
    """Supports matchLabels only, which is all that the manifests use."""
    return all(labels.get(key) == value for key, value in (selector or {}).items())


def verdict(wrong, good):
    """Prints what is wrong, or that all is good. Returns the exit code."""
    print("\n".join(wrong) or good)
    return 1 if wrong else 0
