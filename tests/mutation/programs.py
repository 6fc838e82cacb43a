"""A copy of the tree, built once, in which one object at a time is replaced by a mutant's."""

import dataclasses
import io
import json
import pathlib
import resource
import shlex
import subprocess
import tarfile
import time

# The tests of a folder, in the order in which they are asked: a program, and the folder whose tests in it are run
# (None: all). WORLDS: the schedules of the simulator.
UNITS = {
    "server/core": [("core_test", None), ("coordinator_test", None), ("server_test", "server/shard")],
    "server/coordinator/core": [("coordinator_test", None)],
    "run/core": [("run_test", "run/core")],
    "common/update": [("common_test", "common/update"), ("common_test", "common/plugins"), ("server_test", "server/shard")],
}
WORLDS = [[], ["--mode", "sync"], ["--mode", "bounded"], ["--mode", "async"], ["--whole"], ["--replicas"], ["--sets"],
          ["--sets", "--replicas"], ["--resizes"], ["--resizes", "--sets", "--replicas"]]
BOOKS = ["server/coordinator/core"]
# The libraries of those folders.
APART = ["leeway_core", "leeway_run_core", "leeway_coordinator_core", "leeway_arithmetic"]
TESTS_OF = {"committed_set_book": "committed_sets", "arrival_history": "straggler_grace"}
SIMULATED = ["server/core", "server/coordinator/core"]
MEMORY_MAX = 6 << 30  # a mutant may ask for memory without end
SECONDS_MIN = 5  # at least, before a program counts as hanging


@dataclasses.dataclass
class Program:
    """One command, which passes on the unchanged tree."""
    target: str
    arguments: list
    seconds: float = 0.0

    @property
    def name(self):
        return " ".join([self.target, *self.arguments])


def tests_in(files):
    """Returns the argument by which a test program runs the tests of these files; without any it runs all."""
    return ["--filenames-as-tags", ",".join(f"[#{file}]" for file in files)] if files else []


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Tree:
    """The tree at HEAD in a folder of its own, with a release build."""

    def __init__(self, repository, scratch, update):
        self.root = scratch / "tree"
        self.build = self.root / "build/release"
        self.work = scratch / "mutant"
        self.work.mkdir(parents=True, exist_ok=True)
        if update or not self.root.exists():
            self.copy(repository)
        if not (self.build / "build.ninja").exists():
            # A mutant is one file, which is compiled and linked by itself.
            subprocess.run(["cmake", "--preset", "release", "-DBUILD_TESTING=ON", "-DLEEWAY_CUDA=OFF",
                            f"-DLEEWAY_APART={';'.join(APART)}"], cwd=self.root, check=True, stdout=subprocess.DEVNULL)
        targets = sorted({"leeway_sim", *(target for units in UNITS.values() for target, _ in units)})
        subprocess.run(["ninja", "-C", self.build, "-j2", *targets], check=True, stdout=subprocess.DEVNULL)
        self.compile_commands = {entry["file"]: entry for entry in
                                 json.loads((self.build / "compile_commands.json").read_text())}
        self.links = {target: self.link_command(target) for target in targets}

    def copy(self, repository):
        """Copies only changed files, so that little is built again."""
        archive = subprocess.run(["git", "-C", repository, "archive", "HEAD"], check=True, capture_output=True)
        gone = {path for path in self.root.rglob("*") if path.is_file() and not path.is_relative_to(self.root / "build")}
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            for entry in filter(tarfile.TarInfo.isfile, files):
                gone.discard(self.root / entry.name)
                path, content = self.root / entry.name, files.extractfile(entry).read()
                if path.exists() and path.read_bytes() == content:
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(entry.mode)
        for stale in [*gone, *self.work.glob("*.gch")]:
            stale.unlink()

    def link_command(self, target):
        said = subprocess.run(["ninja", "-C", self.build, "-t", "commands", f"bin/{target}"], check=True,
                              capture_output=True, text=True).stdout.splitlines()[-1]
        return next(part for part in said.split(" && ") if f"-o bin/{target}" in part)

    def compile_command(self, file, source, out, more=()):
        """Compiles `source` to `out` with the options of `file`, but faster."""
        entry = self.compile_commands[str(self.root / file)]
        words = [w for w in shlex.split(entry["command"]) if "ccache" not in w]
        where = words.index("-o")
        del words[where:where + 2]
        where = words.index("-c")
        del words[where:where + 2]
        # An index beyond a vector's end aborts the program.
        words += ["-O1", "-g0", "-w", "-D_GLIBCXX_ASSERTIONS", *more, "-c", str(source), "-o", str(out)]
        return subprocess.run(words, cwd=entry["directory"], capture_output=True, preexec_fn=limits,
                              check=False).returncode == 0

    def precompiled(self, file):
        """Precompiles the includes of `file`, which take nearly all of the compile time."""
        header = self.work / (file.replace("/", "_") + ".h")
        lines = [line for line in (self.root / file).read_text().splitlines() if line.startswith("#include")]
        text = "\n".join(lines) + "\n"
        made = header.with_suffix(".h.gch")
        if not made.exists():
            header.write_text(text)
            if not self.compile_command(file, header, made, ["-x", "c++-header"]):
                raise SystemExit(f"the headers of {file} do not compile by themselves")
        return header

    def compile(self, file, text, out):
        """Compiles `text` in place of `file`. Returns False if it does not compile."""
        # All mutants have the same file name, so that equal programs are equal objects.
        source = self.work / pathlib.Path(file).name
        source.write_text(text)
        return self.compile_command(file, source, out, ["-include", str(self.precompiled(file))])

    def link(self, target, mutated, out):
        """Links `target` with the mutated object, which the linker takes before it looks into the archives."""
        words = shlex.split(self.links[target])
        words[words.index("-o") + 1] = str(out)
        first = next(i for i, w in enumerate(words) if w.endswith(".o"))
        words.insert(first, str(mutated))
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)

    def run(self, program, binary, seconds):
        """Returns None if the program passed; else how it failed."""
        command = [str(binary), *program.arguments]
        try:
            done = subprocess.run(command, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=seconds, preexec_fn=limits, check=False)
        except subprocess.TimeoutExpired:
            return "no end"
        if done.returncode == 0:
            return None
        return "crash" if done.returncode < 0 else "failed"

    def programs(self, file, schedules):
        """Returns the programs that are asked about a mutant of `file`; the simulator comes after the unit tests."""
        folder, book = str(pathlib.Path(file).parent), pathlib.Path(file).stem
        # The file's own tests come first, because they are fast.
        own = [f"{TESTS_OF.get(book, book)}_test"]
        found = [Program("coordinator_test", ["--abort", *tests_in(own)])] if folder in BOOKS else []
        for target, tests in UNITS[folder]:
            files = sorted(path.stem for path in (self.root / "tests" / tests).glob("*_test.cc")) if tests else []
            found.append(Program(target, ["--abort", *tests_in(files)]))
        if folder in SIMULATED:
            found += [Program("leeway_sim", ["--schedules", str(schedules), *world]) for world in WORLDS]
        return found

    def measure(self, program, known):
        """Measures how long `program` takes on the unchanged tree, on which it must pass."""
        if program.name not in known:
            began = time.monotonic()
            wrong = self.run(program, self.build / "bin" / program.target, 600)
            if wrong:
                raise SystemExit(f"{program.name} does not pass on the tree as it is: {wrong}")
            known[program.name] = time.monotonic() - began
        return known[program.name]
