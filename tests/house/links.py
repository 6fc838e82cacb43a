#!/usr/bin/python3
"""The house rules for README.md, CONTRIBUTING.md and docs/ (but not docs/lab): every link and every path leads somewhere,
table cells are phrases, architecture.md has a row for every folder, and the README stays one short page.

Usage: links.py REPOSITORY; prints each finding as file:line: text and exits 1 if there is any.
With --self-test it checks that each rule finds a fault, and nothing where there is none.
"""

import os
import pathlib
import re
import sys
import tempfile

CELL_MAX = 300
README_WORDS_MAX = 900
README_LINES_MAX = 120
README_COLUMNS_MAX = 120

# Not part of a checkout: what git ignores, and build output.
IGNORED = {".git", ".github", "build", "runs", "__pycache__"}
# Endings of the files that a document may name by their last part alone: `shard.h`, kills.py.
NAMED_ENDINGS = "h|cc|py|proto|sh|md"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w./{-])([\w.-]+(?:/[\w.-]+)+/?)")
NAME = re.compile(rf"(?<![\w./-])([\w-]+\.(?:{NAMED_ENDINGS}))\b(?!/)")
TEST = re.compile(r"(?<![\w./-])(\w+_test)\b(?![./])")
# Folders whose subfolders architecture.md's table need not name.
ONE_ROW = {"proto", "config", "data", "docs", "tests", "cmake", "scripts"}


class Tree:
    """The files and folders of a repository."""

    def __init__(self, root):
        self.root = root
        self.files, self.folders = set(), set()
        for folder, below, names in os.walk(root):
            below[:] = [name for name in below if name not in IGNORED]
            here = pathlib.Path(folder).relative_to(root)
            self.folders.add(here.as_posix())
            self.files.update((here / name).as_posix() for name in names)
        self.tops = {path.split("/")[0] for path in self.files if "/" in path}
        self.names = {path.rpartition("/")[2] for path in self.files}
        self.stems = {name.rpartition(".")[0] for name in self.names}

    def has(self, path):
        return path in self.files or path.rstrip("/") in self.folders

    def documents(self):
        found = [path for path in self.files if path.startswith("docs/") and path.endswith(".md")]
        return sorted(path for path in [*found, "README.md", "CONTRIBUTING.md"]
                      if path in self.files and not path.startswith("docs/lab/"))


def anchors(text):
    """Returns the anchors that GitHub gives a document's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def check_link(tree, path, target):
    """Returns what is wrong with a link in the document `path`; None if nothing is."""
    if re.match(r"[a-z]+:", target):
        return None
    file, _, anchor = target.partition("#")
    place = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
    if not tree.has(place):
        return f"link to {target}: no such file"
    if anchor and place.endswith(".md") and anchor not in anchors((tree.root / place).read_text()):
        return f"link to {target}: no such heading"
    return None


def check_paths(tree, line):
    """Returns the paths, names of files and names of tests in a line that are not in the repository."""
    for found in PATH.findall(line):
        written = found.rstrip(".")
        if written.split("/")[0] in tree.tops and not tree.has(written):
            yield f"{written}: no such file or folder"
    for name in NAME.findall(line):
        if name not in tree.names:
            yield f"{name}: no file has this name"
    for name in TEST.findall(line):
        if name not in tree.stems:
            yield f"{name}: no such test"


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] if line.startswith("|") else []


def check_document(tree, path):
    for number, line in enumerate((tree.root / path).read_text().splitlines(), 1):
        wrong = [check_link(tree, path, target) for target in LINK.findall(line)]
        wrong += check_paths(tree, LINK.sub("", line))
        wrong += [f"a table cell of {len(cell)} characters, at most {CELL_MAX}: say it in a paragraph"
                  for cell in cells(line) if len(cell) > CELL_MAX]
        yield from (f"{path}:{number}: {text}" for text in wrong if text)


def check_readme(text):
    lines = text.splitlines()
    if len(text.split()) > README_WORDS_MAX:
        yield f"README.md:1: {len(text.split())} words, at most {README_WORDS_MAX}"
    if len(lines) > README_LINES_MAX:
        yield f"README.md:1: {len(lines)} lines, at most {README_LINES_MAX}"
    for number, line in enumerate(lines, 1):
        if len(line) > README_COLUMNS_MAX:
            yield f"README.md:{number}: {len(line)} columns, at most {README_COLUMNS_MAX}"


def check_folders(tree, text):
    """Checks that every folder of sources has its row in architecture.md's table: `FOLDER` or FOLDER/{...}."""
    named = set()
    for first in (cells(line)[0] for line in text.splitlines() if cells(line)):
        for found in re.findall(r"`([\w./{},]+)`", first):
            stem, _, group = found.partition("{")
            named.update([stem + part for part in group.rstrip("}").split(",")] if group else [found])
    wanted = {path.rpartition("/")[0] for path in tree.files if path.endswith((".h", ".cc"))}
    wanted = {folder for folder in wanted if folder and folder.split("/")[0] not in ONE_ROW}
    for folder in sorted(wanted - named):
        yield f"docs/architecture.md:1: {folder}: the table of folders has no row for it"
    for folder in sorted(named):
        if folder.split("/")[0] in tree.tops and not tree.has(folder):
            yield f"docs/architecture.md:1: {folder}: no such folder"


def check_repository(root):
    tree = Tree(root)
    for path in tree.documents():
        yield from check_document(tree, path)
    yield from check_readme((root / "README.md").read_text())
    yield from check_folders(tree, (root / "docs/architecture.md").read_text())


FINE = {
    "README.md": "[guide](docs/guide.md#the-job-file) and [here](#end)\n# End\n",
    "docs/guide.md": "## The job file\nOpen `server/shard.h`, shard.h, shard_test, `build/x` and\n```\ntests/kills.py a\n```\n",
    "docs/architecture.md": "| `server` | x |\n| `common/{wire,rpc}` | x |\n",
    "docs/lab/old.md": "common/gone.h, [gone](gone.md)\n", "server/shard.h": "", "common/wire/a.h": "", "common/rpc/a.h": "",
    "tests/kills.py": "", "tests/shard_test.cc": "",
}
BAD = {
    "a dead link": ("docs/guide.md", "[x](gone.md)"),
    "a dead anchor": ("README.md", "[x](docs/guide.md#gone)"),
    "a dead path": ("docs/guide.md", "open `server/gone.h`"),
    "a dead folder": ("CONTRIBUTING.md", "see server/gone/"),
    "a dead path in a block of code": ("docs/guide.md", "```\ntests/gone.py x\n```"),
    "a dead name": ("docs/guide.md", "proved by gone.py"),
    "a dead test": ("docs/guide.md", "proved by gone_test"),
    "a long cell": ("docs/guide.md", "| a | " + "x" * (CELL_MAX + 1) + " |"),
    "too many words": ("README.md", "a " * (README_WORDS_MAX + 1)),
    "too many lines": ("README.md", "\n" * (README_LINES_MAX + 1)),
    "a line too long": ("README.md", "x" * (README_COLUMNS_MAX + 1)),
    "a folder without a row": ("client/core/a.h", ""),
    "a row without a folder": ("docs/architecture.md", FINE["docs/architecture.md"] + "| `client` `server/gone` | x |"),
}


def findings(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return list(check_repository(root))


def self_test():
    missed = [what for what, (path, text) in BAD.items() if not findings({**FINE, path: text})]
    return missed + [f"where there is nothing: {text}" for text in findings(FINE)]


def main():
    if sys.argv[1] == "--self-test":
        missed = self_test()
        print("rules that find nothing, or too much:", missed) if missed else print("every rule finds")
        return 1 if missed else 0
    found = list(check_repository(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) if found else "every link and path leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
