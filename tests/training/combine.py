#!/usr/bin/python3
"""Workers of one host that combine their contributions (workers.per_host: combine): together they send as much as one
worker, and the result is that of workers that contribute separately. tests/chaos/kills.py kills some of them.

Usage: combine.py CASE; `measure` prints one line for each number of workers and exchange. The programs are those of
LEEWAY_BIN, so that the same cases run with a worker that computes on another device."""

import runs

DATA = "optdigits/optdigits.tra"
TOLERANCE = 1e-6
# Headers and the notes of the other workers still go to the servers.
OVERHEAD = 0.05
RANKS = (2, 4)
SETS = ["consistency.mode=sync", "transport.type=tcp", "servers.count=2", "stop={epochs: 4}",
        "model.layers=[{flatten: {}}, {dense: {units: 256}}, {batch_norm: {}}, {relu: {}}, "
        "{dropout: {rate: 0.2}}, {dense: {units: 10}}]"]
EXCHANGES = {
    "gradient": ["update={type: sgd, learning_rate: 0.05, momentum: 0.9}"],
    "accumulated": ["update={type: sgd, learning_rate: 0.05, momentum: 0.9}",
                    "exchange={type: gradient, accumulation: 3}"],
    "guarded": ["update={type: sgd, learning_rate: 0.05, momentum: 0.9}",
                "exchange={type: gradient, on_bad_gradient: clip, max_norm: 1}"],
    "delta": ["update={type: sgd, learning_rate: 1}",
              "exchange={type: delta, local_steps: 4, optimizer: {type: adam, learning_rate: 0.002}}"],
}


def trained(exchange, ranks, per_host):
    """Returns the summary of a run, and its model."""
    sets = [*SETS, *EXCHANGES[exchange], f"workers.count={ranks}", f"workers.per_host={per_host}"]
    run = runs.Run("quickstart.yaml", sets, runs.data_with(DATA))
    summary, model = run.train(), run.model()
    run.clean()
    return summary, model


def difference(model, other):
    """Returns the largest difference, relative to the largest value of its tensor."""
    return max(max(abs(a - b) for a, b in zip(model[name], other[name])) / max(map(abs, other[name])) for name in other)


def compare(exchange, ranks):
    separate, weights = trained(exchange, ranks, "separate")
    combined, sums = trained(exchange, ranks, "combine")
    share, apart = combined["bytes_sent"] / separate["bytes_sent"], difference(sums, weights)
    print(f"{exchange}, {ranks} workers: {separate['bytes_sent']} bytes sent, combined {combined['bytes_sent']}, which "
          f"is {share:.4f} of it; weights {apart:.1e} apart", flush=True)
    return share, apart


def same_as_separate(exchange):
    for ranks in RANKS:
        share, apart = compare(exchange, ranks)
        runs.check(share <= (1 + OVERHEAD) / ranks, f"a host of {ranks} sends {share:.4f} of what its workers would")
        runs.check(apart <= TOLERANCE, f"the same weights, {apart:.1e} apart")


def measure():
    for exchange in EXCHANGES:
        for ranks in (1, *RANKS):
            compare(exchange, ranks)


def main():
    cases = {exchange: lambda exchange=exchange: same_as_separate(exchange) for exchange in EXCHANGES}
    runs.main({**cases, "measure": measure})


if __name__ == "__main__":
    main()
