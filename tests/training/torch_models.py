#!/usr/bin/python3
"""Compares named models with the same models in PyTorch: the same first weights, the same examples, some steps. Weights
and running statistics must be equal except for rounding. PyTorch also computes them in float64, and Leeway may be about
as far from that as PyTorch's float32 is, a distance that ReLUs and batch norm increase with the steps. Without PyTorch
the test is skipped and says so."""

import contextlib
import json
import pathlib
import shutil
import sys
import tempfile

import numpy

import runs

STEPS = 20
# After more steps of MobileNetV2, PyTorch's own float32 is far from its float64.
STEPS_DEEP = 2
EXAMPLES = 16
# Relative, over all weights together, and over all running statistics together.
TOLERANCE = 1e-4
# Batch norm over a few noisy examples amplifies rounding: at a larger rate the comparison would mean nothing.
BATCH_NORM_RATE = 0.05
# The limit is AS_FAR times the largest distance of PyTorch's own float32 from float64, over ORDERS orders of the
# batch's examples, plus ROUNDING, which any order of additions may cause. One order alone is too little: where rounding
# grows, distances of 2e-6 and of 1e-5 are equally likely, on one machine and between two.
AS_FAR, ORDERS, ROUNDING = 2, 5, 1e-6


def torch_module():
    try:
        import torch
    except ImportError:
        print("SKIPPED: PyTorch is not installed (python3-torch)")
        sys.exit(runs.SKIPPED)
    torch.set_num_threads(1)
    return torch


class Torch:
    """A model's tensors with Leeway's names and PyTorch's layout, and the layers that read them."""

    def __init__(self, torch, tensors, dtype):
        self.torch, self.functional = torch, torch.nn.functional
        self.training = True
        self.tensors = {}
        for name, values in tensors.items():
            tensor = torch.tensor(self.to_torch(name, values), dtype=dtype)
            self.tensors[name] = tensor.requires_grad_("running" not in name)

    @staticmethod
    def is_table(name):
        """Embeddings are [rows, width] in both programs."""
        return name in ("wte/weight", "wpe/weight")

    @classmethod
    def to_torch(cls, name, values):
        """[kernel, kernel, in, out] -> [out, in, kernel, kernel]; [in, out] -> [out, in]."""
        if values.ndim == 4:
            values = values.transpose(3, 2, 0, 1)
        elif values.ndim == 2 and not cls.is_table(name):
            values = values.T
        return numpy.ascontiguousarray(values)

    def result(self, name):
        values = self.tensors[name].detach().numpy()
        if values.ndim == 4:
            return values.transpose(2, 3, 1, 0)
        return values.T if values.ndim == 2 and not self.is_table(name) else values

    def parameters(self):
        return [tensor for tensor in self.tensors.values() if tensor.requires_grad]

    def groups(self):
        """Returns the tensors by the kinds for which Leeway has factors: weights, biases, norms."""
        kinds = ([], [], [])
        for name, tensor in self.tensors.items():
            layer, last = name.rsplit("/", 1)
            norm = f"{layer}/running_mean" in self.tensors
            if tensor.requires_grad:
                kinds[2 if norm else 1 if last == "bias" else 0].append(tensor)
        return kinds

    def conv(self, name, x, stride=1, groups=1, padding=None):
        weight = self.tensors[f"{name}/weight"]
        padding = weight.shape[-1] // 2 if padding is None else padding
        return self.functional.conv2d(x, weight, self.tensors.get(f"{name}/bias"), stride, padding, 1, groups)

    def norm(self, name, x):
        of = {last: self.tensors[f"{name}/{last}"] for last in ("running_mean", "running_var", "weight", "bias")}
        return self.functional.batch_norm(x, *of.values(), training=self.training, momentum=0.1, eps=1e-5)

    @contextlib.contextmanager
    def evaluation(self):
        """Evaluates with the running statistics."""
        self.training = False
        yield
        self.training = True

    def dense(self, name, x, part=""):
        return self.functional.linear(x, self.tensors[f"{name}/{part}weight"], self.tensors.get(f"{name}/{part}bias"))

    def layer_norm(self, name, x):
        weight, bias = (self.tensors[f"{name}/{last}"] for last in ("weight", "bias"))
        return self.functional.layer_norm(x, weight.shape, weight, bias, 1e-5)

    def attention(self, name, x, heads):
        """Computes causal attention."""
        examples, positions, channels = x.shape
        parts = self.dense(name, x, "qkv_").view(examples, positions, 3, heads, channels // heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (channels // heads) ** 0.5
        hidden = self.torch.ones(positions, positions, dtype=self.torch.bool).triu(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.dense(name, (weights @ v).transpose(1, 2).reshape(examples, positions, channels), "out_")

    def has(self, name):
        return f"{name}/weight" in self.tensors


def lenet(model, x):
    pool, relu = model.functional.max_pool2d, model.torch.relu
    x = pool(relu(model.conv("conv1", x, padding=2)), 2)
    x = pool(relu(model.conv("conv2", x, padding=0)), 2)
    # Leeway flattens row, column, channel.
    x = x.permute(0, 2, 3, 1).flatten(1)
    return model.dense("fc3", relu(model.dense("fc2", relu(model.dense("fc1", x)))))


def resnet(model, x, blocks, widths):
    relu = model.torch.relu
    x = relu(model.norm("bn1", model.conv("conv1", x)))
    for stage, (count, width) in enumerate(zip(blocks, widths)):
        for index in range(count):
            name = f"layer{stage + 1}.{index}"
            stride = 2 if stage > 0 and index == 0 else 1
            y = relu(model.norm(f"{name}.bn1", model.conv(f"{name}.conv1", x, stride)))
            y = model.norm(f"{name}.bn2", model.conv(f"{name}.conv2", y))
            if model.has(f"{name}.shortcut.0"):
                x = model.norm(f"{name}.shortcut.1", model.conv(f"{name}.shortcut.0", x, stride))
            elif stride == 2:
                more = width - x.shape[1]
                x = model.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more // 2, more - more // 2))
            x = relu(x + y)
    return model.dense("fc", x.mean((2, 3)))


def mobilenet(model, x):
    """Builds the model from the names: a block has as many parts as the tensors show."""
    relu6 = model.functional.relu6
    stages = [(1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    x = relu6(model.norm("features.0.1", model.conv("features.0.0", x)))
    at = 1
    for expansion, width, count, first in stages:
        for index in range(count):
            name, stride = f"features.{at}.conv", first if index == 0 else 1
            part, y = 0, x
            if expansion > 1:
                y = relu6(model.norm(f"{name}.0.1", model.conv(f"{name}.0.0", y)))
                part = 1
            y = relu6(model.norm(f"{name}.{part}.1", model.conv(f"{name}.{part}.0", y, stride, y.shape[1])))
            y = model.norm(f"{name}.{part + 2}", model.conv(f"{name}.{part + 1}", y))
            x = x + y if stride == 1 and x.shape[1] == width else y
            at += 1
    x = relu6(model.norm(f"features.{at}.1", model.conv(f"features.{at}.0", x)))
    return model.dense("classifier.1", x.mean((2, 3)))


def gpt(model, tokens, layers, heads):
    x = model.functional.embedding(tokens, model.tensors["wte/weight"]) + model.tensors["wpe/weight"]
    for i in range(layers):
        part = f"h.{i}.attention"
        x = x + model.attention(f"{part}.attn", model.layer_norm(f"{part}.ln_1", x), heads)
        part = f"h.{i}.mlp"
        y = model.functional.gelu(model.dense(f"{part}.c_fc", model.layer_norm(f"{part}.ln_2", x)))
        x = x + model.dense(f"{part}.c_proj", y)
    x = model.functional.linear(model.layer_norm("ln_f", x), model.tensors["wte/weight"])
    # Returns the scores of all positions, one example after the other.
    return x.flatten(0, 1)


class Pictures:
    """Examples with an image's shape, in a text file that has their exact values."""

    def __init__(self, *image):
        self.image = image
        self.source = f"{{type: csv, files: examples.csv, shape: [{', '.join(map(str, image))}]}}"

    def write(self, folder):
        draw = numpy.random.default_rng(7)
        x = (draw.integers(-512, 512, (EXAMPLES, *self.image)) / 256).astype(numpy.float32)
        labels = draw.integers(0, 10, EXAMPLES)
        rows = [",".join(f"{v:.9g}" for v in row.ravel()) + f",{label}" for row, label in zip(x, labels)]
        (folder / "examples.csv").write_text("\n".join(rows) + "\n")
        return x, labels

    @staticmethod
    def inputs(torch, x, dtype):
        return torch.tensor(numpy.ascontiguousarray(x.transpose(0, 3, 1, 2)), dtype=dtype)


class Characters:
    """Windows of a text; each window is an example."""

    def __init__(self, context, vocabulary):
        self.context, self.vocabulary = context, vocabulary
        self.source = f"{{type: text, files: examples.txt, context: {context}, random_start: false}}"

    def write(self, folder):
        text = numpy.random.default_rng(7).integers(0, self.vocabulary, EXAMPLES * self.context + 1)
        text[:self.vocabulary] = numpy.arange(self.vocabulary)
        (folder / "examples.txt").write_text("".join(chr(ord("A") + token) for token in text))
        return (text[at:at + EXAMPLES * self.context].reshape(EXAMPLES, self.context) for at in (0, 1))

    @staticmethod
    def inputs(torch, x, dtype):
        return torch.tensor(x)


MODELS = {
    "lenet": ("lenet: {}", Pictures(28, 28, 1), lenet),
    "resnet20-a": ("resnet20: {}", Pictures(32, 32, 3), lambda m, x: resnet(m, x, (3, 3, 3), (16, 32, 64))),
    "resnet20-b": ("resnet20: {shortcut: b}", Pictures(32, 32, 3), lambda m, x: resnet(m, x, (3, 3, 3), (16, 32, 64))),
    "resnet18": ("resnet18: {}", Pictures(32, 32, 3), lambda m, x: resnet(m, x, (2, 2, 2, 2), (64, 128, 256, 512))),
    "mobilenet-v2": ("mobilenet_v2: {dropout: 0}", Pictures(32, 32, 3), mobilenet),
    "gpt": ("gpt: {vocabulary: 30, layers: 4, width: 64, heads: 4}", Characters(24, 30),
            lambda m, x: gpt(m, x, 4, 4)),
}

def lion_class(torch):
    """Algorithm 2 of arXiv:2302.06675; PyTorch does not have it."""

    class Lion(torch.optim.Optimizer):
        def __init__(self, params, lr, decay):
            super().__init__(params, {"lr": lr, "weight_decay": decay})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                rate, decay = group["lr"], group["weight_decay"]
                for x in group["params"]:
                    m = self.state[x].setdefault("m", torch.zeros_like(x))
                    x.sub_(rate * (torch.sign(0.9 * m + 0.1 * x.grad) + decay * x))
                    m.mul_(0.99).add_(x.grad, alpha=0.01)

    return Lion


FACTORS = "factors: {biases: {weight_decay: 0, learning_rate: 2}, norms: {weight_decay: 0}}, "


def with_factors(model, rate):
    """Returns PyTorch's parameter groups that correspond to FACTORS."""
    weights, biases, norms = model.groups()
    return [{"params": weights}, {"params": biases, "weight_decay": 0, "lr": 2 * rate},
            {"params": norms, "weight_decay": 0}]


RULES = {
    "sgd": ("type: sgd, momentum: 0.9, weight_decay: 0.0001, learning_rate: ", 0.01,
            lambda torch, m, rate: torch.optim.SGD(m.parameters(), rate, momentum=0.9, weight_decay=0.0001)),
    "adam": ("type: adam, learning_rate: ", 0.0001, lambda torch, m, rate: torch.optim.Adam(m.parameters(), rate)),
    "adamw": ("type: adamw, weight_decay: 0.01, learning_rate: ", 0.0001,
              lambda torch, m, rate: torch.optim.AdamW(m.parameters(), rate, weight_decay=0.01)),
    # Decays that are large enough to show in a few steps.
    "sgd-factors": (FACTORS + "type: sgd, momentum: 0.9, weight_decay: 0.1, learning_rate: ", 0.01,
                    lambda torch, m, rate: torch.optim.SGD(with_factors(m, rate), rate, momentum=0.9,
                                                           weight_decay=0.1)),
    "adamw-factors": (FACTORS + "type: adamw, weight_decay: 10, learning_rate: ", 0.0001,
                      lambda torch, m, rate: torch.optim.AdamW(with_factors(m, rate), rate, weight_decay=10)),
    "lion": ("type: lion, weight_decay: 1, learning_rate: ", 0.0001,
             lambda torch, m, rate: lion_class(torch)(m.parameters(), rate, 1)),
}

JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: torch, seed: 5}}
model:
  layers:
    - {layer}
  loss: softmax_cross_entropy
data:
  train: {source}
  batch_size: {batch}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
update: {{{rule}}}
servers: {{count: 2}}
workers: {{count: {workers}}}
stop: {{clocks: {steps}}}
"""


def read_model(path):
    """Returns the {name: array} of a safetensors file."""
    blob = path.read_bytes()
    length = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8:8 + length])
    header.pop("__metadata__", None)
    values = blob[8 + length:]
    return {name: numpy.frombuffer(values[slice(*tensor["data_offsets"])], "<f4").reshape(tensor["shape"]).copy()
            for name, tensor in header.items()}


def leeway(folder, layer, data, rule, steps, workers):
    """Returns the weights after this number of steps on all examples."""
    job = folder / f"torch-{steps}.yaml"
    job.write_text(JOB.format(layer=layer, source=data.source, rule=rule, steps=steps, batch=EXAMPLES // workers,
                              workers=workers))
    run = runs.Run(job, data=folder, name=f"run-{steps}", parent=folder)
    run.start().wait(whole=False)
    return read_model(run.dir / "model.safetensors")


def distance(a, b):
    """Returns the relative distance, over all tensors together."""
    apart = sum(float(numpy.square(a[name].astype("f8") - b[name]).sum()) for name in a)
    return (apart / sum(float(numpy.square(values.astype("f8")).sum()) for values in b.values())) ** 0.5


def train_in_torch(torch, forward, first, inputs, labels, optimizer_of, steps, dtype):
    model = Torch(torch, first, dtype)
    optimizer = optimizer_of(model)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(model, inputs), torch.tensor(labels.ravel())).backward()
        optimizer.step()
    return {name: model.result(name) for name in first}


def compare(name, rule_name, workers):
    torch = torch_module()
    layer, data, forward = MODELS[name]
    rule, rate, optimizer_of = RULES[rule_name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-test-"))
    x, labels = data.write(folder)
    # A rate at which no weight changes shows the first weights. Running statistics begin at 0 and 1.
    first = leeway(folder, layer, data, "type: sgd, learning_rate: 1e-30", 1, 1)
    for tensor, values in first.items():
        if "running" in tensor:
            values[...] = 1 if tensor.endswith("var") else 0
    if any("running" in tensor for tensor in first):
        rate *= BATCH_NORM_RATE
    steps = STEPS_DEEP if name == "mobilenet-v2" else STEPS
    ours = leeway(folder, layer, data, f"{rule}{rate}", steps, workers)

    def train(dtype, order=slice(None)):
        return train_in_torch(torch, forward, first, data.inputs(torch, x[order], dtype), labels[order],
                              lambda m: optimizer_of(torch, m, rate), steps, dtype)

    exact = train(torch.float64)
    orders = (numpy.random.default_rng(seed).permutation(len(x)) for seed in range(1, ORDERS))
    theirs = [train(torch.float32), *(train(torch.float32, order) for order in orders)]
    for kind, names in (("weights", [t for t in first if "running" not in t]),
                        ("statistics", [t for t in first if "running" in t])):
        if names:
            judge(f"{name}, {rule_name}, {workers} workers, {steps} steps, {kind}",
                  *({tensor: model[tensor] for tensor in names} for model in (first, ours, exact, *theirs)))
    shutil.rmtree(folder)


def judge(what, first, ours, exact, *theirs):
    moved, far, theirs_far = distance(exact, first), distance(ours, exact), [distance(one, exact) for one in theirs]
    text = (f"{what}, which training moved by {moved:.1e} of their length: {distance(ours, theirs[0]):.1e} from "
            f"PyTorch; {far:.1e} from float64, PyTorch {min(theirs_far):.1e} to {max(theirs_far):.1e} by the order of "
            "the examples")
    runs.check(far <= TOLERANCE and far <= moved / 10 and far <= AS_FAR * max(theirs_far) + ROUNDING, text)


CASES = {f"{name}-{rule}": (lambda name=name, rule=rule: compare(name, rule, 1)) for name in MODELS for rule in RULES}
CASES |= {f"{name}-{rule}-4": (lambda name=name, rule=rule: compare(name, rule, 4))
          for name in ("lenet", "gpt") for rule in RULES}

if __name__ == "__main__":
    runs.main(CASES)
