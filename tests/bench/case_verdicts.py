"""What the output of test cases says, both plain and under a tool of compute-sanitizer. Only tests that ran to their
end, with the sanitizer's own summary, count as clean."""

import collections
import re

from limited import FAILED, NOT_RUN, PASSED

CLEAN, WRONG, REFUSED, UNFINISHED = "clean", "wrong", "refused", "unfinished"
# The sanitizer is told to exit with this code if it found something.
FOUND_CODE = 86
# Our test programs exit with this code if all cases of the run were skipped.
SKIPPED_CODE = 4

SUMMARY = re.compile(r"^=+ ((?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?).*)$", re.MULTILINE)
REFUSAL = re.compile(r"^(?:=+ )?(?:Error: |Warning: )?(.*(?:Internal Sanitizer Error|[Dd]evice not supported"
                     r"|before first instrumented API call|No attachable process|[Ff]ailed to (?:initialize|attach)).*)$",
                     re.MULTILINE)
RAN = re.compile(r"(?:in (\d+) test cases?\)|^test cases:\s+(\d+))", re.MULTILINE)
SKIPPED = re.compile(r"^(\d+) of \d+ test cases skipped$", re.MULTILINE)
FAILURE = re.compile(r"^(.+): FAILED:", re.MULTILINE)

# state: one of the above. checked: the cases that ran to their end and were not skipped; 0 unless it is clean.
Verdict = collections.namedtuple("Verdict", "state checked why")


def plain(code, text):
    """A `code` of None says that the time ran out first."""
    if code is None:
        return Verdict(UNFINISHED, 0, "the time was over")
    if code not in (0, SKIPPED_CODE):
        failure = FAILURE.search(text)
        return Verdict(WRONG, 0, f"the tests end with {code}{': ' + failure.group(1) if failure else ''}")
    ran, skipped = RAN.search(text), SKIPPED.search(text)
    if not ran:
        return Verdict(REFUSED, 0, "no test ran to its end")
    checked = int(ran.group(1) or ran.group(2)) - (int(skipped.group(1)) if skipped else 0)
    reasons = [line.strip() for line in text.splitlines() if "SKIPPED:" in line]
    return Verdict(CLEAN, checked, reasons[0] if reasons else "")


def sanitized(code, text):
    """Like plain(). Each process that the sanitizer watches has a summary of its own."""
    if code is None:
        return Verdict(UNFINISHED, 0, "the time was over")
    refusal = REFUSAL.search(text)
    if refusal:
        return Verdict(REFUSED, 0, refusal.group(1).strip())
    summaries = SUMMARY.findall(text)
    found = next((line for line, count in summaries if int(count) > 0), None)
    if found or code == FOUND_CODE:
        return Verdict(WRONG, 0, found or f"the sanitizer ends with {code}")
    if not summaries:
        return Verdict(REFUSED, 0, f"the sanitizer gave no summary (exit code {code})")
    return plain(code, text)


class Tally:
    """Adds up all batches of cases of one part."""

    def __init__(self, cases):
        self.cases, self.clean, self.wrong, self.reasons = cases, 0, [], []

    def add(self, verdict, size):
        self.clean += min(verdict.checked, size)
        if verdict.state == WRONG:
            self.wrong.append(verdict.why)
        elif verdict.checked < size:
            self.reasons.append(verdict.why or "not all cases of a batch ran")

    def result(self):
        """Returns (state, why). The state is passed only if every case was checked."""
        counted = f"{self.clean} of {self.cases} cases passed"
        if self.wrong:
            return FAILED, f"{counted}; {self.wrong[0]}"
        if self.cases and self.clean >= self.cases:
            return PASSED, counted
        return NOT_RUN, f"{counted}; {self.reasons[0] if self.reasons else 'the time was over'}"


def batches(names, size):
    """Sorts the cases by name, so that runs that are cut off check the same ones."""
    names = sorted(names)
    return [names[i:i + size] for i in range(0, len(names), size)]


def escaped(name):
    """Escapes a name for a file of names: Catch2 ends a name at a comma, even in quotes."""
    return re.sub(r"([\\,\[\]])", r"\\\1", name)


def names_listed(code, text):
    """Returns the names that --list-test-names-only printed; empty if the output is something else. The exit code is
    the number of names, at most 255."""
    names = [line.strip().strip('"') for line in text.splitlines() if line.strip()]
    return names if code == min(len(names), 255) else []
