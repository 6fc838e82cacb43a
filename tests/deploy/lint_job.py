"""What must hold for the pods of a job together: ranks, addresses, numbers, and which pods can reach which."""

import collections
import json

import programs
from environment import Missing, environment
from lint_objects import GRPC_PORT, HEALTH_PORT
from lint_pods import check_store, claims_at
from manifests import NAMESPACE, holders_of, job_of, matches, of_kind, runs, workers_hold
from workloads import host_names


def rank_of(pod, values):
    """Returns the rank as the programs find it."""
    for name in ("LEEWAY_RANK", "JOB_COMPLETION_INDEX"):
        if name in values:
            return int(values[name])
    if "TF_CONFIG" in values:
        task = json.loads(values["TF_CONFIG"])["task"]
        fits = task["type"] == "ps" if pod.component == "server" else task["type"] in ("worker", "chief")
        if not fits:
            raise Missing(f"a {pod.component} that TF_CONFIG calls {task['type']}")
        return task["index"]
    if "VC_TASK_INDEX" in values:
        return int(values["VC_TASK_INDEX"])
    raise Missing("nothing says its rank")


def addresses(pod, rank, values):
    """Returns the coordinator's address, and the one that the pod advertises."""
    config = json.loads(values.get("TF_CONFIG", '{"cluster": {}}'))["cluster"]
    servers = config.get("ps", [])
    coordinator = values.get("LEEWAY_COORDINATOR", servers[0] if servers else "")
    own = values.get("LEEWAY_ADVERTISE", servers[rank] if rank < len(servers) else "")
    return coordinator, own


def find_pods(pods, objects):
    """Returns {(component, rank): [pods]}, and the problems found."""
    found, wrong = collections.defaultdict(list), []
    for pod in pods:
        try:
            values = environment(pod, pod.container, objects)
            found[pod.component, rank_of(pod, values)].append((pod, values))
        except (Missing, ValueError) as missing:
            wrong.append(f"{pod.name}: {missing}")
    return found, wrong


def check_ranks(found, objects):
    job = job_of(objects)
    for component, key in ("server", "servers"), ("worker", "workers"):
        wanted = 1 if component == "server" and workers_hold(objects) else job[key]["count"]
        ranks = sorted(rank for name, rank in found for _ in found[name, rank] if name == component)
        if ranks != list(range(wanted)):
            yield f"{component}s have the ranks {ranks}; the job wants {wanted}"


def check_addresses(found, objects):
    names = {name: place for place, pods in found.items() for pod, _ in pods for name in host_names(pod, objects)}
    counts = collections.Counter(name for pods in found.values() for pod, _ in pods
                                 for name in host_names(pod, objects))
    for (component, rank), pods in found.items():
        for pod, values in pods:
            coordinator, own = addresses(pod, rank, values)
            wanted = [(coordinator, ("server", 0), "the coordinator")]
            if component in ("server", holders_of(objects)):
                wanted.append((own, (component, rank), "itself"))
            for address, place, what in wanted:
                host, _, port = address.rpartition(":")
                if names.get(host) != place or counts[host] != 1:
                    yield f"{pod.name} calls {what} {address or 'nothing'}, a name of {names.get(host)}"
                elif port != str(GRPC_PORT):
                    yield f"{pod.name} calls {what} {address}, not port {GRPC_PORT}"


def check_security_is_one(found):
    modes = {bool(values.get("LEEWAY_TLS_DIR")) for pods in found.values() for _, values in pods}
    if len(modes) > 1:
        yield "some pods have certificates and some have none"
    folders = {values.get("LEEWAY_RUN_DIR") for (c, _), pods in found.items() for _, values in pods if c == "server"}
    if len(folders) > 1:
        yield f"servers have the run folder at {folders}"


def check_run_folder(found, objects):
    """Workers that hold blocks write their part of checkpoints to the run folder, and read it."""
    of = lambda wanted: [place for (component, _), pods in found.items() for place in pods if component == wanted]
    if not of("server") or not workers_hold(objects):
        return
    server, values = of("server")[0]
    run = values.get("LEEWAY_RUN_DIR", "")
    claims = claims_at(server, run)
    for pod, values in of("worker"):
        if run.startswith("s3://"):
            yield from (f"{pod.name}: {wrong}" for wrong in [*check_store(run, values), *check_store_port(objects, pod)])
        elif claims_at(pod, run) != claims or not claims:
            yield f"{pod.name} cannot write to the run folder {run}"


def check_store_port(objects, pod):
    ports = {port.get("port") for rule in rules_for(objects, pod, "Egress") or [] if "to" not in rule
             for port in rule.get("ports", [])}
    if not ports - {53, 5353}:
        yield "policies open no port of a store"


def peers_match(peers, pod):
    """Whether a pod of the namespace matches a rule's peers; without a list every pod matches."""
    if not peers:
        return True
    own = {"kubernetes.io/metadata.name": NAMESPACE}
    return any(matches(peer.get("podSelector", {}).get("matchLabels"), pod.labels) and
               ("namespaceSelector" not in peer or matches(peer["namespaceSelector"].get("matchLabels"), own))
               for peer in peers)


def rules_for(objects, pod, way):
    """Returns None if no policy isolates the pod in this direction; else the rules of all policies that do."""
    policies = [p["spec"] for p in of_kind(objects, "NetworkPolicy")
                if matches(p["spec"]["podSelector"].get("matchLabels"), pod.labels) and way in p["spec"]["policyTypes"]]
    return [rule for p in policies for rule in p.get(way.lower()) or []] if policies else None


def ports_allow(rule, port, protocol="TCP"):
    ports = rule.get("ports")
    return not ports or any(p.get("port", port) == port and p.get("protocol", "TCP") == protocol for p in ports)


def reaches(objects, source, target, port):
    egress, ingress = rules_for(objects, source, "Egress"), rules_for(objects, target, "Ingress")
    return all(rules is None or any(ports_allow(rule, port) and peers_match(rule.get(key), other) for rule in rules)
               for rules, key, other in ((egress, "to", target), (ingress, "from", source)))


def check_reach(found, objects):
    """All pods reach the servers, the pods that hold blocks, and the DNS. No pod reaches other workers, and strangers
    reach nobody. The port of health is closed."""
    pods = [pod for some in found.values() for pod, _ in some]
    listeners = [pod for pod in pods if pod.component in ("server", holders_of(objects))]
    for source in pods:
        for target in listeners:
            if source is not target and not reaches(objects, source, target, GRPC_PORT):
                yield f"policies do not let {source.name} reach {target.name}"
        rules = rules_for(objects, source, "Egress") or []
        for protocol in ("UDP", "TCP") if rules else ():
            dns = [r for r in rules if ports_allow(r, 53, protocol)]
            # The DNS may be served by pods of several kinds, or by the node.
            if not any("to" not in rule and ports_allow(rule, 5353, protocol) for rule in dns):
                yield f"policies do not let {source.name} ask for names by {protocol}"
        if source not in listeners and rules_for(objects, source, "Ingress") != []:
            yield f"policies let others reach {source.name}"
    for target in listeners:
        rules = rules_for(objects, target, "Ingress")
        if rules is None or any(not rule.get("from") for rule in rules):
            yield f"policies let strangers reach {target.name}"
        if any(ports_allow(rule, HEALTH_PORT) for rule in rules or []):
            yield f"policies open the port of health of {target.name}"


def check_job(pods, objects):
    try:
        job_of(objects)
    except (runs.Failed, KeyError) as failure:
        yield str(failure)
        return
    for config in of_kind(objects, "ConfigMap"):
        if wrong := programs.wrong_job(config["data"].get("job.yaml", "")):
            yield wrong
    found, wrong = find_pods(pods, objects)
    yield from wrong
    yield from check_ranks(found, objects)
    yield from check_addresses(found, objects)
    yield from check_security_is_one(found)
    yield from check_run_folder(found, objects)
    yield from check_reach(found, objects)
