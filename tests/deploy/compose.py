#!/usr/bin/python3
"""Checks deploy/compose by the specification's schema, and by the rules of Compose that the schema does not have
(compose.yaml). Each mistake that is seeded there is found.

    tests/deploy/compose.py
"""

import copy
import json
import pathlib
import subprocess
import sys

import manifests
import schemas
from manifests import runs

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "services"))
import compose_file  # noqa: E402

FOLDER = runs.SOURCE / "deploy/compose"
FILES = ("docker-compose.yaml", "all-reduce.yaml")


def inside(value, path):
    for key in path:
        value = value.get(key, {}) if isinstance(value, dict) else {}
    return value


def fits(service, wanted):
    """Whether a service has what a rule is about. A number that comes from a variable matches any number."""
    for path, want in wanted.items():
        value = inside(service, path.split("."))
        if want == "several":
            value = value not in ({}, 1, "1")
            want = True
        if (not value) if want == "any" else (value != want):
            return False
    return True


def uses(service, kind):
    """Returns {name: options} of the secrets or configs of a service."""
    return {use if isinstance(use, str) else use["source"]: {} if isinstance(use, str) else use
            for use in service.get(kind, [])}


def breaks(rule, service, document):
    if not fits(service, rule["service"]):
        return False
    for kind in "secret", "config":
        used = uses(service, f"{kind}s")
        if kind in rule:
            return any(rule[kind] in document.get(f"{kind}s", {}).get(name, {}) for name in used)
    if "options" in rule:
        return any(set(rule["options"]) & set(options) for options in uses(service, "secrets").values())
    return True


def undefined(service, document):
    for kind in "secrets", "configs", "networks":
        names = uses(service, kind) if kind != "networks" else service.get(kind, [])
        yield from (f"{kind} has no {name}" for name in names if name not in document.get(kind, {}))
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if not source.startswith((".", "/", "${", "~")) and source not in document.get("volumes", {}):
            yield f"volumes has no {source}"


def findings(document, rules):
    found = [f"{kind}.{name} has not one source" for kind in ("secrets", "configs")
             for name, source in document.get(kind, {}).items()
             if len({"file", "environment", "external", "content"} & set(source)) != 1]
    for name, service in document["services"].items():
        found += [f"{name}: {rule['why']}" for rule in rules if breaks(rule, service, document)]
        found += [f"{name}: {text}" for text in undefined(service, document)]
    return found


def seeded(document, mistake):
    wrong = copy.deepcopy(document)
    *path, key = mistake["at"].split(".")
    owner = inside(wrong, path)
    owner[key] = mistake["to"]
    return wrong


def main():
    table = manifests.load((HERE / "compose.yaml").read_text(encoding="utf-8"))[0]
    good = {name: compose_file.resolved(FOLDER / name) for name in FILES}
    files = good | {m["title"]: seeded(good[FILES[0]], m) for m in table["mistakes"]}
    files |= {f"{name} as it is written": compose_file.written(FOLDER / name) for name in FILES}
    done = subprocess.run(["node", HERE / "compose.mjs", schemas.packages()], input=json.dumps(files),
                          capture_output=True, text=True, check=False)
    runs.check(done.returncode == 0, f"the schema judges {len(files)} files {done.stderr}")
    found = {title: [*findings(files[title], table["rules"]), *texts] for title, texts in json.loads(done.stdout).items()}
    for name in [*FILES, *(title for title in files if title.endswith("as it is written"))]:
        wrong = found.pop(name)
        runs.check(not wrong, f"{name} is in order {wrong}")
    missed = [title for title, texts in found.items() if not texts]
    runs.check(not missed, f"{len(found)} mistakes are found, but not {missed}" if missed
               else f"{len(found)} mistakes are found")
    return 0


if __name__ == "__main__":
    runs.ends_with(main)
