#!/usr/bin/python3
"""`leeway kubernetes` starts what the job wants, in every shape, with enough memory; and what it refuses.

    tests/deploy/sizes.py
"""

import base64
import pathlib
import re
import subprocess
import tempfile

import lint
import manifests
import workloads
from manifests import SHAPES, runs

# The numbers differ from those of the sample.
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


def memory_of(objects):
    """Returns {component: (request, limit, cpu)}; all pods of a component are alike."""
    found = {}
    for pod in workloads.pods(objects):
        resources = pod.container["resources"]
        found.setdefault(pod.component, set()).add(
            (resources["requests"]["memory"], resources["limits"]["memory"], str(resources["requests"]["cpu"])))
    return {component: sizes.pop() for component, sizes in found.items() if len(sizes) == 1}


def mebibytes(text):
    return int(re.fullmatch(r"(\d+)Mi", text)[1])


def check_shape(job, shape, *more):
    objects = manifests.render(job, *manifests.flags_of(shape, ["tls", *more]))
    runs.check(not (wrong := lint.findings(objects)), f"{shape}: all is in order {wrong}")
    memory = memory_of(objects)
    runs.check(set(memory) == {"server", "worker"}, f"{shape}: each kind of pod has one size {memory}")
    # 1.6 M parameters. Once the third server has left, each of the other 2 has all of them, in two versions with two
    # slots.
    server, worker = mebibytes(memory["server"][0]), mebibytes(memory["worker"][0])
    runs.check(192 <= server <= 512 and 256 <= worker - (2560 if more else 0) <= 640,
               f"{shape}: {server} and {worker} MiB are about right")
    runs.check(all(request == limit for request, limit, _ in memory.values()), f"{shape}: limits are what is requested")
    runs.check(memory["worker"][2] == "4", f"{shape}: a worker has a processor for each thread")
    return objects, memory


def check_all_reduce(job, shape, servers):
    """Each worker needs the memory of a server as well, and server 0 only that of its process."""
    objects = manifests.render(job, *manifests.flags_of(shape, ["tls"]), "--set", "topology.type=all_reduce")
    runs.check(not (wrong := lint.findings(objects)), f"{shape} with all_reduce: all is in order {wrong}")
    memory = memory_of(objects)
    server, worker = (mebibytes(memory[component][0]) for component in ("server", "worker"))
    before = [mebibytes(servers[component][0]) for component in ("server", "worker")]
    runs.check(server == 256, f"{shape}: the coordinator has {server} MiB")
    runs.check(before[1] + 64 <= worker < sum(before), f"{shape}: a worker has {worker} MiB, for {before} apart")
    runs.check(memory["worker"][2] == "4500m", f"{shape}: a worker has a processor for each thread, and half a one to serve")


REFUSED = [
    (["--name", "Sizes"], "--name Sizes: must have only lowercase letters, digits and hyphens"),
    (["--name", "x" * 60], "--name " + "x" * 60 + ": has 60 characters, but may have at most 25"),
    (["--image", "leeway 1"], "--image leeway 1: is not an image"),
    (["--storage", "much"], "--storage much: is not a number of bytes"),
    (["--worker-storage", "some"], "--worker-storage some: is not a number of bytes"),
    (["--worker-memory", "0"], "--worker-memory 0: is not a number of bytes"),
    (["--data-claim", "my_data"], "--data-claim my_data: must have only lowercase letters"),
    (["--secrets", "-keys"], "--secrets -keys: must have only lowercase letters"),
    (["--namespace", "a.b"], "--namespace a.b: must have only lowercase letters"),
    (["--shape", "statefulset", "--queue", "all"], "--queue: Kueue would admit the servers of --shape statefulset without"),
    (["--shape", "volcano", "--restart-job"], "--restart-job: --shape volcano has no failure policy of JobSet"),
    (["--alerts"], "--alerts: needs --namespace"),
    (["--gpus", "2"], "--gpus 2: a worker computes on one GPU"),
    (["--set", "workers.device=cuda", "--gpus", "0"], "--gpus 0: the job says workers.device: cuda"),
    (["--run-dir", "s3://a", "--store-secret", "keys"], "--run-dir: "),
    (["--run-dir", "s3://runs/a"], "--store-secret: required with an object store"),
    (["--name", "first-server"], "--name first-server: objects of a run first would have this name"),
    (["--secrets", ""], "--secrets: the value is empty"),
    (["--set", "transport.type=shm"], "transport.type: pods share no memory"),
    (["--set", "workers.device=cuda:1"], "workers.device: cuda:1: a pod's only GPU is cuda:0"),
    (["--set", "data.train={type: csv, files: /data/a.csv}"], "the job reads /data/a.csv: a worker's pod reads"),
    (["--file", "x.py"], "--file: the job has no program that could use the file"),
    (["--set", "security.tls.mode=none"], "security.tls.mode=none: contradicts the pods' certificates: use --insecure"),
    (["--set", "security.tls.mode=mtls", "--insecure"], "security.tls.mode=mtls: with --insecure the pods mount no such file"),
    (["--set", "security.token_file=token", "--insecure"], "security.token_file=token: with --insecure the pods mount no"),
    (["--data", "s3://a"], "--data: "),
    (["--keys", "/none"], "/none/server/ca.crt"),
    (["--", "python3", "x.py"], "-- python3: the job's model is Leeway's own"),
    (["--shape", "helm"], "--shape: helm not in {jobset,statefulset,kubeflow,volcano,tfjob}"),
]


def check_refused(job):
    """What Kubernetes would refuse is reported before anything is printed, with the flag."""
    for flags, said in REFUSED:
        image = [] if "--image" in flags else ["--image", "leeway:1"]
        done = subprocess.run([str(runs.BIN / "leeway"), "kubernetes", str(job), *image, *flags], capture_output=True,
                              text=True, check=False)
        runs.check(done.returncode == 2 and said in done.stderr and not done.stdout,
                   f"{' '.join(flags)}: {done.returncode} {done.stderr.strip()}")


def check_keys(job, folder):
    """--keys prints the Secrets that the pods mount, with the folder's content."""
    subprocess.run([str(runs.BIN / "leeway"), "certificates", str(folder)], check=True, capture_output=True)
    objects = manifests.render(job, *manifests.flags_of("jobset", ["tls"]), "--secrets", "mine", "--keys", folder)
    peers = manifests.render(job, *manifests.flags_of("jobset", ["tls"]), "--secrets", "mine", "--keys", folder, "--set",
                             "topology.type=all_reduce")
    names = lambda some: {o["metadata"]["name"] for o in manifests.of_kind(some, "Secret")}
    runs.check(names(objects) == {"mine-server-tls", "mine-worker-tls", "mine-token"}, f"the Secrets {names(objects)}")
    runs.check(names(peers) == {"mine-server-tls", "mine-peer-tls", "mine-token"}, f"with all_reduce {names(peers)}")
    for name, files in manifests.SECRETS.items():
        some = peers if "peer" in name else objects
        data = manifests.find(some, "Secret", name.replace("leeway", "mine"))["data"]
        role = name.removeprefix("leeway-").removesuffix("-tls")
        at = folder if role == "token" else folder / role
        runs.check(data == {file: base64.b64encode((at / file).read_bytes()).decode() for file in files}, f"Secret {name}")


def check_program():
    """The ConfigMap and the pods have the same files and words. The model's memory cannot be known."""
    objects = manifests.render(manifests.PROGRAM, *manifests.flags_of("jobset", ["tls"]), *manifests.OWN)
    script = manifests.PROGRAM.with_suffix(".py").read_text(encoding="utf-8")
    runs.check(manifests.find(objects, "ConfigMap", "torch-mnist-program")["data"] == {"torch_mnist.py": script}, "its file")
    worker = next(pod for pod in workloads.pods(objects) if pod.component == "worker")
    runs.check(worker.container["command"] == ["python3", "torch_mnist.py"], "its words")
    wanted = [word for word in manifests.OWN if word not in ("--worker-memory", "2Gi")]
    done = subprocess.run([str(runs.BIN / "leeway"), "kubernetes", str(manifests.PROGRAM), "--image", "leeway:1",
                           *map(str, wanted)], capture_output=True, text=True, check=False)
    runs.check(done.returncode == 2 and "give --server-memory and --worker-memory" in done.stderr, done.stderr.strip())
    done = subprocess.run([str(runs.BIN / "leeway"), "kubernetes", str(manifests.PROGRAM), "--image", "leeway:1", "--set",
                           "topology.type=all_reduce", *map(str, wanted[2:])], capture_output=True, text=True, check=False)
    runs.check(done.returncode == 2 and "give --worker-memory" in done.stderr, done.stderr.strip())


def main():
    with tempfile.TemporaryDirectory() as temporary:
        job = pathlib.Path(temporary, "job.yaml")
        job.write_text(JOB, encoding="utf-8")
        memory = [check_shape(job, shape)[1] for shape in SHAPES]
        runs.check(all(sizes == memory[0] for sizes in memory), f"all shapes have the same sizes {memory[0]}")
        for shape in SHAPES:
            check_all_reduce(job, shape, memory[0])
        objects, _ = check_shape(job, "jobset", "gpu")
        limits = [pod.container["resources"]["limits"] for pod in workloads.pods(objects) if pod.component == "worker"]
        runs.check(limits and all(str(limit.get("nvidia.com/gpu")) == "1" for limit in limits), "a GPU is requested")
        runs.check(manifests.job_of(objects)["workers"]["device"] == "cuda", "and the job wants it")
        check_refused(job)
        check_keys(job, pathlib.Path(temporary, "keys"))
        check_program()
    return 0


if __name__ == "__main__":
    runs.ends_with(main)
