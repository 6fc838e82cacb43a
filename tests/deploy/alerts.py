#!/usr/bin/python3
"""Each alert of --alerts fires in the situation that it is for, in every shape that can get into it and under every
name of a run. No alert fires while all is well. The situations are what kube-state-metrics and kubelet report about the
pods, Jobs and claims of the rendered manifests. Needs promtool; without it the test is skipped and says so.

    tests/deploy/alerts.py
"""

import itertools
import os
import pathlib
import shutil
import subprocess
import tempfile

import manifests
import workloads
from manifests import runs, yaml

MINUTES = 20


def series(metric, values, **labels):
    inside = ", ".join(f'{key}="{value}"' for key, value in {"namespace": manifests.NAMESPACE, **labels}.items())
    return {"series": f"{metric}{{{inside}}}", "values": values}


class Situation:
    """What is reported about one run; at first all is well."""

    def __init__(self, objects):
        self.objects, self.pods = objects, workloads.pods(objects)
        # The Job controller derives the names of its pods from this.
        self.jobs = sorted({group.name for group in workloads.groups(objects) if group.kind == "Job"})
        self.phase = {pod.name: "Running" for pod in self.pods}
        self.ready = {pod.name: 1 for pod in self.pods}
        self.evicted = []
        self.restarts, self.failed_pods, self.failed, self.free = set(), {}, set(), "9000000+0x30"

    def servers_not_ready(self):
        for pod in self.pods:
            if "readinessProbe" in pod.container:
                self.ready[pod.name] = 0
        return sum(not ready for ready in self.ready.values())

    def pod_pending(self):
        self.phase[self.pods[-1].name] = "Pending"
        self.ready[self.pods[-1].name] = 0
        return 1

    def pods_fail(self):
        self.failed_pods = {name: 5 for name in self.jobs}
        return len(self.jobs)

    def evictions(self):
        """The pods of a Job that were evicted stay until it ends."""
        self.evicted = [f"{name}-{life}" for name in self.jobs[:1] for life in ("abcde", "bcdef", "cdefg", "defgh")]
        return int(bool(self.evicted))

    def containers_restart(self):
        self.restarts = {pod.name for pod in self.pods if pod.spec.get("restartPolicy", "Always") != "Never"}
        return len(self.restarts)

    def jobs_fail(self):
        self.failed = set(self.jobs)
        return len(self.jobs)

    def volume_full(self):
        self.free = "500000+0x30"
        return 1

    def series(self):
        steady = lambda value: f"{value}+0x30"
        for pod in self.pods:
            for phase in "Pending", "Running":
                yield series("kube_pod_status_phase", steady(int(self.phase[pod.name] == phase)), pod=pod.name, phase=phase)
            yield series("kube_pod_status_ready", steady(self.ready[pod.name]), pod=pod.name, condition="true")
            yield series("kube_pod_container_status_restarts_total", "0+1x30" if pod.name in self.restarts else "0+0x30",
                         pod=pod.name, container=pod.container["name"])
        for name in self.evicted:
            yield series("kube_pod_status_reason", steady(1), pod=name, reason="Evicted")
        for job in self.jobs:
            yield series("kube_job_status_failed", steady(self.failed_pods.get(job, 0)), job_name=job)
            yield series("kube_job_failed", steady(int(job in self.failed)), job_name=job, condition="true")
        for claim in manifests.of_kind(self.objects, "PersistentVolumeClaim"):
            for metric, values in (("available", self.free), ("capacity", "10000000+0x30")):
                yield series(f"kubelet_volume_stats_{metric}_bytes", values,
                             persistentvolumeclaim=claim["metadata"]["name"])


ALERTS = {"LeewayServerNotReady": Situation.servers_not_ready, "LeewayPodPending": Situation.pod_pending,
          "LeewayPodsFail": Situation.pods_fail, "LeewayEvictions": Situation.evictions, "LeewayRestarts": Situation.containers_restart,
          "LeewayJobFailed": Situation.jobs_fail, "LeewayRunVolumeFull": Situation.volume_full}


def rules_of(objects):
    return manifests.of_kind(objects, "PrometheusRule")[0]["spec"]


def tests(shape, run, objects):
    """Tests for promtool: in each situation this number of its alert fires, and no other alert."""
    for alert, happens in [(None, lambda _: 0), *ALERTS.items()]:
        situation = Situation(objects)
        counts = {name: 0 for name in ALERTS} | ({alert: happens(situation)} if alert else {})
        checks = [{"expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)',
                   "eval_time": f"{MINUTES}m", "exp_samples": [{"labels": "{}", "value": count}]}
                  for name, count in counts.items()]
        yield {"name": f"{shape} {run}: {alert}", "interval": "1m", "input_series": list(situation.series()),
               "promql_expr_test": checks}


def write_tests(folder):
    """Writes one file for promtool for each run, with the rules that are printed with it. Returns the files and the number
    of situations."""
    files, count = [], 0
    for shape, run in itertools.product(manifests.SHAPES, ("leeway", "second-leeway")):
        objects = manifests.compose(shape, ["alerts"], run=run)
        rules = pathlib.Path(folder, f"{shape}-{run}-rules.yaml")
        rules.write_text(yaml.safe_dump(rules_of(objects)), encoding="utf-8")
        cases = list(tests(shape, run, objects))
        count += len(cases)
        files.append(pathlib.Path(folder, f"{shape}-{run}.yaml"))
        files[-1].write_text(yaml.safe_dump({"rule_files": [rules.name], "evaluation_interval": "1m", "tests": cases}),
                             encoding="utf-8")
    return files, count


def main():
    promtool = os.environ.get("LEEWAY_PROMTOOL") or shutil.which("promtool")
    if not promtool:
        print("SKIPPED: no promtool is installed (Debian: prometheus)")
        return runs.SKIPPED
    known = {rule["alert"] for group in rules_of(manifests.compose("jobset", ["alerts"]))["groups"] for rule in group["rules"]}
    runs.check(known == set(ALERTS), f"the alerts are {sorted(known)}")
    with tempfile.TemporaryDirectory() as folder:
        files, count = write_tests(folder)
        done = subprocess.run([promtool, "test", "rules", *files], capture_output=True, text=True, check=False)
    runs.check(done.returncode == 0, f"{count} situations {(done.stdout + done.stderr).strip()[:3000]}")
    return 0


if __name__ == "__main__":
    runs.ends_with(main)
