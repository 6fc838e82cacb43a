#!/usr/bin/python3
"""A thin bundle runs where it is unpacked: on a machine, made of a bare folder, that has only glibc, its `leeway train`
trains the quickstart job. Its list of packages (SBOM) is complete, and NVIDIA's libraries can be included.

Usage: bundle_test.py BUILD_FOLDER"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = pathlib.Path("/lib/x86_64-linux-gnu")
GLIBC = ["libc.so.6", "libm.so.6", "libmvec.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2",
         "libutil.so.1", "libnss_files.so.2", "libnss_dns.so.2"]


def skip(why):
    print("SKIPPED:", why)
    sys.exit(77)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280, check=False,
                          **options)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    return done.stdout


def bare_machine(root):
    for folder in ("lib/x86_64-linux-gnu", "lib64", "etc", "dev", "proc", "tmp", "opt"):
        (root / folder).mkdir(parents=True)
    shutil.copy("/lib64/ld-linux-x86-64.so.2", root / "lib64")
    for name in GLIBC:
        if (LIBRARIES / name).exists():
            shutil.copy(LIBRARIES / name, root / "lib/x86_64-linux-gnu")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")


# $1: the machine's root, $2...: the command.
ENTER = """set -e
root=$1; shift
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
exec chroot "$root" "$@"
"""


def check_list_of_packages(unpacked):
    """Checks that the SBOM names a package for each library in the bundle, with the version that is installed here."""
    listed = json.loads((unpacked / "share/doc/leeway/sbom.spdx.json").read_text(encoding="utf-8"))
    versions = {each["name"]: each["versionInfo"] for each in listed["packages"]}
    linked = {each["relatedSpdxElement"] for each in listed["relationships"] if each["relationshipType"] == "DYNAMIC_LINK"}
    ids = {each["SPDXID"]: each["name"] for each in listed["packages"]}
    owned = {line for name in linked for line in run("dpkg", "-L", ids[name]).splitlines()}
    names = {pathlib.Path(path).name for path in owned}
    alone = [library.name for library in (unpacked / "lib").glob("*.so*") if library.name not in names]
    if alone or not linked:
        sys.exit(f"FAILED: the SBOM has no package of {alone}")
    for name in (ids[each] for each in linked):
        if versions[name] != run("dpkg-query", "--show", "--showformat=${Version}", name):
            sys.exit(f"FAILED: the SBOM has {name} {versions[name]}")
    print(f"SBOM: {len(linked)} packages linked, {len(versions) - len(linked) - 1} to build")


def check_nvidia(scratch):
    """A library from NVIDIA, which no Debian package owns, is a package with its file's version and checksum."""
    file, link = scratch / "libcudnn_ops.so.9.1.0", scratch / "libcudnn_ops.so.9"
    file.write_bytes(b"compiled")
    link.symlink_to(file)
    listed = json.loads(run(ROOT / "scripts/sbom", "--leeway", "1", f"--nvidia={link}", LIBRARIES / "libz.so.1"))
    found = [each for each in listed["packages"] if each["name"] == "libcudnn_ops"]
    digest = hashlib.sha256(b"compiled").hexdigest()
    if [(each["versionInfo"], each["checksums"]) for each in found] != [
            ("9.1.0", [{"algorithm": "SHA256", "checksumValue": digest}])]:
        sys.exit(f"FAILED: the SBOM has {found} for {file.name}")
    if not any(each["relatedSpdxElement"] == found[0]["SPDXID"] for each in listed["relationships"]):
        sys.exit(f"FAILED: the SBOM does not say what {file.name} is for")


def main():
    build = pathlib.Path(sys.argv[1])
    for tool in ("patchelf", "objdump", "unshare", "chroot"):
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        skip("a root of its own for a process needs root")
    with tempfile.TemporaryDirectory(prefix="leeway-bundle-") as scratch:
        began = time.monotonic()
        scratch = pathlib.Path(scratch)
        check_nvidia(scratch)
        archive = pathlib.Path(run(ROOT / "scripts/bundle", build, "thin", scratch).split()[-1])
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.0f} MB, made in {time.monotonic() - began:.0f} s")
        root = scratch / "root"
        bare_machine(root)
        run("tar", "-xf", archive, "-C", root / "opt")
        (unpacked,) = (root / "opt").iterdir()
        check_list_of_packages(unpacked)
        home = pathlib.Path("/opt") / unpacked.name
        print(run("unshare", "-m", "sh", "-c", ENTER, "sh", root, home / "bin/leeway", "train",
                  home / "share/leeway/jobs/quickstart.yaml", "--run-dir", "/tmp/run", env={})[-400:])
        if not (root / "tmp/run/model.safetensors").exists():
            sys.exit("FAILED: the run left no model")


if __name__ == "__main__":
    main()
