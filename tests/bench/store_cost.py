#!/usr/bin/env python3
"""Measures what checkpoints to an object store cost training. A job of 33 million parameters with the two slots of Adam
writes 400 MB at a time to s3rver on this machine. The clocks during which a checkpoint is being written are compared
with the other clocks of the same run. Prints the ratio of their medians, for the store and for a folder.

    tests/bench/store_cost.py [--every 60] [--cuts 5]
"""

import argparse
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
import stores  # noqa: E402
from cluster import Cluster, runs  # noqa: E402

LAYERS = "[{flatten: {}}, {dense: {units: 7400}}, {relu: {}}, {dense: {units: 4400}}, {relu: {}}, {dense: {units: 10}}]"


def sets(options):
    return ["servers.count=1", "workers.count=1", f"model.layers={LAYERS}",
            f"stop={{clocks: {options.every * (options.cuts + 1) - 1}}}",
            f"checkpoint={{every: {{clocks: {options.every}}}, keep: 1}}", "data.batch_size=32", "workers.emulate={}",
            "update={type: adam, learning_rate: 0.0001}", "evaluation={}"]


class OneServer(stores.StoreCluster):
    """A job whose run folder is in the store, or is `folder`."""

    def __init__(self, store, options, folder):
        super().__init__(store, "cost", sets=sets(options))
        self.servers = self.workers = 1
        self.in_folder = folder
        if folder:
            self.location = str(self.dir)

    def events(self, kind=None):
        return Cluster.events(self, kind) if self.in_folder else super().events(kind)


def seconds_of_clocks(events):
    """Returns {clock: seconds}. One line may cover several clocks."""
    seconds = {}
    for event in events:
        if event["event"] == "step" and event["steps"]:
            together = event["data_seconds"] + event["compute_seconds"] + event["wait_seconds"]
            for clock in range(event["clock"] - event["steps"] + 1, event["clock"] + 1):
                seconds[clock] = together / event["steps"]
    return seconds


def spans(events):
    """Returns (first clock, last clock, seconds) of each checkpoint: from its cut until it is announced."""
    reached, found = {}, []
    newest = 0
    for event in events:
        if event["event"] == "step":
            newest = event["clock"]
            reached.setdefault(newest, event["time"])
        if event["event"] == "checkpoint":
            begun = min((time for clock, time in reached.items() if clock >= event["clock"]), default=event["time"])
            found.append((event["clock"] + 1, newest + 1, event["time"] - begun))
    return found


def measure(store, options, folder):
    with OneServer(store, options, folder) as cluster:
        cluster.wait_for(lambda c: False, "the end of the job", 580)
        events = cluster.events()
    seconds, found = seconds_of_clocks(events), spans(events)[:options.cuts]
    busy = {clock for first, last, _ in found for clock in range(first, last + 1)}
    # The first clocks warm up.
    during = [s for clock, s in seconds.items() if clock in busy]
    beside = [s for clock, s in seconds.items() if clock not in busy and clock > 5]
    if not during or not beside:
        raise runs.Failed(f"nothing to compare: {found}")
    ratio = statistics.median(during) / statistics.median(beside)
    taken = statistics.median(s for _, _, s in found)
    share = len(during) / len(seconds)
    print(f"{'folder' if folder else 'object store'}: {len(found)} checkpoints of {taken:.1f} s; a clock takes "
          f"{1000 * statistics.median(beside):.0f} ms, while a checkpoint is on its way {ratio:.3f} times that; "
          f"of all clocks {100 * share:.0f} % are such, so all take {100 * share * (ratio - 1):.1f} % longer", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=60)
    parser.add_argument("--cuts", type=int, default=5)
    options = parser.parse_args()
    store = stores.open_store()
    # Bypasses the gate, which costs more than s3rver. Parts have the usual size, and a slow disk has enough time.
    os.environ.update(AWS_ENDPOINT_URL=store.behind_endpoint, LEEWAY_S3_PART_BYTES=str(8 << 20),
                      LEEWAY_S3_STALL_SECONDS="15")
    measure(store, options, folder=False)
    measure(store, options, folder=True)
    store.__exit__()


if __name__ == "__main__":
    main()
