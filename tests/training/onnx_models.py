#!/usr/bin/python3
"""Models of text, and other models that OpenCV cannot run, as ONNX. python3-onnx finds them well formed; they have the
weights that PyTorch gets, and the scores of Leeway and PyTorch. Without python3-onnx the test is skipped and says
so."""

import json
import pathlib
import shutil
import tempfile

import numpy

import model_files
import onnx_values
import runs
from torch_models import EXAMPLES, Characters, read_model

VOCABULARY = 30


class Arrays:
    """Examples that are numbers, in .npy files."""

    def __init__(self, *shape, classes=2):
        self.shape, self.classes = shape, classes
        self.source = "{type: numpy, features: x.npy, labels: y.npy}"

    def write(self, folder):
        random = numpy.random.default_rng(8)
        x, labels = random.normal(size=(EXAMPLES, *self.shape)).astype("f4"), random.integers(0, self.classes, EXAMPLES)
        labels[:self.classes] = numpy.arange(self.classes)
        numpy.save(folder / "x.npy", x)
        numpy.save(folder / "y.npy", labels)
        return (x.transpose(0, 3, 1, 2) if x.ndim == 4 else x), labels


def gpt(**settings):
    return f"gpt: {json.dumps({'vocabulary': VOCABULARY, 'layers': 2, 'width': 32, 'heads': 4} | settings)}"


def sequence(*layers):
    return f"sequence: {{layers: [{', '.join(layers)}]}}"


UNTIED = sequence(
    f"{{embedding: {{vocabulary: {VOCABULARY}, width: 24}}}}", "{position_embedding: {}}",
    "{residual: {layers: [{layer_norm: {bias: false}}, {attention: {heads: 3, bias: false}}], "
    "shortcut: [{dense: {units: 24, pointwise: true}}]}}",
    "{concat: {branches: [{layers: [{relu: {}}]}, {layers: [{dense: {units: 8, pointwise: true, bias: false}}, {tanh: {}}]}]}}",
    "{batch_norm: {}}", "{group_norm: {groups: 4}}", f"{{dense: {{units: {VOCABULARY}, pointwise: true}}}}")
BOTH_WAYS = sequence(
    f"{{name: words, embedding: {{vocabulary: {VOCABULARY}, width: 16}}}}",
    "{residual: {layers: [{attention: {heads: 2, causal: false, rotary: true}}]}}", "{layer_norm: {}}",
    "{tied_dense: {embedding: words}}")
# Turns pictures into rows of pixels, and back.
PIXELS = sequence(
    "{conv2d: {filters: 8, kernel: 1}}", "{position_embedding: {}}",
    "{residual: {layers: [{attention: {heads: 2, causal: false}}], shortcut: [{conv2d: {filters: 8, kernel: 1}}]}}",
    "{name: c_fc, dense: {units: 6, pointwise: true}}", "{gelu: {}}", "{flatten: {}}", "{dense: {units: 3}}")

INPUTS_FIRST = sequence("{conv2d: {filters: 2, kernel: 1}}", "{name: c_proj, dense: {units: 3}}")

# By name: the layer in the job, the examples, and the loss.
SOFTMAX = "softmax_cross_entropy"
MODELS = {
    "gpt": (gpt(), Characters(24, VOCABULARY), SOFTMAX),
    "gpt-rotary": (gpt(rotary=True, heads=2), Characters(17, VOCABULARY), SOFTMAX),
    "gpt-one-head": (gpt(heads=1, layers=1, bias=False, tanh_gelu=True, dropout=0.1), Characters(5, VOCABULARY), SOFTMAX),
    "untied": (UNTIED, Characters(9, VOCABULARY), SOFTMAX),
    "both-ways": (BOTH_WAYS, Characters(12, VOCABULARY), SOFTMAX),
    "pixels": (PIXELS, Arrays(4, 3, 5, classes=3), SOFTMAX),
    "inputs-first": (INPUTS_FIRST, Arrays(2, 4, 3, classes=3), SOFTMAX),
    "factorization-machine": ("factorization_machine: {factors: 5}", Arrays(7), "logistic"),
    "factors-of-pixels": (sequence("{conv2d: {filters: 2, kernel: 1}}", "{factor_interaction: {factors: 3}}"),
                          Arrays(2, 3, 4), "logistic"),
}


def onnx_package():
    try:
        import onnx
        import onnx.numpy_helper
        import onnx.shape_inference
    except ImportError:
        model_files.skip("python3-onnx")
    return onnx


def drawn(tensors):
    """Returns weights that tell all axes apart and give outputs of about 1: {name: array} with Leeway's names and
    shapes."""
    random = numpy.random.default_rng(9)

    def of(name, array):
        if "running_var" in name or (array.ndim == 1 and name.endswith("/weight")):
            return random.uniform(0.5, 1.5, array.shape)
        fan_in = 25 if array.ndim == 1 else numpy.prod(array.shape[:-1])
        return random.normal(size=array.shape) * fan_in ** -0.5
    return {name: of(name, array).astype("f4") for name, array in tensors.items()}


def loss_of(scores, labels, loss):
    """Returns the mean over the labels."""
    if loss == "logistic":
        return float(numpy.logaddexp(0, -scores.ravel() * (2 * labels.ravel() - 1)).mean())
    rows = scores.reshape(-1, scores.shape[-1])
    highest = rows.max(1)
    log_sums = highest + numpy.log(numpy.exp(rows - highest[:, None]).sum(1))
    return float((log_sums - rows[numpy.arange(len(rows)), labels.ravel()]).mean())


class World:
    """A run whose model has weights that the test has drawn."""

    def __init__(self, name):
        layer, examples, self.loss = MODELS[name]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-test-"))
        self.x, self.labels = examples.write(self.folder)
        job = self.folder / "job.yaml"
        job.write_text(model_files.JOB.format(layer=layer, source=examples.source, examples=len(self.x))
                       .replace(SOFTMAX, self.loss))
        first = self.train(job, "first")
        start = self.folder / "drawn.safetensors"
        model_files.write_safetensors(start, drawn(read_model(first.dir / "model.safetensors")))
        self.run = self.train(job, "run", f"model.initial={start.name}")

    def train(self, job, name, *sets):
        run = runs.Run(job, sets, data=self.folder, name=name, parent=self.folder)
        run.start().wait(whole=False)
        return run

    def exported(self, form, name):
        path = self.folder / name
        model_files.leeway("export", self.run.dir, "--format", form, "-o", path, "--data", self.folder)
        return path

    def evaluated(self):
        document = self.folder / "evaluation.json"
        model_files.leeway("evaluate", self.run.dir, "--data", self.folder, "--json", document)
        return json.loads(document.read_text())["test_loss"]


def check_shapes(model, x):
    runs.check(model.inferred_output() == model.output, f"shapes follow from the input's: {model.input} -> {model.output}")
    tokens = x.dtype.kind == "i"
    wanted = (model.onnx.TensorProto.INT64 if tokens else model.onnx.TensorProto.FLOAT, ["N", *x.shape[1:]])
    runs.check(model.input == wanted, f"the input is {wanted}")


def check_weights(model, theirs):
    """Checks that the weights are those of the export for PyTorch, each once; but a pointwise layer may be a
    convolution."""
    ours = {name: array for name, array in model.constants.items() if name in theirs}
    same = all(numpy.array_equal(array.ravel(), theirs[name].ravel()) for name, array in ours.items())
    runs.check(same and set(ours) == set(theirs), f"{len(theirs)} tensors are PyTorch's, each once: {', '.join(theirs)}")


def check_blind(model, x):
    """Checks that a causal model's scores do not depend on what follows."""
    other = x.copy()
    other[:, -1] = (other[:, -1] + 1) % VOCABULARY
    before, after = model.scores(x), model.scores(other)
    runs.check(numpy.array_equal(before[:, :-1], after[:, :-1]) and not numpy.array_equal(before, after),
               "another last token changes the last scores only")


def check_opencv(path, x, scores):
    """Checks that OpenCV has the same scores, if it is installed."""
    try:
        import cv2
    except ImportError:
        return print("python3-opencv is not installed: not run by it")
    net = cv2.dnn.readNetFromONNX(str(path))
    net.setInput(x)
    apart = float(numpy.abs(net.forward() - scores).max())
    return runs.check(apart <= model_files.TOLERANCE, f"OpenCV's scores are {apart:.1e} apart")


def same_scores(name):
    world = World(name)
    path = world.exported("onnx", "model.onnx")
    model = onnx_values.Model(onnx_package(), path)
    check_shapes(model, world.x)
    check_weights(model, read_model(world.exported("pytorch", "torch.safetensors")))
    scores = model.scores(world.x)
    alone = numpy.concatenate([model.scores(world.x[i:i + 1]) for i in range(len(world.x))])
    runs.check(numpy.allclose(scores, alone, rtol=0, atol=1e-12), "each example alone has the same scores")
    if name.startswith("gpt"):
        check_blind(model, world.x)
    if name == "factorization-machine":
        check_opencv(path, world.x, scores)
    ours, theirs = world.evaluated(), loss_of(scores, world.labels, world.loss)
    runs.check(abs(ours - theirs) <= model_files.TOLERANCE * max(1, theirs), f"loss {ours:.6f}, of the ONNX file {theirs:.6f}")
    shutil.rmtree(world.folder)


def torch_gpt2():
    world = model_files.World("gpt2")
    run = world.train(world.write("theirs.safetensors", world.module))
    path = world.folder / "model.onnx"
    model_files.leeway("export", run.dir, "--format", "onnx", "-o", path, "--data", world.folder)
    scores = onnx_values.Model(onnx_package(), path).scores(world.inputs.numpy())
    world.check_outputs("ONNX", scores.reshape(-1, scores.shape[-1]), world.outputs(world.module))
    world.end()


if __name__ == "__main__":
    runs.main({name: lambda name=name: same_scores(name) for name in MODELS} | {"torch-gpt2": torch_gpt2})
