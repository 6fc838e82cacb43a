#!/usr/bin/python3
"""Jobs on folders of pictures.

pictures.py loaders        the model has the same bits with 0, 1 and 3 loader threads
pictures.py damaged        a picture that is cut off ends the job with its name, or is replaced and counted
pictures.py wait [COUNT]   makes COUNT JPEGs (10,000) and measures how long a worker waits for its batches; not a test
"""

import pathlib
import sys
import tempfile

from runs import PERMANENT, SKIPPED, Failed, Run

try:
    import numpy
    from PIL import Image
except ImportError:
    print("SKIPPED: needs python3-pil and python3-numpy")
    sys.exit(SKIPPED)

JOB = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: pictures, seed: 3}}
model:
  layers:
    - conv2d: {{filters: {filters}, kernel: 3, padding: 1}}
    - relu: {{}}
    - max_pool: {{size: 4}}
    - dense: {{units: {classes}}}
  loss: softmax_cross_entropy
data:
  train: {{type: image_folder, folder: pictures, height: {size}, width: {size}}}
  normalize: {{mean: 0.5, std: 0.25}}
  augment: {{flip: true, crop_padding: 2, cutout: 4, mixup: 0.4}}
  batch_size: {batch}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
update: {{type: sgd, learning_rate: 0.01}}
workers: {{count: {workers}}}
stop: {stop}
"""


def make_pictures(folder, count, sides, classes, seed=1):
    """Writes JPEGs of coloured noise on slopes, which are about as hard to decode as photographs, and some PNGs."""
    random = numpy.random.default_rng(seed)
    for i in range(count):
        height, width = random.integers(*sides, 2)
        coarse = random.integers(0, 256, (12, 16, 3), dtype=numpy.uint8)
        picture = Image.fromarray(coarse).resize((int(width), int(height)), Image.BICUBIC)
        noise = random.normal(0, 6, (int(height), int(width), 3))
        pixels = (numpy.asarray(picture) + noise + 20 * (i % classes)).clip(0, 255).astype(numpy.uint8)
        path = pathlib.Path(folder) / "pictures" / f"class{i % classes}"
        path.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path / (f"{i}.png" if i % 50 == 7 else f"{i}.jpg"), quality=90)


def write_job(folder, **values):
    job = pathlib.Path(folder) / "pictures.yaml"
    job.write_text(JOB.format(**values))
    return job


def loaders():
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(folder, 150, (20, 70), 3)
        job = write_job(folder, filters=4, classes=3, size=16, batch=8, workers=2, stop="{clocks: 25}")
        digests = {}
        for threads in 0, 1, 3:
            run = Run(job, [f"data.loader_threads={threads}"], data=folder)
            run.learns = False
            run.start().wait()
            digests[threads] = run.summary()["weights_sha256"]
            run.clean()
    if len(set(digests.values())) != 1:
        raise Failed(f"the number of loader threads changes the model: {digests}")


def damaged():
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(folder, 20, (20, 40), 2)
        cut = pathlib.Path(folder) / "pictures/class0/4.jpg"
        cut.write_bytes(cut.read_bytes()[:-300])
        job = write_job(folder, filters=4, classes=2, size=16, batch=8, workers=1, stop="{epochs: 2}")
        run = Run(job, data=folder).start()
        run.wait(expect=PERMANENT, whole=False)
        if "class0/4.jpg: a damaged JPEG" not in run.tail():
            raise Failed(f"the picture is not named:\n{run.tail()}")
        run.clean()
        counts = set()
        for workers, batch in (1, 8), (2, 4):
            job = write_job(folder, filters=4, classes=2, size=16, batch=batch, workers=workers, stop="{epochs: 2}")
            run = Run(job, ["data.train.damaged=replace", "data.augment={}"], data=folder)
            run.learns = False
            run.start().wait()
            counts.add(run.summary()["replaced_pictures"])
            run.clean()
        if counts != {2}:
            raise Failed(f"of 2 epochs with one damaged picture: replaced {counts}")


def wait(count=10_000):
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(folder, int(count), (300, 500), 10)
        size = sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*.*g"))
        print(f"{count} pictures of {size / int(count) / 1e3:.0f} KB")
        for threads in 0, 1:
            job = write_job(folder, filters=32, classes=10, size=224, batch=32, workers=1, stop="{clocks: 40}")
            run = Run(job, [f"data.loader_threads={threads}"], data=folder)
            run.learns = False
            run.start().wait(1200)
            steps = [e for e in run.events("step") if e["clock"] > 4]
            # In the first clocks the batches ahead are still being loaded.
            data, compute, exchange = (sum(e[f"{part}_seconds"] for e in steps)
                                       for part in ("data", "compute", "exchange"))
            print(f"{threads} loader threads: waits for data {100 * data / (data + compute + exchange):.2f} % of a step "
                  f"(data {data:.3f} s, compute {compute:.2f} s, exchange {exchange:.2f} s)")
            run.clean()


if __name__ == "__main__":
    tests = {"loaders": loaders, "damaged": damaged, "wait": wait}
    if len(sys.argv) < 2 or sys.argv[1] not in tests:
        sys.exit(__doc__)
    try:
        tests[sys.argv[1]](*sys.argv[2:])
    except Failed as failed:
        sys.exit(str(failed))
