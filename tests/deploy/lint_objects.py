"""What must hold for each object beyond its schema: selectors, numbers, exit codes, names."""

import re

import workloads
from admission import QUEUE
from manifests import find, holders_of, job_of, matches, of_kind, runs

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# Kinds whose names become labels or host names.
LABELS = {"Namespace", "Service", "JobSet", "Job", "TrainJob", "StatefulSet", "TFJob"}
CLUSTER_WIDE = {"Namespace", "ClusterTrainingRuntime"}
# common/exit_code.h: a retry after one of these never helps. After 5 a new pod may succeed: a pod that its Job knows
# has the place, and the process that displaced it belonged to a lost node.
FOR_GOOD = {2, 3, 4}
SUFFIX = len("-xxxxx")
GRPC_PORT = 7100
HEALTH_PORT = 7101


def check_identity(owner, objects):
    meta = owner["metadata"]
    name = meta["name"]
    limit = 63 if owner["kind"] in LABELS else 253
    if not SUBDOMAIN.fullmatch(name) or len(name) > limit or (limit == 63 and "." in name):
        yield f"{name} is no name of DNS of at most {limit}"
    if owner["kind"] == "Namespace":
        if meta.get("labels", {}).get("pod-security.kubernetes.io/enforce") != "restricted":
            yield "does not enforce restricted pods"
    elif owner["kind"] not in CLUSTER_WIDE and find(objects, "Namespace", meta.get("namespace", "")) is None:
        yield f"is in no namespace of these manifests: {meta.get('namespace')}"


def protocol_of(port, pod):
    """Returns the protocol that a Service must state for a port: calls to servers use TLS where pods have certificates,
    and health checks never do."""
    mounts = any(entry["name"] == "LEEWAY_TLS_DIR" for entry in pod.container.get("env", []))
    return "https" if port == GRPC_PORT and mounts else "kubernetes.io/h2c"


def check_service(owner, pods):
    spec = owner["spec"]
    selected = [pod for pod in pods if matches(spec.get("selector"), pod.labels)]
    if spec.get("clusterIP") != "None" or not spec.get("publishNotReadyAddresses"):
        yield "is not headless, or publishes ready pods only"
    if not spec.get("selector") or not selected:
        yield "selects no pod"
    for port in spec.get("ports", []):
        for pod in selected:
            target = port.get("targetPort", port["port"])
            found = [p for p in pod.container.get("ports", []) if target in (p["containerPort"], p.get("name"))]
            if not found or found[0]["containerPort"] != port["port"]:
                yield f"port {port['port']} is not {target} of {pod.name}"
            if port.get("appProtocol") != (wanted := protocol_of(port["port"], pod)):
                yield f"port {port['port']} says {port.get('appProtocol')}, and {pod.name} speaks {wanted}"


def check_statefulset(owner, objects):
    spec = owner["spec"]
    service = find(objects, "Service", spec.get("serviceName", ""))
    labels = spec["template"]["metadata"]["labels"]
    if service is None or not matches(service["spec"].get("selector"), labels):
        yield f"its Service {spec.get('serviceName')} is missing or selects others"
    if not spec["selector"].get("matchLabels") or not matches(spec["selector"]["matchLabels"], labels):
        yield "its selector is not the template's labels"
    if spec.get("podManagementPolicy") != "Parallel":
        yield "starts one server after the other, and each waits for all"
    if spec["template"]["spec"].get("restartPolicy", "Always") != "Always":
        yield "a StatefulSet restarts always"


def retries_for_good(policy, container):
    """Returns the exit codes that a podFailurePolicy must end but does not."""
    left = set(FOR_GOOD)
    for rule in policy.get("rules", []):
        codes = rule.get("onExitCodes", {})
        if codes and rule["action"] in ("FailJob", "FailIndex") and codes.get("containerName", container) == container:
            left -= set(codes["values"]) if codes["operator"] == "In" else set()
    return left


def check_failure_policy(spec):
    policy, container = spec.get("podFailurePolicy", {}), spec["template"]["spec"]["containers"][0]["name"]
    if spec["template"]["spec"].get("restartPolicy") != "Never":
        yield "podFailurePolicy and indexes need restartPolicy Never"
    if left := retries_for_good(policy, container):
        yield f"retries after the exit codes {sorted(left)} of {container}"
    for rule in policy.get("rules", []):
        codes = rule.get("onExitCodes")
        if codes and codes.get("containerName", container) != container:
            yield f"a rule for {codes['containerName']}, which is no container"
        if codes and set(codes["values"]) - FOR_GOOD:
            yield f"a rule for the codes {set(codes['values']) - FOR_GOOD}, after which a retry may help"
        if codes and codes["values"] != sorted(set(codes["values"])):
            yield "exit codes are not in order, or twice"
        if rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield "FailIndex needs backoffLimitPerIndex"
    ignored = [condition for rule in policy.get("rules", []) if rule["action"] == "Ignore"
               for condition in rule.get("onPodConditions", [])]
    if {"type": "DisruptionTarget", "status": "True"} not in ignored:
        yield "counts an eviction as a failure"
    if spec.get("podReplacementPolicy") != "Failed":
        yield "two pods may have one rank: podReplacementPolicy is not Failed"


def check_job_spec(spec):
    """Checks the specification of a Job, or of one that JobSet makes."""
    yield from check_failure_policy(spec)
    if spec.get("completions") is None or spec["completions"] != spec.get("parallelism"):
        yield f"{spec.get('parallelism')} pods at a time of {spec.get('completions')}"
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield "maxFailedIndexes needs backoffLimitPerIndex"
    if "backoffLimitPerIndex" in spec and spec.get("completionMode") != "Indexed":
        yield "backoffLimitPerIndex is for Indexed jobs"


def check_batch_job(owner):
    spec = owner["spec"]
    if spec.get("completionMode") != "Indexed" and spec.get("completions") != 1:
        yield "has ranks and is not Indexed"
    if "ttlSecondsAfterFinished" not in spec:
        yield "is never removed"
    yield from check_job_spec(spec)


def check_targets(spec, names):
    rules = spec.get("failurePolicy", {}).get("rules", [])
    for what, owner in [("successPolicy", spec.get("successPolicy", {})), *((r["name"], r) for r in rules)]:
        if unknown := set(owner.get("targetReplicatedJobs", [])) - set(names):
            yield f"{what} names {unknown}, which is no job of the set"
    if spec.get("coordinator", {}).get("replicatedJob", names[0]) not in names:
        yield "its coordinator is no job of the set"
    if not rules or rules[0]["action"] != "FailJobSet" or rules[0].get("onJobFailureReasons") != ["PodFailurePolicy"]:
        yield "its first rule does not end what cannot be mended"
    success = spec.get("successPolicy", {})
    if success.get("operator") != "All" or (success.get("targetReplicatedJobs") and
                                             set(success["targetReplicatedJobs"]) != set(names)):
        yield "is over before server 0 has written the model"


def check_jobset_spec(spec, name):
    """Checks the specification of a JobSet, or of a runtime's."""
    names = [role["name"] for role in spec["replicatedJobs"]]
    if len(set(names)) < len(names):
        yield "two replicated jobs have one name"
    yield from check_targets(spec, names)
    if spec.get("startupPolicy", {}).get("startupPolicyOrder", "AnyOrder") != "AnyOrder":
        yield "starts workers when servers are ready, which are ready when all have come"
    network = spec.get("network", {})
    if not network.get("enableDNSHostnames", True) or not network.get("publishNotReadyAddresses", True):
        yield "its pods have no names before they are ready"
    for place, role in enumerate(spec["replicatedJobs"]):
        job = role["template"]["spec"]
        yield from (f"{role['name']}: {wrong}" for wrong in check_job_spec({"completionMode": "Indexed", **job}))
        if role.get("replicas", 1) > 1 and job.get("completions") != 1:
            yield f"{role['name']}: jobs of more than one pod, whose ranks repeat"
        for other in role.get("dependsOn", []):
            if other["name"] not in names[:place]:
                yield f"{role['name']} waits for {other['name']}, which is not before it"
            yield f"{role['name']} waits for {other['name']}, which is ready when all have come"
        longest = f"{name}-{role['name']}-{role.get('replicas', 1) - 1}-{job.get('completions', 1) - 1}"
        if len(longest) + SUFFIX > 63:
            yield f"pods like {longest} have names longer than 63"


def check_jobset(owner):
    if "ttlSecondsAfterFinished" not in owner["spec"]:
        yield "is never removed"
    yield from check_jobset_spec(owner["spec"], owner["metadata"]["name"])


def check_trainjob(owner, objects):
    reference = owner["spec"]["runtimeRef"]
    runtime = find(objects, reference.get("kind", "ClusterTrainingRuntime"), reference["name"])
    if runtime is None:
        yield f"no {reference.get('kind', 'ClusterTrainingRuntime')} {reference['name']}"
        return
    spec = runtime["spec"]["template"]["spec"]
    yield from check_jobset_spec(spec, owner["metadata"]["name"])
    steps = [role["name"] for role in spec["replicatedJobs"] if role["template"].get("metadata", {})
             .get("labels", {}).get(workloads.ANCESTOR) == "trainer"]
    if steps != ["node"] or any(role.get("replicas", 1) != 1 for role in spec["replicatedJobs"]):
        yield f"the trainer's step is {steps}, and must be `node`, of one replica"


def check_volcano(owner):
    spec, plugins = owner["spec"], owner["spec"].get("plugins", {})
    if spec.get("minAvailable") != sum(task.get("replicas", 1) for task in spec["tasks"]):
        yield f"its gang of {spec.get('minAvailable')} is not all its pods"
    if "env" not in plugins or "--publish-not-ready-addresses=true" not in (plugins.get("svc") or []):
        yield "its pods have no ranks, or no names before they are ready"
    if spec.get("schedulerName") != "volcano":
        yield "is not scheduled by volcano"
    for policy in spec.get("policies", []):
        if "exitCode" in policy and ("event" in policy or "events" in policy):
            yield "a policy has an exit code and an event"
    ended = {p.get("exitCode") for p in spec.get("policies", []) if p["action"] in ("AbortJob", "TerminateJob")}
    if FOR_GOOD - ended:
        yield f"retries after the exit codes {sorted(FOR_GOOD - ended)}"
    if any(task["template"]["spec"].get("restartPolicy") != "Never" for task in spec["tasks"]):
        yield "its policies see no exit code of a container that restarts in its pod"


def check_tfjob(owner):
    spec = owner["spec"]
    if spec.get("runPolicy", {}).get("cleanPodPolicy") != "None":
        yield "removes server 0 while it writes the model"
    if set(spec["tfReplicaSpecs"]) != {"PS", "Worker"}:
        yield f"has the replicas {set(spec['tfReplicaSpecs'])}"
    for kind, replica in spec["tfReplicaSpecs"].items():
        container = replica["template"]["spec"]["containers"][0]
        if container["name"] != "tensorflow":
            yield f"{kind}: the operator looks for a container named tensorflow"
        if kind == "PS" and not any(p.get("name") == "tfjob-port" for p in container.get("ports", [])):
            yield "PS: the operator looks for a port named tfjob-port"
        if replica.get("restartPolicy") != "OnFailure":
            yield f"{kind}: ExitCode does not know our codes, Never does not restart"


def budget(objects, holders):
    """Returns how many pods with blocks must stay: a drain may take as many as the other copies make up for, and one if there
    are no copies."""
    try:
        copies = job_of(objects)["servers"].get("replicas", 1)
    except (runs.Failed, KeyError):
        copies = 1
    return holders - max(1, copies - 1)


def check_budget(owner, objects, pods):
    spec = owner["spec"]
    selected = [pod for pod in pods if matches(spec["selector"].get("matchLabels"), pod.labels)]
    if ("minAvailable" in spec) == ("maxUnavailable" in spec):
        yield "needs one of minAvailable and maxUnavailable"
    holders = holders_of(objects)
    if not selected or any(pod.component != holders for pod in selected):
        yield f"selects {len(selected)} pods, or others than {holders}s"
    scaled = bool(of_kind(objects, "StatefulSet")) and holders == "server"
    if not scaled and not isinstance(spec.get("minAvailable"), int):
        yield "Jobs have no scale: only a number in minAvailable counts"
    if scaled and spec.get("maxUnavailable") != 1:
        yield "more than one server may go at a time"
    if isinstance(spec.get("minAvailable"), int) and spec["minAvailable"] != budget(objects, len(selected)):
        yield f"{spec['minAvailable']} of {len(selected)} {holders}s stay, and must be {budget(objects, len(selected))}"


def check_policy(owner, pods):
    selected = [pod for pod in pods if matches(owner["spec"]["podSelector"].get("matchLabels"), pod.labels)]
    if not selected:
        yield "selects no pod"
    for rule in owner["spec"].get("ingress") or []:
        opened = {port.get("port") for port in rule.get("ports", [])}
        for pod in selected:
            if opened - {port["containerPort"] for port in pod.container.get("ports", [])}:
                yield f"opens the ports {opened}, not all of which are {pod.name}'s"


def check_object(owner, objects, pods):
    """Returns sentences about one object."""
    yield from check_identity(owner, objects)
    if owner["kind"] in ("StatefulSet", "Job") and QUEUE in owner["metadata"].get("labels", {}):
        yield "is admitted by Kueue without the other half of the job"
    kind = owner["kind"], owner["apiVersion"].split("/")[0]
    if kind[0] == "Service":
        yield from check_service(owner, pods)
    elif kind[0] == "StatefulSet":
        yield from check_statefulset(owner, objects)
    elif kind == ("Job", "batch"):
        yield from check_batch_job(owner)
    elif kind[0] == "JobSet":
        yield from check_jobset(owner)
    elif kind[0] == "TrainJob":
        yield from check_trainjob(owner, objects)
    elif kind == ("Job", "batch.volcano.sh"):
        yield from check_volcano(owner)
    elif kind[0] == "TFJob":
        yield from check_tfjob(owner)
    elif kind[0] == "PodDisruptionBudget":
        yield from check_budget(owner, objects, pods)
    elif kind[0] == "NetworkPolicy":
        yield from check_policy(owner, pods)
