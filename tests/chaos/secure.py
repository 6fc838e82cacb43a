#!/usr/bin/python3
"""Jobs whose processes prove who they are, in trouble: killed, with new certificates, or reached under other names."""

import os
import pathlib
import random
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from cluster import Cluster, digits_job  # puts the folder of runs.py on the path
import references
import runs

DATA = "optdigits/optdigits.tra"
LEEWAY = str(runs.BIN / "leeway")
# A clock takes long enough to kill a process in the middle of the job.
SLOW = ["stop={clocks: 200}", "workers.emulate={step_milliseconds: 15}"]
KEYS = pathlib.Path("/dev/shm")


def leeway(*arguments):
    done = subprocess.run([LEEWAY, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def digest(sets, options, disturb):
    run = runs.Run("quickstart.yaml", [*SLOW, *sets], runs.data_with(DATA)).start(options=options)
    disturb(run)
    found = run.wait()["weights_sha256"]
    runs.check(not re.search("^E[0-9]{4} ", run.said(), re.MULTILINE), "gRPC has no say on the terminal")
    run.clean()
    return found


def kill_some(run):
    """Kills a server and a worker, each in the middle of the job."""
    for at, role in (40, "server"), (90, "worker"), (140, "server"):
        run.wait_for(lambda r, at=at: r.max_clock() >= at)
        os.kill(run.process_of(role, random.choice((0, 1))), signal.SIGKILL)


def killed(replicas, transports=("auto", "tcp")):
    """Servers and workers die under mutual TLS: the bits are those of a plain, undisturbed run."""
    sets = ["servers={count: 3, replicas: 2}" if replicas else "servers.count=2", "checkpoint={every: {clocks: 30}}"]
    plain = references.undisturbed("quickstart.yaml", [*SLOW, *sets], runs.data_with(DATA))["weights_sha256"]
    for transport in transports:
        secure = digest([*sets, f"transport.type={transport}"], ["--tls", "mtls"], kill_some)
        runs.check(secure == plain, f"killed under mutual TLS over {transport}: the same bits")


def keys_of_runs():
    return set(KEYS.glob("leeway-keys-*"))


def commands():
    """`leeway status` finds the run's keys by the run folder. Given an address only, it has no keys and is refused. A
    launcher that is killed leaves no keys behind."""
    before = keys_of_runs()
    run = runs.Run("quickstart.yaml", SLOW, runs.data_with(DATA)).start(options=["--tls", "mtls"])
    run.wait_for(lambda r: r.max_clock() >= 20)
    runs.check((run.dir / "token").stat().st_mode & 0o777 == 0o600, "the token is its owner's")
    code, said = leeway("status", run.dir)
    runs.check(code == 0, f"by the run folder: {said.splitlines()[0]}")
    address = (run.dir / "coordinator").read_text().strip()
    code, said = leeway("status", address)
    runs.check(code != 0 and "it may require TLS" in said, said.strip())
    others = certificates(run.parent / "others")
    code, said = leeway("status", address, "--tls-dir", others / "status")
    runs.check(code != 0 and "the certificate there is not valid now, or not signed by this process's authority" in said, said.strip())
    # As lines of the log, and not as the library writes them.
    runs.check(".cc:" not in said, "the library says nothing by itself")
    code, said = leeway("status", address, "--tls-dir", run.dir / "tls")
    runs.check(code != 0 and "has no token" in said, said.strip())
    token = run.parent / "another-token"
    token.write_text("0123456789abcdef0123\n")
    code, said = leeway("status", address, "--tls-dir", run.dir / "tls", "--token-file", token)
    runs.check(code != 0 and "is not this job's" in said, said.strip())
    mine = keys_of_runs() - before
    run.kill()
    for command in ["stop"], ["resize", "--servers", "1"]:
        begun = time.monotonic()
        code, said = leeway(command[0], run.dir, *command[1:])
        runs.check(code == 1 and time.monotonic() - begun < 60, f"{command[0]} of a killed launcher's run: {said.strip()}")
        runs.check("--resume" in said, "it says how to go on")
    until = time.monotonic() + 30
    while mine & keys_of_runs() and time.monotonic() < until:
        time.sleep(0.05)
    runs.check(not mine & keys_of_runs(), "no keys are left behind")
    run.clean()


def certificates(folder, *options):
    code, said = leeway("certificates", folder, *options)
    if code:
        raise runs.Failed(said)
    return pathlib.Path(folder)


def secure_cluster(job, keys):
    data = runs.data_with(DATA)
    token = ["--token-file", str(keys / "token")]
    run = Cluster(job, servers=2, workers=2, worker=[
        str(runs.BIN / "leeway-worker"), "--data", str(data), "--tls-dir", str(keys / "worker"), *token])
    reached = run.reached
    run.reached = lambda number: [*reached(number), "--tls-dir", str(keys / "server"), *token]
    return run


def serial(address, keys):
    """Returns the serial number of the certificate that the server at the address shows."""
    context = ssl.create_default_context(cafile=keys / "worker/ca.crt")
    context.check_hostname = False
    context.load_cert_chain(keys / "worker/tls.crt", keys / "worker/tls.key")
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as end, context.wrap_socket(end) as secured:
        return secured.getpeercert()["serialNumber"]


def training_job(clocks=1000):
    return digits_job("secure", clocks, step_milliseconds=20)


def rolled():
    """Certificates are renewed twice while the job trains. Running servers show the new certificate, and so do
    restarted ones; no other process restarts."""
    with tempfile.TemporaryDirectory() as folder, secure_cluster(training_job(), certificates(folder)) as run:
        keys = pathlib.Path(folder)
        run.wait_for(lambda r: r.max_clock() >= 50, "the job to train")
        address = run.address(0)
        for victim in ("worker", 1), ("server", 1):
            before = serial(address, keys)
            certificates(keys)
            until = time.monotonic() + 30
            while serial(address, keys) == before and time.monotonic() < until:
                time.sleep(0.2)
            runs.check(serial(address, keys) != before, "server 0 shows its new certificate")
            run.kill(victim)
            clock = run.max_clock()
            run.wait_for(lambda r, at=clock + 50: r.max_clock() >= at, "the job to train on", 120)
        run.finish()
        lives = {str(program): program.lives for program in run.programs}
        runs.check(lives == {"server 0": 1, "server 1": 2, "worker 0": 1, "worker 1": 2}, f"lives: {lives}")


def expired_pair(keys, role):
    """Returns (certificate, key) that the job's authority issued and that expired yesterday."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make = lambda *words: subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
        make("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "key", "-out",
             folder / "csr", "-subj", "/CN=old", "-addext", f"subjectAltName=URI:spiffe://leeway/leeway/{role}")
        make("x509", "-req", "-in", folder / "csr", "-CA", keys / "ca.crt", "-CAkey", keys / "ca.key",
             "-CAcreateserial", "-copy_extensions", "copy", "-days", "-1", "-out", folder / "crt")
        return (folder / "crt").read_bytes(), (folder / "key").read_bytes()


def damages(keys, role):
    """Returns what tls.crt and tls.key are replaced with until they are renewed. None: the file is removed."""
    folder = keys / role
    certificate, key = (folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()
    return {
        "no certificate's bytes": (b"", key), "no key's bytes": (certificate, b""),
        "half a certificate": (certificate[:len(certificate) // 2], key), "half a key": (certificate, key[:len(key) // 2]),
        "swapped": (key, certificate), "removed": (None, None), "another pair's key": (certificate, expired_pair(keys, role)[1]),
        "expired": expired_pair(keys, role),
    }


def overwrite(folder, pair):
    """Writes as cp and scp do: empties each file first, one file after the other."""
    for name, content in zip(("tls.crt", "tls.key"), pair):
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)


def damaged(rounds=1, whats=None, seconds=2.5):
    """The files of a role are damaged for longer than it takes to notice, while a process of the other role dies and
    comes back. No other process dies, processes with good files are let in, and a slow renewal takes effect in the
    end."""
    with tempfile.TemporaryDirectory() as name, secure_cluster(training_job(1_000_000), certificates(name)) as run:
        keys = pathlib.Path(name)
        run.wait_for(lambda r: r.max_clock() >= 20, "the job to train")
        address = run.address(0)
        lives = {str(program): program.lives for program in run.programs}
        for role, victim in [("server", ("worker", 1)), ("worker", ("server", 1))] * rounds:
            for what in whats or damages(keys, role):
                before = serial(address, keys) if role == "server" else None
                overwrite(keys / role, damages(keys, role)[what])
                until = time.monotonic() + seconds
                run.kill(victim)
                lives[f"{victim[0]} {victim[1]}"] += 1
                clock = run.max_clock()
                while time.monotonic() < until:
                    code, said = leeway("status", address, "--tls-dir", keys / "launcher", "--token-file", keys / "token")
                    runs.check(code == 0, f"{role}, {what}: the status is told: {said.strip()[:200]}")
                run.wait_for(lambda r, at=clock + 20: r.max_clock() >= at, f"{role}, {what}: the job to train on", 60)
                (keys / role / "tls.crt").unlink(missing_ok=True)
                certificates(keys)
                while role == "server" and serial(address, keys) == before:
                    time.sleep(0.2)
                found = lambda r: {str(program): program.lives for program in r.programs}
                run.wait_for(lambda r, to=dict(lives): found(r) == to, f"{victim} to be started again", 30)
                runs.check(found(run) == lives, f"{role}, {what}: lives {found(run)}")
        run.stop_in_order()


ROLES = ("server", "worker", "launcher", "status")


def asked(address, keys, role, token):
    """Returns what a server answers to the stock client of another program that asks for the job's status, in a role of
    `keys`."""
    import grpc  # pylint: disable=import-outside-toplevel
    read = lambda name: (keys / role / name).read_bytes()
    credentials = grpc.ssl_channel_credentials(read("ca.crt"), read("tls.key"), read("tls.crt"))
    with grpc.secure_channel(address, credentials, [("grpc.ssl_target_name_override", "localhost")]) as channel:
        call = channel.unary_unary("/leeway.v1.Coordinator/GetJobStatus")
        try:
            call(b"", timeout=20, metadata=[("authorization", f"Bearer {token}")])
        except grpc.RpcError as error:
            return error.code(), error.details()
    return grpc.StatusCode.OK, ""


def is_refused(address, vision, speech):
    """Servers and clients of each role refuse peers of another trust domain."""
    token = (vision / "token").read_text().strip()
    for role in ROLES:
        code, said = asked(address, vision, role, token)
        runs.check(code.name == "OK", f"a {role} of the same domain is heard: {code.name}")
        code, said = asked(address, speech, role, token)
        runs.check(code.name == "PERMISSION_DENIED" and "the trust domain 'speech', but this server admits only 'vision'" in said,
                   f"a {role} of another domain is not: {said}")
    other = [["status", address, "--tls-dir", speech / role] for role in ("launcher", "status")]
    for command in other:
        code, said = leeway(*command, "--token-file", vision / "token")
        runs.check(code != 0 and "for the trust domain 'vision', not for 'speech'" in said, said.strip()[-300:])
    programs = {"worker": ["leeway-worker", "--data", runs.data_with(DATA)], "server": ["leeway-server", "--index", "1"]}
    for role, (program, *options) in programs.items():
        done = subprocess.run([str(runs.BIN / program), *map(str, options), "--coordinator", address, "--start-seconds", "3",
                               "--tls-dir", str(speech / role), "--token-file", str(vision / "token")],
                              capture_output=True, text=True, check=False, timeout=60)
        said = done.stdout + done.stderr
        runs.check(done.returncode != 0 and "for the trust domain 'vision', not for 'speech'" in said,
                   f"{program} of another domain: {done.returncode} {said.strip()[-300:]}")


def domains():
    """Two jobs have one authority: a process of the other job is not let in, and its servers are not accepted."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        vision, speech = (certificates(folder / job, "--authority", folder / "company", "--trust-domain", job)
                          for job in ("vision", "speech"))
        runs.check(not (vision / "ca.key").exists() and (folder / "company/ca.key").exists(), "one authority has one key")
        certificates(vision, "--authority", folder / "company")
        with secure_cluster(training_job(1_000_000), vision) as run:
            run.wait_for(lambda r: r.max_clock() >= 20, "the job to train")
            is_refused(run.address(0), vision, speech)
            run.wait_for(lambda r, at=run.max_clock() + 20: r.max_clock() >= at, "the job to train on", 60)
            run.stop_in_order()
        code, said = leeway("certificates", vision, "--trust-domain", "speech")
        runs.check(code == 2 and "is for the trust domain 'vision', and processes with that certificate would refuse the new certificates" in said, said)


def certificates_kept():
    """--no-keep-authority leaves no key, and later commands say that no more certificates can be issued."""
    with tempfile.TemporaryDirectory() as name:
        keys = certificates(pathlib.Path(name, "keys"), "--no-keep-authority")
        runs.check(not list(pathlib.Path(name).rglob("ca.key")), "the authority's key is nowhere")
        code, said = leeway("certificates", keys)
        runs.check(code == 2 and "ca.key is missing, so this authority can issue no more certificates" in said, said.strip())


def token_rolled():
    """A new token in three steps, while the job trains and processes die in each step: no process is refused."""
    with tempfile.TemporaryDirectory() as folder, secure_cluster(training_job(), certificates(folder)) as run:
        keys = pathlib.Path(folder)
        run.wait_for(lambda r: r.max_clock() >= 50, "the job to train")
        address = run.address(0)
        old, new = (keys / "token").read_text().strip(), "0123456789abcdef-the-new-one"
        heard = lambda token: asked(address, keys, "status", token)[0].name == "OK"
        for step, (lines, victim) in enumerate([([old, new], ("worker", 1)), ([new, old], ("server", 1)),
                                                ([new], ("worker", 0))]):
            (keys / "next").write_text("\n".join(lines) + "\n")
            (keys / "next").rename(keys / "token")
            until = time.monotonic() + 30
            while [heard(old), heard(new)] != [old in lines, new in lines] and time.monotonic() < until:
                time.sleep(0.2)
            runs.check([heard(old), heard(new)] == [old in lines, new in lines], f"step {step}: {len(lines)} accepted")
            # The other processes check as often.
            time.sleep(2)
            run.kill(victim)
            clock = run.max_clock()
            run.wait_for(lambda r, at=clock + 50: r.max_clock() >= at, "the job to train on", 120)
        run.finish()
        lives = {str(program): program.lives for program in run.programs}
        runs.check(lives == {"server 0": 1, "server 1": 2, "worker 0": 2, "worker 1": 2}, f"lives: {lives}")


def named_certificate(keys, name):
    """Issues a server's certificate as a tool that knows no roles would: it has the host's name only."""
    folder = keys / "named"
    folder.mkdir()
    make = lambda *words: subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    make("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "tls.key", "-out",
         folder / "csr", "-subj", "/CN=a server", "-addext", f"subjectAltName=DNS:{name}")
    make("x509", "-req", "-in", folder / "csr", "-CA", keys / "ca.crt", "-CAkey", keys / "ca.key", "-CAcreateserial",
         "-copy_extensions", "copy", "-days", "2", "-out", folder / "tls.crt")
    (folder / "ca.crt").write_bytes((keys / "ca.crt").read_bytes())
    return folder


def by_name():
    """In mode tls a server's certificate may have the name of its address in place of a role; any other name is
    refused."""
    with tempfile.TemporaryDirectory() as folder:
        reach_by_name(certificates(folder))


def reach_by_name(keys):
    folder = named_certificate(keys, "localhost")
    run = Cluster(training_job(), servers=1, workers=0)
    reached = run.reached
    listen = reached(0)[1].replace("127.0.0.1", "localhost")
    run.reached = lambda number: ["--listen", listen, "--tls", "tls", "--tls-dir", str(folder)]
    with run:
        port = listen.rsplit(":", 1)[1]
        run.wait_for(lambda r: r.events("server_registered"), "server 0")
        secret = ["--tls", "tls", "--tls-ca", keys / "ca.crt"]
        code, said = leeway("status", f"localhost:{port}", *secret)
        runs.check(code == 0, f"by its name: {said.splitlines()[0]}")
        code, said = leeway("status", f"127.0.0.1:{port}", *secret)
        runs.check(code != 0 and re.search("Hostname Verification Check failed|handshake", said), said.strip())


CASES = {"killed": lambda: killed(False), "killed-replicas": lambda: killed(True),
         "killed-tcp": lambda: killed(True, ["tcp"]), "commands": commands,
         "rolled": rolled, "by-name": by_name, "domains": domains, "authority": certificates_kept,
         "token-rolled": token_rolled,
         "damaged": lambda: damaged(whats=["no certificate's bytes"]), "damaged-all": damaged}

if __name__ == "__main__":
    runs.main(CASES)
