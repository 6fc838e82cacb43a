#!/usr/bin/python3
"""deploy/images/Dockerfile makes a small image that runs as an ordinary user, without a file system to write to.

No registry is needed: mmdebstrap makes the base from Debian's mirror, as debian:bookworm-slim is made. buildah carries
out the Dockerfile's last stage. Its first stage is ./package, which is replaced by packing what BUILD_FOLDER has
installed. Then a job trains, with servers and workers of the image in namespaces of their own: a read-only root, user
65532, no capabilities.

Usage: image_test.py BUILD_FOLDER         as root; takes minutes; skipped without buildah and mmdebstrap
"""

import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "deploy/images"
MIRROR = os.environ.get("LEEWAY_DEBIAN_MIRROR", "http://deb.debian.org/debian")
EPOCH = "1763596800"
MEGABYTES_MAX = 120
USER = 65532
# The parts of every package that debian:bookworm-slim omits.
SLIM = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*",
        "/usr/share/linda/*", "/usr/share/groff/*"]


def skip(why):
    print("SKIPPED:", why)
    sys.exit(77)


def fail(why):
    sys.exit(f"FAILED: {why}")


def check(condition, what):
    if not condition:
        fail(f"not so: {what}")
    print("  ok:", what, flush=True)


def run(*command, timeout=900, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, check=False,
                          **options)
    if done.returncode:
        fail(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    return done.stdout


# ---- the image

def make_base(tar):
    """Makes a debian:bookworm-slim, from the mirror."""
    excludes = [f"--dpkgopt=path-exclude={pattern}" for pattern in SLIM]
    done = subprocess.run(["mmdebstrap", "--variant=minbase", "--mode=root", *excludes,
                           # Without usrmerge, which needs all of Perl.
                           "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include=usr-is-merged",
                           "--dpkgopt=path-include=/usr/share/doc/*/copyright", "bookworm", str(tar), MIRROR],
                          capture_output=True, text=True, timeout=1200, check=False,
                          env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
    if done.returncode:
        tar.unlink(missing_ok=True)
        skip(f"mmdebstrap cannot make a base from {MIRROR}: {done.stderr[-500:]}")


def make_package(build, scratch):
    """Makes what ./package makes, from an existing build, even one with tests."""
    run("cmake", "--install", build, "--strip", "--prefix", scratch / "stage/usr")
    folder = scratch / "package"
    folder.mkdir()
    run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder,
        "-D", "CPACK_INSTALL_CMAKE_PROJECTS=", "-D", f"CPACK_INSTALLED_DIRECTORIES={scratch / 'stage'};/",
        "-D", f"CPACK_OUTPUT_FILE_PREFIX={folder}", "-D", "CPACK_PACKAGING_INSTALL_PREFIX=/")
    shutil.rmtree(folder / "_CPack_Packages")
    return folder


def last_stage(dockerfile):
    """Returns the arguments before the first stage, and the last stage."""
    text = dockerfile.read_text(encoding="utf-8")
    stages = [found.start() for found in re.finditer(r"^FROM ", text, re.M)]
    return text[:stages[0]] + text[stages[-1]:]


class Buildah:
    """Runs buildah with a storage of its own."""

    def __init__(self, scratch):
        self.options = ["--root", scratch / "storage", "--runroot", scratch / "storage-run", "--storage-driver", "vfs"]

    def __call__(self, verb, *words, **options):
        return run("buildah", *self.options, verb, *words, **options)

    def build(self, tag, dockerfile, base, package):
        self("bud", "--isolation", "chroot", "--pull-never", "--no-cache", "--timestamp", EPOCH, "--format", "oci",
             "--build-arg", f"BASE={base}", "--build-arg", "VERSION=0", "--build-arg", "REVISION=test",
             "--build-context", f"package={package}", "-t", tag, "-f", dockerfile, ROOT)
        return json.loads(self("inspect", "--type", "image", tag))


def layers_of(buildah, tag, folder):
    """Returns the image as a registry has it: its manifest, its configuration and the sizes of its gzipped layers."""
    buildah("push", "--compression-format", "gzip", tag, f"oci:{folder}:latest")
    blob = lambda digest: folder / "blobs" / digest.replace(":", "/")
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    manifest = json.loads(blob(index["manifests"][0]["digest"]).read_text(encoding="utf-8"))
    config = json.loads(blob(manifest["config"]["digest"]).read_text(encoding="utf-8"))
    for layer in manifest["layers"]:
        with gzip.open(blob(layer["digest"])) as file:
            file.read(1)
    return config, [layer["size"] for layer in manifest["layers"]]


def check_config(config, sizes):
    megabytes = sum(sizes) / 1e6
    check(megabytes <= MEGABYTES_MAX, f"{megabytes:.1f} MB compressed, of {MEGABYTES_MAX} ("
          + " + ".join(f"{size / 1e6:.1f}" for size in sizes) + ")")
    settings = config["config"]
    check(settings["User"] == f"{USER}:{USER}", f"user {settings['User']}")
    labels = {name.rpartition(".")[2]: value for name, value in settings["Labels"].items()
              if name.startswith("org.opencontainers.image.")}
    check({"title", "licenses", "version", "revision"} <= set(labels) and labels["revision"] == "test",
          f"labels {labels}")
    check("Entrypoint" not in settings and settings["WorkingDir"] == "/runs", "no entry point; it begins in /runs")


def check_files(root):
    special = [path for path in run("find", root, "-xdev", "-type", "f", "-perm", "/6000").splitlines()]
    check(not special, f"no program changes its user: {special}")
    check((root / "bin/sh").exists() and (root / "usr/bin/leeway").exists(), "there is a shell, and leeway")
    left = [str(path.relative_to(root)) for pattern in ("usr/include/leeway*", "usr/lib/**/*.a", "var/lib/apt/lists/*",
                                                         "var/cache/apt/*", "usr/lib/**/libleeway-cuda.so")
            for path in root.glob(pattern)]
    check(not left, f"nothing for compilers, and no lists of packages: {left}")
    check(f"leeway:x:{USER}:{USER}:" in (root / "etc/passwd").read_text(encoding="utf-8"), "the user has a name")
    installed = run("chroot", root, "dpkg-query", "-W", "-f", "${Package}\n").split()
    tools = {"gcc-12", "g++-12", "make", "cmake", "python3", "perl", "curl"} & set(installed)
    check(not tools, f"{len(installed)} packages, none for development {sorted(tools)}")


# ---- a container of it

# $1: the image's root, $2: a folder to write to, $3...: the command. What a container engine does for a container with
# a read-only root.
ENTER = f"""set -e
root=$1; runs=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$runs" "$root/runs"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
ip link set lo up
cd "$root"
exec chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/runs \
  setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  sh -c 'cd /runs && exec "$@"' sh "$@"
"""

JOB = """
set -eu
id -u; id -g
if touch /usr/bin/x 2>/dev/null; then echo "the root can be written to"; exit 1; fi
if touch /tmp/x 2>/dev/null; then echo "/tmp can be written to"; exit 1; fi
jobs=/usr/share/leeway/jobs
leeway-server --index 0 --listen 127.0.0.1:7000 --job $jobs/quickstart.yaml --run-dir /runs/by-hand 2>/runs/s0.log & s0=$!
leeway-server --index 1 --coordinator 127.0.0.1:7000 2>/runs/s1.log & s1=$!
for rank in 0 1 2; do
  leeway-worker --coordinator 127.0.0.1:7000 --rank $rank --data /usr/share/leeway/data 2>/runs/w$rank.log & last=$!
done
wait $last; wait $s1; wait $s0
leeway evaluate /runs/by-hand --data /usr/share/leeway/data
leeway train $jobs/quickstart.yaml --run-dir /runs/trained
"""


def container(root, runs, *command, timeout=300):
    return run("unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--kill-child", "sh", "-c", ENTER, "sh",
               root, runs, *command, timeout=timeout)


@contextlib.contextmanager
def mounted(buildah, tag):
    name = buildah("from", "--pull-never", tag).strip()
    try:
        yield pathlib.Path(buildah("mount", name).strip())
    finally:
        buildah("rm", name)


def check_runs(root, scratch):
    runs = scratch / "runs"
    runs.mkdir()
    os.chown(runs, USER, USER)
    said = container(root, runs, "sh", "-c", JOB)
    check(said.split()[:2] == [str(USER)] * 2, "it runs as the user, with a root that cannot be written to")
    digests = [json.loads((runs / name / "summary.json").read_text(encoding="utf-8"))["weights_sha256"]
               for name in ("by-hand", "trained")]
    check(digests[0] == digests[1], f"processes by hand and leeway train leave the same weights, {digests[0][:12]}")
    print("   ", [line for line in said.splitlines() if "accuracy" in line][:1])


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    for tool in ("buildah", "mmdebstrap", "cpack", "unshare", "setpriv"):
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        skip("a root file system of one's own needs root")
    base_tar = build / "images/base.tar"
    if not base_tar.exists():
        base_tar.parent.mkdir(exist_ok=True)
        make_base(base_tar)
    with tempfile.TemporaryDirectory(prefix="leeway-image-") as name:
        scratch = pathlib.Path(name)
        buildah = Buildah(scratch)
        (scratch / "Dockerfile.base").write_text("FROM scratch\nADD base.tar /\n", encoding="utf-8")
        buildah("bud", "--isolation", "chroot", "--timestamp", EPOCH, "-t", "localhost/base", "-f",
                scratch / "Dockerfile.base", base_tar.parent)
        package = make_package(build, scratch)
        (scratch / "Dockerfile").write_text(last_stage(IMAGES / "Dockerfile"), encoding="utf-8")
        made = [buildah.build(f"localhost/leeway:{turn}", scratch / "Dockerfile", "localhost/base", package)
                for turn in ("one", "two")]
        check_config(*layers_of(buildah, "localhost/leeway:one", scratch / "oci"))
        check(made[0]["FromImageDigest"] == made[1]["FromImageDigest"], "made twice, it is the same image")
        with mounted(buildah, "localhost/leeway:one") as root:
            check_files(root)
            check_runs(root, scratch)


if __name__ == "__main__":
    main()
