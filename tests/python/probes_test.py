#!/usr/bin/python3
"""Health probes of Python workers (LEEWAY_HEALTH) are answered from the join to the end of the process, as
leeway-worker answers them."""

import socket
import subprocess
import sys
import unittest

from jobs import BIN, job_of, job_yaml

# It stays after its part in the job is over, until it gets a signal.
WORKER = """
import pathlib, os, time, leeway
job = leeway.join({"w": (8,)}, {"w": [0.0] * 8}, update={"type": "sgd", "learning_rate": 1})
for clock, weights in job:
    job.push_pull({"w": [1.0] * 8}, examples=1)
pathlib.Path("over-" + os.environ["LEEWAY_RANK"]).touch()
time.sleep(600)
"""


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def healthy(address, *service):
    return subprocess.run([str(BIN / "leeway"), "health", address, *service], capture_output=True, check=False).returncode == 0


class Probes(unittest.TestCase):
    def test_they_are_answered_while_it_waits_and_when_it_has_left(self):
        addresses = [free_address(), free_address()]
        with job_of(job_yaml(stop="{clocks: 5}", servers=1), servers=1) as job:
            job.start_worker(0, WORKER, LEEWAY_HEALTH=addresses[0])
            job.wait_until(lambda: healthy(addresses[0]), "an answer while worker 0 waits for worker 1")
            self.assertFalse((job.folder / "over-0").exists())
            self.assertFalse(healthy(addresses[1]))
            job.start_worker(1, WORKER, LEEWAY_HEALTH=addresses[1])
            job.wait_until(lambda: all((job.folder / f"over-{rank}").exists() for rank in (0, 1)), "the end of the job")
            self.assertTrue(all(healthy(address) for address in addresses))
            for rank in (0, 1):
                job.workers[rank].terminate()
                job.workers[rank].wait(30)
            self.assertFalse(any(healthy(address) for address in addresses))

    def test_a_port_that_is_taken_or_none_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            for address, code in ((f"127.0.0.1:{taken.getsockname()[1]}", 1), ("7101", 3)):
                with job_of(job_yaml(servers=1), servers=1) as job:
                    job.start_worker(0, WORKER, LEEWAY_HEALTH=address)
                    self.assertEqual(job.workers[0].wait(60), code, job.said(0))
                    self.assertIn("LEEWAY_HEALTH", job.said(0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
