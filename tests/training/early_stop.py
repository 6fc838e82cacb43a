#!/usr/bin/python3
"""Jobs that end because they no longer improve: when they end, their exit code, and their messages."""

import os
import re
import signal

import references
import runs

EVERY = 20
SETS = ["servers.count=2", "workers.count=3", "stop={epochs: 3000}", "checkpoint={every: {clocks: 50}, keep: 3}",
        "update={type: sgd, learning_rate: 0.05, momentum: 0.9}"]
DATA = "optdigits/optdigits.tra"
SLOWLY = "workers.emulate={step_milliseconds: 3}"


def early(patience, min_change, metric="test_loss"):
    return (f"evaluation={{every: {{clocks: {EVERY}}}, early_stop: {{patience: {patience}, min_change: {min_change}, "
            f"metric: {metric}}}}}")


# No evaluation is better than the first one by this much.
PATIENT = early(6, 10)
ENDS_AT = 7 * EVERY + 1


def job(sets, mode="sync"):
    return runs.Run("quickstart.yaml", [*SETS, f"consistency.mode={mode}", *sets], runs.data_with(DATA))


def whole_run():
    """Returns the summary of an undisturbed run."""
    return references.undisturbed("quickstart.yaml", [*SETS, "consistency.mode=sync", PATIENT], runs.data_with(DATA))


def expected(evaluations, patience, min_change):
    """Returns the evaluation that decides and the best one, by the definition."""
    best, since = None, 0
    for one in evaluations:
        if best is None or best["test_loss"] - one["test_loss"] > min_change:
            best, since = one, 0
        else:
            since += 1
        if since >= patience:
            return one, best
    raise runs.Failed("no evaluation ends it")


def finishes():
    """The run ends with exit code 0, a summary and a report that say why, and at the clock that the definition
    gives."""
    patience, min_change = 2, 0.05
    run = job([early(patience, min_change)])
    summary = run.train()
    runs.check(summary["state"] == "finished", f"finished at clock {summary['clock']}")
    last, best = expected(run.events("evaluation"), patience, min_change)
    runs.check(summary["clock"] == last["clock"] + 1, f"a clock after the evaluation at {last['clock']}")
    value, clock = re.search(r"the best is (\S+), at clock (\d+)", summary["message"]).groups()
    runs.check(abs(float(value) - best["test_loss"]) < 1e-4 and int(clock) == best["clock"], summary["message"])
    runs.check(summary["message"] in (run.dir / "report.html").read_text(), "the report says so, too")
    runs.check(summary["message"] in run.said(), "and the launcher")
    event = run.events("early_stop")[-1]
    runs.check((event["clock"], event["message"]) == (last["clock"], summary["message"]), "and metrics.jsonl")
    again = run.train(resume=True)
    runs.check((again["clock"], again["message"]) == (summary["clock"], summary["message"]), "a resume changes nothing")
    run.clean()


def goes_on():
    """With more patience a run continues where it ended, and has the result that this patience gives from the
    beginning."""
    run = job([early(2, 10)])
    first = run.train()
    runs.check(first["clock"] == 3 * EVERY + 1, f"ended at clock {first['clock']}")
    same = run.train(resume=True, more=["checkpoint.keep=99"])
    runs.check(same["weights_sha256"] == first["weights_sha256"], "a resumed run that is to end already trains no more")
    more = run.train(resume=True, more=[PATIENT])
    runs.check(more["clock"] == ENDS_AT, f"with more patience at clock {more['clock']}")
    sha = whole_run()["weights_sha256"]
    runs.check(more["weights_sha256"] == sha, f"the same bits as with that patience from the beginning ({sha[:16]})")
    run.clean()


def killed():
    """Worker 0, which evaluates, and server 0, which decides, are killed: the end and the bits are the same."""
    undisturbed = whole_run()
    runs.check(undisturbed["clock"] == ENDS_AT, f"undisturbed it ends at clock {ENDS_AT}")
    run = job([PATIENT])
    run.start(more=[SLOWLY])
    for at, role in ((EVERY + 5, "worker"), (70, "server"), (115, "worker"), (125, "server")):
        run.wait_for(lambda r, at=at: r.max_clock() >= at)
        os.kill(run.process_of(role, 0), signal.SIGKILL)
        print(f"killed {role} 0 at clock {run.max_clock()}")
    summary = run.wait()
    runs.check(summary["restarts"] >= 4, f"{summary['restarts']} restarts")
    runs.check((summary["state"], summary["clock"]) == ("finished", ENDS_AT), "the same end")
    runs.check(summary["message"] == undisturbed["message"], summary["message"])
    sha = undisturbed["weights_sha256"]
    runs.check(summary["weights_sha256"] == sha, f"the same bits as undisturbed ({sha[:16]})")
    run.clean()


def asynchronous():
    """Each worker stops where it is, and the job has finished. It goes by accuracy."""
    run = job([early(3, 0.9, "test_accuracy"), SLOWLY, "update={type: sgd, learning_rate: 0.01}"], "async")
    summary = run.train()
    runs.check(summary["state"] == "finished" and "test_accuracy" in summary["message"], summary["message"])
    run.clean()


CASES = {"finishes": finishes, "goes-on": goes_on, "killed": killed, "async": asynchronous}

if __name__ == "__main__":
    runs.main(CASES)
