#!/usr/bin/python3
"""The transformer of config/jobs/shakespeare-gpt.yaml in every mode. With 1,500 steps of two workers it reaches a loss
of at most 2.0 nats a character on unseen text, as PyTorch does."""

import tempfile

import runs

JOB, TEXT = "shakespeare-gpt.yaml", "tinyshakespeare/input.txt"
LOSS_MAX = 2.0
# The outer Nesterov momentum makes up for the local steps (Douillard et al. 2023, arXiv:2311.08105).
BESIDE_SYNC = 1.02


def local(exchange, rate, warm_up):
    """An exchange whose workers each train by AdamW. A warm-up in local steps is converted to clocks of the job."""
    return (f"exchange={{{exchange}, optimizer: {{type: adamw, learning_rate: {rate}, beta2: 0.99, weight_decay: 0.1, "
            "factors: {biases: {weight_decay: 0}, norms: {weight_decay: 0}}, "
            f"schedule: {{type: cosine, final_factor: 0.1, warm_up: {{clocks: {warm_up}}}}}}}}}")


DELTA = local("type: delta, local_steps: 20", 0.001, 5)
MODES = {
    "sync": [],
    "bounded": ["consistency={mode: bounded, staleness: 3}"],
    "async": ["consistency={mode: async}"],
    "elastic": [local("type: elastic, every: 10, alpha: 0.45", 0.002, 10), "stop.clocks=150",
                "evaluation={every: {clocks: 50}}"],
    "delta": [DELTA, "update={type: sgd, learning_rate: 0.7, momentum: 0.9, nesterov: true}", "stop.clocks=75",
              "evaluation={every: {clocks: 25}}"],
}


def loss_of(mode):
    folder = tempfile.mkdtemp(prefix="leeway-test-")
    job = runs.without_update(runs.JOBS / JOB, folder) if mode == "elastic" else JOB
    run = runs.Run(job, MODES[mode], runs.data_with(TEXT), parent=folder)
    summary = run.train(timeout=1800)
    run.clean()
    print(f"{mode}: test loss {summary['test_loss']:.3f} nats, perplexity {summary['test_perplexity']:.2f}, "
          f"{summary['seconds']:.0f} s, {summary['samples_per_second']:.0f} samples/s", flush=True)
    return summary["test_loss"]


def reaches(mode):
    loss = loss_of(mode)
    runs.check(loss <= LOSS_MAX, f"{mode}: {loss:.3f} nats after 1,500 steps, wanted {LOSS_MAX}")


def beside_sync():
    sync, delta = loss_of("sync"), loss_of("delta")
    runs.check(max(sync, delta) <= LOSS_MAX, f"sync {sync:.3f}, delta {delta:.3f}: both {LOSS_MAX} at most")
    runs.check(delta <= BESIDE_SYNC * sync, f"delta with Nesterov outside: {delta / sync:.3f} of sync's loss")


if __name__ == "__main__":
    runs.main({mode: lambda mode=mode: reaches(mode) for mode in MODES} | {"delta-beside-sync": beside_sync})
