#!/usr/bin/python3
"""Training steps in PyTorch, for torch_speed.py: forward, backward and SGD with momentum.

Usage: torch_steps.py THREADS; reads lines "MODEL BATCH LAYOUT SECONDS" and answers each with samples a second.
"""

import sys
import time

import torch
from torch import nn

THREADS = int(sys.argv[1])
STAGES = [(1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                         nn.Linear(256, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def convolution(inputs, filters, kernel=3, stride=1, groups=1, activation=None):
    layers = [nn.Conv2d(inputs, filters, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(filters)]
    return nn.Sequential(*layers, *([activation] if activation else []))


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, activation=None):
        super().__init__()
        self.body, self.shortcut, self.activation = body, shortcut, activation

    def forward(self, x):
        y = self.body(x)
        y += self.shortcut(x) if self.shortcut else x
        return self.activation(y) if self.activation else y


def subsampled(more):
    """ResNet's shortcut A: every second pixel, and zeros for the new channels."""
    return lambda x: nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more // 2, more // 2))


def resnet20():
    layers, inputs = [convolution(3, 16, activation=nn.ReLU(inplace=True))], 16
    for width in (16, 32, 64):
        for _ in range(3):
            stride = 1 if width == inputs else 2
            body = nn.Sequential(convolution(inputs, width, 3, stride, activation=nn.ReLU(inplace=True)),
                                 convolution(width, width))
            layers.append(Residual(body, subsampled(width - inputs) if stride == 2 else None, nn.ReLU(inplace=True)))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def mobilenet_v2():
    relu6 = nn.ReLU6(inplace=True)
    layers, inputs = [convolution(3, 32, activation=relu6)], 32
    for expansion, width, blocks, first in STAGES:
        for index in range(blocks):
            stride, hidden = first if index == 0 else 1, inputs * expansion
            parts = [convolution(inputs, hidden, 1, activation=relu6)] if expansion > 1 else []
            parts += [convolution(hidden, hidden, 3, stride, hidden, relu6), convolution(hidden, width, 1)]
            block = nn.Sequential(*parts)
            layers.append(Residual(block) if stride == 1 and inputs == width else block)
            inputs = width
    layers += [convolution(inputs, 1280, 1, activation=relu6), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
               nn.Dropout(0.2), nn.Linear(1280, 10)]
    return nn.Sequential(*layers)


class Block(nn.Module):
    """A block of GPT-2, with layer norm before each part."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        examples, positions, width = x.shape
        parts = self.qkv(self.before_attention(x)).view(examples, positions, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        hidden = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(examples, positions, width))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary=65, context=64, width=128, blocks=4, heads=4):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.norm(self.blocks(self.tokens(x) + self.positions.weight))
        return nn.functional.linear(y, self.tokens.weight).flatten(0, 1)


MODELS = {"mlp": (mlp, (1, 28, 28)), "cnn": (cnn, (1, 28, 28)), "lenet": (lenet, (1, 28, 28)),
          "resnet20": (resnet20, (3, 32, 32)), "mobilenet_v2": (mobilenet_v2, (3, 32, 32)), "gpt": (Gpt, (64,))}
LAYOUTS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}


class Trained:
    """A model with a batch of random examples."""

    def __init__(self, name, batch, layout):
        make, image = MODELS[name]
        self.batch = batch
        if len(image) == 1:
            # Tokens have no layout.
            self.model = make()
            self.x, self.labels = torch.randint(0, 65, (batch, *image)), torch.randint(0, 65, (batch * image[0],))
        else:
            self.model = make().to(memory_format=LAYOUTS[layout])
            self.x = torch.randn(batch, *image).contiguous(memory_format=LAYOUTS[layout])
            self.labels = torch.randint(0, 10, (batch,))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.x), self.labels).backward()
        self.optimizer.step()

    def rate(self, seconds):
        self.step()
        began, steps = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            self.step()
            steps += 1
        return steps * self.batch / (time.perf_counter() - began)


def main():
    torch.set_num_threads(THREADS)
    trained = {}
    for line in sys.stdin:
        name, batch, layout, seconds = line.split()
        key = name, int(batch), layout
        if key not in trained:
            trained[key] = Trained(*key)
        print(f"{trained[key].rate(float(seconds)):.2f}", flush=True)


if __name__ == "__main__":
    main()
