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

# A row for each folder with C++: what it may include. The file says how a row is written.
TABLE = pathlib.Path(__file__).with_name("includes.txt")
ROWS = {folder: entries.split() for folder, _, entries in (
    line.partition(":") for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))}
TOP = ["tests", *sorted({folder.split("/")[0] for folder in ROWS})]

# gRPC appears in these folders only; a subfolder counts as another folder.
GRPC_IN = {
    "common/rpc", "common/service", "common/wire", "client", "client/transport", "client/calls", "client/session",
    "library", "server/service", "server/replica", "server/node",
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
COLUMNS_MAX = 100
# It needs sources that are not ours: a script builds it, and names it.
BUILT_BY = {"tests/bench/peers/pslite_bench.cc": "tests/bench/peers/pslite.py",
            "plugin/example/example.cc": "tests/training/plugins.py"}

SOURCE = {".cc", ".h", ".c", ".cu"}
# Headers that an installation has elsewhere than the repository.
INSTALLED = {"leeway/client.h": "library", "leeway/plugin.h": "plugin/leeway"}


def covers(entry, folder):
    """Returns whether an entry of a row allows a folder."""
    return f"{folder}/".startswith(entry[:-3]) if entry.endswith("/...") else folder == entry


def included_folder(include):
    """Returns the folder of the repository that an include names; '' for libraries."""
    if include.endswith(".pb.h"):
        return "proto"
    folder = INSTALLED.get(include) or include.rpartition("/")[0]
    return folder if folder.split("/")[0] in TOP else ""


def includes(text):
    """Returns (number of the line, folder of the repository) for each include of a file."""
    found = ((number, re.match(r'#include "([^"]+)"', line)) for number, line in enumerate(text.splitlines(), 1))
    return [(number, included_folder(match.group(1))) for number, match in found if match]


def check_includes(sources):
    """Checks the includes of the product's files against TABLE. Each folder needs a row, and each entry an include."""
    used = {}
    for path, text in sources:
        folder = path.rpartition("/")[0]
        if folder not in ROWS:
            yield f"{path}:1: {folder} has no row in {TABLE.name}, which says what each folder may include"
            continue
        used.setdefault(folder, set())
        for number, included in includes(text):
            allowing = {entry for entry in ROWS[folder] if covers(entry, included)}
            used[folder] |= allowing
            if included not in ("", folder) and not allowing:
                yield f"{path}:{number}: {folder} may include {' '.join(ROWS[folder]) or 'nothing'}, not {included}"
    for folder, entries in ROWS.items():
        if folder not in used:
            yield f"{TABLE.name}: {folder} has a row, but no C++"
        elif unused := [entry for entry in entries if entry not in used[folder]]:
            yield f"{TABLE.name}: {folder} includes nothing of {' '.join(unused)}"
    if list(ROWS) != sorted(ROWS):
        yield f"{TABLE.name}: the rows are not sorted"


def check_line(path, line):
    """Returns what is wrong with one line of a source file."""
    product = not path.startswith("tests/")
    folder = path.rpartition("/")[0]
    if product and GRPC.search(line) and folder not in GRPC_IN:
        yield "gRPC belongs in the adaptors only"
    if folder not in CUDA_IN and path not in CUDA_FILES and CUDA.search(line):
        yield "CUDA belongs in the module only: all else is built without the toolkit"
    if product and folder.endswith("/" + PURE) and IMPURE.search(line):
        yield "a core is pure: no threads, clocks, randomness, I/O or floats"
    if len(line) > COLUMNS_MAX and line.lstrip().startswith("//") and "http" not in line:
        yield f"a comment has at most {COLUMNS_MAX} columns, and clang-format leaves comments as they are"
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


# Each call that a stranger can make gets absurd messages in one of these tests.
ABSURD_IN = ["tests/server/node/control_messages_test.cc", "tests/server/coordinator/absurd_messages_test.cc"]
# They take nothing, or any text.
NEVER_ABSURD = {"GetJobStatus", "StopJob"}


def check_calls(proto, tests):
    """Yields each call of a service that the tests do not name."""
    for call in re.findall(r"^  rpc (\w+)\(", proto, re.M):
        if call not in NEVER_ABSURD and not re.search(rf"\b{call}(Request)?\b", tests):
            yield f"rpc {call}: gets no absurd messages in {' or '.join(ABSURD_IN)}"


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
        folder = path.rpartition("/")[0]
        for number, included in includes(text):
            if included not in ("", "proto", folder):
                graph[folder].setdefault(included, f"{path}:{number}")
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


def sources_of(root):
    """Returns (path, text) of each source file. Folders of builds and hidden folders are not looked at."""
    tops = sorted(top for top in root.iterdir() if top.is_dir() and top.name != "build" and top.name[0] != ".")
    return [(source.relative_to(root).as_posix(), source.read_text()) for top in tops
            for source in sorted(top.rglob("*")) if source.suffix in SOURCE]


def check_repository(root):
    sources = sources_of(root)
    product = [(path, text) for path, text in sources if not path.startswith("tests/")]
    for path, text in sources:
        yield from check_text(path, text)
    yield from check_includes(product)
    yield from check_built(root)
    yield from check_calls("".join(p.read_text() for p in sorted((root / "proto/leeway").rglob("*.proto"))),
                           "".join((root / path).read_text() for path in ABSURD_IN))
    yield from check_cycles(product)


def missed_includes():
    """Returns what check_includes does not find, or finds without a reason."""
    def found(path, include):
        lines = check_includes([(path, f'#include "{include}"\n')])
        return any(line.startswith(f"{path}:1:") for line in lines)

    bad = [("server/shard/shard.cc", "worker/trainer.h"), ("worker/trainer.cc", "server/shard/shard.h"),
           ("common/a.cc", "config/job.h"), ("common/text/a.cc", "common/status.h"),
           ("server/core/a.cc", "common/rpc/channel.h"), ("plugin/leeway/a.cc", "common/status.h"), ("config/a.cc", "worker/trainer.h"),
           ("worker/device/cuda/a.cc", "leeway/v1/job.pb.h"), ("examples/c/a.c", "leeway/plugin.h"),
           ("server/unlisted/a.cc", "vector"), ("unlisted/a.cc", "vector")]
    fine = [("server/shard/shard.cc", "common/mutex.h"), ("server/shard/shard.cc", "server/shard/shard.h"),
            ("launcher/commands/a.cc", "worker/trainer.h"), ("examples/c/a.c", "leeway/client.h"),
            ("config/model/a.cc", "absl/status/status.h")]
    lines = list(check_includes([("server/core/a.cc", "")]))
    unneeded = [f"{TABLE.name}: server/core includes nothing of common", f"{TABLE.name}: bench has a row, but no C++"]
    return ([pair for pair in bad if not found(*pair)] + [pair for pair in fine if found(*pair)] +
            [line for line in unneeded if line not in lines])


def self_test():
    bad = {
        "worker/layers/a.cc": '#include <grpcpp/grpcpp.h>',
        "worker/device/a.cc": "#include <cuda_runtime_api.h>",
        "worker/device/cuda/kernels/a.h": "#pragma once\nRun<<<1, 2>>>(x);",
        "server/core/a.cc": "#include <thread>",
        "server/coordinator/core/a.cc": '#include "common/files/files.h"',
        "client/core/a.cc": "#include <grpcpp/grpcpp.h>",
        "server/a.cc": "absl::Mutex mutex_;",
        "worker/a.cc": "CHECK(header.ok());",
        "tests/a_test.cc": "std::this_thread::sleep_for(x);",
        "tests/b_test.cc": 'WARN("skipped: no data");',
        "common/b.h": "int x;",
        "common/c.cc": "// " + "A long comment. " * 7,
        "server/b.cc": 'absl::StrCat("a job with ", shards, " shards");',
    }
    missed = [path for path, text in bad.items() if not list(check_text(path, text + "\n"))]
    wrong = list(check_text("worker/device/cuda/module/a.cc", "#include <cuda_runtime_api.h>\n"))
    missed += missed_includes()
    ring = [("server/a/x.h", '#include "server/b/y.h"'), ("server/b/y.h", '#include "server/c/z.h"'),
            ("server/c/z.h", '#include "server/a/x.h"')]
    missed += [] if len(list(check_cycles(ring))) == 3 else ["a cycle of three folders"]
    wrong += [] if not list(check_cycles(ring[:2])) else ["no cycle"]
    calls = "  rpc Push(PushRequest) returns (A) {\n  rpc Pull(PullRequest) returns (B) {\n"
    missed += [] if len(list(check_calls(calls, "Stub::Push"))) == 1 else ["a call without absurd messages"]
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
