#!/usr/bin/python3
"""Tests which BLAS is found in a process's maps, and which one a comparison refuses."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import torch_blas  # noqa: E402

LIB = "/usr/lib/x86_64-linux-gnu"


def maps(*paths):
    """Writes maps as the kernel does, between a heap and a library that is unrelated to BLAS."""
    mapped = ["", "[heap]", f"{LIB}/libc.so.6", "/home/openblas/notes.txt", *paths]
    return "".join(f"7f2af4400000-7f2af4424000 r-xp 00000000 fe:01 1311{i:02} {'':20}{p}\n" for i, p in enumerate(mapped))


REFERENCE = f"{LIB}/blas/libblas.so.3.11.0"
CASES = {
    "Debian's reference BLAS": (maps(REFERENCE, f"{LIB}/lapack/liblapack.so.3.11.0"), "reference"),
    "it, replaced on disk": (maps(REFERENCE + " (deleted)"), "reference"),
    "it, beside an OpenBLAS of somebody else": (maps(f"{LIB}/openblas-pthread/libopenblasp-r0.3.21.so", REFERENCE), "reference"),
    "it, before one": (maps(REFERENCE, "/usr/lib/python3/numpy.libs/libopenblas64_p-r0-15028c96.3.21.so"), "reference"),
    "a reference BLAS in another folder": (maps("/usr/lib64/libblas.so.3.12.0"), "reference"),
    "OpenBLAS": (maps(f"{LIB}/openblas-pthread/libblas.so.3", f"{LIB}/openblas-pthread/libopenblasp-r0.3.21.so"), "openblas"),
    "OpenBLAS under libblas's name alone": (maps(f"{LIB}/openblas-openmp/libblas.so.3"), "openblas"),
    "BLIS": (maps(f"{LIB}/blis-pthread/libblas.so.3"), "blis"),
    "MKL": (maps(f"{LIB}/libmkl_rt.so", f"{LIB}/libmkl_core.so"), "mkl"),
    "PyTorch's own package, MKL linked in": (maps("/opt/torch/lib/libtorch_cpu.so", "/opt/torch/lib/libmkldnn.so.1"), "built in"),
    "nothing": ("", "built in"),
}


def main():
    wrong = 0
    for what, (text, wanted) in CASES.items():
        name, path = torch_blas.blas_in(text)
        why = torch_blas.refusal(name, path)
        refused = "libopenblas0-pthread" in why and path in why
        if name != wanted or refused != (wanted == "reference") or bool(path) == (name == "built in"):
            print(f"{what}: found {name!r} at {path!r}, wanted {wanted!r}; refused with {why!r}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
