#!/usr/bin/python3
"""leeway with numpy arrays, without servers, and how a process ends after an error."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import leeway
from leeway import _library
from leeway.alone import has_coordinator
from leeway.batches import BatchOrder
from leeway.session import Info
from fake_session import FakeSession

PACKAGE = pathlib.Path(leeway.__file__).resolve().parents[1]
SCHEMA = {"w": (2, 3), "b": 3}


def join(schema=None, initial=None, session=None, **options):
    def make(tensors, flat, update, coordinator, rank, start_seconds):
        return FakeSession(tensors, flat, update, **(session or {}))
    with mock.patch("leeway.job.LibrarySession", make):
        return leeway.join(schema or SCHEMA, initial, coordinator="fake:1", **options)


def ones():
    return {"w": np.ones((2, 3)), "b": np.ones(3)}


class Batches(unittest.TestCase):
    def test_other_numbers_go_on_in_the_pass(self):
        """Three workers begin a pass, and two with other batches end it: each example comes once."""
        before = [Info(rank=rank, workers=3, batch_size=4, seed=1) for rank in range(3)]
        # Five clocks of twelve examples are as many as three of twenty.
        after = [Info(rank=rank, workers=2, batch_size=10, seed=1, first_clock=5, first_step=3) for rank in range(2)]
        seen = [BatchOrder(info, 240).rows(info.step_of(clock)) for clock in range(5) for info in before]
        seen += [BatchOrder(info, 240).rows(info.step_of(clock)) for clock in range(5, 14) for info in after]
        self.assertEqual(sorted(np.concatenate(seen)), list(range(240)))

    def test_a_job_goes_on(self):
        job = join(session={"clocks": 2, "batch_size": 2, "examples": 8})
        job._clocks.info = dataclasses.replace(job.info, first_step=2)
        seen = []
        for batch in job.batches(np.arange(8)):
            seen.append(batch)
            job.push_pull({"w": np.zeros((2, 3)), "b": np.zeros(3)}, examples=2)
        order = BatchOrder(job.info, 8).permutation(0)
        self.assertEqual(np.concatenate(seen).tolist(), order[4:8].tolist())


class Clocks(unittest.TestCase):
    def test_a_loop(self):
        job = join(session={"clocks": 3}, update={"type": "sgd", "learning_rate": 0.5})
        clocks = []
        for clock, weights in job:
            self.assertEqual(weights["w"][0, 0], -0.5 * clock)
            clocks.append(clock)
            job.push_pull(ones(), examples=4, loss=2.0)
        self.assertEqual((clocks, job.ended), ([0, 1, 2], "finished"))
        self.assertEqual(job.weights["b"].tolist(), [-1.5] * 3)
        self.assertEqual([(c, list(w)) for c, w in job], [])

    def test_initial(self):
        for initial in ({"w": np.arange(6).reshape(2, 3), "b": [7, 8, 9]}, np.arange(9, dtype=np.float32) + (np.arange(9) > 5),
                        lambda name, shape: np.arange(6).reshape(2, 3) if name == "w" else np.array([7, 8, 9])):
            job = join(initial=initial)
            self.assertEqual(job.weights["w"].tolist(), [[0, 1, 2], [3, 4, 5]])
            self.assertEqual(job.weights["b"].tolist(), [7, 8, 9])

    def test_averaged_tensors_come_last(self):
        job = join({"mean": leeway.Tensor((2,), averaged=True), "w": 3}, {"mean": [1, 1], "w": [0, 0, 0]},
                   {"clocks": 2}, update={"type": "sgd", "learning_rate": 1})
        self.assertEqual(list(job.weights), ["w", "mean"])
        for clock, weights in job:
            job.push_pull({"w": np.ones(3)} if clock else {"w": np.ones(3), "mean": [5, 6]}, examples=1)
        self.assertEqual(job.weights["mean"].tolist(), [5, 6])
        self.assertEqual(job.weights["w"].tolist(), [-2] * 3)

    def test_a_worker_that_trains_by_itself(self):
        job = join(session={"exchange": "delta", "steps_per_clock": 3, "clocks": 2})
        for _, weights in job:
            weights["b"][...] += 1
            weights["w"] -= 2
            weights["w"] = weights["w"] + 1
            job.push_pull(examples=2)
        self.assertEqual(job.weights["b"].tolist(), [6] * 3)
        self.assertEqual(job.weights["w"].tolist(), [[-6] * 3] * 2)
        with self.assertRaises(KeyError):
            job.weights["none"] = 1
        self.assertEqual([e for e in job._session.log if e[0] == "end"], [("end", 3, 6)] * 2)

    def test_batches(self):
        x = np.arange(10)
        for exchange, steps, per_batch in (("gradient", 1, 4), ("gradient", 2, 8), ("delta", 2, 4)):
            job = join(session={"exchange": exchange, "steps_per_clock": steps, "clocks": 3})
            seen = []
            for some, twice in job.batches((x, 2 * x)):
                self.assertEqual(twice.tolist(), (2 * some).tolist())
                self.assertLessEqual(len(some), per_batch)
                seen.append(len(some))
                job.push_pull(None if exchange == "delta" else ones())
            self.assertEqual(sum(e[2] for e in job._session.log if e[0] == "end"), sum(seen))

    def test_times_and_losses(self):
        now = [0.0]
        with mock.patch("leeway.job.time.perf_counter", lambda: now[0]):
            job = join(session={"clocks": 2})
            for _ in job.batches(np.arange(10)):
                now[0] += 3
                job.push_pull(ones(), loss=2.0)
                now[0] += 1000
        for report in job._session.reports:
            self.assertEqual((report.forward_seconds, report.loss_sum), (3, 8))

    def test_a_loop_over_epochs(self):
        job = join(session={"clocks": 2})
        for _ in job.batches(np.arange(10)):
            job.push_pull(ones())
        with self.assertRaisesRegex(leeway.Misuse, "all passes in one loop"):
            list(job.batches(np.arange(10)))

    def test_figures_that_nobody_keeps(self):
        job = join(session={"clocks": 1}, evaluate=lambda weights: {"loss": 1.0, "f1": 0.5, "auc": 0.7})
        job.begin()
        job.push_pull(ones())
        with self.assertRaisesRegex(leeway.InvalidArgument, "returned f1, auc; a job keeps loss, accuracy and examples"):
            job.begin()

    def test_evaluations(self):
        seen = []
        job = join(session={"clocks": 4, "evaluate_every": 2},
                   evaluate=lambda weights: seen.append(weights["b"][0]) or {"loss": 1.0, "accuracy": 0.25})
        for _ in job:
            job.push_pull(ones(), examples=1)
        self.assertEqual(job._session.evaluations, [(1, 1.0, 0.25, 0), (3, 1.0, 0.25, 0)])
        self.assertEqual(seen, [-2, -4])

    def test_save(self):
        job = join(initial=np.arange(9, dtype=np.float32))
        with tempfile.TemporaryDirectory() as folder:
            job.save(f"{folder}/x")
            self.assertEqual(leeway.safetensors.load(f"{folder}/x")["b"].tolist(), [6, 7, 8])


class Misuse(unittest.TestCase):
    def refused(self, kind, text, call):
        with self.assertRaisesRegex(kind, text):
            call()

    def test_schemas(self):
        for text, schema in {"not empty": {}, "mapping": [1], "'' is not a name": {"": 3}, "every dimension": {"x": (3, 0)},
                             "kind": {"x": leeway.Tensor((3,), kind="matrix")}}.items():
            if text == "kind":
                from leeway.schema import check_schema, native_tensors
                self.refused(leeway.InvalidArgument, "x: kind is 'matrix'", lambda: native_tensors(check_schema(schema)))
            else:
                self.refused(leeway.InvalidArgument, text, lambda: leeway.join(schema, coordinator="x"))

    def test_initials(self):
        for text, initial in {"'b' is missing": {"w": np.zeros((2, 3))}, "the schema has 9": np.zeros(8),
                              r"b has the shape \(2,\)": {"w": np.zeros((2, 3)), "b": [1, 2]}, "not int": 7}.items():
            self.refused(leeway.InvalidArgument, text, lambda: join(initial=initial))

    def test_gradients(self):
        for text, gradients in {"gradient for 'b' is missing": {"w": np.ones((2, 3))}, "for 'c'": {**ones(), "c": 1},
                                r"gradient of w has the shape \(3, 2\)": {**ones(), "w": np.ones((3, 2))},
                                r"\(8,\); it must have \(9,\)": np.zeros(8), "not list": [1]}.items():
            job = join()
            next(iter(job))
            self.refused(leeway.InvalidArgument, text, lambda: job.push_pull(gradients))

    def test_order(self):
        job = join()
        self.refused(leeway.Misuse, "without a clock", lambda: job.push_pull(ones()))
        self.refused(leeway.Misuse, "clock 0 has no push_pull", lambda: list(job))
        job = join(session={"exchange": "delta"})
        next(iter(job))
        self.refused(leeway.Misuse, "changes `weights` itself", lambda: job.push_pull(ones()))
        with self.assertRaises(ValueError):
            join().weights["w"][0, 0] = 1

    def test_alone(self):
        for text, update in {"be a mapping": None, "only sgd is possible, not 'adam'": {"type": "adam", "learning_rate": 1},
                             "'beta1'": {"type": "sgd", "beta1": 1}, "learning_rate is missing": {"type": "sgd"}}.items():
            self.refused(leeway.InvalidArgument, text, lambda: leeway.join(SCHEMA, update=update))

    def test_places(self):
        self.assertTrue(has_coordinator({"LEEWAY_COORDINATOR": "a:1"}))
        self.assertTrue(has_coordinator({"TF_CONFIG": json.dumps({"cluster": {"ps": ["a:1"]}})}))
        for nothing in ({}, {"TF_CONFIG": "{"}, {"TF_CONFIG": "[]"}, {"WORLD_SIZE": "1"}):
            self.assertFalse(has_coordinator(nothing))
        self.refused(leeway.InvalidArgument, "DMLC_ROLE is set", lambda: has_coordinator({"DMLC_ROLE": "worker"}))

    def test_exit_codes_are_the_library_s(self):
        try:
            library = _library.load()
        except leeway.LibraryNotFound as error:
            self.skipTest(str(error)[:60])
        from leeway.errors import BY_CODE
        for code, kind in BY_CODE.items():
            self.assertEqual(library.leeway_exit_code(code), kind.exit_code, kind)

    def test_the_library_is_looked_for(self):
        with mock.patch.dict(os.environ, {"LEEWAY_LIBRARY": "/nowhere/x.so"}), \
                mock.patch.object(_library, "NAME", "libnowhere.so"), mock.patch.object(_library, "_loaded", None):
            self.refused(leeway.LibraryNotFound, "/nowhere/x.so, .*LEEWAY_LIBRARY", _library.load)
        with tempfile.NamedTemporaryFile(suffix=".so") as empty, mock.patch.object(_library, "_loaded", None), \
                mock.patch.dict(os.environ, {"LEEWAY_LIBRARY": empty.name}):
            self.refused(leeway.LibraryNotFound, "cannot be loaded", _library.load)

    def test_no_names(self):
        self.refused(leeway.InvalidArgument, "'' is not a name", lambda: join({"": 1}))


class Ends(unittest.TestCase):
    JOINED = ("import sys, numpy as np, leeway\nfrom unittest import mock\nfrom fake_session import FakeSession\n"
              "job = leeway.Job(FakeSession({'w': leeway.Tensor((2,))}, None, None), {'w': leeway.Tensor((2,))})\n")

    def ends(self, script, code, said="^", begin=JOINED):
        done = subprocess.run([sys.executable, "-c", begin + script], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": f"{PACKAGE}:{pathlib.Path(__file__).parent}"})
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, said)
        return done.stderr

    def test_codes(self):
        self.ends("pass", 0)
        self.ends("raise OSError('mine')", 1, "OSError: mine")
        self.ends("raise leeway.Unavailable('x')", 1, "Unavailable: x")
        self.ends("raise leeway.FailedPrecondition('x')", 1)
        self.ends("raise leeway.Replaced('x')", 5, "Replaced: x")
        self.ends("raise leeway.NotFinite('x')", 3, "NotFinite: x")
        self.assertNotIn("Traceback", self.ends("raise leeway.Finished('it is over')", 0, "leeway: it is over"))
        self.ends("raise SystemExit(7)", 7)

    def test_join(self):
        """Starting the process again would not help, either."""
        for text, call in {"not empty": "leeway.join({}, coordinator='a:1')",
                           "learning_rate is missing": "leeway.join({'w': 1}, update={'type': 'sgd'})"}.items():
            self.ends(call, 3, f"InvalidArgument: .*{text}", begin="import leeway\n")

    def test_the_job_is_told(self):
        tell = "job._session.fail = lambda message, seconds: print('told', message, file=sys.stderr)\n"
        self.ends(tell + "raise leeway.NotFinite('x')", 3, "told NotFinite: x")
        self.assertNotIn("told", self.ends(tell + "raise OSError('x')", 1))
        self.assertNotIn("told", self.ends(tell + "job._clocks.ended = 'finished'\nraise leeway.NotFinite('x')", 3))
        self.ends(tell + "try:\n  with job: raise leeway.NotFinite('x')\nexcept leeway.Error: pass", 0, "told NotFinite: x")

    def test_a_mistake_of_the_script(self):
        """Another life would repeat it: a missing name at any time, and an error before a clock has ended."""
        tell = "job._session.fail = lambda message, seconds: print('told', message, file=sys.stderr)\n"
        clock = "job.begin()\njob.push_pull({'w': [1, 1]})\n"
        for mistake, said in (("import nowhere", "ModuleNotFoundError"), ("nothing", "NameError"), ("exec('(')", "SyntaxError")):
            self.ends(tell + clock + mistake, 3, f"told {said}: ")
        for mistake in ("None.x", "None + 1", "{}[1]", "int('x')"):
            self.ends(tell + mistake, 3, "told ")
            self.assertNotIn("told", self.ends(tell + clock + mistake, 1))

    def test_a_hook_of_the_script_stays(self):
        said = self.ends("sys.excepthook = lambda *a: print('mine', file=sys.stderr)\nleeway.ending._installed = False\n"
                         "leeway.ending.install()\nraise leeway.NotFinite('x')", 3, "mine")
        self.assertNotIn("Traceback", said)

    def test_interrupts(self):
        script = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)"
        self.ends(script, -signal.SIGINT, "KeyboardInterrupt")


if __name__ == "__main__":
    unittest.main()
