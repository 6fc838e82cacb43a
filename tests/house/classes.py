#!/usr/bin/python3
"""How much one class may be: public methods and fields of every class and struct in the folders of LIMITS.

Usage: classes.py REPOSITORY; prints each class that is above its folder's limit as file:line: text and exits 1 if
there is any, 4 where ctags is missing (ctest counts it as skipped). With --all it prints every class with its counts.
With --self-test it checks that a class that is too large is found, and one that is just not too large is not.

A struct without methods is plain data, and has no limit outside of server/coordinator. LARGER names the classes that are
above a limit. Where such a class has become smaller, its numbers must follow.

What counts: constructors, operators and overloads are methods, destructors and deleted functions too; constants of
a class (static) and types in it are no fields, references and constants of an object (const) are.
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 4
Limit = collections.namedtuple("Limit", "methods fields")
# A folder with all below it; the first one counts.
LIMITS = {"server/coordinator": Limit(methods=25, fields=12)}
LIMITS |= dict.fromkeys(["run", "server", "client", "exchange", "peer", "library", "worker/training", "worker/model"], Limit(methods=25, fields=14))
LARGER = {
    "StreamLane": Limit(0, 18), "StreamLane::Stream": Limit(0, 15), "Workspace": Limit(0, 15),
}
# ctags would mistake a field with an annotation for a function.
ANNOTATIONS = [f"-D{name}(x)=" for name in ("GUARDED_BY", "EXCLUDES", "REQUIRES", "ACQUIRE", "RELEASE")]
COMMAND = ["ctags", "-L", "-", "--languages=C++", "--langmap=C++:.h.cc", "--fields=+naZKs", "--fields-c++=+{properties}",
           "--kinds-c++=+cspmf", *ANNOTATIONS, "--output-format=json", "-f", "-"]


def tags_of(paths):
    listed = subprocess.run(COMMAND, input="\n".join(map(str, paths)), capture_output=True, text=True, check=False)
    tags = [json.loads(line) for line in listed.stdout.splitlines()]
    if not tags:
        raise SystemExit(f"ctags found nothing: {listed.stderr}")
    return tags


def classes(root, folder):
    """Returns {(file, class): [line, public methods, fields]}, counting what is declared in the class itself."""
    paths = [p for p in sorted((root / folder).rglob("*")) if p.suffix in {".h", ".cc"}]
    tags = tags_of(paths) if paths else []
    found = {(tag["path"], "::".join(filter(None, [tag.get("scope"), tag["name"]]))): [tag["line"], 0, 0]
             for tag in tags if tag["kind"] in {"class", "struct"}}
    for tag in tags:
        owner = found.get((tag["path"], tag.get("scope")))
        if owner is None or tag.get("scopeKind") not in {"class", "struct"}:
            continue
        if tag["kind"] in {"prototype", "function"} and tag.get("access") == "public":
            owner[1] += 1
        if tag["kind"] == "member" and "static" not in tag.get("properties", ""):
            owner[2] += 1
    return found


def judged(root):
    """Each class once, with the limit of its folder."""
    seen = set()
    for folder, limit in LIMITS.items():
        for (path, name), counts in classes(root, folder).items():
            if (path, name) not in seen:
                seen.add((path, name))
                yield pathlib.Path(path).relative_to(root), name, counts, limit


def check(root):
    """A line for each class that is too large, or smaller than LARGER says."""
    findings = []
    for path, name, (line, methods, fields), limit in judged(root):
        where = f"{path}:{line}: {name}"
        if methods == 0 and not str(path).startswith("server/coordinator"):
            continue
        if larger := LARGER.get(re.sub(r"^(leeway::|__anon\w+::)+", "", name)):
            limit = Limit(max(larger.methods, limit.methods), max(larger.fields, limit.fields))
            if methods < larger.methods or fields < larger.fields:
                findings.append(f"{where} has {methods} public methods and {fields} fields: LARGER says more")
        if methods > limit.methods:
            findings.append(f"{where} has {methods} public methods, at most {limit.methods}")
        if fields > limit.fields:
            findings.append(f"{where} has {fields} fields, at most {limit.fields}")
    return findings


def sample(kind, methods, fields):
    """Returns a class with this number of public methods, including the constructor, and fields, and with members that
    do not count."""
    lines = [f"{kind} Sample {{", " public:", "  explicit Sample(int a);", "  static constexpr int kMax = 3;", "  struct Part { int a; };"]
    lines += [f"  int Method{i}(int a) const;" if i % 2 else f"  int Method{i}() const {{ return field0_; }}" for i in range(methods - 1)]
    lines += [" private:", "  void Hidden();"]
    lines += [f"  const std::map<int, int>& field{i}_;" if i % 2 else f"  int field{i}_ GUARDED_BY(mutex_) = 0;" for i in range(fields)]
    return "namespace leeway {\nnamespace {\n" + "\n".join(lines) + "\n};\n}\n}\n"


def self_test():
    missed = []
    limit = LIMITS["server/coordinator"]
    cases = [("none", 0, 0, 0), ("methods", 1, 0, 1), ("fields", 0, 1, 1), ("both", 1, 1, 2)]
    for kind in ("class", "struct"):
        for suffix in (".h", ".cc"):
            for name, methods, fields, expected in cases:
                with tempfile.TemporaryDirectory() as folder:
                    root = pathlib.Path(folder)
                    (root / "server/coordinator/core").mkdir(parents=True)
                    text = sample(kind, limit.methods + methods, limit.fields + fields)
                    (root / f"server/coordinator/core/a{suffix}").write_text(text)
                    found = check(root)
                if len(found) != expected:
                    missed.append(f"{kind} in {suffix}, {name}: {found}")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "client").mkdir()
        (root / "client/a.h").write_text(sample("class", 3, LARGER["StreamLane"].fields - 1).replace("Sample", "StreamLane"))
        if len(check(root)) != 1:
            missed.append(f"a class that is smaller than LARGER says: {check(root)}")
    return missed


def main():
    if shutil.which("ctags") is None:
        print("SKIPPED: ctags is not installed")
        return SKIPPED
    if sys.argv[1] == "--self-test":
        missed = self_test()
        print("\n".join(missed) if missed else "a class that is too large is found, and no other")
        return 1 if missed else 0
    root = pathlib.Path(sys.argv[-1]).resolve()
    if sys.argv[1] == "--all":
        for folder in LIMITS:
            for (path, name), (line, methods, fields) in sorted(classes(root, folder).items(), key=lambda c: (-c[1][2], -c[1][1])):
                print(f"{fields:3} fields {methods:3} methods  {pathlib.Path(path).relative_to(root)}:{line}: {name}")
        return 0
    findings = check(root)
    print("\n".join(findings) if findings else "classes: in order")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
