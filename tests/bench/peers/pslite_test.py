#!/usr/bin/python3
"""Tests under which congestion control ps-lite is refused, and for which processor it is built."""

import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import congestion  # noqa: E402
import pslite  # noqa: E402


def check_congestion():
    for control, fair in {"reno": True, "cubic": True, "bbr": False, "bbr2": False, "dctcp": False}.items():
        why = congestion.refusal(control)
        told = control in why and "sysctl -w net.ipv4.tcp_congestion_control=cubic" in why
        if (why == "") != fair or told == fair:
            yield f"{control}: {why!r}"


def check_architecture():
    with tempfile.TemporaryDirectory() as folder:
        programs = pathlib.Path(folder) / "bin"
        if (default := pslite.architecture(programs)) != "x86-64-v3":
            yield f"-march without a build folder: {default}"
        (programs.parent / "CMakeCache.txt").write_text("//Value of -march\nLEEWAY_ARCH:STRING=native\nA:STRING=b\n")
        if (own := pslite.architecture(programs)) != "native":
            yield f"-march beside a build folder: {own}"


def main():
    wrong = [*check_congestion(), *check_architecture()]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
