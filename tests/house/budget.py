#!/usr/bin/python3
"""What a newcomer pays for: the size of Leeway. A feature that needs more than a limit says in the commit what it
replaces, or why it is worth more.

Usage: budget.py REPOSITORY; prints each figure beside its limit and exits 1 if one is above.
With --self-test it checks that each figure counts what it should.
"""

import pathlib
import re
import sys
import tempfile

PRODUCT = ["plugin", "proto/leeway", "common", "config", "run", "client", "exchange", "peer", "library", "server", "worker", "bench", "launcher", "python/leeway"]
SOURCE = {".h", ".cc", ".cu", ".proto", ".py"}
FIELD = re.compile(r"^\s+(?:optional |repeated )?(?:map<[\w., ]+>|[\w.]+) \w+ = \d+(?: \[.*)?;")
ENUM = re.compile(r"^\s*enum \w+ \{")
TYPE = re.compile(r"^(?:class|struct|enum class) [A-Z]\w*(?: final)?(?: :.*)?(?: \{|$)")
COMMAND = re.compile(r"\bapp\.add_subcommand\(")

LIMITS = {
    "lines of the product": 116540,
    "lines of the tests": 102660,
    "types in the product": 1042,
    "keys of a job": 341,
    "commands": 17,
}


def texts(root, folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE and "__pycache__" not in path.parts:
                yield path, path.read_text(errors="replace").splitlines()


def keys(lines):
    """Fields of the messages, not of enums."""
    count, in_enum = 0, False
    for line in lines:
        if ENUM.match(line):
            in_enum = True
        elif in_enum and line.strip() == "}":
            in_enum = False
        elif not in_enum and FIELD.match(line):
            count += 1
    return count


def figures(root):
    product = list(texts(root, PRODUCT))
    return {
        "lines of the product": sum(len(lines) for _, lines in product),
        "lines of the tests": sum(len(lines) for _, lines in texts(root, ["tests"])),
        "types in the product": sum(1 for path, lines in product if path.suffix in {".h", ".cc"} for line in lines if TYPE.match(line)),
        "keys of a job": sum(keys(lines) for path, lines in product if path.name == "job.proto"),
        "commands": sum(len(COMMAND.findall("\n".join(lines))) for path, lines in product if path.parent.name == "commands"),
    }


def check(found, limits):
    return [f"{name}: {found[name]}, at most {limit}" for name, limit in limits.items() if found[name] > limit]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {
                "proto/leeway/v1/job.proto": "message Job {\n  optional string name = 1;\n  repeated Data data = 2;\n}\nenum Mode {\n  MODE_A = 1;\n}\n",
                "common/a.h": "class A {\n};\nstruct B : A {\n};\nclass C;\n",
                "launcher/commands/a.cc": "  app.add_subcommand(\"a\");\n  bench.add_subcommand(\"b\");\n",
                "tests/a_test.cc": "int a;\n"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = figures(root)
    wanted = {"lines of the product": 14, "lines of the tests": 1, "types in the product": 2, "keys of a job": 2, "commands": 1}
    if found != wanted:
        sys.exit(f"budget: counts {found}, not {wanted}")
    if len(check(found, {name: value - 1 for name, value in wanted.items()})) != len(wanted) or check(found, wanted):
        sys.exit("budget: a figure above its limit is not found")
    print("budget: each figure counts what it should, and is found above its limit")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    found = figures(pathlib.Path(sys.argv[1]))
    for name, limit in LIMITS.items():
        print(f"{name}: {found[name]} of {limit}")
    above = check(found, LIMITS)
    if above:
        print("\nabove the budget:\n" + "\n".join(above) + "\nMake room, or say in the commit what the room is worth.")
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
