"""What must hold for each pod, and for the pods of a job together, that no schema states."""

import pathlib
import re

import programs
from environment import Missing, command, environment
from lint_objects import GRPC_PORT, HEALTH_PORT
from manifests import INSTANCE, NAMESPACE, SECRETS, find, holders_of, job_of, runs, version, workers_hold
from workloads import host_names, is_published

USER = 65532
SERVICE = "leeway.v1.ParameterServer"
GRACE_SECONDS = 25  # --grace-seconds
SAMPLES = "/usr/share/leeway/data"
# The volume types that Pod Security Standards, restricted, allow.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def check_names(pod, objects):
    for what, name in ("pod name", pod.name), ("host name", pod.hostname):
        if len(name) > 63 or not LABEL.fullmatch(name):
            yield f"{what} {name} is none of DNS, or longer than 63"
    if pod.subdomain and f"{pod.hostname}.{pod.subdomain}" not in host_names(pod, objects):
        yield f"no headless Service {pod.subdomain} selects it"
    for key, value in pod.labels.items():
        if len(value) > 63:
            yield f"label {key} is longer than 63"


def secret_keys(objects, name):
    owner = find(objects, "Secret", name)
    return SECRETS.get(name, ()) if owner is None else tuple({**owner.get("data", {}), **owner.get("stringData", {})})


def files_of(volume, objects):
    """Returns the files of a volume of one kind; raises Missing. None: any file may be there."""
    for kind, key in ("ConfigMap", "configMap"), ("Secret", "secret"):
        if key not in volume:
            continue
        name = volume[key].get("name") or volume[key].get("secretName")
        owner = find(objects, kind, name)
        if owner is None and not (kind == "Secret" and name in SECRETS):
            raise Missing(f"no {kind} {name}")
        keys = secret_keys(objects, name) if kind == "Secret" else tuple(owner.get("data", {}))
        return [item["path"] for item in volume[key]["items"]] if "items" in volume[key] else list(keys)
    if "projected" in volume:
        return [file for source in volume["projected"]["sources"] for file in files_of(source, objects) or []]
    if "persistentVolumeClaim" in volume:
        claim = volume["persistentVolumeClaim"]["claimName"]
        if find(objects, "PersistentVolumeClaim", claim) is None:
            raise Missing(f"no PersistentVolumeClaim {claim}")
    return None


def check_volumes(pod, objects):
    volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
    if len(volumes) < len(pod.spec.get("volumes", [])):
        yield "two volumes have one name"
    for name, volume in volumes.items():
        if extra := set(volume) - VOLUMES - {"name"}:
            yield f"volume {name} is {extra}, which restricted pods may not have"
        try:
            files_of(volume, objects)
        except Missing as missing:
            yield f"volume {name}: {missing}"
    mounts = pod.container.get("volumeMounts", [])
    for mount in mounts:
        if mount["name"] not in volumes:
            yield f"mounts {mount['name']}, which is no volume"
        if not mount["mountPath"].startswith("/"):
            yield f"{mount['mountPath']} is no absolute path"
    if len({mount["mountPath"] for mount in mounts}) < len(mounts):
        yield "two volumes are mounted at one path"
    if unused := set(volumes) - {mount["name"] for mount in mounts}:
        yield f"nobody mounts {unused}"
    if not any(mount["mountPath"] == "/tmp" and "emptyDir" in volumes.get(mount["name"], {}) for mount in mounts):
        yield "no /tmp that can be written"


def file_at(pod, path, objects):
    """Whether a path is on a volume and, if that volume lists its files, is one of them."""
    volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
    for mount in sorted(pod.container.get("volumeMounts", []), key=lambda m: -len(m["mountPath"])):
        root = mount["mountPath"].rstrip("/")
        if (path == root or path.startswith(root + "/")) and mount["name"] in volumes:
            try:
                files = files_of(volumes[mount["name"]], objects)
            except Missing:
                return False
            return files is None or path[len(root) + 1:] in files
    return False


def listens(pod, objects):
    """Whether other pods call this one."""
    return pod.component in ("server", holders_of(objects))


def check_ports(pod, values, objects):
    ports = pod.container.get("ports", [])
    names = [port.get("name") for port in ports]
    numbers = {port["containerPort"] for port in ports}
    if len(set(names)) < len(names) or any(not n or len(n) > 15 or not LABEL.fullmatch(n) for n in names):
        yield f"port names {names}"
    if any(not 0 < number < 65536 for number in numbers):
        yield f"ports {numbers}"
    health = values.get("LEEWAY_HEALTH", "").rpartition(":")[2]
    if health != str(HEALTH_PORT) or HEALTH_PORT not in numbers:
        yield f"its health is at {health or 'no port'}, its ports are {numbers}"
    listen = values.get("LEEWAY_LISTEN", "")
    if listens(pod, objects) and (listen != f"0.0.0.0:{GRPC_PORT}" or GRPC_PORT not in numbers):
        yield f"listens on {listen or 'no port'}, its ports are {numbers}"


def check_probes(pod):
    found = pod.container
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = found.get(name)
        if probe is None:
            if name != "readinessProbe":
                yield f"no {name}"
            continue
        if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
            yield f"{name}: successThreshold must be 1"
        if set(probe) & {"httpGet", "tcpSocket", "exec"} or "grpc" not in probe:
            yield f"{name} is no grpc probe"
            continue
        if probe["grpc"].get("port") not in {p["containerPort"] for p in found.get("ports", [])} - {GRPC_PORT}:
            yield f"{name} asks port {probe['grpc'].get('port')}, which is not the one of health"
        service = probe["grpc"].get("service", "")
        if service and (name != "readinessProbe" or service != SERVICE or pod.component != "server"):
            yield f"{name} asks for {service}, which is not SERVING whenever the process is well"
        if probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3) < 10 and name != "readinessProbe":
            yield f"{name} gives up within 10 seconds"


def check_security(pod):
    spec, context, own = pod.spec, pod.spec.get("securityContext", {}), pod.container.get("securityContext", {})
    wanted = {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
              "seccompProfile": {"type": "RuntimeDefault"}}
    for key, value in wanted.items():
        if context.get(key) != value or (key in own and own[key] != value):
            yield f"securityContext.{key} is not {value}"
    for key, value in {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                       "capabilities": {"drop": ["ALL"]}}.items():
        if own.get(key) != value:
            yield f"the container's securityContext.{key} is not {value}"
    if own.get("privileged") or any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
        yield "has the host's rights"
    for key in ("automountServiceAccountToken", "enableServiceLinks"):
        if spec.get(key, True):
            yield f"{key} is not false"


def check_means(pod, objects):
    """Checks resources, image, account, and the time to end."""
    requests, limits = (pod.container.get("resources", {}).get(key, {}) for key in ("requests", "limits"))
    if "cpu" not in requests or not requests.get("memory") or requests.get("memory") != limits.get("memory"):
        yield "no request of cpu, or memory that is not both requested and the limit"
    disk = [some.get("ephemeral-storage") for some in (requests, limits)]
    if disk[0] != disk[1]:
        yield f"requests {disk[0]} of its node's disk, and is evicted beyond {disk[1]}"
    if any("gpu" in key for key in requests) or ("nvidia.com/gpu" in limits and pod.component != "worker"):
        yield "a GPU that is requested, or not a worker's"
    wanted = f"{'leeway-cuda' if 'nvidia.com/gpu' in limits else 'leeway'}:{version()}"
    if pod.container.get("image", "") != wanted:
        yield f"its image is {pod.container.get('image')}, and must be {wanted}"
    if find(objects, "ServiceAccount", pod.spec.get("serviceAccountName", "")) is None:
        yield "no ServiceAccount of its name"
    if pod.spec.get("terminationGracePeriodSeconds", 30) < GRACE_SECONDS + 5:
        yield "is killed before a server has handed over its shards"
    if pod.container.get("lifecycle"):
        yield "a hook, which the image has no shell for"
    for spread in pod.spec.get("topologySpreadConstraints", []):
        wanted = spread.get("labelSelector", {}).get("matchLabels", {})
        if not wanted or any(pod.labels.get(key) != value for key, value in wanted.items()):
            yield "its topology spread does not count itself"
        if spread.get("whenUnsatisfiable") not in ("DoNotSchedule", "ScheduleAnyway"):
            yield f"its topology spread is {spread.get('whenUnsatisfiable')}"
    if not pod.spec.get("topologySpreadConstraints"):
        yield "no topology spread"


def check_security_of_calls(pod, values, objects):
    folder, insecure = values.get("LEEWAY_TLS_DIR"), values.get("LEEWAY_INSECURE")
    if bool(folder) == bool(insecure) and listens(pod, objects):
        yield "listens beyond loopback with neither certificates nor LEEWAY_INSECURE, or with both"
    if not folder:
        return
    for name in ("ca.crt", "tls.crt", "tls.key"):
        if not file_at(pod, f"{folder}/{name}", objects):
            yield f"no file {folder}/{name}"
    if not file_at(pod, values.get("LEEWAY_TOKEN_FILE", "/"), objects):
        yield f"no token at {values.get('LEEWAY_TOKEN_FILE')}"
    sources = [source.get("secret", {}).get("name") for volume in pod.spec["volumes"]
               for source in volume.get("projected", {}).get("sources", [])]
    role = "peer" if pod.component == "worker" and workers_hold(objects) else pod.component
    if f"leeway-{role}-tls" not in sources:
        yield f"has no certificate of a {role}"


def check_store(location, values):
    for name in "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY":
        if name not in values:
            yield f"nothing has the keys of {location}: no {name}"


def check_data(pod, data, values, objects):
    if data.startswith("s3://"):
        yield from check_store(data, values)
        if not file_at(pod, values.get("LEEWAY_DATA_CACHE", "/"), objects):
            yield f"nowhere to keep copies of {data}"
    elif data != SAMPLES and not file_at(pod, data, objects):
        yield f"no data at {data}"


def claims_at(pod, path):
    """Returns the names of the claims that are mounted at a path or above it, and can be written."""
    volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
    mounts = [m for m in pod.container.get("volumeMounts", []) if path.startswith(m["mountPath"] + "/")]
    return [volumes[m["name"]]["persistentVolumeClaim"]["claimName"] for m in mounts
            if not m.get("readOnly") and "persistentVolumeClaim" in volumes.get(m["name"], {})]


def check_files(pod, values, objects):
    if pod.component == "worker":
        yield from check_data(pod, values.get("LEEWAY_DATA", SAMPLES), values, objects)
        return
    if not file_at(pod, values.get("LEEWAY_JOB", ""), objects):
        yield f"no job at {values.get('LEEWAY_JOB')}"
    run = values.get("LEEWAY_RUN_DIR", "")
    if not run.endswith(f"/{pod.labels.get(INSTANCE)}"):
        yield f"the run folder {run} is not of its run's name"
    if run.startswith("s3://"):
        yield from check_store(run, values)
        return
    if not claims_at(pod, run):
        yield f"the run folder {run} is not on a claim that can be written"


def is_external(objects):
    """Whether the workers run the user's own program. A missing job is reported elsewhere."""
    try:
        return job_of(objects)["model"].get("type") == "external"
    except (runs.Failed, KeyError):
        return False


def check_words(pod, words, values, objects):
    folder = pod.container.get("workingDir", "/")
    if folder != "/" and not file_at(pod, f"{folder}/{words[-1]}", objects):
        yield f"no file {words[-1]} in its folder {folder}"
    if pod.component == "worker" and is_external(objects):
        if pathlib.PurePath(words[0]).name.startswith("leeway"):
            yield f"the job wants a program of one's own, not {words[0]}"
        return
    yield from programs.wrong_words(words, values)
    if words[0] != f"/usr/bin/leeway-{pod.component}":
        yield f"a {pod.component} that runs {words[0]}"


def check_pod(pod, objects):
    """Returns sentences about one pod."""
    if pod.labels.get("app.kubernetes.io/name") != "leeway" or pod.component not in ("server", "worker"):
        yield "lacks the labels app.kubernetes.io/name and component"
    if not pod.labels.get(INSTANCE):
        yield f"lacks the label {INSTANCE}"
    if pod.labels.get("sidecar.istio.io/inject") != "false":
        yield "never ends where a mesh gives it a proxy"
    if len(pod.spec["containers"]) != 1 or pod.spec.get("initContainers"):
        yield "not one container"
    names = [entry["name"] for entry in pod.container.get("env", [])]
    if len(set(names)) < len(names):
        yield "a variable is set twice"
    try:
        values = environment(pod, pod.container, objects)
    except Missing as missing:
        yield str(missing)
        return
    words = command(pod.container, values)
    for text in [*words, *values.values()]:
        if re.search(r"\$\([\w.-]+\)", text):
            yield f"{text} names a variable that is not set, or below"
    yield from check_words(pod, words, values, objects)
    yield from check_ports(pod, values, objects)
    yield from check_probes(pod)
    yield from check_names(pod, objects)
    yield from check_volumes(pod, objects)
    yield from check_security(pod)
    yield from check_means(pod, objects)
    yield from check_security_of_calls(pod, values, objects)
    yield from check_files(pod, values, objects)
    if pod.component == "server" and "readinessProbe" in pod.container and not is_published(pod, objects):
        yield f"is found by nobody in {NAMESPACE} before it is ready, and is ready when all were found"
