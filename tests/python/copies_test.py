#!/usr/bin/python3
"""How many bytes a torch worker copies in a step, in multiples of its model: copies_test.py CASE. torch copies the
gradients into the contribution. All other copies, by the client and by gRPC, are calls of memcpy and memmove, which a
preloaded library counts. Part of a clock may be under way as they are counted."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from jobs import check, job_of, job_yaml, main, need_torch, skip

# Small copies are the headers of messages.
COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_ulong copied;

unsigned long copied_bytes(void) { return copied; }

void* memcpy(void* restrict to, const void* restrict from, size_t count) {
  static void* (*own)(void*, const void*, size_t);
  if (!own) own = (void* (*)(void*, const void*, size_t))dlsym(RTLD_NEXT, "memcpy");
  if (count >= 1024) copied += count;
  return own(to, from, count);
}

void* memmove(void* to, const void* from, size_t count) {
  static void* (*own)(void*, const void*, size_t);
  if (!own) own = (void* (*)(void*, const void*, size_t))dlsym(RTLD_NEXT, "memmove");
  if (count >= 1024) copied += count;
  return own(to, from, count);
}
"""
WORKER = """
import ctypes, json, sys
import torch
from torch import nn
import leeway.torch as leeway

counter = ctypes.CDLL(None).copied_bytes
counter.restype = ctypes.c_ulong
torch.set_num_threads(1)
model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(3)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
job = leeway.join(model, optimizer)
size = 4 * job.info.total
up, other, own = [0], [0], torch.Tensor.copy_


def is_contribution(tensor):
    if not job._clocks.is_open:
        return False
    array = job._session.contribution()
    return array.ctypes.data <= tensor.data_ptr() < array.ctypes.data + array.nbytes


def counted(to, source, *more, **options):
    if is_contribution(to):
        up[0] += to.numel() * 4
    elif to.numel() * 4 >= 1024:
        other[0] += to.numel() * 4
    return own(to, source, *more, **options)


torch.Tensor.copy_ = counted
data = torch.randn(4 * 20, WIDTH)
before = []
for batch, in job.over(job.batches((data,))):
    before.append((counter(), up[0], other[0]))
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
first, last, steps = before[5], before[-1], len(before) - 6
print("copies", json.dumps([(b - a) / steps / size for a, b in zip(first, last)]), flush=True)
"""


def copies(width=500):
    need_torch()
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        skip("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "counter.so"
        source = pathlib.Path(folder) / "counter.c"
        source.write_text(COUNTER)
        # The compiler must not replace loops or calls of memcpy.
        subprocess.run([compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        for transport in ("shared memory", "TCP"):
            more = "" if transport == "shared memory" else "transport: {type: tcp}"
            yaml = job_yaml(batch_size=4, examples=80, workers=1, stop="{clocks: 20}", more=more)
            with job_of(yaml.replace(", block_bytes: 4096", "")) as job:
                job.start_worker(0, WORKER.replace("WIDTH", str(width)), LD_PRELOAD=str(library))
                job.wait()
                found = json.loads(re.search(r"copies (.*)", job.said(0)).group(1))
            client, up, other = found
            print(f"{transport}: of a model of {12 * width * (width + 1) / 1e6:.0f} MB, a step copies {up:.3f} into the "
                  f"contribution, {other:.3f} elsewhere in torch, and {client:.3f} in the client and gRPC", flush=True)
            check(abs(up - 1) < 1e-6 and other == 0, "each gradient is copied once, and torch copies nothing else")
            check(0.8 < client < 1.2, "the answers are copied once, into the weights")


CASES = {"copies": copies, "copies-of-25-million": lambda: copies(2886)}

if __name__ == "__main__":
    main(CASES)
