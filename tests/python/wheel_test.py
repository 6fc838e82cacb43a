#!/usr/bin/python3
"""The wheel in a fresh venv of the distribution's Python, beside a worker of the clone: the numpy example trains."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

from jobs import SOURCE, check, job_of, job_yaml, skip

LIBRARY = pathlib.Path(os.environ.get("LEEWAY_LIBRARY", SOURCE / "build/release/lib/libleeway-client.so"))


def main():
    try:
        import setuptools  # noqa: F401
        import venv
        import wheel  # noqa: F401
    except ImportError as error:
        skip(f"{error} (python3-setuptools, python3-wheel, python3-venv)")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Without arguments it takes the clone's build and the current folder.
        arguments = [] if LIBRARY == SOURCE / "build/release/lib/libleeway-client.so" else [str(LIBRARY)]
        made = subprocess.run([str(SOURCE / "python/make_wheel.py"), *arguments], cwd=folder, capture_output=True, text=True,
                              check=True).stdout.strip()
        check(re.search(r"leeway-[\d.]+-py3-none-linux_\w+\.whl$", made), f"a wheel for every Python 3: {pathlib.Path(made).name}")
        # numpy comes from the distribution. pip may be absent, but a wheel is an archive.
        venv.create(folder / "venv", system_site_packages=True)
        packages = next((folder / "venv/lib").glob("python3*/site-packages"))
        with zipfile.ZipFile(made) as archive:
            archive.extractall(packages)
        bare = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LEEWAY_LIBRARY")}
        with job_of(job_yaml(batch_size=64, examples=3823, stop="{clocks: 400}")) as job:
            environment = {**bare, "LEEWAY_COORDINATOR": job.coordinator, "LEEWAY_RANK": "0"}
            process = subprocess.Popen([str(folder / "venv/bin/python3"), str(SOURCE / "examples/python/numpy_softmax.py"),
                                        "--data", str(SOURCE / "data")], env=environment, stdout=subprocess.PIPE, text=True)
            job.workers[0] = process
            job.start_worker(1, str(SOURCE / "examples/python/numpy_softmax.py"), "--data", SOURCE / "data")
            said = process.communicate(timeout=120)[0]
            job.wait()
            accuracy = float(re.search(r"test accuracy (\S+),", said).group(1))
            check(accuracy > 0.92, f"test accuracy {accuracy} with the wheel on rank 0 and the clone on rank 1")


if __name__ == "__main__":
    main()
