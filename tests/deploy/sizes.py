#!/usr/bin/python3
"""`leeway plan --kubernetes`: an overlay with it starts what the job wants, in every shape, with memory for it.

    tests/deploy/sizes.py
"""

import os
import pathlib
import re
import subprocess
import tempfile

import lint
import manifests
import workloads
from manifests import DEPLOY, SHAPES, runs, yaml

# Other numbers than the manifests'.
JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: sizes}
model:
  layers: [{dense: {units: 2000}}, {relu: {}}, {dense: {units: 10}}]
  loss: softmax_cross_entropy
data:
  train: {type: generator, examples: 20000, shape: [784], classes: 10}
  batch_size: 64
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: adam, learning_rate: 0.001}
servers: {count: 3, replicas: 2}
workers: {count: 5, threads: 4}
stop: {epochs: 1}
"""


def plan(job, *more):
    command = [runs.BIN / "leeway", "plan", job, "--kubernetes", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    runs.check(done.returncode == 0 and not done.stderr, f"plan --kubernetes says {done.stderr or 'nothing else'}")
    return done.stdout


def overlay(folder, shape, components):
    """As a user would have it: the job, a shape, the component beside the job."""
    at = os.path.relpath(DEPLOY, os.path.realpath(folder))
    generator = {"name": "leeway-job", "namespace": "leeway", "behavior": "replace", "files": ["job.yaml"]}
    content = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [f"{at}/{shape}"],
               "components": [*(f"{at}/components/{name}" for name in components)], "configMapGenerator": [generator]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return content


def render_with(folder, content, sizes):
    content = {**content, "components": content["components"] + (["sizes"] if sizes else [])}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return manifests.render(folder)


def memory_of(objects):
    """{component: (request, limit, cpu)} of all pods of it, which are alike."""
    found = {}
    for pod in workloads.pods(objects):
        resources = pod.container["resources"]
        found.setdefault(pod.component, set()).add(
            (resources["requests"]["memory"], resources["limits"]["memory"], str(resources["requests"]["cpu"])))
    return {component: sizes.pop() for component, sizes in found.items() if len(sizes) == 1}


def mebibytes(text):
    return int(re.fullmatch(r"(\d+)Mi", text)[1])


def check_shape(folder, shape):
    content = overlay(folder, shape, [])
    runs.check(any("the job wants" in text for text in lint.findings(render_with(folder, content, False))),
               f"{shape}: without the component the numbers are not the job's")
    objects = render_with(folder, content, True)
    runs.check(not (wrong := lint.findings(objects)), f"{shape}: with it all is in order {wrong}")
    memory = memory_of(objects)
    runs.check(set(memory) == {"server", "worker"}, f"{shape}: each kind of pod has one size {memory}")
    # 1.6 M parameters; each of 2 servers has them all when the third has left, in two versions with two slots.
    server, worker = mebibytes(memory["server"][0]), mebibytes(memory["worker"][0])
    runs.check(192 <= server <= 512 and 256 <= worker <= 640, f"{shape}: {server} and {worker} MiB are about right")
    runs.check(all(request == limit for request, limit, _ in memory.values()), f"{shape}: limits are what is requested")
    runs.check(memory["worker"][2] == "4", f"{shape}: a worker has a processor for each thread")
    return memory


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "job.yaml").write_text(JOB, encoding="utf-8")
        (folder / "sizes").mkdir()
        (folder / "sizes/kustomization.yaml").write_text(plan(folder / "job.yaml"), encoding="utf-8")
        memory = [check_shape(folder, shape) for shape in (*SHAPES, "overlays/kubeflow-cluster")]
        runs.check(all(sizes == memory[0] for sizes in memory), f"all shapes have the same sizes {memory[0]}")
        sizes = plan(folder / "job.yaml", "--set", "workers.device=cuda")
        (folder / "sizes/kustomization.yaml").write_text(sizes, encoding="utf-8")
        gpu = render_with(folder, overlay(folder, "jobset", ["gpu"]), True)
        more = mebibytes(memory_of(gpu)["worker"][0]) - mebibytes(memory[0]["worker"][0])
        runs.check(more >= 2000, f"with a GPU a worker has {more} MiB more for CUDA's libraries")
        limits = [pod.container["resources"]["limits"] for pod in workloads.pods(gpu) if pod.component == "worker"]
        runs.check(limits and all(str(limit.get("nvidia.com/gpu")) == "1" for limit in limits), "a GPU stays requested")
    return 0


if __name__ == "__main__":
    runs.ends_with(main)
