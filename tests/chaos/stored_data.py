#!/usr/bin/env python3
"""Jobs whose data are in an object store (tests/store). They end with the bits of a job with the same data in a folder,
and the processes of a host together fetch each object once. The job waits for a store in trouble and names it. Trouble
that will not pass ends the job at once.

    tests/chaos/stored_data.py CASE               as ctest runs them
"""

import collections
import os
import pathlib
import tempfile
import time

from cluster import runs
from in_store import BUCKET, leeway, open_store, ssh_with_nothing
import references
from store import Status

DIGITS = runs.data_with("optdigits/optdigits.tra")
QUICKSTART = "quickstart.yaml"
FILES = ["optdigits/optdigits.tra", "optdigits/optdigits.tes"]
SETS = ["workers.count=2", "stop={clocks: 40}"]


class Data:
    """A store with the files of a data folder below s3://bucket/data, and an empty cache of copies."""

    def __init__(self, folder, names, **settings):
        self.store = open_store()
        self.location = f"s3://{BUCKET}/data"
        for name in names:
            status, _, answer = self.store.forward("PUT", f"/{BUCKET}/data/{name}", {}, (pathlib.Path(folder) / name).read_bytes())
            if status != 200:
                raise runs.Failed(f"putting {name}: {status} {answer}")
        self.cache = tempfile.mkdtemp(prefix="leeway-copies-")
        os.environ.update({"LEEWAY_DATA_CACHE": self.cache, **settings})

    def fetched(self):
        """Returns how often each object was fetched."""
        return collections.Counter(r.key for r in self.store.requests if r.operation == "GetObject")

    def run(self, job, sets=(), expect=0, options=()):
        """Runs the job. Returns its output, and the digest of its weights."""
        run = runs.Run(job, sets, self.location)
        run.learns = False
        run.start(options=options).wait(expect=expect, whole=expect == 0)
        said = run.said() + "".join(log.read_text() for log in sorted((run.dir / "logs").glob("*.log")))
        digest = run.summary()["weights_sha256"] if expect == 0 else None
        run.clean()
        return said, digest

    def close(self):
        self.store.__exit__()


def undisturbed(job, sets, folder):
    """Returns the digest of a run with the data in a folder."""
    return references.undisturbed(job, sets, folder, learns=False)["weights_sha256"]


def with_pictures_in(folder, job):
    """Returns the digest of a run with the pictures in a folder. The digest is not kept (references.py), because the
    job names no picture."""
    run = runs.Run(job, [], folder)
    run.learns = False
    run.train()
    digest = run.summary()["weights_sha256"]
    run.clean()
    return digest


def digits():
    data = Data(DIGITS, FILES)
    _, digest = data.run(QUICKSTART, SETS)
    expected = undisturbed(QUICKSTART, SETS, DIGITS)
    runs.check(digest == expected, "the bits of a run with the data in a folder")
    runs.check(set(data.fetched().values()) == {1}, f"each object was fetched once: {dict(data.fetched())}")
    where = ["--data", data.location]
    for command in (["plan", runs.JOBS / QUICKSTART, *where], ["data", f"{data.location}/optdigits/optdigits.tra"],
                    ["data", "optdigits/optdigits.tra", *where]):
        told = leeway(*command)
        runs.check(told.returncode == 0 and "64" in told.stdout, f"{command[0]}: {told.stdout[-300:]}{told.stderr}")
    runs.check(set(data.fetched().values()) == {1}, "and not again, by other commands")
    data.close()


def pictures_in(folder):
    import pictures
    pictures.make_pictures(folder, 60, (20, 40), 3)
    return pictures.write_job(folder, filters=4, classes=3, size=16, batch=4, workers=2, stop="{epochs: 2}")


def names_below(folder):
    return [file.relative_to(folder).as_posix() for file in pathlib.Path(folder).rglob("*.*g")]


def sources():
    """Reads MNIST, a text, and pictures."""
    mnist = [f"mnist/{part}-ubyte.gz" for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")]
    text = ["tinyshakespeare/input.txt"]
    small = ["data.batch_size=2", "stop={clocks: 3}", "evaluation={}", "workers.count=2"]
    for job, names, sets in (("mnist-sync.yaml", mnist, SETS), ("shakespeare-gpt.yaml", text, small)):
        folder = runs.data_with(names[0])
        data = Data(folder, names)
        _, digest = data.run(job, sets)
        runs.check(digest == undisturbed(job, sets, folder), f"{job}: the same bits")
        runs.check(sorted(data.fetched()) == sorted(f"data/{name}" for name in names), f"{job}: no other object was fetched")
        data.close()
    with tempfile.TemporaryDirectory() as folder:
        job = pictures_in(folder)
        data = Data(folder, names_below(folder))
        _, digest = data.run(job)
        runs.check(digest == with_pictures_in(folder, job), "pictures: the same bits")
        runs.check(len(data.fetched()) == 60 and set(data.fetched().values()) == {1}, "each picture was fetched once")
        data.close()


def trouble():
    """The store fails in the middle of the first epoch: for a while, for good, or with an error that will not pass."""
    with tempfile.TemporaryDirectory() as folder:
        job = pictures_in(folder)
        expected = with_pictures_in(folder, job)
        names = names_below(folder)

        def fail(data, answer, seconds=float("inf"), first=20):
            gets, began = [], []

            def fault(request):
                if request.operation != "GetObject":
                    return None
                gets.append(request)
                if len(gets) <= first:
                    return None
                began.append(time.monotonic())
                return answer if time.monotonic() < began[0] + seconds else None
            data.store.fault = fault

        data = Data(folder, names)
        fail(data, Status(503, "SlowDown"), seconds=6)
        said, digest = data.run(job)
        runs.check(digest == expected and "SlowDown" in said and "trying again" in said, "6 s without a store: the same bits")
        data.close()
        for answer, code in ((Status(404, "NoSuchKey"), runs.PERMANENT), (Status(403, "AccessDenied"), runs.PERMANENT),
                             (Status(503, "SlowDown"), runs.TEMPORARY)):
            data = Data(folder, names, LEEWAY_S3_RETRY_SECONDS="2")
            fail(data, answer)
            said, _ = data.run(job, ["workers.max_restarts=1"], expect=code)
            runs.check(answer.name in said and f"{data.location}/pictures/class" in said, f"{answer.name}: {said[-600:]}")
            data.close()


def refused():
    """Mistakes are refused before anything is started."""
    data = Data(DIGITS, FILES, LEEWAY_S3_RETRY_SECONDS="1")

    def train(location, environment=(), name="refused"):
        folder = tempfile.mkdtemp(prefix="leeway-refused-")
        done = leeway("train", runs.JOBS / QUICKSTART, "--data", location, "--run-dir", f"{folder}/{name}",
                      env={**os.environ, **dict(environment)})
        runs.check(not list(pathlib.Path(folder).iterdir()), "nothing was made")
        return done
    for what, location, environment, word, code in (
            ("no such object", f"s3://{BUCKET}/other", {}, "optdigits/optdigits.tra", runs.TEMPORARY),
            ("no bucket", "s3://none-such/data", {}, "none-such", runs.USAGE),
            ("no location", f"s3://{BUCKET}/a//b", {}, f"s3://{BUCKET}/a//b", runs.USAGE),
            ("a wrong secret", data.location, {"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, f"{data.location}/optdigits", runs.USAGE),
            ("nobody answers", data.location, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "127.0.0.1:9", runs.TEMPORARY),
            ("no cache", data.location, {"LEEWAY_DATA_CACHE": "/proc/none"}, "LEEWAY_DATA_CACHE", None)):
        told = train(location, environment)
        good = told.returncode != 0 if code is None else told.returncode == code
        runs.check(good and word in told.stderr and "wrong-secret" not in told.stderr,
                   f"{what}: {told.returncode}: {told.stderr[-400:]}")
    data.close()


def hosts():
    """By ssh: workers on another machine get the credentials through standard input."""
    data = Data(DIGITS, FILES)
    ssh = ssh_with_nothing(pathlib.Path(tempfile.mkdtemp(prefix="leeway-ssh-")))
    _, digest = data.run(QUICKSTART, SETS, options=["--hosts", "a=127.0.0.1:2", "--ssh", str(ssh), "--remote-bin", str(runs.BIN)])
    expected = undisturbed(QUICKSTART, SETS, DIGITS)
    runs.check(digest == expected, "workers by ssh: the same bits")
    data.close()


if __name__ == "__main__":
    runs.main({"digits": digits, "sources": sources, "trouble": trouble, "refused": refused, "hosts": hosts})
