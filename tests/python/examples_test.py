#!/usr/bin/python3
"""examples/python: a script becomes a worker by a few lines, and without a job it does what it did before."""

import difflib
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "examples/python"


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def made_digits(folder, count=512):
    """Writes files like MNIST's: a square, whose position is the class, in noise."""
    (folder / "mnist").mkdir()
    draws = np.random.default_rng(1)
    for part, examples in (("train", count), ("t10k", 200)):
        labels = draws.integers(10, size=examples).astype(np.uint8)
        images = draws.integers(60, size=(examples, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels):
            image[2 * label:2 * label + 6, 2 * label:2 * label + 6] = 255
        for name, header, values in ((f"{part}-images-idx3-ubyte", b"\0\0\x08\x03" + b"".join(
                n.to_bytes(4, "big") for n in images.shape), images), (f"{part}-labels-idx1-ubyte", b"\0\0\x08\x01" +
                                                                      examples.to_bytes(4, "big"), labels)):
            (folder / "mnist" / f"{name}.gz").write_bytes(gzip.compress(header + values.tobytes()))


class Examples(unittest.TestCase):
    def run_one(self, path, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LEEWAY_")}
        done = subprocess.run([sys.executable, str(path), *map(str, arguments)], capture_output=True, text=True,
                              timeout=250, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    def test_four_lines(self):
        """Three lines are added. The job runs the loop over epochs, and keeps the scheduler's position."""
        for name in ("torch_mnist.py", "torch_local_sgd.py"):
            before = (EXAMPLES / "before" / name).read_text().splitlines()
            after = (EXAMPLES / name).read_text()
            self.assertEqual(after.count("for epoch in job.epochs(options.epochs):"), 1)
            after = after.replace("job.epochs(options.epochs)", "range(options.epochs)")
            after = re.sub(r"job\.keep\((.*)\)\n", r"\1\n", after).splitlines()
            changes = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
            self.assertEqual([line[0] for line in changes], ["+"] * 3, changes)
            self.assertTrue(all("leeway" in line or "job." in line for line in changes), changes)

    def test_each_has_a_job(self):
        for name in ("torch_mnist", "torch_local_sgd", "numpy_softmax"):
            self.assertIn("type: external", (EXAMPLES / f"{name}.yaml").read_text())

    @unittest.skipUnless(has("torch"), "torch is not installed (python3-torch)")
    def test_alone_to_the_same_bits(self):
        ending = ("\nimport hashlib\nprint('digest', hashlib.sha256(b''.join(v.numpy().tobytes() for v in "
                  "model.state_dict().values())).hexdigest())\n")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            made_digits(folder)
            for script in ("torch_mnist.py", "torch_local_sgd.py"):
                said = []
                for place in ("before/", ""):
                    copy = folder / f"{place.strip('/')}{script}"
                    copy.write_text((EXAMPLES / f"{place}{script}").read_text() + ending)
                    said.append(self.run_one(copy, "--data", folder, "--epochs", 4))
                self.assertIn("digest", said[0].stdout)
                self.assertEqual(said[0].stdout, said[1].stdout)
                self.assertEqual(said[1].stderr.count("\n"), 1, said[1].stderr)
                self.assertIn("this process trains alone", said[1].stderr)
                accuracy = float(said[1].stdout.split("accuracy ")[1].split(",")[0])
                self.assertGreater(accuracy, 0.9)

    def test_numpy_alone(self):
        accuracies = [float(self.run_one(EXAMPLES / place / "numpy_softmax.py", "--data", SOURCE / "data")
                            .stdout.split("accuracy ")[1].split(",")[0]) for place in ("before", "")]
        self.assertGreater(min(accuracies), 0.92)
        self.assertLess(abs(accuracies[0] - accuracies[1]), 0.02)

    def test_others_where_installed(self):
        for module in ("jax", "keras"):
            with self.subTest(module):
                if not has(module):
                    self.skipTest(f"{module} is not installed")
                self.run_one(EXAMPLES / f"{module}_softmax.py", "--data", SOURCE / "data")


if __name__ == "__main__":
    unittest.main()
