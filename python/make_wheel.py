#!/usr/bin/python3
"""Makes a wheel of the package with libleeway-client.so in it, for every Python 3.9 and later on this kind of Linux.

Usage: make_wheel.py [LIBRARY [FOLDER]], by default the clone's build and the current folder; prints the wheel's path. It
stands on the distribution's setuptools and wheel.

The library needs the distribution's gRPC, Protobuf and OpenSSL, which a wheel cannot bring: Debian has no static Protobuf
that could go into a shared object. So the tag is linux, not manylinux, and the metadata say what must be installed."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

PYTHON = pathlib.Path(__file__).resolve().parent
SETUP = '''
from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(name="leeway", version={version!r}, packages=["leeway", "leeway.torch"], python_requires=">=3.9",
      package_data={{"leeway": ["py.typed", "libleeway-client.so"]}}, install_requires=["numpy"],
      description="Workers of Leeway jobs in Python", long_description={needs!r}, license="Apache-2.0",
      cmdclass={{"bdist_wheel": Wheel}}, distclass=Binary)
'''


def needs_of(library):
    """The shared objects that the library names, as text for the metadata."""
    said = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    names = [line.split("[")[1].rstrip("]") for line in said.splitlines() if "(NEEDED)" in line]
    return ("libleeway-client.so needs these shared objects of the distribution (Debian 12: libgrpc++1.51, libprotobuf32): "
            + ", ".join(names))


def version_of(library):
    import ctypes
    function = ctypes.CDLL(str(library)).leeway_version
    function.restype = ctypes.c_char_p
    return function().decode()


def main():
    library, target = (pathlib.Path(sys.argv[n] if len(sys.argv) > n else default).resolve()
                       for n, default in ((1, PYTHON.parent / "build/release/lib/libleeway-client.so"), (2, ".")))
    if not library.is_file():
        sys.exit(f"{library} is not there: build it (./quickstart), or name it: make_wheel.py LIBRARY FOLDER")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="leeway-wheel-") as name:
        folder = pathlib.Path(name)
        shutil.copytree(PYTHON / "leeway", folder / "leeway", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copyfile(library, folder / "leeway/libleeway-client.so")
        (folder / "setup.py").write_text(SETUP.format(version=version_of(library), needs=needs_of(library)))
        subprocess.run([sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(target)], cwd=folder, check=True,
                       stderr=subprocess.DEVNULL)
    print(next(target.glob("leeway-*.whl")))


if __name__ == "__main__":
    main()
