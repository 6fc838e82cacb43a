"""Models written in PyTorch, with torchvision's names, as users bring them with their weights. torchvision itself is
not in the distribution."""

import torch
from torch import nn
from torch.nn import functional
from torch_models import Characters, Pictures


def conv(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """With the stem for 32 x 32 images."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1, self.bn1 = conv(3, 64, 3), nn.BatchNorm2d(64)
        inputs = 64
        for stage in range(4):
            outputs = 64 << stage
            blocks = [BasicBlock(inputs, outputs, 2 if stage > 0 else 1), BasicBlock(outputs, outputs, 1)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = outputs
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def activated(inputs, outputs, kernel, stride=1, groups=1):
    return nn.Sequential(conv(inputs, outputs, kernel, stride, groups), nn.BatchNorm2d(outputs), nn.ReLU6())


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        hidden = inputs * expansion
        expand = [activated(inputs, hidden, 1)] if expansion > 1 else []
        self.conv = nn.Sequential(*expand, activated(hidden, hidden, 3, stride, hidden), conv(hidden, outputs, 1),
                                  nn.BatchNorm2d(outputs))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.conv(x) if self.adds else self.conv(x)


class MobileNetV2(nn.Module):
    """With the first two strides as 1, for 32 x 32 images, and without dropout's effect."""
    STAGES = [(1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]

    def __init__(self, classes=10):
        super().__init__()
        features, inputs = [activated(3, 32, 3)], 32
        for expansion, outputs, count, stride in self.STAGES:
            for index in range(count):
                features.append(InvertedResidual(inputs, outputs, stride if index == 0 else 1, expansion))
                inputs = outputs
        self.features = nn.Sequential(*features, activated(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0), nn.Linear(1280, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        pool, relu = functional.max_pool2d, functional.relu
        x = pool(relu(self.conv2(pool(relu(self.conv1(x)), 2))), 2)
        return self.fc3(relu(self.fc2(relu(self.fc1(x.flatten(1))))))


def sequential_lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


class Mlp(nn.Sequential):
    """Without an nn.Flatten, which would have a number of its own."""

    def __init__(self):
        super().__init__(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return super().forward(x.flatten(1))


class PixelNorm(nn.LayerNorm):
    """Normalises over the channels of each pixel."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class PixelLinear(nn.Linear):
    """A linear layer over the channels of each pixel."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Mixed(nn.Module):
    """A tree of all kinds of layers, whose modules have the numbers of Leeway's lists."""
    LAYERS = """sequence:
        layers:
        - conv2d: {filters: 8, kernel: 3, padding: 1, groups: 2}
        - gelu: {}
        - group_norm: {groups: 4}
        - max_pool: {size: 3, stride: 2, padding: 1}
        - residual:
            layers: [{conv2d: {filters: 12, kernel: 1}}, {silu: {}}]
            shortcut: [{pad_channels: {before: 1, after: 3}}]
        - layer_norm: {}
        - dense: {units: 12, pointwise: true}
        - concat:
            branches:
            - layers: [{avg_pool: {size: 2}}]
            - layers: [{conv2d: {filters: 4, kernel: 2, stride: 2, bias: false}}, {tanh: {}}]
        - gelu: {tanh: true}
        - flatten: {}
        - batch_norm: {}
        - dense: {units: 16}
        - layer_norm: {bias: true}
        - relu6: {}
        - dropout: {rate: 0.5}
        - dense: {units: 10}"""

    def __init__(self):
        super().__init__()
        body = nn.Module()
        parts = {"0": nn.Conv2d(4, 8, 3, padding=1, groups=2), "2": nn.GroupNorm(4, 8),
                 "4": nn.Sequential(nn.Conv2d(8, 12, 1)), "5": PixelNorm(12), "6": PixelLinear(12, 12),
                 "7": nn.ModuleDict({"1": nn.Sequential(nn.Conv2d(12, 4, 2, 2, bias=False))}),
                 "10": nn.BatchNorm1d(144), "11": nn.Linear(144, 16), "12": nn.LayerNorm(16), "15": nn.Linear(16, 10)}
        for number, part in parts.items():
            body.add_module(number, part)
        self.add_module("0", body)

    def forward(self, x):
        body = dict(getattr(self, "0").named_children())
        x = functional.max_pool2d(body["2"](functional.gelu(body["0"](x))), 3, 2, 1)
        x = functional.silu(body["4"](x)) + functional.pad(x, (0, 0, 0, 0, 1, 3))
        x = body["6"](body["5"](x))
        x = torch.cat([functional.avg_pool2d(x, 2), torch.tanh(body["7"]["1"](x))], 1)
        x = body["10"](functional.gelu(x, approximate="tanh").flatten(1))
        return body["15"](functional.relu6(body["12"](body["11"](x))))


class Conv1d(nn.Module):
    """A linear layer as Hugging Face's GPT-2 has it: the weight is [inputs, outputs]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) * inputs ** -0.5), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": Conv1d(width, 3 * width), "c_proj": Conv1d(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": Conv1d(width, 4 * width), "c_proj": Conv1d(4 * width, width)})

    def attention(self, x):
        texts, positions, width = x.shape
        parts = self.attn["c_attn"](x).view(texts, positions, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(positions, positions, dtype=torch.bool).triu(1), float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(texts, positions, width)
        return self.attn["c_proj"](y)

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp["c_proj"](functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Has the names and layouts of Hugging Face's GPT2Model, and the embedding computes the scores. Returns those of
    all positions, one text after the other."""

    def __init__(self, vocabulary=30, context=24, layers=2, width=32, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for table in self.wte, self.wpe:
            nn.init.normal_(table.weight, std=0.2)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return functional.linear(self.ln_f(x), self.wte.weight).flatten(0, 1)


# By name: the layer in the job, its examples, and the module.
MODELS = {
    "lenet": ("lenet: {}", Pictures(28, 28, 1), LeNet),
    "mlp": ("mlp: {hidden: 32}", Pictures(28, 28, 1), Mlp),
    "resnet18": ("resnet18: {}", Pictures(32, 32, 3), ResNet18),
    "mobilenet-v2": ("mobilenet_v2: {dropout: 0}", Pictures(32, 32, 3), MobileNetV2),
    "mixed": (Mixed.LAYERS, Pictures(12, 12, 4), Mixed),
    "gpt2": ("gpt: {vocabulary: 30, layers: 2, width: 32, heads: 4, tanh_gelu: true}", Characters(24, 30), Gpt2),
}
