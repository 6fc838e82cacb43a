#!/usr/bin/python3
"""The rules of the house, kept by a test: which folder may include which, where gRPC and threads may appear, which
constructs no file may use, and that every source file is built.

Usage: house_rules.py REPOSITORY; prints each violation as file:line: text and exits 1 if there is any.
With --self-test it checks that each rule finds a file that breaks it.
"""

import collections
import pathlib
import re
import sys

# A folder may include itself and the folders listed here. The longest matching prefix applies.
MAY_INCLUDE = {
    # Users compile it with foreign code: it includes only the standard library.
    "plugin": [],
    "common": ["proto", "plugin"],
    "common/text": ["common"],
    "common/process": ["common"],
    "config": ["proto", "plugin", "common"],
    # Server 0 and the launcher share what stands on the files of a checkpoint; a worker has the core.
    "run": ["proto", "config", "common", "server/checkpoint"],
    "run/core": ["proto", "common"],
    "client": ["proto", "config", "common"],
    "client/core": ["proto", "common"],
    "client/transport": ["proto", "common"],
    "client/calls": ["proto", "common", "client/core", "client/transport"],
    "client/session": ["proto", "common", "run/core", "client/core", "client/transport", "client/calls"],
    "server": ["proto", "config", "common"],
    "server/core": ["common"],
    "server/store": ["common"],
    "server/shard": ["proto", "config", "common", "server/core", "server/store"],
    "server/checkpoint": ["proto", "common", "server/core"],
    "server/coordinator": ["proto", "config", "common", "run", "server/checkpoint"],
    "server/coordinator/core": ["proto", "config", "common", "run/core", "server/core"],
    "server/node": ["proto", "config", "common", "run", "server"],
    "worker": ["proto", "config", "common", "client"],
    "worker/data": ["proto", "common"],
    "worker/compute": ["proto", "common", "worker/data"],
    # No protobuf: a GPU module is loaded into programs that have a protobuf of their own.
    "worker/device/cuda": ["common", "worker/compute", "worker/data"],
    "worker/device/cuda/module": ["common", "worker/compute", "worker/data", "worker/device"],
    "worker/layers": ["proto", "common", "worker/compute", "worker/data"],
    "bench": ["proto", "config", "common", "client", "server"],
    "launcher": ["proto", "config", "common", "run", "client", "server", "worker", "bench"],
}

# gRPC appears in these folders only; a subfolder counts as another folder.
GRPC_IN = {
    "common/rpc", "common/service", "common/wire", "client", "client/transport", "client/calls", "client/session",
    "client/library", "server/service", "server/replica", "server/node",
    "server/coordinator", "worker", "bench", "bench/base", "launcher/supervision",
}
GRPC = re.compile(r'#include [<"](grpc|grpcpp)/|#include ".*\.grpc\.pb\.h"')

# CUDA appears in the module, and where kernels are launched.
CUDA_IN = {"worker/device/cuda/module"}
CUDA_FILES = {"worker/device/cuda/launch.h"}
CUDA = re.compile(r'#include <(cuda|cublas|cudnn|nccl)|<<<')

# A folder of this name holds pure state machines.
PURE = "core"
IMPURE = re.compile(
    r'#include <(thread|mutex|atomic|condition_variable|random|fstream|iostream|future|cstdio|cmath)>'
    r'|common/mutex\.h|#include "common/(rpc|files|shm)/|steady_clock::now|system_clock::now|\b(float|double)\b \w+\[')

BANNED = [
    (re.compile(r"-ffast-math|-Ofast"), "fast-math makes isfinite(NaN) true"),
    (re.compile(r"\babsl::Mutex\b(?! is)"), "ThreadSanitizer reports the distribution's; use common/mutex.h"),
    (re.compile(r"\bstd::rand\b|\bsrand\(|std::mt19937|std::random_device"),
     "draws are pure functions: use common/philox.h"),
    (re.compile(r"\b(CHECK|DCHECK)\(|\bstd::abort\(|\bassert\("), "input never kills a process: return a Status"),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "finish it or say it in an issue"),
    (re.compile(r'^(?!.* \? " ).*[\w)\]], " (servers|workers|shards|blocks|steps|clocks|restarts|batches|exchanges|tensors|files|ranks)\b(?! (of|a|with) )'),
     "'1 servers': say Counted(number, noun), common/counted.h"),
]
BANNED_IN_TESTS = [
    (re.compile(r"sleep_for|sleep_until|\busleep\(|\bsleep\("), "no sleep in tests: pass the clock in"),
    (re.compile(r"\bWARN\("), "a test that cannot run says SKIP(why), or it counts as passed; a remark is INFO"),
]
LINES_MAX = 500
# It needs sources that are not ours: a script builds it, and names it.
BUILT_BY = {"tests/bench/peers/pslite_bench.cc": "tests/bench/peers/pslite.py",
            "plugin/example/example.cc": "tests/training/plugins.py"}

SOURCE = {".cc", ".h"}
TOP = ["plugin", "common", "config", "run", "client", "server", "worker", "bench", "launcher", "tests"]


def folder_rule(path):
    """Returns the longest key of MAY_INCLUDE that is a prefix of the path's folder."""
    best = ""
    for key in MAY_INCLUDE:
        if (path == key or path.startswith(key + "/")) and len(key) > len(best):
            best = key
    return best


def included_area(include):
    """Returns the part of the repository that an include names; '' for libraries."""
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


def check_line(path, line):
    """Returns what is wrong with one line of a source file."""
    found = re.match(r'#include "([^"]+)"', line)
    if found and (wrong := check_include(path, found.group(1))):
        yield wrong
    product = not path.startswith("tests/")
    folder = path.rpartition("/")[0]
    if product and GRPC.search(line) and folder not in GRPC_IN:
        yield "gRPC belongs in the adaptors only"
    if folder not in CUDA_IN and path not in CUDA_FILES and CUDA.search(line):
        yield "CUDA belongs in the module only: all else is built without the toolkit"
    if product and folder.endswith("/" + PURE) and IMPURE.search(line):
        yield "a core is pure: no threads, clocks, randomness, I/O or floats"
    for pattern, why in BANNED:
        if product and path != "common/identity.cc" and pattern.search(line):
            yield f"'{pattern.search(line).group(0)}': {why}"
    for pattern, why in BANNED_IN_TESTS:
        if not product and pattern.search(line):
            yield why


def check_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for wrong in check_line(path, line):
            yield f"{path}:{number}: {wrong}"
    if path.endswith(".h") and "#pragma once" not in text:
        yield f"{path}:1: no #pragma once"
    lines = text.count("\n")
    if lines > LINES_MAX:
        yield f"{path}:1: {lines} lines; one concept a file, at most {LINES_MAX}"


def folders_built(root):
    """Returns the folders whose files are all built, which leeway_sources of a CMakeLists.txt names."""
    for listed in root.rglob("CMakeLists.txt"):
        if "build" in listed.relative_to(root).parts:
            continue
        for words in re.findall(r"^leeway_sources\(\w+ ([^)]*)\)", listed.read_text(), re.M):
            yield from ((listed.parent / word).resolve() for word in words.partition("EXCEPT")[0].split())


def check_built(root):
    """Checks that every .cc is built: the CMakeLists.txt of its folder or of one above names it or its folder, or the
    script in BUILT_BY names it."""
    whole = set(folders_built(root))
    for top in TOP:
        for source in sorted((root / top).rglob("*.cc")):
            lists = [p / "CMakeLists.txt" for p in source.parents if root in p.parents]
            wanted = [source.relative_to(l.parent).as_posix() for l in lists]
            if script := BUILT_BY.get(source.relative_to(root).as_posix()):
                lists.append(root / script)
                wanted.append(source.name)
            named = source.parent.resolve() in whole or any(
                l.exists() and re.search(r"(?<![\w/.-])" + re.escape(w) + r"\b", l.read_text())
                for l, w in zip(lists, wanted))
            if not named:
                yield f"{source.relative_to(root)}:1: built by no CMakeLists.txt"


def folder_graph(sources):
    """Returns {folder: {folder that it includes: the include, as file:line}} of the product's folders."""
    graph = collections.defaultdict(dict)
    for path, text in sources:
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'#include "([^"]+)/[^"/]+"', line)
            if found and found.group(1).split("/")[0] in TOP and found.group(1) != path.rpartition("/")[0]:
                graph[path.rpartition("/")[0]].setdefault(found.group(1), f"{path}:{number}")
    return graph


def reachable(graph, start):
    seen, open_ = set(), [start]
    while open_:
        fresh = [folder for folder in graph.get(open_.pop(), {}) if folder not in seen]
        seen.update(fresh)
        open_ += fresh
    return seen


def check_cycles(sources):
    """Returns an include of each pair of folders that is on a cycle."""
    graph = folder_graph(sources)
    below = {folder: reachable(graph, folder) for folder in list(graph)}
    for folder in sorted(graph):
        for other, where in sorted(graph[folder].items()):
            if folder in below.get(other, ()):
                yield f"{where}: {folder} includes {other}, from which one comes back to it"


def product_sources(root):
    return [(source.relative_to(root).as_posix(), source.read_text()) for top in TOP if top != "tests"
            for source in sorted((root / top).rglob("*")) if source.suffix in SOURCE]


def check_repository(root):
    for top in TOP:
        for source in sorted((root / top).rglob("*")):
            if source.suffix in SOURCE:
                yield from check_text(source.relative_to(root).as_posix(), source.read_text())
    yield from check_built(root)
    yield from check_cycles(product_sources(root))


def self_test():
    bad = {
        "server/shard/shard.cc": '#include "worker/trainer.h"',
        "worker/trainer.cc": '#include "server/shard/shard.h"',
        "common/a.cc": '#include "config/job.h"',
        "plugin/leeway/a.cc": '#include "common/status.h"',
        "config/a.cc": '#include "worker/trainer.h"',
        "worker/layers/a.cc": '#include <grpcpp/grpcpp.h>',
        "worker/device/a.cc": "#include <cuda_runtime_api.h>",
        "worker/device/cuda/a.cc": '#include "leeway/v1/job.pb.h"',
        "worker/device/cuda/kernels/a.h": "#pragma once\nRun<<<1, 2>>>(x);",
        "run/a.cc": '#include "server/node/server_node.h"', "run/core/a.cc": '#include "run/summary.h"',
        "server/service/a.cc": '#include "run/summary.h"',
        "server/core/a.cc": "#include <thread>",
        "server/coordinator/core/a.cc": '#include "common/files/files.h"',
        "client/core/a.cc": "#include <grpcpp/grpcpp.h>",
        "server/a.cc": "absl::Mutex mutex_;",
        "worker/a.cc": "CHECK(header.ok());",
        "tests/a_test.cc": "std::this_thread::sleep_for(x);",
        "tests/b_test.cc": 'WARN("skipped: no data");',
        "common/b.h": "int x;",
        "server/b.cc": 'absl::StrCat("a job with ", shards, " shards");',
    }
    missed = [path for path, text in bad.items() if not list(check_text(path, text + "\n"))]
    fine = {"server/shard/shard.cc": '#include "common/mutex.h"', "launcher/a.cc": '#include "worker/trainer.h"',
            "worker/device/cuda/module/a.cc": "#include <cuda_runtime_api.h>"}
    wrong = [path for path, text in fine.items() if list(check_text(path, text + "\n"))]
    ring = [("server/a/x.h", '#include "server/b/y.h"'), ("server/b/y.h", '#include "server/c/z.h"'),
            ("server/c/z.h", '#include "server/a/x.h"')]
    missed += [] if len(list(check_cycles(ring))) == 3 else ["a cycle of three folders"]
    wrong += [] if not list(check_cycles(ring[:2])) else ["no cycle"]
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
