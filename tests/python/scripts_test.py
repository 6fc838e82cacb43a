#!/usr/bin/python3
"""Whole jobs of short scripts, and how their processes end: scripts_test.py CASE."""

import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from jobs import BIN, SOURCE, check, job_of, job_yaml, main, need_torch, skip

HERE = pathlib.Path(__file__).resolve().parent
WORKER = HERE / "torch_worker.py"
SCRIPT = """
import os, signal, sys, time
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import leeway.torch as leeway
from torch_worker import *
rank = int(os.environ["LEEWAY_RANK"])
model = make_model("mlp", 1 + rank)
optimizer = make_optimizer("momentum", model)
"""


def scripted(body, yaml=None, ranks=2):
    """Runs a job whose workers run SCRIPT and then `body`. Returns their output."""
    with job_of(yaml or job_yaml()) as job:
        for rank in range(ranks):
            job.fork_worker(rank, SCRIPT + body)
        job.wait()
        return [job.said(rank) for rank in range(ranks)]


LOOP = """
    loss = step(model, optimizer, x, y)
print("ended", job.ended, "digest", digest(model), flush=True)
"""


def batches():
    """Every kind of dataset gives the same bits; the user's own loaders run to the job's end."""
    need_torch()
    found = {}
    for name, data in (("tensors", "data()"), ("dataset", "TensorDataset(*data())"),
                       ("loader", "DataLoader(TensorDataset(*data()), batch_size=7, shuffle=True)"),
                       ("processes", "DataLoader(TensorDataset(*data()), shuffle=True, num_workers=1)")):
        said = scripted(f"job = leeway.join(model, optimizer)\nfor x, y in job.over(job.batches({data})):{LOOP}")
        found[name] = {re.search(r"digest (\w+)", text).group(1) for text in said}
    check(len(set().union(*found.values())) == 1, f"the same bits from {', '.join(found)}")
    own = ("job = leeway.join(model, optimizer)\nx, y = data()\nown = TensorDataset(x[job.rank::job.workers], "
           f"y[job.rank::job.workers])\nfor x, y in job.over(DataLoader(own, batch_size=32)):{LOOP}")
    said = scripted(own)
    digests_of = {re.search(r"ended finished digest (\w+)", text).group(1) for text in said}
    check(len(digests_of) == 1, "a loader of one's own runs to the job's end, on both ranks to the same bits")
    short = job_yaml(batch_size=48, stop="{epochs: 3}")
    said = scripted(f"job = leeway.join(model, optimizer)\nfor x, y in job.over(job.batches(data())):\n    print('has', len(x)){LOOP}", short)
    examples = sum(map(int, re.findall(r"has (\d+)", "".join(said))))
    check(examples == 3 * 640, f"three epochs of batches of 48 are {examples} examples, none twice")


def accumulation():
    need_torch()
    import torch
    body = """
job = leeway.join(model, optimizer)
for x, y in job.over(job.batches(data())):
    (nn.functional.cross_entropy(model(x), y) / 2).backward()
    if job.last_batch:
        optimizer.step()
        optimizer.zero_grad()
print("ended", job.ended, "digest", digest(model))
torch.save(model.state_dict(), f"rank-{rank}.pt")
"""
    with job_of(job_yaml(exchange="{type: gradient, accumulation: 2}", stop="{clocks: 25}", batch_size=16)) as job:
        for rank in range(2):
            job.fork_worker(rank, SCRIPT + body)
        job.wait()
        import torch_worker
        found = torch.load(job.folder / "rank-0.pt")
        alone = torch_worker.alone("mlp", "momentum", 25, 64)
        worst = torch_worker.furthest(found, alone.state_dict())
        check(worst <= 1e-5, f"two workers with two batches of 16 a step are within {worst:.1e} of torch with batches of 64")


def evaluation():
    need_torch()
    body = """
def evaluate(model):
    x, y = data()
    scores = model(x)
    return {"loss": float(nn.functional.cross_entropy(scores, y)), "accuracy": float((scores.argmax(1) == y).float().mean()),
            "examples": len(y)}
job = leeway.join(model, optimizer, evaluate=evaluate)
for x, y in job.over(job.batches(data())):
    job.loss(step(model, optimizer, x, y))
print("found", evaluate(model)["accuracy"])
"""
    yaml = job_yaml(more="evaluation: {every: {clocks: 20}}")
    with job_of(yaml) as job:
        for rank in range(2):
            job.fork_worker(rank, SCRIPT + body)
        job.wait()
        lines = [json.loads(line) for line in (job.run_dir / "metrics.jsonl").read_text().splitlines()]
        said = job.said(0)
    evaluations = [line for line in lines if line["event"] == "evaluation"]
    check([line["clock"] for line in evaluations] == [20, 40, 50], f"evaluated at {[line['clock'] for line in evaluations]}")
    last = float(re.search(r"found (\S+)", said).group(1))
    check(abs(evaluations[-1]["test_accuracy"] - last) < 1e-6, f"the last one is that of the final weights: {last:.3f}")
    losses = [line["train_loss"] for line in lines if line["event"] == "step" and line.get("train_loss")]
    check(losses and losses[-1] < 1.7, f"steps have their losses: {losses}")


def schedulers():
    """A worker with local steps is killed: in each life of both ranks, every step has the rate of its schedule."""
    need_torch()
    body = """
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
job = leeway.join(model, optimizer)
scheduler = job.keep(torch.optim.lr_scheduler.LambdaLR(optimizer, lambda number: 0.99 ** number))
number = {}
for x, y in job.over(job.batches(data())):
    step(model, optimizer, x, y)
    number[job.clock] = number.get(job.clock, -1) + 1
    print("step", 2 * job.clock + number[job.clock] % 2, "rate", optimizer.param_groups[0]["lr"], flush=True)
    scheduler.step()
    time.sleep(0.02)
print("ended", job.ended)
"""
    yaml = job_yaml(exchange="{type: delta, local_steps: 2}", stop="{clocks: 40}",
                    more="checkpoint: {every: {clocks: 10}}\nupdate: {type: sgd, learning_rate: 1}")
    with job_of(yaml) as job:
        for rank in range(2):
            job.fork_worker(rank, SCRIPT + body)
        job.wait_until(lambda: "step 50 " in job.said(1), "step 50")
        job.kill_worker(1)
        job.fork_worker(1, SCRIPT + body)
        job.wait()
        said = [job.said(rank) for rank in range(2)]
    for rank, text in enumerate(said):
        rates = [(int(number), float(rate)) for number, rate in re.findall(r"^step (\d+) rate (\S+)", text, re.M)]
        wrong = [(number, rate) for number, rate in rates if abs(rate - 0.01 * 0.99 ** number) > 1e-9]
        check("ended finished" in text and len(rates) >= 80 and not wrong,
              f"rank {rank}: {len(rates)} steps, each with its rate; others: {wrong[:5]}")


JOIN = "job = leeway.join(model, optimizer)\nfor x, y in job.over(job.batches(data())):\n"
NAN = r"the gradient of \d\.(weight|bias)\[\d+\] is nan"
MISUSES = {
    "another shape on rank 1": ("if rank: model = nn.Linear(20, 5); optimizer = make_optimizer('momentum', model)\n" + JOIN + LOOP,
                                "InvalidArgument", r"the models differ: tensor 0 .* 0\.weight \[64, 20\]"),
    "another optimizer on rank 1": ("if rank: optimizer = make_optimizer('nesterov', model)\n" + JOIN + LOOP, "InvalidArgument",
                                    "its optimizer is .*nesterov: true"),
    "an optimizer without a rule": ("optimizer = torch.optim.LBFGS(model.parameters())\n" + JOIN + LOOP, "Untranslatable",
                                    "the servers have no rule for torch.optim.lbfgs.LBFGS"),
    "NaN": (JOIN + "    if job.clock == 3 and rank: x[0, 0] = float('nan')\n" + LOOP.lstrip("\n"), "NotFinite", NAN),
    # A layer waits for its weights in forward(), which may overwrite what was written before.
    "infinity in a parameter": (JOIN + "    if job.clock == 3:\n        model(x)\n"
                                + "        with torch.no_grad(): model[4].bias[0] = float('inf')\n"
                                + LOOP.lstrip("\n"), "NotFinite", NAN),
    "half after join": (JOIN + "    if job.clock == 3: model.half(); model.float()\n" + LOOP.lstrip("\n"), "Misuse",
                        r"parameter 0\.weight: it no longer uses the memory that join assigned"),
    "other examples": ("job = leeway.join(model, optimizer)\njob.batches(data(639))\n", "InvalidArgument", "639 examples.*640"),
    "two joins": ("leeway.join(model, optimizer)\nother = nn.Linear(2, 2)\n"
                  "leeway.join(other, torch.optim.SGD(other.parameters(), lr=0.1))\n", "Misuse",
                  "this process already takes part in the job, as rank .*ModuleList"),
    "step without backward": ("job = leeway.join(model, optimizer)\nfor _ in job.over([data()]): optimizer.step()\n", "Misuse", "without backward"),
}


def misuses():
    """Each misuse is a typed error with its text, and status 3: another start would not help. The other worker is
    stopped in order, wherever its script was."""
    need_torch()
    for name, (body, kind, text) in MISUSES.items():
        with job_of(job_yaml(more="limits: {exchange_seconds: 20, start_seconds: 5}")) as job:
            for rank in range(2):
                job.fork_worker(rank, SCRIPT + body)
            job.wait((0, 3), timeout=60, servers=False)
            said = [job.said(rank) for rank in range(2)]
            for rank in range(2):
                status, has_error = job.workers[rank].wait(), re.search(r"^leeway\.(errors|torch\.optimizers)\.", said[rank], re.M)
                check(status == 3 if has_error else status == 0 and "ended finished" not in said[rank],
                      f"{name}: status {status} of rank {rank}, {'with' if has_error else 'without'} an error")
            found = re.search(rf"^leeway\.(?:errors|torch\.optimizers)\.{kind}: .*{text}", "\n".join(said), re.M)
            check(found, f"{name}: {found and found.group(0)[:300]}")


STRAGGLER = """
job = leeway.join(model, optimizer)
for x, y in job.over(job.batches(data())):
    step(model, optimizer, x, y)
    time.sleep(100)
"""


def interrupts():
    """Ctrl-C while a worker waits for a straggler: the wait does not hold the interpreter's lock."""
    need_torch()
    body = """
import threading
job = leeway.join(model, optimizer)
phase = "sleeping"
def count():
    while True:
        until, counted, began = time.perf_counter() + 0.25, 0, phase
        while time.perf_counter() < until:
            counted += 1
        if began == phase:
            print(f"while {phase}: {counted} rounds", flush=True)
threading.Thread(target=count, daemon=True).start()
time.sleep(1.5)
for step_number, (x, y) in enumerate(job.over(job.batches(data()))):
    step(model, optimizer, x, y)
    print("step", step_number, flush=True)
    phase = "waiting"
"""
    with job_of(job_yaml()) as job:
        job.start_worker(0, SCRIPT + body)
        job.start_worker(1, SCRIPT + STRAGGLER)
        job.wait_until(lambda: job.said(0).count("while waiting") >= 5, "rounds while it waits")
        began = time.monotonic()
        job.workers[0].send_signal(signal.SIGINT)
        code = job.workers[0].wait(20)
        seconds = time.monotonic() - began
        check("KeyboardInterrupt" in job.said(0), f"it ended by KeyboardInterrupt, status {code}")
        check(seconds < 5, f"after {seconds:.2f} s")
        rounds = {phase: max(map(int, re.findall(rf"while {phase}: (\d+) rounds", job.said(0))))
                  for phase in ("sleeping", "waiting")}
        check(rounds["waiting"] > 0.7 * rounds["sleeping"], f"another thread's rounds in 0.25 s: {rounds}")


def two_models():
    """Two jobs in one process, step by step in turns, have the bits that each has alone."""
    need_torch()
    body = """
models = [make_model("mlp", 1 + number) for number in range(2)]
optimizers = [make_optimizer("momentum", model) for model in models]
both = os.environ["COORDINATORS"].split(",")
jobs = [leeway.join(*pair, coordinator=address) for *pair, address in zip(models, optimizers, both)]
for batches in zip(*(job.over(job.batches(data())) for job in jobs)):
    for model, optimizer, (x, y) in zip(models, optimizers, batches):
        step(model, optimizer, x, y)
for job in jobs:
    assert not job._begin()
print("ended", *(job.ended for job in jobs), "digests", *map(digest, models))
"""
    yaml = job_yaml(workers=1)
    with job_of(yaml) as one, job_of(yaml) as other:
        one.fork_worker(0, SCRIPT + body, COORDINATORS=f"{one.coordinator},{other.coordinator}")
        one.wait()
        other.wait()
        said = one.said(0)
    found = re.search(r"ended finished finished digests (\w+) (\w+)", said)
    check(found, "one process has finished two jobs")
    for number in range(2):
        loop = f"model = make_model('mlp', {1 + number}); optimizer = make_optimizer('momentum', model)\n" + JOIN + LOOP
        alone = scripted(loop, yaml, ranks=1)
        check(found.group(1 + number) in alone[0], f"model {number} has the bits that it has by itself")


IMPORTS = """
import sys
for name in sys.argv[1].split(","):
    __import__(name)
import numpy as np
import leeway
from concurrent import futures
import grpc
from leeway_test_stubs import calls
job = leeway.join({"w": 8}, update={"type": "sgd", "learning_rate": 0.1})
for clock, weights in job:
    calls()
    job.push_pull({"w": np.ones(8)})
print("ended", job.ended, weights["w"][0])
"""


def orders(names):
    """Yields orders in which each name is first and last, and each two come in both orders; all permutations if the
    command line says so."""
    if sys.argv[2:] == ["all"]:
        return list(itertools.permutations(names))
    return [turned[place:] + turned[:place] for turned in (names, names[::-1]) for place in range(len(names))]


def imports():
    """Imports the library, grpcio, protobuf and torch in one process, in several orders, or in all."""
    need_torch()
    try:
        import grpc  # noqa: F401
        import google.protobuf  # noqa: F401
    except ImportError:
        skip("grpcio or protobuf is not installed")
    stubs = """
import grpc
from concurrent import futures
from google.protobuf import wrappers_pb2, struct_pb2
server = grpc.server(futures.ThreadPoolExecutor(2))
handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request,
    request_deserializer=wrappers_pb2.Int32Value.FromString, response_serializer=wrappers_pb2.Int32Value.SerializeToString)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", {"Echo": handler}),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
echo = channel.unary_unary("/t.T/Echo", request_serializer=wrappers_pb2.Int32Value.SerializeToString,
                           response_deserializer=wrappers_pb2.Int32Value.FromString)
def calls():
    assert echo(wrappers_pb2.Int32Value(value=7)).value == 7
    s = struct_pb2.Struct(); s["x"] = 1.5
    assert struct_pb2.Struct.FromString(s.SerializeToString())["x"] == 1.5
"""
    for order in orders(("leeway._library", "grpc", "google.protobuf.descriptor_pb2", "torch")):
        with job_of(job_yaml(batch_size=1, examples=100, workers=1, stop="{clocks: 10}")) as job:
            (job.folder / "leeway_test_stubs.py").write_text(stubs)
            script = IMPORTS.replace("    __import__(name)", "    __import__(name)\n    "
                                     "name == 'leeway._library' and sys.modules[name].load()")
            job.start_worker(0, script, ",".join(order), PYTHONPATH=f"{job.folder}:{SOURCE / 'python'}")
            job.wait(timeout=60)
            check("ended finished -" in job.said(0), f"{', '.join(order)}: it trains, and calls are answered")


def train(folder, yaml, *command, **environment):
    """Runs `leeway train JOB -- COMMAND`."""
    (folder / "job.yaml").write_text(yaml, encoding="utf-8")
    return subprocess.Popen([str(BIN / "leeway"), "train", str(folder / "job.yaml"), "--run-dir", str(folder / "run"), "--",
                             sys.executable, *map(str, command)], stdout=open(folder / "said.txt", "w", encoding="utf-8"),
                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**os.environ, **environment})


def worker_processes(launcher):
    """Returns the script's processes of a running `leeway train`. Beside each is the launcher's guard of its group."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            command = (entry / "cmdline").read_bytes().split(b"\0")
            guards = (entry / "comm").read_text() == "leeway-guard\n"
        except (OSError, IndexError, ValueError):
            continue
        if parent == launcher.pid and not guards and b"leeway-server" not in command[0]:
            found.append(int(entry.name))
    return found


def launcher():
    """`leeway train` starts the script, and starts it again after a kill, but not after a permanent error."""
    need_torch()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        process = train(folder, job_yaml(), WORKER, "mlp", "momentum", folder, SLOW_SECONDS="0.05")
        try:
            said = folder / "run/logs/worker-0.log"
            deadline = time.monotonic() + 90
            while not (said.exists() and "clock 5" in said.read_text()) and time.monotonic() < deadline:
                time.sleep(0.05)
            workers = worker_processes(process)
            check(len(workers) == 2, f"two workers run: {workers}")
            os.kill(workers[0], signal.SIGKILL)
            code = process.wait(120)
        finally:
            process.kill()
        text = (folder / "said.txt").read_text()
        check(code == 0 and "1 restart" in text, f"status {code}, one restart\n{text[-1500:]}")
        ends = [re.search(r"ended finished digest (\w+)", (folder / f"run/logs/worker-{rank}.log").read_text())
                for rank in range(2)]
        check(all(ends) and ends[0].group(1) == ends[1].group(1), "both have finished with the same bits")
        shutil.rmtree(folder / "run")
        (folder / "bad.py").write_text(SCRIPT + JOIN + "    if job.clock == 3: x[0, 0] = float('nan')\n" + LOOP.lstrip("\n"))
        process = train(folder, job_yaml(), folder / "bad.py", PYTHONPATH=f"{HERE}:{SOURCE / 'python'}")
        code = process.wait(120)
        text = (folder / "said.txt").read_text()
        check(code == 3 and "restart 1 of" not in text and "is nan" in text, f"NaN: status {code}, no restart\n{text[-800:]}")


FAILING = """
import leeway
import numpy as np
job = leeway.join(schema={"w": 4}, initial={"w": np.zeros(4, np.float32)}, update={"type": "sgd", "learning_rate": 1})
for clock, weights in job:
    if clock == 9 and job.rank == 0:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    job.push_pull({"w": np.ones(4, np.float32)}, examples=32, loss=1.0)
"""


def last_words():
    """The line about a script's end has the exception that ended it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "script.py").write_text(FAILING, encoding="utf-8")
        code = train(folder, job_yaml(workers="2, max_restarts: 1"), folder / "script.py").wait(60)
        text = (folder / "said.txt").read_text()
        told = re.search(r"worker 0 crashed with exit code 1; restart 1 of 1 .*", text)
        check(code == 1 and told, f"status {code}, one restart\n{text[-800:]}")
        check("its last line: RuntimeError: mat1 and mat2 shapes cannot be multiplied" in told.group(0), told.group(0))


def torchrun():
    """The processes that torchrun starts find their ranks in its RANK, also if rank 1 comes first."""
    need_torch()
    with job_of(job_yaml()) as job:
        (job.folder / "script.py").write_text(
            "import os, time\ntime.sleep(2 * (os.environ['RANK'] == '0'))\n" + FAILING.replace("clock == 9", "False") +
            "print('rank', os.environ['RANK'], job.rank, job.ended)\n")
        # On Python 3.11 torch 1.13 starts nothing without redirects.
        command = "-m torch.distributed.run --nproc_per_node=2 --redirects=1 --tee=1 script.py".split()
        said = subprocess.run([sys.executable, *command], env={**os.environ, "LEEWAY_COORDINATOR": job.coordinator},
                              cwd=job.folder, capture_output=True, text=True, timeout=120, check=False)
        ends = sorted(re.findall(r"rank \d \d \w+", said.stdout))
        check(ends == ["rank 0 0 finished", "rank 1 1 finished"], f"torchrun's two processes: {ends or said.stderr}")
        job.wait()


CASES = {case.__name__.replace("_", "-"): case
         for case in (batches, accumulation, evaluation, schedulers, misuses, interrupts, two_models, imports, launcher,
                      last_words, torchrun)}

if __name__ == "__main__":
    main(CASES)
