#!/usr/bin/python3
"""Stands for ssh in tests: each host is a network namespace. As with sshd, a command there has neither the environment
nor the current folder of the caller. It has a session of its own, and a standard input that ends when this process
does.

    fake_ssh.py [-o OPTION]... HOST COMMAND         LEEWAY_FAKE_SSH: {"prefix": ..., "addresses": {HOST: ADDRESS}, ...}
"""

import json
import os
import shlex
import subprocess
import sys
import threading


def forward(pipe):
    while chunk := os.read(0, 65536):
        try:
            pipe.write(chunk)
        except BrokenPipeError:
            break
    pipe.close()


def main():
    words = sys.argv[1:]
    while words[0] == "-o":
        words = words[2:]
    host, command = words[0], " ".join(words[1:])
    world = json.loads(os.environ["LEEWAY_FAKE_SSH"])
    if host not in world["addresses"]:
        print(f"ssh: Could not resolve hostname {host}: Name or service not known", file=sys.stderr)
        return 255
    address = world["addresses"][host]
    # This host sees a different file system at these paths.
    apart = [f"mount -t tmpfs none {shlex.quote(folder)};" for folder in world.get("apart", {}).get(host, [])]
    within = ["ip", "netns", "exec", world["prefix"] + host, "unshare", "-m", "sh", "-c",
              " ".join([*apart, 'exec sh -c "$1"']), "sh", command]
    environment = {"PATH": world["path"], "HOME": "/", "SSH_CONNECTION": f"10.77.0.1 40000 {address} 22"}
    # Imitates a login shell that prints a greeting whose last line has no end.
    print(f"Welcome to {host}.\n$ ", end="", flush=True)
    child = subprocess.Popen(within, stdin=subprocess.PIPE, bufsize=0, env=environment, cwd="/", start_new_session=True)
    threading.Thread(target=forward, args=(child.stdin,), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 255


if __name__ == "__main__":
    # Without sys.exit, because the thread still waits for the caller.
    sys.stdout.flush()
    status = main()
    sys.stderr.flush()
    os._exit(status)
