#!/usr/bin/env python3
"""Training steps in PyTorch on a GPU, eager, for gpu_speed.py: forward, backward and SGD with momentum.

Usage: torch_gpu.py [--seconds 1] [--batch 512] [--model mlp --model cnn] [--precision tf32 ...] [--json]
Each step takes the next batch from pinned memory, copied beside the step before, as a training loop with a
`DataLoader(pin_memory=True)` does; `--resident` leaves one batch on the GPU. Prints samples a second.
"""

import argparse
import json
import time

import torch
from torch import nn


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                         nn.Linear(4096, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))


MODELS = {"mlp": mlp, "cnn": cnn}


def set_precision(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True


class Trainer:
    def __init__(self, model, precision, batch, resident, momentum):
        set_precision(precision)
        torch.manual_seed(1)
        self.model = MODELS[model]().cuda()
        if model == "cnn":
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=momentum)
        self.cast = torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16")
        self.loss = nn.CrossEntropyLoss()
        self.host = [(torch.rand(batch, 1, 28, 28).pin_memory(), torch.randint(10, (batch,)).pin_memory())
                     for _ in range(8)]
        self.resident = resident
        self.side = torch.cuda.Stream()
        self.step_number = 0
        self.next = self.fetch()

    def fetch(self):
        if self.resident and self.step_number > 0:
            return self.next
        features, labels = self.host[self.step_number % len(self.host)]
        with torch.cuda.stream(self.side):
            return features.cuda(non_blocking=True), labels.cuda(non_blocking=True)

    def step(self):
        torch.cuda.current_stream().wait_stream(self.side)
        features, labels = self.next
        for tensor in self.next:
            tensor.record_stream(torch.cuda.current_stream())
        self.step_number += 1
        self.next = self.fetch()
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast:
            loss = self.loss(self.model(features), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def rate(self, batch, seconds):
        for _ in range(30):
            self.step()
        torch.cuda.synchronize()
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            for _ in range(20):
                self.step()
            # The end of a clock of 20 local steps: the loss is read.
            torch.cuda.synchronize()
            count += 20
        return count * batch / (time.perf_counter() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--precision", action="append", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--resident", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--device", default="cuda:0")
    flags = parser.parse_args()
    torch.cuda.set_device(torch.device(flags.device).index or 0)
    rates = {}
    for model in flags.model or MODELS:
        for precision in flags.precision or ["fp32", "tf32", "bf16"]:
            trainer = Trainer(model, precision, flags.batch, flags.resident, flags.momentum)
            rates[f"{model} {precision}"] = trainer.rate(flags.batch, flags.seconds)
    if flags.json:
        print(json.dumps(rates))
    else:
        for name, rate in rates.items():
            print(f"{name:10} {rate:12.0f} samples/s {1e3 * flags.batch / rate:8.3f} ms")


if __name__ == "__main__":
    main()
