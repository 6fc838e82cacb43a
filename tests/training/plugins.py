#!/usr/bin/python3
"""The example plugin, compiled as a user compiles it. It trains, continues after a kill with the same bits, trains
workers that take local steps, and is exported. A wrong request in a job is refused with its place in the job."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import references
import runs

EXAMPLE = runs.SOURCE / "plugin/example"
DATA = "optdigits/optdigits.tra"
ENDLESS = "stop={epochs: 3000}"
SLOWLY = "workers.emulate={step_milliseconds: 3}"
CLOCKS_MORE = 100
SIGNUM = "{type: custom, rule: signum, options: {beta: 0.9, weight_decay: 0.01}, learning_rate: 0.002}"
DELTA = [f"exchange={{type: delta, local_steps: 5, optimizer: {SIGNUM}}}", "update={type: sgd, learning_rate: 1}"]
CONSTANT = ["update.schedule={type: constant}"]
ELASTIC = [f"exchange={{type: elastic, alpha: 0.4, every: 5, optimizer: {SIGNUM}}}"]


def compiled():
    """Returns the example's library, which is compiled once for all tests."""
    sources = [str(references.state_of(path)) for path in (EXAMPLE / "example.cc", *sorted(EXAMPLE.parent.glob("*.h")))]
    key = f"plugin-{references.digest_of(str(EXAMPLE), *sources)}"
    folder = references.place(runs.BIN) / key

    def compile_it():
        folder.mkdir(exist_ok=True)
        subprocess.run(["g++", "-std=c++20", "-O3", "-shared", "-fPIC", f"-I{EXAMPLE.parent}", str(EXAMPLE / "example.cc"),
                        "-o", str(folder / "libexample.so")], check=True)
        return str(folder / "libexample.so")
    return references.kept(key, compile_it)


class Example:
    """The compiled example in a folder of its own."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-test-plugin-"))
        self.library = self.folder / "libexample.so"
        shutil.copy(compiled(), self.library)

    def run(self, sets=(), name="run"):
        job = EXAMPLE / "job.yaml"
        if ELASTIC[0] in sets:
            job = runs.without_update(job, self.folder)
        return runs.Run(job, [f"model.plugins={self.library}", "checkpoint={every: {clocks: 20}, keep: 9}",
                                               *sets], runs.data_with(DATA), name)

    def plan(self, *sets, plugin=None, env=None):
        """Returns the output of `leeway plan`, and its exit status."""
        command = [str(runs.BIN / "leeway"), "plan", str(EXAMPLE / "job.yaml"), "--data", str(runs.data_with(DATA)),
                   "--set", f"model.plugins={plugin or self.library}"]
        for one in sets:
            command += ["--set", one]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        return done.returncode, done.stdout + done.stderr

    def clean(self):
        shutil.rmtree(self.folder)


def trains():
    example = Example()
    run = example.run()
    summary = run.train()
    runs.check(summary["test_r2"] > 0.6, f"it has learned: R2 {summary['test_r2']:.3f}")
    beta = run.model()["custom_1/beta"]
    runs.check(len(beta) == 32 and any(abs(b - 1.5) > 0.05 for b in beta), "and has trained the layer's tensor")
    said = subprocess.run([str(runs.BIN / "leeway"), "evaluate", str(run.dir), "--data", str(run.data)],
                          capture_output=True, text=True, check=True).stdout
    runs.check("R2" in said or "R²" in said, f"leeway evaluate: {said.strip().splitlines()[-1]}")
    exported(run)
    run.clean()
    example.clean()


def documented():
    """The first plugin of docs/plugins.md, compiled and named as the page says."""
    text = (runs.SOURCE / "docs/plugins.md").read_text()
    code, layers = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)[1] for kind in ("cpp", "yaml"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-test-plugin-"))
    (folder / "scale.cpp").write_text(code)
    subprocess.run(["g++", "-std=c++20", "-O3", "-shared", "-fPIC", "scale.cpp", "-o", "libscale.so", "-I",
                    EXAMPLE.parent], cwd=folder, check=True)
    job = re.sub(r"^model:\n(  .*\n)+", lambda _: layers + "  loss: softmax_cross_entropy\n",
                 (EXAMPLE / "job.yaml").read_text(), flags=re.MULTILINE)
    (folder / "job.yaml").write_text(job.replace("./libscale.so", str(folder / "libscale.so")))
    run = runs.Run(folder / "job.yaml", ["update={type: sgd, learning_rate: 0.05}", "stop={epochs: 2}"],
                   runs.data_with(DATA))
    runs.check(run.train()["test_accuracy"] > 0.8, "the documented plugin trains")
    run.clean()
    shutil.rmtree(folder)


def exported(run):
    export = [str(runs.BIN / "leeway"), "export", str(run.dir), "--data", str(run.data)]
    done = subprocess.run([*export, "--output", str(run.parent / "a.safetensors")], capture_output=True, text=True,
                          check=False)
    runs.check(done.returncode == 0, f"leeway export {done.stderr}")
    onnx = subprocess.run([*export, "--format", "onnx", "--output", str(run.parent / "a.onnx")], capture_output=True,
                          text=True, check=False)
    runs.check(onnx.returncode != 0 and "'custom_1' is a custom, which cannot be written as ONNX" in onnx.stderr,
               f"as ONNX: {onnx.stderr.strip()}")


def same_bits(sets):
    """A run that is killed as a whole and resumed on another number of servers ends like an undisturbed one."""
    example = Example()
    run = example.run(sets)
    run.start(more=[SLOWLY, ENDLESS])
    run.wait_for(lambda r: len(r.events("checkpoint")) >= 2)
    at = run.max_clock()
    run.kill()
    end = f"stop={{clocks: {at + CLOCKS_MORE}}}"
    run.learns = False
    for servers in (3, 2):
        resumed = run.start(resume=True, more=[end, f"servers.count={servers}"]).wait()
    whole = example.run([*sets, end], "whole")
    whole.learns = False
    sha = whole.train()["weights_sha256"]
    runs.check(resumed["weights_sha256"] == sha, f"killed at clock {at}, resumed: the same bits ({sha[:16]})")
    run.clean()
    whole.clean()
    example.clean()


def replicas():
    """The replica has the rule's slots: a killed server changes no bit."""
    example = Example()
    run = example.run([*CONSTANT, "servers={count: 2, replicas: 2}"])
    run.start(more=[SLOWLY, ENDLESS])
    run.wait_for(lambda r: r.max_clock() >= 40)
    pid = run.process_of("server", 1)
    subprocess.run(["kill", "-KILL", str(pid)], check=True)
    at = run.max_clock()
    run.wait_for(lambda r: r.max_clock() >= at + 60)
    run.interrupt()
    summary = run.wait(expect=runs.STOPPED)
    runs.check(summary["restarts"] == 1, f"server 1 was killed at clock {at}, and restarted")
    whole = example.run([*CONSTANT, f"stop={{clocks: {summary['clock']}}}"], "whole")
    whole.learns = False
    runs.check(whole.train()["weights_sha256"] == summary["weights_sha256"], "the same bits as undisturbed")
    run.clean()
    whole.clean()
    example.clean()


def refused():
    """Errors give the place in the job, the cause and a remedy, before anything is started."""
    example = Example()
    nowhere = "/nowhere/libmine.so"
    table = [
        ([], nowhere, ["model.plugins", f"no file at {nowhere}", "compile the plugin"]),
        ([], "libexample.so", ["model.plugins", "LEEWAY_PLUGIN_PATH, which is empty"]),
        ([], EXAMPLE / "job.yaml", ["model.plugins", "cannot be loaded", "shared object"]),
        (["model.layers.1.custom.name=swisch"], None,
         ["model.layers.1.custom.name=", "no layer 'swisch'; did you mean 'swish'?"]),
        (["model.layers.1.custom.options.bta=1"], None,
         ["model.layers.1.custom.options.bta=", "custom 'custom_1'", "did you mean 'beta'?"]),
        (["model.custom_loss.options.delta=0"], None, ["model.custom_loss.options.delta=", "must be above 0; it is 0"]),
        (["update.options={}"], None, ["update.options", "beta", "required option is missing"]),
        (["update.options.beta=1"], None, ["must be below 1; it is 1"]),
        (["update.rule=sgd"], None, ["update.rule=", "no rule 'sgd'"]),
        ([DELTA[0].replace("beta", "betta"), DELTA[1]], None, ["betta", "unknown option"]),
        (["model.plugins=[]"], None, ["comes from a plugin: name the plugin"]),
        (["workers.device=cuda"], None, ["workers.device=", "computes on the CPU: set device: cpu"]),
    ]
    for sets, plugin, words in table:
        status, said = example.plan(*sets, plugin=plugin)
        missing = [word for word in words if word not in said]
        runs.check(status != 0 and not missing, f"{sets or plugin}: {said.strip().splitlines()[-1]}")
    status, said = example.plan("model.layers.1.custom.options.beta=2", plugin="libexample.so",
                                env={"LEEWAY_PLUGIN_PATH": f"/nowhere:{example.folder}"})
    runs.check(status == 0 and "beta: 2" in said and "custom_1" in said, "found in LEEWAY_PLUGIN_PATH, with another beta")
    runs.check("server signum" in said, "the plan names the rule")
    example.clean()


CASES = {"trains": trains, "documented": documented, "resumed": lambda: same_bits(CONSTANT), "resumed-delta": lambda: same_bits(DELTA),
         "resumed-elastic": lambda: same_bits(ELASTIC), "replicas": replicas, "refused": refused}

if __name__ == "__main__":
    runs.main(CASES)
