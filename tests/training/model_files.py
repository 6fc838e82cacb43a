#!/usr/bin/python3
"""Weights from PyTorch into a job and out again, and models as ONNX: the outputs must be PyTorch's. Without PyTorch, or
a program that runs ONNX, the test is skipped and says so."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy

import runs
from torch_models import read_model

# For outputs of about 1; both sides compute in float32.
TOLERANCE = 1e-4

JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: files, seed: 5}}
model:
  layers:
    - {layer}
  loss: softmax_cross_entropy
data:
  train: {source}
  test: {source}
  batch_size: {examples}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
# Too small for any weight to change: only running statistics do.
update: {{type: sgd, learning_rate: 1e-30}}
servers: {{count: 2}}
workers: {{count: 1}}
stop: {{clocks: 1}}
"""


def skip(what):
    print(f"SKIPPED: {what} is not installed")
    sys.exit(runs.SKIPPED)


def modules():
    try:
        import torch
        import torch_modules
    except ImportError:
        skip("PyTorch (python3-torch)")
    torch.set_num_threads(1)
    torch.manual_seed(3)
    return torch, torch_modules


def write_safetensors(path, tensors):
    """Returns {name: array}, by the format's definition."""
    header, values = {}, b""
    for name, array in tensors.items():
        dtype = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64"}[str(array.dtype)]
        blob = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(values), len(values) + len(blob)]}
        values += blob
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)


def randomize(torch, module):
    """Draws weights that tell all axes apart and give outputs of about 1, and statistics that are neither 0 nor 1."""
    for name, value in module.state_dict().items():
        if "running_mean" in name or name.endswith("bias"):
            value.copy_(torch.randn(value.shape) * 0.2)
        elif "running_var" in name:
            value.copy_(torch.rand(value.shape) + 0.5)
        elif value.dim() == 1:
            value.copy_(torch.rand(value.shape) * 0.5 + 0.75)


def leeway(*arguments, expect=0):
    """Runs the command and returns its output."""
    done = subprocess.run([str(runs.BIN / "leeway"), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != expect:
        raise runs.Failed(f"leeway {' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class World:
    """A PyTorch module, a job with the same model, and examples."""

    def __init__(self, name):
        self.torch, torch_modules = modules()
        layer, self.examples, self.make = torch_modules.MODELS[name]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-test-"))
        self.module = self.make().eval()
        randomize(self.torch, self.module)
        self.job = self.folder / "job.yaml"
        x, labels = self.examples.write(self.folder)
        self.job.write_text(JOB.format(layer=layer, source=self.examples.source, examples=len(x)))
        self.inputs, self.labels = self.examples.inputs(self.torch, x, self.torch.float32), labels.ravel()

    def outputs(self, module):
        with self.torch.no_grad():
            return module(self.inputs).numpy()

    def loss(self, module):
        scores = self.torch.tensor(self.outputs(module).astype("f8"))
        return float(self.torch.nn.functional.cross_entropy(scores, self.torch.tensor(self.labels)))

    def write(self, name, module, change=lambda array: array):
        path = self.folder / name
        write_safetensors(path, {key: change(value.numpy()) for key, value in module.state_dict().items()})
        return path

    def check_loss(self, what, module, *arguments):
        document = self.folder / "evaluation.json"
        leeway("evaluate", *arguments, "--data", self.folder, "--json", document)
        ours, theirs = json.loads(document.read_text())["test_loss"], self.loss(module)
        runs.check(abs(ours - theirs) <= TOLERANCE * max(1, theirs), f"{what}: loss {ours:.6f}, PyTorch {theirs:.6f}")

    def train(self, file):
        """Trains from this file one step, which changes only running statistics, in Leeway and in PyTorch."""
        run = runs.Run(self.job, data=self.folder, sets=[f"model.initial={file.name}"], parent=self.folder)
        run.start().wait(whole=False)
        self.module.train()
        self.outputs(self.module)
        self.module.eval()
        return run

    def check_outputs(self, what, ours, theirs):
        apart, size = float(numpy.abs(ours - theirs).max()), float(numpy.abs(theirs).max())
        runs.check(ours.shape == theirs.shape and apart <= TOLERANCE * max(1, size),
                   f"{what}: outputs up to {size:.3f}, {apart:.1e} apart")

    def end(self):
        shutil.rmtree(self.folder)


def round_trip(name):
    world = World(name)
    theirs = world.write("theirs.safetensors", world.module)
    world.check_loss("as PyTorch writes it", world.module, world.job, "--model", theirs)
    run = world.train(theirs)
    world.check_loss("trained from it", world.module, run.dir)
    ours = world.folder / "ours.safetensors"
    leeway("export", run.dir, "--format", "pytorch", "-o", ours, "--data", world.folder)
    loaded = world.make().eval()
    loaded.load_state_dict({key: world.torch.tensor(value) for key, value in read_model(ours).items()}, strict=True)
    world.check_outputs("loaded by PyTorch", world.outputs(loaded), world.outputs(world.module))
    world.check_loss("read again", world.module, run.dir, "--model", ours)
    world.check_loss("Leeway's own", world.module, run.dir, "--model", run.dir / "model.safetensors")
    world.end()


def sequential():
    """Weights of an nn.Sequential, whose names are numbers, and in other dtypes."""
    world = World("lenet")
    module = world.module = modules()[1].sequential_lenet().eval()
    world.check_loss("numbered", module, world.job, "--model", world.write("numbered.safetensors", module))
    doubles = world.write("doubles.safetensors", module, lambda array: array.astype("f8"))
    world.check_loss("of doubles", module, world.job, "--model", doubles)
    halves = world.write("halves.safetensors", module, lambda array: array.astype("f2"))
    with world.torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.half().float())
    world.check_loss("of halves", module, world.job, "--model", halves)
    world.end()


def resumed():
    """A job that continues from a checkpoint does not read the file again, nor need it."""
    world = World("lenet")
    theirs = world.write("theirs.safetensors", world.module)
    sets = [f"model.initial={theirs.name}", "checkpoint.every={clocks: 1}", "update.learning_rate=0.1"]
    run = runs.Run(world.job, data=world.folder, sets=sets, parent=world.folder)
    run.start(more=["stop.clocks=3"]).wait(whole=False)
    theirs.unlink()
    run.start(resume=True, more=["stop.clocks=6"]).wait(whole=False)
    straight = runs.Run(world.job, data=world.folder, sets=sets, name="straight", parent=world.folder)
    theirs = world.write("theirs.safetensors", world.module)
    straight.start(more=["stop.clocks=6"]).wait(whole=False)
    digests = [each.summary()["weights_sha256"] for each in (run, straight)]
    runs.check(digests[0] == digests[1], f"resumed without the file: the weights are those of a whole run, {digests[0][:12]}")
    world.end()


def refused():
    """Mistakes are refused before anything is started, and without a run folder."""
    world = World("lenet")
    module = world.module
    cases = {"missing": ({"fc3.bias"}, {}, "1 tensor is missing: fc3.bias"),
             "left-over": ({}, {"fc4.bias": numpy.zeros(3, "f4")}, "1 tensor does not belong to the model: fc4.bias"),
             "classes": ({"fc3.weight", "fc3.bias"},
                         {"fc3.weight": numpy.zeros((7, 84), "f4"), "fc3.bias": numpy.zeros(7, "f4")},
                         "the file's model has 7 classes, but the job's has 10"),
             "not-finite": ({"fc3.bias"}, {"fc3.bias": numpy.full(10, numpy.inf, "f4")}, "tensor 'fc3.bias' has a value at element 0")}
    for name, (without, more, told) in cases.items():
        path = world.folder / f"{name}.safetensors"
        write_safetensors(path, {key: value.numpy() for key, value in module.state_dict().items() if key not in without} | more)
        expect_refusal(world, path, told)
    whole = world.write("whole.safetensors", module).read_bytes()
    (world.folder / "short.safetensors").write_bytes(whole[:-4])
    expect_refusal(world, world.folder / "short.safetensors", "the file may be truncated", code=runs.PERMANENT)
    expect_refusal(world, world.folder / "none.safetensors", "none.safetensors", code=runs.TEMPORARY)
    world.end()


def expect_refusal(world, path, told, code=runs.USAGE):
    place = "model.initial"
    for command in (["plan"], ["train", "--run-dir", world.folder / "never"]):
        said = leeway(*command, world.job, "--data", world.folder, "--set", f"model.initial={path.name}", expect=code)
        runs.check(told in said and place in said, f"{command[0]}: {said.strip().splitlines()[-1]}")
    runs.check(not (world.folder / "never").exists(), "no run folder was made")


def onnx_runtime():
    try:
        import cv2
        import onnx
    except ImportError:
        skip("what runs ONNX (python3-onnx, python3-opencv)")
    return onnx, cv2


def onnx_outputs(name):
    onnx, cv2 = onnx_runtime()
    world = World(name)
    run = world.train(world.write("theirs.safetensors", world.module))
    path = world.folder / "model.onnx"
    leeway("export", run.dir, "--format", "onnx", "-o", path, "--shape", ",".join(map(str, world.examples.image)))
    onnx.checker.check_model(onnx.load(str(path)), full_check=True)
    net = cv2.dnn.readNetFromONNX(str(path))
    net.setInput(world.inputs.numpy())
    world.check_outputs("ONNX", net.forward(), world.outputs(world.module))
    world.end()


CASES = {f"torch-{name}": (lambda name=name: round_trip(name))
         for name in ("lenet", "mlp", "resnet18", "mobilenet-v2", "mixed", "gpt2")}
CASES |= {f"onnx-{name}": (lambda name=name: onnx_outputs(name))
          for name in ("lenet", "mlp", "resnet18", "mobilenet-v2", "mixed")}
CASES |= {"sequential": sequential, "resumed": resumed, "refused": refused}

if __name__ == "__main__":
    runs.main(CASES)
