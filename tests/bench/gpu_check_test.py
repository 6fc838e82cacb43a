#!/usr/bin/python3
"""Tests scripts/gpu-check without a GPU: its budget, its verdicts and its journal, and the whole script with programs
that pretend."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import case_verdicts  # noqa: E402
import limited  # noqa: E402

RULE = "=" * 79 + "\n"
PASSED = RULE + "All tests passed (40 assertions in 8 test cases)\n\n"
SOME_SKIPPED = ("gpu.cc:31: SKIPPED: no GPU\n" + RULE + "test cases: 8 | 8 passed\nassertions: - none -\n\n"
                "3 of 8 test cases skipped\n")
BROKEN = "kernels.cc:12: FAILED:\n  REQUIRE( a == b )\n" + RULE + "test cases: 8 | 7 passed | 1 failed\n"
MEMCHECK = "========= COMPUTE-SANITIZER\n{}========= ERROR SUMMARY: {}\n"
RACECHECK = "========= COMPUTE-SANITIZER\n{}========= RACECHECK SUMMARY: {} hazards displayed (0 errors, 0 warnings)\n"
TERMINATED = "========= Error: Target application terminated before first instrumented API call\n"
UNSUPPORTED = "========= Error: Device not supported. Please refer to the \"Supported Devices\" section\n"

# What the output is: (exit code, text, state, cases checked).
PLAIN = {
    "passed": (0, PASSED, case_verdicts.CLEAN, 8),
    "one case": (0, "All tests passed (1 assertion in 1 test case)\n", case_verdicts.CLEAN, 1),
    "some skipped": (0, SOME_SKIPPED, case_verdicts.CLEAN, 5),
    "all skipped": (4, SOME_SKIPPED.replace("3 of", "8 of"), case_verdicts.CLEAN, 0),
    "failed": (1, BROKEN, case_verdicts.WRONG, 0),
    "killed": (-11, "", case_verdicts.WRONG, 0),
    "the names matched nothing": (0, "No tests ran\n", case_verdicts.REFUSED, 0),
    "the time was over": (None, PASSED, case_verdicts.UNFINISHED, 0),
}
SANITIZED = {
    "clean": (0, MEMCHECK.format(PASSED, "0 errors"), case_verdicts.CLEAN, 8),
    "no hazards": (0, RACECHECK.format(PASSED, 0), case_verdicts.CLEAN, 8),
    "clean, some skipped": (0, MEMCHECK.format(SOME_SKIPPED, "0 errors"), case_verdicts.CLEAN, 5),
    "errors": (86, MEMCHECK.format(PASSED, "2 errors"), case_verdicts.WRONG, 0),
    "an error, but the exit code of the tests": (0, MEMCHECK.format(PASSED, "1 error"), case_verdicts.WRONG, 0),
    "errors in the first of two processes": (
        0, MEMCHECK.format("", "3 errors") + MEMCHECK.format(PASSED, "0 errors"), case_verdicts.WRONG, 0),
    "the code of errors, no summary": (86, PASSED, case_verdicts.WRONG, 0),
    "hazards": (86, RACECHECK.format(PASSED, 2), case_verdicts.WRONG, 0),
    "clean, but a test failed": (1, MEMCHECK.format(BROKEN, "0 errors"), case_verdicts.WRONG, 0),
    "no summary": (0, PASSED, case_verdicts.REFUSED, 0),
    "not started": (127, "No such file\n", case_verdicts.REFUSED, 0),
    "terminated early": (0, TERMINATED + MEMCHECK.format(PASSED, "0 errors"), case_verdicts.REFUSED, 0),
    "device not supported": (86, UNSUPPORTED + MEMCHECK.format("", "1 error"), case_verdicts.REFUSED, 0),
    "device not supported, and errors that follow": (
        86, "Device not supported\n" + MEMCHECK.format("", "7 errors"), case_verdicts.REFUSED, 0),
    "internal error": (0, MEMCHECK.format(PASSED + "========= Internal Sanitizer Error: x\n", "0 errors"),
                       case_verdicts.REFUSED, 0),
    "no test ran": (0, MEMCHECK.format("No tests ran\n", "0 errors"), case_verdicts.REFUSED, 0),
    "the time was over": (None, MEMCHECK.format(PASSED, "0 errors"), case_verdicts.UNFINISHED, 0),
}


class Verdicts(unittest.TestCase):
    def check(self, verdict, cases):
        for what, (code, text, state, checked) in cases.items():
            with self.subTest(what):
                found = verdict(code, text)
                self.assertEqual((found.state, found.checked), (state, checked), found)

    def test_plain(self):
        self.check(case_verdicts.plain, PLAIN)

    def test_sanitized(self):
        self.check(case_verdicts.sanitized, SANITIZED)

    def test_a_part_passes_only_if_every_case_was_checked(self):
        clean = case_verdicts.Verdict(case_verdicts.CLEAN, 8, "")
        late = case_verdicts.Verdict(case_verdicts.UNFINISHED, 0, "the time was over")
        wrong = case_verdicts.Verdict(case_verdicts.WRONG, 0, "2 errors")
        for verdicts, state, counted in [([clean, clean], "passed", "16 of 16"), ([clean], "NOT RUN", "8 of 16"),
                                         ([clean, late], "NOT RUN", "8 of 16"), ([wrong, clean], "FAILED", "8 of 16"),
                                         ([late, wrong], "FAILED", "0 of 16"), ([], "NOT RUN", "0 of 16")]:
            with self.subTest(state, counted=counted):
                tally = case_verdicts.Tally(16)
                for verdict in verdicts:
                    tally.add(verdict, 8)
                self.assertEqual(tally.result()[0], state)
                self.assertIn(counted, tally.result()[1])
        self.assertEqual(case_verdicts.Tally(0).result()[0], "NOT RUN")

    def test_more_cases_than_asked_for_do_not_count(self):
        tally = case_verdicts.Tally(16)
        tally.add(case_verdicts.Verdict(case_verdicts.CLEAN, 100, ""), 8)
        self.assertEqual(tally.result()[0], "NOT RUN")

    def test_names(self):
        self.assertEqual(case_verdicts.names_listed(2, "b, c\n\"#a\"\n"), ["b, c", "#a"])
        self.assertEqual(case_verdicts.names_listed(127, "error while loading shared libraries\n"), [])
        self.assertEqual(case_verdicts.escaped("a, b [c]\\"), "a\\, b \\[c\\]\\\\")
        self.assertEqual(case_verdicts.batches(["c", "a", "b"], 2), [["a", "b"], ["c"]])


class Budgets(unittest.TestCase):
    def test_a_share_is_of_what_is_left(self):
        now = [100.0]
        budget = limited.Budget(60, lambda: now[0])
        self.assertEqual(budget.share(0.5), 30)
        now[0] += 40
        self.assertEqual((budget.left(), budget.share(0.5), budget.share(0.1, 5), budget.share(0.1, 30)), (20, 10, 5, 0))
        part = budget.part(0.25)
        now[0] += 3
        self.assertEqual((part.left(), budget.left()), (2, 17))
        now[0] += 100
        self.assertEqual((part.left(), budget.left(), budget.share(1)), (0, 0, 0))


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_each_result_is_in_the_journal_at_once(self):
        journal = limited.Journal(self.folder / "j")
        for count in [1, 2]:
            journal.add("a", limited.PASSED, "line\nline", 1.234, figures={"x": 1})
            entries = [json.loads(line) for line in (self.folder / "j").read_text().splitlines()]
            self.assertEqual(len(entries), count)
        self.assertEqual(entries[0], {"part": "a", "state": "passed", "why": "line\nline", "seconds": 1.23, "figures": {"x": 1}})

    def test_exit_codes(self):
        for states, code in [(["passed"], 0), (["passed", "NOT RUN"], 77), (["NOT RUN", "FAILED"], 1), ([], 77)]:
            self.assertEqual(limited.exit_code(states), code)
            self.assertEqual(limited.state_of(code), {0: "passed", 1: "FAILED", 77: "NOT RUN"}[code])

    def test_a_program_is_ended_with_what_it_started(self):
        log = self.folder / "log"
        ended = limited.run(["sh", "-c", "sleep 100 & echo $!; wait"], log, 0.5, grace=0.2)
        self.assertIsNone(ended.code)
        status = pathlib.Path(f"/proc/{ended.text.strip()}/stat")
        self.assertTrue(not status.exists() or status.read_text().split()[2] == "Z")

    def test_a_cut_off_waits_until_a_program_can_be_ended(self):
        cut_offs = limited.CutOffs()
        cut_offs.held = True
        cut_offs.arrive(15, None)
        with self.assertRaisesRegex(limited.CutOff, "SIGTERM"):
            cut_offs.release()
        cut_offs.release()
        with self.assertRaises(limited.CutOff):
            cut_offs.arrive(2, None)

    def test_a_program_that_is_not_there(self):
        self.assertEqual(limited.run([self.folder / "none"], self.folder / "log", 5).code, 127)


# Pretends to be a test program of 10 cases, whose names need care. The state of the case "slow" decides what happens to
# its batch.
PRETENDED_TEST = """#!/bin/sh
case $1 in
  --list-test-names-only) for i in 0 1 2 3 4 5 6 7 8; do echo "case $i, with a [bracket]"; done; echo last; exit 10 ;;
esac
# As Catch2 reads it: a comma without a backslash ends a name.
n=$(grep -cv '[^\\\\],' "$2")
if grep -q last "$2"; then
  if [ "$PRETEND" = hangs ]; then sleep 100; fi
  if [ "$PRETEND" = fails ]; then echo "a.cc:1: FAILED:"; echo "test cases: $n | 1 failed"; exit 1; fi
fi
echo "All tests passed (9 assertions in $n test cases)"
"""
PRETENDED_SANITIZER = """#!/bin/sh
shift 4
if [ "$PRETEND" = refuses ]; then echo "========= Error: Device not supported."; exit 1; fi
"$@"
code=$?
if [ "$PRETEND" = finds ] && grep -q last "$3"; then echo "========= ERROR SUMMARY: 2 errors"; exit 86; fi
echo "========= ERROR SUMMARY: 0 errors"
exit $code
"""
PRETENDED_BENCH = "#!/bin/sh\necho Fill 1 ms\n"
PRETENDED_LEEWAY = """#!/bin/sh
while [ $# -gt 0 ]; do if [ "$1" = --run-dir ]; then mkdir -p "$2"; echo bits >"$2/model.safetensors"; fi; shift; done
"""


class Script(unittest.TestCase):
    """The states of its parts and its exit code, with programs that pretend."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in {"cuda_device_test": PRETENDED_TEST, "compute-sanitizer": PRETENDED_SANITIZER,
                           "device_bench": PRETENDED_BENCH, "leeway": PRETENDED_LEEWAY, "leeway-server": "",
                           "leeway-worker": ""}.items():
            # Not executable, except for the programs that the script does not check for.
            path = self.folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if name == "compute-sanitizer" else 0o644)

    def command(self, parts, minutes):
        return [sys.executable, HERE.parents[1] / "scripts/gpu-check", "--device", "cpu", "--programs", self.folder / "bin",
                "--minutes", str(minutes), "--json", self.folder / "j", "--parts", parts]

    def check(self, parts, pretend="", minutes=1.0):
        """Returns (exit code, the last verdict on each part)."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(self.command(parts, minutes), capture_output=True, text=True, check=False,
                              env={**os.environ, "PRETEND": pretend, "PATH": path})
        entries = [json.loads(line) for line in (self.folder / "j").read_text().splitlines()]
        self.assertEqual(done.stderr, "")
        return done.returncode, {entry["part"]: (entry["state"], entry["why"]) for entry in entries if "batch" not in entry}

    def test_all_is_well(self):
        code, said = self.check("tests,bits,kernels,memcheck,racecheck")
        self.assertEqual({state for state, _ in said.values()}, {"passed"}, said)
        self.assertEqual((code, len(said)), (0, 5))
        self.assertIn("10 of 10", said["memcheck"][1])

    def test_a_case_fails(self):
        code, said = self.check("tests,racecheck", "fails")
        self.assertEqual((code, said["tests on the GPU"][0], said["racecheck"][0]), (1, "FAILED", "FAILED"))
        self.assertIn("8 of 10", said["racecheck"][1])

    def test_the_sanitizer_finds_something(self):
        code, said = self.check("memcheck", "finds")
        self.assertEqual((code, said["memcheck"]), (1, ("FAILED", "8 of 10 cases passed; ERROR SUMMARY: 2 errors")))

    def test_the_sanitizer_refuses(self):
        code, said = self.check("memcheck", "refuses")
        self.assertEqual((code, said["memcheck"]), (77, ("NOT RUN", "0 of 10 cases passed; Device not supported.")))
        self.assertEqual((self.folder / "j").read_text().count('"batch"'), 1)

    def test_the_time_is_over(self):
        code, said = self.check("memcheck,racecheck", "hangs", minutes=0.1)
        self.assertEqual((code, said["memcheck"][0]), (77, "NOT RUN"))

    def test_a_job_that_ends_before_the_kill(self):
        code, said = self.check("kill")
        self.assertEqual((code, said["same bits after kill -9"][0]), (77, "NOT RUN"))

    def test_a_cut_off_keeps_what_is_known(self):
        environment = {**os.environ, "PRETEND": "hangs", "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        process = subprocess.Popen(self.command("bits,racecheck,memcheck", 1), stdout=subprocess.PIPE, text=True,
                                   env=environment)
        journal = self.folder / "j"
        while not (journal.exists() and '"batch": "1 of 2"' in journal.read_text()):
            self.assertIsNone(process.poll())
        process.terminate()
        process.communicate()
        said = {entry["part"]: entry for entry in map(json.loads, journal.read_text().splitlines()) if "batch" not in entry}
        self.assertEqual([entry["state"] for entry in said.values()], ["passed", "NOT RUN", "NOT RUN"])
        self.assertIn("8 of 10", said["racecheck"]["why"])
        self.assertIn("SIGTERM", said["memcheck"]["why"])
        self.assertEqual(process.returncode, 77)


if __name__ == "__main__":
    unittest.main()
