"""What an API server and the webhooks of stock installations refuse (admission.yaml): new objects, and changes to
existing ones."""

import copy
import functools
import pathlib
import re

import manifests
import workloads
from manifests import of_kind

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
POD_END = "-abcde"
QUEUE = "kueue.x-k8s.io/queue-name"
UNITS = {"Ki": 2 ** 10, "Mi": 2 ** 20, "Gi": 2 ** 30, "Ti": 2 ** 40, "": 1}


@functools.cache
def table():
    path = pathlib.Path(__file__).resolve().with_name("admission.yaml")
    return manifests.load(path.read_text(encoding="utf-8"))[0]


def releases():
    """Returns {"jobset 0.8.2": {definitions, gates}}."""
    return {f"{project} {version}": release for project, versions in table()["releases"].items()
            for version, release in versions.items()}


def kind_of(owner):
    return "VolcanoJob" if owner["apiVersion"].startswith("batch.volcano.sh/") else owner["kind"]


def kinds_of(owner):
    """Returns the kinds under which the table has rules for the owner."""
    return [kind_of(owner), *(["Queued"] if QUEUE in owner["metadata"].get("labels", {}) else [])]


def values_at(value, path):
    """Returns the values at a path of keys. [] stands for each entry of a list, and [0] for the first."""
    head, _, rest = path.partition(".")
    key, _, index = head.replace("!", ".").partition("[")
    if not isinstance(value, dict) or key not in value:
        return []
    found = [value[key]]
    if index:
        found = value[key] if index == "]" else value[key][:1]
    return [inner for one in found for inner in (values_at(one, rest) if rest else [one])]


def at_of(owner, path):
    return values_at(owner if path.startswith("metadata.") else owner.get("spec", {}), path)


def breaks(rule, owner, on):
    """Returns sentences about what a rule refuses. `on` is {gate: releases in which it is on}."""
    found = at_of(owner, rule["at"])
    at = f"{rule['at']} is"
    if "gate" in rule:
        off = [name for name, release in releases().items()
               if name.split()[0] == "jobset" and not (rule["gate"] in on and rule["gate"] in release["gates"])]
        used = [value for value in found if value in rule["values"]]
        return [f"{at} {value}, which needs the gate {rule['gate']}: {', '.join(off)} refuse it" for value in used if off]
    if "beside" in rule:
        return [f"{at} there beside {rule['beside']}"] if found and at_of(owner, rule["beside"]) else []
    if rule.get("absent"):
        return [f"{at} there"] if found else []
    if rule.get("unique"):
        return [f"{at} {value} twice" for value in {str(v) for v in found if found.count(v) > 1}]
    if "pattern" in rule:
        return [f"{at} {value!r}, not {rule['pattern']} of at most {rule['longest']}" for value in found
                if not re.fullmatch(rule["pattern"], str(value)) or len(str(value)) > rule["longest"]]
    known = rule["values"] if "values" in rule else at_of(owner, rule["among"])
    return [f"{at} {value}, none of {known}" for value in found if value not in known]


def wrong_names(jobset):
    """Checks the names that JobSet makes: each becomes a DNS label."""
    name = jobset["metadata"]["name"]
    for role in jobset["spec"]["replicatedJobs"]:
        job = f"{name}-{role['name']}-{role.get('replicas', 1) - 1}"
        pod = f"{job}-{role['template']['spec'].get('completions', 1) - 1}{POD_END}"
        for what, made in ("Jobs", job), ("pods", pod):
            if len(made) > 63 or not DNS_LABEL.fullmatch(made):
                yield f"makes {what} like {made}, no DNS label of at most 63"


def wrong_coordinator(jobset):
    wanted = jobset["spec"].get("coordinator")
    role = next((r for r in jobset["spec"]["replicatedJobs"] if wanted and r["name"] == wanted["replicatedJob"]), None)
    if role is None:
        return
    job = role["template"]["spec"]
    if not 0 <= wanted.get("jobIndex", 0) < role.get("replicas", 1):
        yield f"its coordinator is Job {wanted['jobIndex']} of {role.get('replicas', 1)}"
    if job.get("completionMode", "Indexed") != "Indexed" or "completions" not in job:
        yield "its coordinator's Job is not Indexed, or has no completions"
    elif not 0 <= wanted.get("podIndex", 0) < job["completions"]:
        yield f"its coordinator is pod {wanted['podIndex']} of {job['completions']}"
    name, place = jobset["metadata"]["name"], f"{wanted.get('jobIndex', 0)}-{wanted.get('podIndex', 0)}"
    label = f"{name}-{role['name']}-{place}.{jobset['spec'].get('network', {}).get('subdomain') or name}"
    if len(label) > 63:
        yield f"its coordinator's address {label} is no label of at most 63"


def wrong_dependencies(jobset):
    roles, before = jobset["spec"]["replicatedJobs"], set()
    for role in roles:
        before.add(role["name"])
        for other in role.get("dependsOn", []):
            if other["name"] not in before:
                yield f"{role['name']} depends on {other['name']}, which is not before it"
    if jobset["spec"].get("startupPolicy", {}).get("startupPolicyOrder") == "InOrder" and any(
            role.get("dependsOn") for role in roles):
        yield "has startupPolicy InOrder and dependsOn"


def wrong_runtime(runtime):
    """kubeflow/trainer, validateReplicatedJobs: what the step of an ancestor must have."""
    for role in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        ancestor = role["template"].get("metadata", {}).get("labels", {}).get(workloads.ANCESTOR)
        names = [c["name"] for c in role["template"]["spec"]["template"]["spec"]["containers"]]
        if ancestor == "trainer" and (role.get("replicas", 1) != 1 or "node" not in names):
            yield f"{role['name']}: the trainer's step has {role.get('replicas', 1)} replicas of the containers {names}"
    chosen = {"torch", "mpi", "jax", "xgboost", "flux"} & set(runtime["spec"].get("mlPolicy", {}))
    if len(chosen) > 1:
        yield f"mlPolicy is more than one of {sorted(chosen)}"


def wrong_volcano(owner):
    for policy in owner["spec"].get("policies", []):
        events = [*policy.get("events", []), *filter(None, [policy.get("event")])]
        if bool(events) == ("exitCode" in policy):
            yield "a policy needs events or an exit code, not both"
        if policy.get("exitCode") == 0:
            yield "a policy for exit code 0"
    total = sum(task.get("replicas", 1) for task in owner["spec"]["tasks"])
    if owner["spec"].get("minAvailable", 0) > total:
        yield f"minAvailable is more than the {total} pods of its tasks"
    for task in owner["spec"]["tasks"]:
        if task.get("minAvailable", 0) > task.get("replicas", 1):
            yield f"task {task['name']}: minAvailable is more than replicas"


CHECKS = {"JobSet": (wrong_names, wrong_coordinator, wrong_dependencies), "TrainingRuntime": (wrong_runtime,),
          "ClusterTrainingRuntime": (wrong_runtime,), "VolcanoJob": (wrong_volcano,)}


def made_of(objects):
    """Returns the objects, with the JobSets and Jobs that controllers make of them, which an API server must also
    admit."""
    trainjobs = [workloads.jobset_of(owner, objects) for owner in of_kind(objects, "TrainJob")]
    whole = objects + [jobset for jobset in trainjobs if jobset]
    jobs = [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"{o['metadata']['name']}-{role['name']}"},
             "spec": role["template"]["spec"]} for o in of_kind(whole, "JobSet") for role in o["spec"]["replicatedJobs"]]
    return whole + jobs


def findings(objects, on=()):
    """Returns sentences about new objects. `on`: gates that the administrator has turned on."""
    found = []
    for owner in made_of(objects):
        kind = kind_of(owner)
        wrong = [text for rule in table()["rules"] if rule["of"] in kinds_of(owner) for text in breaks(rule, owner, on)]
        wrong += [text for check in CHECKS.get(kind, ()) for text in check(owner)]
        found += [f"{kind} {owner['metadata']['name']} is refused: {text}" for text in wrong]
    return found


# ---- changes

def without(value, path):
    """Returns the value without what is at the path."""
    *owners, key = path.rsplit(".", 1)
    for owner in values_at(value, owners[0]) if owners else [value]:
        if isinstance(owner, dict):
            owner.pop(key, None)


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)([A-Z]i)?", str(text)).groups()
    return int(number) * UNITS[unit or ""]


def refused_changes(before, after):
    """Returns sentences about an existing object that would change."""
    for path in table()["immutable"]["Queued"]["fixed"] if "Queued" in kinds_of(before) else ():
        if at_of(before, path) != at_of(after, path):
            yield f"{path} is immutable while it runs"
    rule = table()["immutable"].get(kind_of(after), {})
    if (before.get("immutable") and (before.get("data") != after.get("data") or not after.get("immutable"))):
        yield "it is immutable"
    if before.get("spec") == after.get("spec"):
        return
    for path in rule.get("fixed", []):
        if at_of(before, path) != at_of(after, path):
            yield f"{path} is immutable"
    if "free" in rule:
        one, other = copy.deepcopy(before["spec"]), copy.deepcopy(after["spec"])
        for path in rule["free"]:
            without(one, path)
            without(other, path)
        for key in sorted(set(one) | set(other)):
            if one.get(key) != other.get(key):
                yield f"{key} is immutable"
    for path in rule.get("grows", []):
        if any(bytes_of(a) < bytes_of(b) for b, a in zip(at_of(before, path), at_of(after, path))):
            yield f"{path} cannot shrink"


def updates(before, after):
    """Returns why `kubectl apply` of `after` is refused once `before` has been applied."""
    there = {(o["apiVersion"], o["kind"], o["metadata"]["name"]): o for o in before}
    found = []
    for owner in after:
        old = there.get((owner["apiVersion"], owner["kind"], owner["metadata"]["name"]))
        wrong = refused_changes(old, owner) if old else ()
        found += [f"{owner['kind']} {owner['metadata']['name']} cannot change: {text}" for text in wrong]
    return found
