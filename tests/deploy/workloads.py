"""The pods that a cluster makes of the manifests: what each controller adds to its template, as its documentation says.
The lint checks them, and the fake cluster runs them."""

import copy
import dataclasses
import json

import manifests
from manifests import matches, of_kind

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
TFJOB_PORT = 2222  # the default, if a container names no port


@dataclasses.dataclass
class Pod:
    name: str
    hostname: str
    subdomain: str
    labels: dict
    annotations: dict
    spec: dict
    index: int
    # What the controller appends to each container's environment.
    injected: list = dataclasses.field(default_factory=list)

    @property
    def component(self):
        return self.labels.get("app.kubernetes.io/component", "")

    @property
    def container(self):
        return self.spec["containers"][0]


@dataclasses.dataclass
class Group:
    """Pods of one template: of a Job, a StatefulSet, a task or a replica type. A Job draws a new suffix of the name for
    each life of a pod; the others keep the name."""
    kind: str
    name: str
    count: int
    template: dict
    spec: dict
    labels: dict = dataclasses.field(default_factory=dict)
    subdomain: str = ""
    owner: dict = None
    role: str = ""
    job_index: int = 0
    config: dict = None

    def pod(self, index, life=0):
        template = copy.deepcopy(self.template)
        meta, spec = template.get("metadata", {}), template["spec"]
        host, labels = f"{self.name}-{index}", {**meta.get("labels", {}), **self.labels}
        injected = []
        if self.kind == "Job":
            name = f"{host}-{'bcdfghjklmnpqrstvwxz'[life % 20]}{life:04}"
            labels |= {"batch.kubernetes.io/job-name": self.name, "job-name": self.name}
            if self.spec.get("completionMode") == "Indexed":
                labels["batch.kubernetes.io/job-completion-index"] = str(index)
                injected = [("JOB_COMPLETION_INDEX", str(index))]  # kubernetes, job/indexed_job_utils.go
        else:
            name = host
            if self.kind == "StatefulSet":
                labels |= {"apps.kubernetes.io/pod-index": str(index), "statefulset.kubernetes.io/pod-name": name}
            if self.kind == "Task":
                labels |= {"volcano.sh/task-index": str(index)}
                injected = [("VK_TASK_INDEX", str(index)), ("VC_TASK_INDEX", str(index))]  # volcano, plugins/env/env.go
            if self.kind == "Replica":
                labels["training.kubeflow.org/replica-index"] = str(index)
                config = {"cluster": self.config, "task": {"type": self.role, "index": index}, "environment": "cloud"}
                injected = [("TF_CONFIG", json.dumps(config))]  # training-operator 1.x, tensorflow/tensorflow.go
        return Pod(name, spec.get("hostname", host), spec.get("subdomain") or self.subdomain, labels,
                   meta.get("annotations", {}), spec, index, injected)


def of_statefulset(owner):
    spec = owner["spec"]
    return [Group("StatefulSet", owner["metadata"]["name"], spec.get("replicas", 1), spec["template"], spec,
                  subdomain=spec.get("serviceName", ""), owner=owner)]


def of_job(owner):
    spec = owner["spec"]
    return [Group("Job", owner["metadata"]["name"], spec.get("parallelism", 1), spec["template"], spec, owner=owner)]


def of_jobset(owner):
    """JobSet makes its Jobs Indexed, and gives their pods a subdomain and labels."""
    found, name, spec = [], owner["metadata"]["name"], owner["spec"]
    for role in spec["replicatedJobs"]:
        for number in range(role.get("replicas", 1)):
            job = copy.deepcopy(role["template"]["spec"])
            job.setdefault("completionMode", "Indexed")
            labels = {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": role["name"],
                      "jobset.sigs.k8s.io/job-index": str(number), "jobset.sigs.k8s.io/restart-attempt": "0",
                      "jobset.sigs.k8s.io/replicatedjob-replicas": str(role.get("replicas", 1))}
            found.append(Group("Job", f"{name}-{role['name']}-{number}", job.get("parallelism", 1), job["template"],
                               job, labels, spec.get("network", {}).get("subdomain") or name, owner, role["name"],
                               number))
    return found


def jobset_of(trainjob, objects):
    """Returns the JobSet that Kubeflow Trainer makes of a TrainJob and its runtime; None without the runtime."""
    reference = trainjob["spec"]["runtimeRef"]
    runtime = manifests.find(objects, reference.get("kind", "ClusterTrainingRuntime"), reference["name"])
    if runtime is None:
        return None
    spec, trainer = copy.deepcopy(runtime["spec"]["template"]["spec"]), trainjob["spec"].get("trainer", {})
    nodes = trainer.get("numNodes", runtime["spec"].get("mlPolicy", {}).get("numNodes", 1))
    for role in spec["replicatedJobs"]:
        role["replicas"] = 1
        if role["template"].get("metadata", {}).get("labels", {}).get(ANCESTOR) != "trainer":
            continue
        job = role["template"]["spec"]
        job["parallelism"] = job["completions"] = nodes
        node = next((c for c in job["template"]["spec"]["containers"] if c["name"] == "node"), None)
        if node is None:
            continue
        node |= {key: trainer[key] for key in ("image", "command", "args") if key in trainer}
        names = {e["name"] for e in trainer.get("env", [])}
        node["env"] = [e for e in node.get("env", []) if e["name"] not in names] + trainer.get("env", [])
        node["resources"] = trainer.get("resourcesPerNode", node.get("resources", {}))
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": trainjob["metadata"], "spec": spec}


def of_volcano(owner):
    name = owner["metadata"]["name"]
    return [Group("Task", f"{name}-{task['name']}", task.get("replicas", 1), task["template"], task,
                  {"volcano.sh/job-name": name, "volcano.sh/task-spec": task["name"]},
                  name if "svc" in owner["spec"].get("plugins", {}) else "", owner, task["name"])
            for task in owner["spec"]["tasks"]]


def tfjob_port(template):
    ports = template["spec"]["containers"][0].get("ports", [])
    return next((port["containerPort"] for port in ports if port.get("name") == "tfjob-port"), TFJOB_PORT)


def of_tfjob(owner):
    name, namespace = owner["metadata"]["name"], owner["metadata"].get("namespace", "default")
    replicas = owner["spec"]["tfReplicaSpecs"]
    config = {kind.lower(): [f"{name}-{kind.lower()}-{i}.{namespace}.svc:{tfjob_port(replica['template'])}"
                             for i in range(replica.get("replicas", 1))] for kind, replica in replicas.items()}
    found = []
    for kind, replica in replicas.items():
        spec = {**replica["template"]["spec"], "restartPolicy": replica.get("restartPolicy", "Never")}
        template = {**replica["template"], "spec": spec}
        found.append(Group("Replica", f"{name}-{kind.lower()}", replica.get("replicas", 1), template, replica,
                           {"training.kubeflow.org/job-name": name, "training.kubeflow.org/replica-type": kind.lower()},
                           "", owner, kind.lower(), config=config))
    return found


def groups(objects):
    """Returns the groups of all workloads."""
    found = []
    for owner in objects:
        kind = owner["apiVersion"].split("/")[0], owner["kind"]
        if kind == ("apps", "StatefulSet"):
            found += of_statefulset(owner)
        elif kind == ("batch", "Job"):
            found += of_job(owner)
        elif kind == ("jobset.x-k8s.io", "JobSet"):
            found += of_jobset(owner)
        elif kind == ("trainer.kubeflow.org", "TrainJob") and (jobset := jobset_of(owner, objects)):
            found += of_jobset(jobset)
        elif kind == ("batch.volcano.sh", "Job"):
            found += of_volcano(owner)
        elif kind == ("kubeflow.org", "TFJob"):
            found += of_tfjob(owner)
    return found


def pods(objects):
    return [group.pod(index) for group in groups(objects) for index in range(group.count)]


@dataclasses.dataclass
class Headless:
    """A headless Service, from the manifests or made by a controller."""
    name: str
    selector: dict
    unready: bool


def made_services(group):
    if group.owner["kind"] == "JobSet" and group.job_index == 0:
        network = group.owner["spec"].get("network", {})
        if network.get("enableDNSHostnames", True):
            yield Headless(group.subdomain, {"jobset.sigs.k8s.io/jobset-name": group.owner["metadata"]["name"]},
                           network.get("publishNotReadyAddresses", True))
    if group.kind == "Task" and group.subdomain:
        options = group.owner["spec"]["plugins"].get("svc") or []
        yield Headless(group.subdomain, {"volcano.sh/job-name": group.subdomain},
                       "--publish-not-ready-addresses=true" in options)
    if group.kind == "Replica":
        for index in range(group.count):
            labels = {**group.labels, "training.kubeflow.org/replica-index": str(index)}
            yield Headless(f"{group.name}-{index}", labels, False)


def services(objects):
    found = []
    for owner in of_kind(objects, "Service"):
        spec = owner["spec"]
        if spec.get("clusterIP") == "None":
            found.append(Headless(owner["metadata"]["name"], spec.get("selector"),
                                  spec.get("publishNotReadyAddresses", False)))
    for group in groups(objects):
        found += [service for service in made_services(group) if service not in found]
    return found


def full_names(name):
    inside = f"{name}.{manifests.NAMESPACE}"
    return [name, inside, f"{inside}.svc", f"{inside}.svc.cluster.local"]


def host_names(pod, objects):
    """Returns the names by which the cluster's DNS knows a pod."""
    found = []
    for service in services(objects):
        if not service.selector or not matches(service.selector, pod.labels):
            continue
        found += full_names(service.name)
        if service.name == pod.subdomain:
            found += full_names(f"{pod.hostname}.{service.name}")
    return found


def is_published(pod, objects):
    """Whether all of the pod's names exist before it is ready."""
    return all(s.unready for s in services(objects) if s.selector and matches(s.selector, pod.labels))
