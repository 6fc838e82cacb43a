"""What a cluster's controllers do when pods end: Job, StatefulSet, JobSet, and the operators of the other shapes, as
their documentation says. The caller calls tick() until `done` or `failed`."""

import time

import workloads
from kubelet import FakePod

# The Job controller waits 10 s, 20 s, 40 s. Tests have less time.
BACK_OFF_SECONDS = 0.5


class Controller:
    """Keeps the pods of groups, by (group name, index)."""

    def __init__(self, cluster):
        self.cluster, self.pods, self.lives = cluster, {}, {}
        self.failed = None

    def create(self, group, index):
        place = (group.name, index)
        life = self.lives.get(place, 0)
        self.lives[place] = life + 1
        pod = FakePod(self.cluster, group.pod(index, life), self)
        self.pods[place] = pod
        self.cluster.add(pod)
        return pod

    def stop(self):
        """The workload is deleted or has failed: its pods end."""
        for pod in self.pods.values():
            if not pod.ended:
                pod.delete()


class Job(Controller):
    """An Indexed Job, or a Job of one pod."""

    def __init__(self, cluster, group):
        super().__init__(cluster)
        self.group, self.succeeded, self.failures, self.due = group, set(), {}, {}
        self.limit = group.spec.get("backoffLimitPerIndex", group.spec.get("backoffLimit", 6))

    @property
    def done(self):
        return len(self.succeeded) == self.group.count

    def tick(self):
        if self.failed:
            return
        for index in range(self.group.count):
            place = (self.group.name, index)
            pod = self.pods.get(place)
            if pod is not None and pod.ended:
                # With podReplacementPolicy Failed the next pod is made only now.
                del self.pods[place]
                self.settle(index, pod)
            elif pod is None and index not in self.succeeded and time.monotonic() >= self.due.get(index, 0):
                self.create(self.group, index)

    def settle(self, index, pod):
        if pod.ended == "Succeeded":
            self.succeeded.add(index)
            return
        action = self.action(pod)
        if action in ("FailJob", "FailIndex"):
            self.fail(f"PodFailurePolicy: {pod} exited with {pod.codes[-1]}")
        elif action == "Count":
            count = self.failures[index] = self.failures.get(index, 0) + 1
            self.due[index] = time.monotonic() + BACK_OFF_SECONDS * 2 ** (count - 1)
            if count > self.limit:
                self.fail(f"BackoffLimitExceeded: {pod} exited with {pod.codes[-1]}")

    def action(self, pod):
        for rule in self.group.spec.get("podFailurePolicy", {}).get("rules", []):
            codes = rule.get("onExitCodes")
            if codes and (pod.codes[-1] in codes["values"]) == (codes["operator"] == "In"):
                return rule["action"]
            conditions = [c["type"] for c in rule.get("onPodConditions", [])]
            if "DisruptionTarget" in conditions and pod.disrupted:
                return rule["action"]
        return "Count"

    def fail(self, why):
        self.cluster.say(f"Job {self.group.name} has failed: {why}")
        self.failed = why
        self.stop()


class JobSet:
    def __init__(self, cluster, owner):
        self.cluster, self.owner, self.failed, self.restarts = cluster, owner, None, 0
        self.suspended = owner["spec"].get("suspend", False)
        self.jobs = {group.name: Job(cluster, group) for group in workloads.of_jobset(owner)}

    @property
    def done(self):
        return all(job.done for job in self.jobs.values())

    def tick(self):
        if self.failed or self.suspended:
            return
        for name, job in self.jobs.items():
            job.tick()
            if job.failed:
                self.settle(name, job)

    def settle(self, name, job):
        policy = self.owner["spec"].get("failurePolicy", {})
        reason = job.failed.partition(":")[0]
        action = next((rule["action"] for rule in policy.get("rules", [])
                       if reason in rule.get("onJobFailureReasons", [reason]) and
                       job.group.role in (rule.get("targetReplicatedJobs") or [job.group.role])), "RestartJobSet")
        self.restarts += 1
        if action == "FailJobSet" or self.restarts > policy.get("maxRestarts", 0):
            self.failed = job.failed
            self.stop()
            return
        names = [name] if action == "RestartJob" else list(self.jobs)
        for again in names:
            self.jobs[again].stop()
            self.jobs[again] = Job(self.cluster, self.jobs[again].group)

    def stop(self):
        for job in self.jobs.values():
            job.stop()

    def suspend(self):
        """Suspends as Kueue does when it preempts: all pods are deleted at once. Jobs that have ended stay so."""
        self.cluster.say(f"{self.owner['metadata']['name']} is suspended")
        self.suspended = True
        self.stop()

    def resume(self):
        self.cluster.say(f"{self.owner['metadata']['name']} goes on")
        self.jobs = {name: job if job.done else Job(self.cluster, job.group) for name, job in self.jobs.items()}
        self.suspended = False


class StatefulSet(Controller):
    def __init__(self, cluster, group):
        super().__init__(cluster)
        self.group, self.replicas, self.rolling = group, group.count, []

    # Its pods never finish, so a run does not wait for them.
    done = False

    def tick(self):
        for index in range(self.replicas):
            place = (self.group.name, index)
            pod = self.pods.get(place)
            if pod is None or pod.ended:
                self.create(self.group, index)
        for (name, index), pod in list(self.pods.items()):
            if index >= self.replicas:
                pod.delete()
                if pod.ended:
                    del self.pods[name, index]
        self.roll()

    def scale(self, replicas):
        self.cluster.say(f"{self.group.name} is scaled to {replicas}")
        self.replicas = replicas

    def restart(self):
        """Does `kubectl rollout restart`: from the highest ordinal down, each pod when the previous one is ready."""
        self.rolling = [self.pods[self.group.name, index] for index in range(self.replicas)]

    def roll(self):
        if not self.rolling:
            return
        pod = self.rolling[-1]
        if not pod.ended:
            pod.delete()
        elif self.pods[self.group.name, pod.pod.index].ready:
            self.rolling.pop()


class Operator(Controller):
    """Volcano and the training operator, whose pods keep their names."""

    def __init__(self, cluster, groups):
        super().__init__(cluster)
        self.groups = groups

    @property
    def done(self):
        pods = list(self.pods.values())
        return bool(pods) and all(pod.ended == "Succeeded" for pod in pods)

    def tick(self):
        if self.failed:
            return
        for group in self.groups:
            for index in range(group.count):
                pod = self.pods.get((group.name, index))
                if pod is None:
                    self.create(group, index)
                elif pod.ended == "Failed":
                    self.settle(group, index, pod)

    def settle(self, group, index, pod):
        policies = group.owner["spec"].get("policies", [])
        ends = [p for p in policies if p.get("exitCode") == pod.codes[-1] and p["action"] == "AbortJob"]
        if ends:
            self.failed = f"{pod} exited with {pod.codes[-1]}"
            self.stop()
        else:
            self.create(group, index)


def controllers(cluster, objects):
    """Returns the controllers of all workloads."""
    found = []
    for owner in objects:
        kind = owner["apiVersion"].split("/")[0], owner["kind"]
        if kind == ("apps", "StatefulSet"):
            found.append(StatefulSet(cluster, *workloads.of_statefulset(owner)))
        elif kind == ("batch", "Job"):
            found.append(Job(cluster, *workloads.of_job(owner)))
        elif kind == ("jobset.x-k8s.io", "JobSet"):
            found.append(JobSet(cluster, owner))
        elif kind == ("trainer.kubeflow.org", "TrainJob"):
            found.append(JobSet(cluster, workloads.jobset_of(owner, objects)))
        elif kind == ("batch.volcano.sh", "Job"):
            found.append(Operator(cluster, workloads.of_volcano(owner)))
        elif kind == ("kubeflow.org", "TFJob"):
            found.append(Operator(cluster, workloads.of_tfjob(owner)))
    return found
