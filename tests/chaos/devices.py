#!/usr/bin/env python3
"""Jobs whose workers compute on the fake device (tests/worker/device), in processes that are killed. In sync mode the
weights are those of an undisturbed job on CPUs, bit for bit, and no device has found a mistake. Each life of a worker
runs its streams in a different order.

    tests/chaos/devices.py CASE                         one of the cases below, as ctest runs them
    tests/chaos/devices.py seeds --seeds 20 [CASE...]   the named cases (default: all that are killed) with each seed
"""

import argparse
import os

import kills
from kills import runs

# leeway-worker with the fake device; its folder is beside the other programs.
ON_DEVICES = runs.BIN / "fake_device"
BOTH = [("worker", 1), ("server", 1), ("worker", 0), ("server", 0)]
MEAN = "update={type: sgd, learning_rate: 1}"
JOBS = {
    "gradient": [kills.SGD],
    "replicas": [kills.SGD, kills.REPLICAS],
    "accumulated": [kills.SGD, "exchange={type: gradient, accumulation: 3}"],
    "adam-guarded": ["update={type: adam, learning_rate: 0.002}",
                     "exchange={type: gradient, on_bad_gradient: skip, max_norm: 0.5}"],
    "compressed": [kills.SGD, "compression={contributions: {type: int8}, weights: {type: bf16}}"],
    "delta-compressed": [MEAN, kills.DELTA, "compression={contributions: {type: sign}}"],
    "delta": [MEAN, kills.DELTA],
    "delta-replicas": [MEAN, kills.DELTA, kills.REPLICAS],
    "elastic": [kills.SGD, kills.ELASTIC],
}


def device_lines(run):
    """Returns what the workers' logs say about their devices."""
    logs = [path.read_text(errors="replace") for path in run.dir.glob("logs/worker*")]
    return [line for log in logs for line in log.splitlines() if "fake device" in line]


def check_devices(run):
    lines = device_lines(run)
    # A life that was killed reports nothing; the last life of each worker reports.
    runs.check(len(lines) >= 2, f"the workers' devices have reported: {len(lines)} lines")
    wrong = [line for line in lines if "INTERNAL" in line]
    runs.check(not wrong, f"and have found no mistake {wrong}")


def killed(name):
    sets = [kills.MODES["sync"], *JOBS[name]]
    run = kills.killed_once_each(sets, BOTH, ON_DEVICES)
    summary = kills.finished(run)
    check_devices(run)
    # Compares with a job on CPUs.
    kills.check_bits(summary, sets)
    run.clean()


def mistaken():
    """Shows that these jobs can find a mistake: with a device that ignores every wait, no job ends well."""
    os.environ["LEEWAY_FAKE_MISTAKE"] = "0"
    run = kills.job([kills.MODES["sync"], kills.SGD, "stop={clocks: 40}", "workers.max_restarts=1"],
                    programs=ON_DEVICES)
    run.start()
    code = run.process.wait(120)
    del os.environ["LEEWAY_FAKE_MISTAKE"]
    wrong = [line for line in device_lines(run) if "INTERNAL" in line]
    runs.check(code == runs.TEMPORARY, f"a job whose devices forget to wait ends with {code}")
    runs.check(wrong, f"and a worker's log says why: {wrong[:1]}")
    run.clean()


def seeds(arguments):
    parser = argparse.ArgumentParser(prog="devices.py seeds")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("cases", nargs="*", default=list(JOBS))
    options = parser.parse_args(arguments)
    for seed in range(options.seeds):
        os.environ["LEEWAY_FAKE_SEED"] = str(seed)
        for name in options.cases:
            print(f"seed {seed}, {name}", flush=True)
            killed(name)


CASES = {**{name: lambda name=name: killed(name) for name in JOBS}, "mistaken": mistaken}

if __name__ == "__main__":
    runs.main(CASES, seeds=seeds)
