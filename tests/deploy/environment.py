"""The environment and the arguments of a pod's container, as kubelet makes them."""

import base64
import re

from manifests import NAMESPACE, find

REFERENCE = re.compile(r"\$(\$)?\(([A-Za-z_][\w.-]*)\)")


class Missing(Exception):
    """A pod refers to something that does not exist."""


def expand(text, values):
    """Replaces $(NAME) if the name is known. $$(NAME) becomes $(NAME), and an unknown name stays as it is."""
    return REFERENCE.sub(lambda found: found.group(0)[1:] if found.group(1)
                         else values.get(found.group(2), found.group(0)), text)


def field(pod, path, address):
    """Returns a value of the downward API."""
    if found := re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path):
        values = getattr(pod, found.group(1))
        # Kubelet would give an empty value, which is never right for our programs.
        if found.group(2) not in values:
            raise Missing(f"the pod has no {found.group(1)[:-1]} {found.group(2)}")
        return values[found.group(2)]
    known = {"metadata.name": pod.name, "metadata.namespace": NAMESPACE, "status.podIP": address,
             "spec.serviceAccountName": pod.spec.get("serviceAccountName", "default")}
    if path not in known:
        raise Missing(f"no field {path}")
    return known[path]


def key_of(objects, kind, reference):
    owner = find(objects, kind, reference["name"])
    if owner is None or reference["key"] not in keys_of(owner):
        raise Missing(f"no {kind} {reference['name']} with {reference['key']}")
    return keys_of(owner)[reference["key"]].decode()


def keys_of(owner):
    """Returns the values of a ConfigMap or a Secret, as bytes."""
    found = {key: text.encode() for key, text in (owner.get("stringData") or {}).items()}
    secret = owner["kind"] == "Secret"
    for key, text in (owner.get("data") or {}).items():
        found[key] = base64.b64decode(text) if secret else text.encode()
    return found


def value_of(entry, pod, objects, address):
    source = entry.get("valueFrom")
    if not source:
        return None
    if "fieldRef" in source:
        return field(pod, source["fieldRef"]["fieldPath"], address)
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if key in source:
            return key_of(objects, kind, source[key])
    raise Missing(f"{entry['name']}: a source that nothing here knows")


def environment(pod, container, objects, address="10.0.0.1"):
    """Returns {name: value}. An entry sees those above it, and no entry sees what a controller appends."""
    values = {}
    for source in container.get("envFrom", []):
        kind = "ConfigMap" if "configMapRef" in source else "Secret"
        owner = find(objects, kind, source.get("configMapRef", source.get("secretRef"))["name"])
        if owner is None:
            raise Missing(f"envFrom names a {kind} that is not there")
        values |= {source.get("prefix", "") + key: text.decode() for key, text in keys_of(owner).items()}
    for entry in container.get("env", []):
        value = value_of(entry, pod, objects, address)
        values[entry["name"]] = expand(entry.get("value", ""), values) if value is None else value
    values.update(pod.injected)
    return values


def command(container, values):
    """Returns the command that runs: the image has no entry point of its own."""
    return [expand(word, values) for word in [*container.get("command", []), *container.get("args", [])]]
