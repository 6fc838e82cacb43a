"""A network with batch norm and dropout learns MNIST's digits by AdamW with a cosine schedule, in PyTorch.

    python3 torch_local_sgd.py --data FOLDER     which holds mnist/train-images-idx3-ubyte.gz and the other three files"""

import argparse
import gzip
import os
import pathlib

import leeway.torch as leeway
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def read(folder, part):
    """Images in 0..1 and labels. An IDX file is a header of 4 bytes for itself and for each side, then bytes."""
    def values(name, header):
        return np.frombuffer(gzip.decompress((folder / "mnist" / name).read_bytes()), np.uint8, offset=header)
    images = values(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784) / np.float32(255)
    return torch.from_numpy(images), torch.from_numpy(values(f"{part}-labels-idx1-ubyte.gz", 8).astype(np.int64))


def evaluate(model):
    model.eval()
    with torch.no_grad():
        scores = model(test[0])
    model.train()
    right = (scores.argmax(1) == test[1]).float().mean()
    return {"loss": nn.functional.cross_entropy(scores, test[1]).item(), "accuracy": right.item()}


options = argparse.ArgumentParser()
options.add_argument("--data", type=pathlib.Path, default=os.environ.get("LEEWAY_DATA", "data"))
options.add_argument("--epochs", type=int, default=4)
options = options.parse_args()
torch.manual_seed(1)
torch.set_num_threads(1)
train, test = (read(pathlib.Path(options.data), part) for part in ("train", "t10k"))
loader = DataLoader(TensorDataset(*train), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(784, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.002, weight_decay=0.05)
job = leeway.join(model, optimizer, evaluate=evaluate)
loader = job.batches(loader)
schedule = job.keep(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs * len(loader)))
for epoch in job.epochs(options.epochs):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
print("test accuracy {accuracy:.4f}, loss {loss:.4f}".format(**evaluate(model)))
