#!/usr/bin/python3
"""Some sixty models and files that cannot be trained. `leeway plan` refuses each with the place in the job, the cause,
and a remedy."""

import pathlib
import re
import struct
import subprocess
import tempfile
import zipfile

import numpy

import runs

JOB = """apiVersion: leeway/v1
kind: TrainingJob
metadata: {{name: bad, seed: 1}}
model:
  {more}
  loss: {loss}
  layers:
{layers}
data:
  train: {source}
  batch_size: 4
  {data}
exchange: {{type: gradient}}
consistency: {{mode: sync}}
update: {{type: sgd, learning_rate: 0.1}}
stop: {{clocks: 2}}
"""

PICTURES = "{type: generator, examples: 20, shape: [8, 8, 3], classes: 5}"
ROWS = "{type: generator, examples: 20, shape: 6, classes: 2}"
TEXT = "{type: text, files: good.txt, context: 8}"
DENSE = "{dense: {units: 5}}"
HEAD = "{dense: {units: 9, pointwise: true}}"


def pictures(*layers):
    return {"layers": layers, "source": PICTURES}


def text(*layers):
    return {"layers": layers, "source": TEXT}


# Name: the job, and the words that the error must have. The first words are the place.
MODELS = {
    "a window larger than what is left": (pictures("{max_pool: {size: 4}}", "{conv2d: {filters: 4, kernel: 3}}", DENSE),
                                          "model.layers.1", "kernel 3 is larger than the 2 x 2 input"),
    "a shortcut of another shape": (pictures("{residual: {layers: [{conv2d: {filters: 4, kernel: 3}}]}}", DENSE),
                                    "model.layers.0", "6 x 6 x 4", "8 x 8 x 3", "give `shortcut`"),
    "a shortcut with another stride": (
        pictures("{residual: {layers: [{conv2d: {filters: 3, kernel: 1, stride: 2}}], "
                 "shortcut: [{conv2d: {filters: 3, kernel: 1}}]}}", DENSE), "model.layers.0", "4 x 4 x 3", "8 x 8 x 3"),
    "an error in a shortcut": (
        pictures("{residual: {layers: [{relu: {}}], shortcut: [{relu: {}}, {max_pool: {size: 9}}]}}", DENSE),
        "model.layers.0.residual.shortcut.1", "window size 9"),
    "branches of different heights": (
        pictures("{concat: {branches: [{layers: [{relu: {}}]}, {layers: [{max_pool: {}}]}]}}", DENSE),
        "model.layers.0", "branch 1 computes 4 x 4 x 3", "must be the same"),
    "one branch": (pictures("{concat: {branches: [{layers: [{relu: {}}]}]}}", DENSE),
                   "model.layers.0.concat.branches", "at least 2"),
    "a repeat that shrinks until nothing is left": (pictures("{repeat: {times: 4, layers: [{max_pool: {}}]}}", DENSE),
                                                    "model.layers.0.repeat.layers.0", "1 x 1"),
    "a repeat of nothing": (pictures("{repeat: {times: 3, layers: []}}", DENSE), "model.layers.0.repeat.layers",
                            "at least 1"),
    "a repeat of no times": (pictures("{repeat: {times: 0, layers: [{relu: {}}]}}", DENSE),
                             "model.layers.0.repeat.times", "at least 1"),
    "a recompute of nothing": (pictures("{recompute: {layers: []}}", DENSE), "model.layers.0.recompute.layers",
                               "at least 1"),
    "a recompute within another": (
        pictures("{recompute: {layers: [{relu: {}}, {repeat: {times: 2, layers: [{recompute: {layers: [{relu: {}}]}}]}}]}}",
                 DENSE), "model.layers.0.recompute.layers.1.repeat.layers.0", "inside another recompute", "remove one of the two"),
    "more layers than there may be": (
        pictures("{repeat: {times: 1000, layers: [{repeat: {times: 1000, layers: [{relu: {}}]}}]}}", DENSE),
        "model.layers", "10000"),
    "groups that do not divide": (pictures("{conv2d: {filters: 4, kernel: 3, groups: 2}}", DENSE), "model.layers.0",
                                  "groups 2 must divide the 3 channels"),
    "group norm that does not divide": (pictures("{group_norm: {groups: 2}}", DENSE), "model.layers.0",
                                        "must divide the 3 channels"),
    "a border as large as the window": (pictures("{max_pool: {size: 2, padding: 2}}", DENSE), "model.layers.0",
                                        "padding"),
    "no classes for the labels": (pictures("{dense: {units: 3}}"), "model.layers.0.dense.units",
                                  "classes 0 to 2"),
    "scores of a whole image": (pictures("{conv2d: {filters: 5, kernel: 1}}"), "model.loss", "8 x 8 x 5",
                                "end the layers with dense"),
    "a number of scores that logistic does not take": (
        {"layers": ["{dense: {units: 2}}"], "source": ROWS, "loss": "logistic"}, "model.loss", "units 1"),
    "logistic with five classes": (
        {"layers": ["{dense: {units: 1}}"], "source": PICTURES, "loss": "logistic"}, "data.train", "logistic"),
    "nothing to train": (pictures("{relu: {}}", "{flatten: {}}"), "model.layers", "nothing to train"),
    "an unknown kind": (pictures("{convolution: {filters: 3}}", DENSE), "model.layers.0.convolution", "unknown key"),
    "two kinds in one layer": (pictures("{relu: {}, tanh: {}}", DENSE), "model.layers.0", "tanh"),
    "a name twice": (pictures("{name: a, relu: {}}", "{name: a, tanh: {}}", DENSE), "model.layers.1.name",
                     "already used by model.layers.0"),
    "a name that would be a path": (pictures("{name: ../x, relu: {}}", DENSE), "model.layers.0.name", "letters"),
    "a model larger than may be": (pictures("{dense: {units: 10000000}}", "{dense: {units: 10000000}}", DENSE),
                                   "model.layers.1", "limit"),
    "a dropout of everything": (pictures("{dropout: {rate: 1}}", DENSE), "model.layers.0.dropout.rate", "below 1"),
    "smoothing with another loss": (
        {"layers": ["{dense: {units: 1}}"], "source": ROWS, "loss": "logistic", "more": "label_smoothing: 0.1"},
        "model.label_smoothing", "softmax_cross_entropy"),
    "smoothing of everything": ({**pictures(DENSE), "more": "label_smoothing: 1"}, "model.label_smoothing", "below 1"),
    "a model by name with a wrong size": (pictures("{resnet20: {classes: 3}}"), "data.train", "label 3",
                                           "model.layers.7.dense.units is 3"),
    "a model by name for larger images": (pictures("{lenet: {classes: 5}}"), "model", "5", "input"),
    "heads that do not divide": (text("{embedding: {vocabulary: 9, width: 6}}", "{attention: {heads: 4}}", HEAD),
                                 "model.layers.1", "heads 4 must divide the 6 channels"),
    "heads that do not divide, by name": (text("{gpt: {vocabulary: 9, width: 10, heads: 4}}"), "model.layers",
                                          "heads 4 must divide the 10 channels"),
    "an odd head that is turned": (
        text("{embedding: {vocabulary: 9, width: 6}}", "{attention: {heads: 2, rotary: true}}", HEAD),
        "model.layers.1", "pairs of channels", "change heads or the width"),
    "a vocabulary that is too small": (text("{gpt: {vocabulary: 3, width: 8}}"), "model", "9"),
    "scores for fewer tokens than there are": (
        text("{embedding: {vocabulary: 9, width: 4}}", "{dense: {units: 4, pointwise: true}}"),
        "model.layers.1.dense.units", "vocabulary of 9 tokens", "set it to 9"),
    "one row of scores for all positions": (text("{embedding: {vocabulary: 9, width: 4}}", "{dense: {units: 9}}"),
                                            "model.loss", "8 labels", "pointwise: true"),
    "an embedding that is no first layer": (text("{relu: {}}", "{embedding: {vocabulary: 9, width: 4}}", HEAD),
                                            "model.layers.1", "first layer"),
    "a tie to nothing": (text("{embedding: {vocabulary: 9, width: 4}}", "{tied_dense: {embedding: wte}}"),
                         "model.layers.1", "no earlier embedding has the name 'wte'"),
    "a tie to a layer that comes later": (
        text("{tied_dense: {embedding: wte}}", "{name: wte, embedding: {vocabulary: 9, width: 4}}"), "model.layers.0",
        "no earlier embedding"),
    "a tie of another width": (
        text("{name: wte, embedding: {vocabulary: 9, width: 4}}", "{dense: {units: 3, pointwise: true}}",
             "{tied_dense: {embedding: wte}}"), "model.layers.2", "3 channels", "row of the embedding has 4 values"),
    "text with a squared loss": ({**text("{embedding: {vocabulary: 9, width: 4}}", "{dense: {units: 1}}"),
                                  "loss": "squared"}, "softmax_cross_entropy"),
    "text that is mixed": ({**text("{embedding: {vocabulary: 9, width: 4}}", HEAD), "data": "augment: {mixup: 0.2}"},
                           "data.augment.mixup", "cannot be mixed"),
    "a share that is drawn from nothing": ({**pictures(DENSE), "data": "augment: {mixup: -1}"}, "data.augment.mixup",
                                           "at least 0"),
    "text that is normalised": ({**text("{embedding: {vocabulary: 9, width: 4}}", HEAD),
                                 "data": "normalize: {mean: 0, std: 1}"}, "data.normalize"),
}


def npy(array, fortran=False):
    header = (f"{{'descr': '{array.dtype.str}', 'fortran_order': {fortran}, 'shape': {array.shape}, }}"
              .ljust(117) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.tobytes()


def write_files(folder):
    """Each file is bad in a way of its own, except for good.txt and good.npy."""
    (folder / "good.txt").write_text("abcdefghi" * 20)
    (folder / "empty.txt").write_text("")
    (folder / "short.txt").write_text("abc")
    (folder / "latin.txt").write_bytes(b"first line\nabc\xe9def" * 20)
    labels = numpy.arange(6) % 2
    good = numpy.zeros((6, 4), "<f4")
    (folder / "labels.npy").write_bytes(npy(labels))
    (folder / "good.npy").write_bytes(npy(good))
    (folder / "truncated.npy").write_bytes(npy(good)[:-5])
    (folder / "header.npy").write_bytes(npy(good)[:40])
    (folder / "fortran.npy").write_bytes(npy(good, fortran=True))
    (folder / "huge.npy").write_bytes(npy(good).replace(b"(6, 4)", b"(6, 4000000000000)"))
    (folder / "complex.npy").write_bytes(npy(numpy.zeros((6, 4), "<c8")))
    (folder / "nan.npy").write_bytes(npy(numpy.full((6, 4), numpy.inf, "<f4")))
    (folder / "few.npy").write_bytes(npy(labels[:3]))
    objects = numpy.empty(6, object)
    numpy.save(folder / "pickle.npy", objects, allow_pickle=True)
    with zipfile.ZipFile(folder / "pickles.npz", "w") as archive:
        archive.writestr("x.npy", (folder / "pickle.npy").read_bytes())
        archive.writestr("y.npy", npy(labels))
    whole = (folder / "pickles.npz").read_bytes()
    (folder / "truncated.npz").write_bytes(whole[:len(whole) // 2])
    (folder / "none").mkdir()
    (folder / "cifar.bin").write_bytes(bytes(3072))
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", 1 << 40))
    (folder / "short.safetensors").write_bytes(b"\x08\x00")


def arrays(features, labels="labels.npy", **names):
    more = "".join(f", {key}: {value}" for key, value in names.items())
    return {"layers": [DENSE], "source": f"{{type: numpy, features: {features}, labels: {labels}{more}}}"}


def words(file, unit="characters"):
    return {"layers": ["{embedding: {vocabulary: 300, width: 4}}", "{dense: {units: 300, pointwise: true}}"],
            "source": f"{{type: text, files: {file}, context: 8, unit: {unit}}}"}


def folder_of(name):
    return {"layers": [DENSE], "source": f"{{type: image_folder, folder: {name}, height: 8, width: 8}}"}


FILES = {
    "an empty text": (words("empty.txt"), "data.train.files", "empty.txt", "empty"),
    "a text shorter than its context": (words("short.txt"), "data.train", "short.txt"),
    "a text that is no UTF-8": (words("latin.txt"), "data.train.files", "latin.txt", "UTF-8"),
    "byte pairs without a vocabulary": (words("good.txt", "bpe"), "data.train.vocabulary"),
    "an array that ends early": (arrays("truncated.npy"), "data.train", "truncated.npy"),
    "a header that ends early": (arrays("header.npy"), "data.train", "header.npy"),
    "an array in columns": (arrays("fortran.npy"), "data.train", "fortran.npy", "Fortran"),
    "an array larger than all memory": (arrays("huge.npy"), "data.train", "huge.npy"),
    "complex numbers": (arrays("complex.npy"), "data.train", "complex.npy"),
    "numbers that are not finite": (arrays("nan.npy"), "data.train", "nan.npy"),
    "fewer labels than examples": (arrays("good.npy", "few.npy"), "data.train", "few.npy", "3", "6"),
    "a pickle": (arrays("pickle.npy"), "data.train", "pickle.npy", "pickle"),
    "an archive with pickles": (arrays("pickles.npz", "pickles.npz", features_array="x", labels_array="y"),
                                "data.train", "pickles.npz", "pickle"),
    "an archive that ends early": (arrays("truncated.npz", "truncated.npz", features_array="x", labels_array="y"),
                                   "data.train", "truncated.npz"),
    "no array of that name": (arrays("pickles.npz", "pickles.npz", features_array="z", labels_array="y"),
                              "data.train", "z"),
    "an archive without a name": (arrays("pickles.npz", "pickles.npz"), "data.train", "pickles.npz", "features_array"),
    "a folder without pictures": (folder_of("none"), "data.train", "none"),
    "a record that ends early": ({"layers": [DENSE], "source": "{type: cifar100, files: cifar.bin}"}, "data.train",
                                 "cifar.bin"),
    "weights with an endless header": ({**pictures(DENSE), "more": "initial: weights.safetensors"}, "model.initial",
                                       "weights.safetensors"),
    "weights that end at once": ({**pictures(DENSE), "more": "initial: short.safetensors"}, "model.initial",
                                 "short.safetensors"),
}


def refuse(cases):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leeway-test-"))
    write_files(folder)
    wrong = []
    for name, (job, *wanted) in cases.items():
        path = folder / "job.yaml"
        path.write_text(JOB.format(layers="".join(f"    - {layer}\n" for layer in job["layers"]), source=job["source"],
                                   loss=job.get("loss", "softmax_cross_entropy"), more=job.get("more", ""),
                                   data=job.get("data", "")))
        ended = subprocess.run([runs.BIN / "leeway", "plan", path, "--data", folder], capture_output=True, text=True,
                               timeout=60, check=False)
        missing = [word for word in wanted if word not in ended.stderr]
        # The error must name a place in the job, whichever file is wrong.
        placed = re.search(r"job\.yaml:\d+(:\d+)?: ", ended.stderr) is not None
        if missing or not placed or ended.returncode not in (runs.TEMPORARY, runs.USAGE, runs.PERMANENT):
            wrong.append(f"{name}: exit code {ended.returncode}, without {missing}: {ended.stderr.strip()[-400:]}")
    for line in wrong:
        print(line)
    runs.check(not wrong, f"{len(cases)} jobs are refused with place, cause and remedy")


if __name__ == "__main__":
    runs.main({"models": lambda: refuse(MODELS), "files": lambda: refuse(FILES)})
