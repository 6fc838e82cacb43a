"""How the programs of a comparison are run, and how a comparison says that a subject is left out."""

import os
import subprocess
import sys

PYTHON = "/usr/bin/python3"  # the distribution's Python, which has the distribution's torch
# Limits each process to one thread in every library.
ONE_THREAD = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")


def run(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=ONE_THREAD, timeout=600,
                          **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def skip(what, why):
    print(f"SKIPPED {what}: {why}", flush=True)
