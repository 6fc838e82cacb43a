"""Finds which BLAS the distribution's PyTorch computes with, from what it has mapped into memory."""

import pathlib
import subprocess
import sys

from commands import PYTHON

# How the file names of each one begin. libmkldnn is oneDNN's old name, and oneDNN is not a BLAS.
FAST = {"openblas": "libopenblas", "mkl": "libmkl_", "blis": "libblis", "atlas": "libatlas"}
# Without NumPy, which brings a BLAS of its own that is not measured.
PROBE = """
import importlib.util, sys, warnings
if importlib.util.find_spec("torch") is None: sys.exit(3)
sys.modules["numpy"] = None
warnings.simplefilter("ignore")
import torch
print(open("/proc/self/maps").read())
"""
NO_TORCH = 3


def blas_in(maps):
    """(name, path) of the BLAS in the text of a /proc/PID/maps: one of FAST, "reference", or "built in" without a path.

    The reference BLAS takes precedence: a process that has mapped it computes with it. Debian's OpenBLAS and BLIS are
    also called libblas, each in a folder of its name.
    """
    found = ("built in", "")
    for line in maps.splitlines():
        path = pathlib.PurePosixPath(line[line.find("/"):].removesuffix(" (deleted)")) if "/" in line else None
        if path is None or ".so" not in path.name:
            continue
        fast = next((name for name, file in FAST.items() if path.name.startswith(file)), None)
        if path.name.startswith("libblas."):
            fast = next((name for name in FAST if path.parent.name.startswith(name)), "reference")
        if fast == "reference":
            return fast, str(path)
        if fast:
            found = (fast, str(path))
    return found


def refusal(blas, path):
    """Returns why no figure of a PyTorch with this BLAS would be fair; "" if one would be."""
    if blas != "reference":
        return ""
    return (f"{PYTHON}: its PyTorch computes with the reference BLAS ({path}), up to twenty times slower than it can "
            "be. Nothing was measured. Install OpenBLAS: apt-get install libopenblas0-pthread. If it is installed, "
            "choose it: update-alternatives --config libblas.so.3-x86_64-linux-gnu")


def installed_torch():
    """Returns the BLAS of the installed PyTorch; None without PyTorch. Exits if the comparison would be unfair."""
    probe = subprocess.run([PYTHON, "-c", PROBE], capture_output=True, text=True)
    if probe.returncode == NO_TORCH:
        return None
    if probe.returncode != 0:
        sys.exit(f"{PYTHON}: torch is installed and cannot be imported\n{probe.stderr}")
    blas, path = blas_in(probe.stdout)
    if why := refusal(blas, path):
        sys.exit(why)
    return blas
