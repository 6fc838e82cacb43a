#!/usr/bin/python3
"""Finds words in comments and error texts that a native writer would not use, as far as a machine can see them.

Usage: prose.py REPOSITORY [FOLDER...]; prints each as file:line: text and exits 1 if there is any.
With --self-test it checks that each rule finds a line that breaks it, and that none finds right English.
"""

import pathlib
import re
import sys

SOURCE = {".h", ".cc", ".cu", ".proto", ".py"}
FOLDERS = ["plugin", "proto", "common", "config", "run", "client", "exchange", "peer", "library", "server", "worker", "bench", "launcher", "python"]

# What is wrong, a line that shows it, and what to write.
RULES = [
    (r"(?-i:^Of )(?!course|these|those)", "Of the worker.", "begin with the subject: 'The worker's ...'"),
    (r"\bwho(so)?m?ever\b", "Whoever comes is told.", "name the process: 'a server that ...'"),
    (r"\b(?<!there )(?<!there will )(is|are|was|were|be) none\b|\b(?<!there is )(?<!there are )none (that|which)\b", "It is none that we know.", "'there is no ...', 'does not ...'"),
    (r"\b(?<!there )(is|are|was) no (?!(longer|more|less|fewer|later|earlier|better|worse|larger|smaller|faster|slower|one)\b)[a-z]",
     "'x' is no number", "'is not a ...'"),
    (r"\bso (many|much|often|long)\b(?! (as|that)\b)", "So many bytes at most.", "'at most this number of ...'"),
    (r"\b(to|of|for|from|by|with|than|but|as) who\b|(^|[.;:,(] )[Ww]ho (?![^.;]*\?)(is|are|was|has|have|does|do|did|comes|waits|reads|asks|sends|takes|needs|wants)\b",
     "To who waits it is said.", "name the process: 'a waiting worker ...'"),
    (r"\bnone the (worse|better)\b|\bit lies\b|\bnot yet there\b|\bany more who\b", "It is none the worse.", "say what happens"),
]
RIGHT = ["It is no longer needed, and no slower than a folder.", "There are none that match.", "Of these the first is used.",
         "There is no number.", "A worker who has left is not so important that it stops the job."]
COMPILED = [(re.compile(pattern, re.IGNORECASE), say) for pattern, _, say in RULES]
COMMENT = re.compile(r"^\s*(?:///?|#:?|\"\"\")\s?(.*)|\s{2}//\s(.*)")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def texts(line):
    comment = COMMENT.search(line)
    if comment:
        yield (comment.group(1) or comment.group(2) or "").strip()
    if not line.lstrip().startswith(("#include", "//", "import")):
        for found in STRING.finditer(line):
            if " " in found.group(1):
                yield found.group(1)


def findings(path, lines):
    for number, line in enumerate(lines, 1):
        for text in texts(line):
            for pattern, say in COMPILED:
                if pattern.search(text):
                    yield f"{path}:{number}: {line.strip()}\n    {say}"


def self_test():
    for (pattern, wrong, _), (compiled, _) in zip(RULES, COMPILED):
        if not any(compiled.search(text) for text in texts(f"// {wrong}")):
            sys.exit(f"prose: {pattern} does not find '{wrong}'")
    for text in RIGHT:
        if found := [pattern.pattern for pattern, _ in COMPILED if pattern.search(text)]:
            sys.exit(f"prose: {found} find fault with '{text}'")
    print("prose: each rule finds its line, and no right English")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    found = []
    for folder in sys.argv[2:] or FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE:
                found += findings(path.relative_to(root), path.read_text(errors="replace").splitlines())
    print("\n".join(found) if found else "prose: in order")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
