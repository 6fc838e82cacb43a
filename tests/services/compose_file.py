"""A Compose file as Compose reads it: variables, the anchors of YAML, and services that extend others."""

import re

import yaml


def interpolated(text, values):
    """Replaces each variable by its value or its default, or by a path where one is required."""
    text = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: values.get(found[1], found[2]), text)
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: values.get(found[1], "/there"), text)


def merged(base, more):
    """Merges as Compose does: mappings by key, and lists one after the other."""
    if isinstance(base, dict) and isinstance(more, dict):
        return {**base, **{key: merged(base[key], value) if key in base else value for key, value in more.items()}}
    return base + [each for each in more if each not in base] if isinstance(base, list) and isinstance(more, list) else more


def written(file, values=None):
    """Returns the content without the extension fields."""
    document = yaml.safe_load(interpolated(file.read_text(encoding="utf-8"), values or {}))
    return {key: value for key, value in document.items() if not key.startswith("x-")}


def resolved(file, values=None):
    """Returns the content with whole services."""
    document = written(file, values)
    for name, service in document["services"].items():
        if extends := service.pop("extends", None):
            base = resolved(file.parent / extends["file"], values)["services"][extends["service"]]
            document["services"][name] = merged(base, service)
    return document
