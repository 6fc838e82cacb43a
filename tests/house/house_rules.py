#!/usr/bin/python3
"""The rules of the house, kept by a test: which folder may include which, where gRPC and threads may
appear, what nobody uses, and that every source file is built.

Usage: house_rules.py REPOSITORY; prints each violation as file:line: text and exits 1 if there is any.
With --self-test it checks that each rule finds a file that breaks it.
"""

import pathlib
import re
import sys

# A folder may include itself and what stands here. The longest matching prefix counts.
MAY_INCLUDE = {
    "config": ["proto", "common"],
    "common": ["proto"],
    "server": ["proto", "config", "common"],
    "worker": ["proto", "config", "common"],
    "worker/compute": ["proto", "common", "worker/data"],
    "worker/layers": ["proto", "common", "worker/compute", "worker/data"],
    "worker/data": ["proto", "common"],
    "worker/client": ["proto", "config", "common"],
    "server/core": ["common"],
    "server/store": ["common"],
    "server/checkpoint": ["proto", "common"],
    "deploy/base": ["proto", "common"],
    "deploy/bench": ["proto", "config", "common", "server", "worker", "deploy/base"],
    "deploy/launcher": ["proto", "config", "common", "server", "worker", "deploy/base", "deploy/bench"],
}

# gRPC appears in the adaptors only.
GRPC_IN = [
    "common/wire.", "common/grpc_status.", "common/channel.", "common/queue_poller.",
    "server/parameter_service.", "server/stream_", "server/unread_answers.", "server/rpc/", "server/server_node.", "server/server_process.", "server/quorum_reporter.", "server/replica/replica_link.",
    "server/main.cc", "server/coordinator/",
    "worker/client/", "worker/main.cc", "deploy/bench/", "deploy/launcher/",
]
GRPC = re.compile(r'#include [<"](grpc|grpcpp)/|#include ".*\.grpc\.pb\.h"')

# Pure state machines.
PURE = ["server/core/", "server/coordinator/coordinator_core.", "server/coordinator/coordinator_going_back.",
        "server/coordinator/arrival_history.", "server/coordinator/coordinator_leases.",
        "server/coordinator/lease_book.", "server/coordinator/straggler_grace.", "worker/data/batch_stock.",
        "server/coordinator/coordinator_lifecycle.", "server/coordinator/coordinator_placement.",
        "server/coordinator/coordinator_quorum.", "server/coordinator/coordinator_servers.",
        "server/coordinator/cut_book.", "server/coordinator/membership.", "server/coordinator/placement.",
        "server/coordinator/quorum_book.", "server/coordinator/server_table.", "worker/client/retry_core."]
IMPURE = re.compile(
    r'#include <(thread|mutex|atomic|condition_variable|random|fstream|iostream|future|cstdio|cmath)>'
    r'|common/mutex\.h|steady_clock::now|system_clock::now|\b(float|double)\b \w+\[')

BANNED = [
    (re.compile(r"-ffast-math|-Ofast"), "fast-math makes isfinite(NaN) true"),
    (re.compile(r"\babsl::Mutex\b(?! is)"), "ThreadSanitizer reports the distribution's; use common/mutex.h"),
    (re.compile(r"\bstd::rand\b|\bsrand\(|std::mt19937|std::random_device"),
     "draws are pure functions: use common/philox.h"),
    (re.compile(r"\b(CHECK|DCHECK)\(|\bstd::abort\(|\bassert\("), "input never kills a process: return a Status"),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "finish it or say it in an issue"),
]
SLEEPS = re.compile(r"sleep_for|sleep_until|\busleep\(|\bsleep\(")
LINES_MAX = 500

SOURCE = {".cc", ".h"}
TOP = ["common", "config", "server", "worker", "deploy", "tests"]


def folder_rule(path):
    """The longest key of MAY_INCLUDE that is a prefix of the path's folder."""
    best = ""
    for key in MAY_INCLUDE:
        if (path == key or path.startswith(key + "/")) and len(key) > len(best):
            best = key
    return best


def included_area(include):
    """The part of the repository that an include names; '' for libraries."""
    if include.startswith("leeway/v1/"):
        return "proto"
    top = include.split("/")[0]
    return include.rsplit("/", 1)[0] if top in TOP else ""


def check_include(path, include):
    rule = folder_rule(path)
    area = included_area(include)
    if not rule or not area or path.startswith("tests/"):
        return None
    allowed = MAY_INCLUDE[rule] + [rule]
    if any(area == a or area.startswith(a + "/") for a in allowed):
        return None
    return f"{rule} may include {', '.join(allowed)}, not {area}"


def starts_with_any(path, prefixes):
    return any(path.startswith(p) for p in prefixes)


def check_line(path, line):
    """What is wrong with one line of a source file."""
    found = re.match(r'#include "([^"]+)"', line)
    if found and (wrong := check_include(path, found.group(1))):
        yield wrong
    product = not path.startswith("tests/")
    if product and GRPC.search(line) and not starts_with_any(path, GRPC_IN):
        yield "gRPC belongs in the adaptors only"
    if starts_with_any(path, PURE) and IMPURE.search(line):
        yield "a core is pure: no threads, clocks, randomness, I/O or floats"
    for pattern, why in BANNED:
        if product and path != "common/identity.cc" and pattern.search(line):
            yield f"'{pattern.search(line).group(0)}': {why}"
    if not product and SLEEPS.search(line):
        yield "no sleep in tests: pass the clock in"


def check_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for wrong in check_line(path, line):
            yield f"{path}:{number}: {wrong}"
    if path.endswith(".h") and "#pragma once" not in text:
        yield f"{path}:1: no #pragma once"
    lines = text.count("\n")
    if lines > LINES_MAX:
        yield f"{path}:1: {lines} lines; one concept a file, at most {LINES_MAX}"


def check_built(root):
    """Every .cc is named by the CMakeLists.txt of its folder or of one above it."""
    for top in TOP:
        for source in sorted((root / top).rglob("*.cc")):
            lists = [p / "CMakeLists.txt" for p in source.parents if root in p.parents]
            wanted = [source.relative_to(l.parent).as_posix() for l in lists]
            named = any(l.exists() and re.search(r"(?<![\w/.-])" + re.escape(w) + r"\b", l.read_text())
                        for l, w in zip(lists, wanted))
            if not named:
                yield f"{source.relative_to(root)}:1: built by no CMakeLists.txt"


def check_repository(root):
    for top in TOP:
        for source in sorted((root / top).rglob("*")):
            if source.suffix in SOURCE:
                yield from check_text(source.relative_to(root).as_posix(), source.read_text())
    yield from check_built(root)


def self_test():
    bad = {
        "server/shard.cc": '#include "worker/trainer.h"',
        "worker/trainer.cc": '#include "server/shard.h"',
        "common/a.cc": '#include "config/job.h"',
        "config/a.cc": '#include "worker/trainer.h"',
        "worker/layers/a.cc": '#include <grpcpp/grpcpp.h>',
        "server/core/a.cc": "#include <thread>",
        "server/a.cc": "absl::Mutex mutex_;",
        "worker/a.cc": "CHECK(header.ok());",
        "tests/a_test.cc": "std::this_thread::sleep_for(x);",
        "common/b.h": "int x;",
    }
    missed = [path for path, text in bad.items() if not list(check_text(path, text + "\n"))]
    fine = {"server/shard.cc": '#include "common/mutex.h"', "deploy/a.cc": '#include "worker/trainer.h"'}
    wrong = [path for path, text in fine.items() if list(check_text(path, text + "\n"))]
    return missed + wrong


def main():
    if sys.argv[1] == "--self-test":
        failures = self_test()
        print("rules that find nothing, or too much:", failures) if failures else print("every rule finds")
        return 1 if failures else 0
    violations = list(check_repository(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(violations) if violations else "the house is in order")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
