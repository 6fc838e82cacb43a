"""A network for one test: a namespace for each program, on one bridge, and packets that are dropped between two of
them. It needs root, `ip` and `nft`. Without them the test is skipped, and says why."""

import os
import re
import shutil
import subprocess
import sys

from cluster import runs


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Network:
    """Hosts by name. A context: the namespaces are named after this process, and are removed at the end."""

    def __init__(self, hosts):
        self.prefix = f"leeway-{os.getpid()}-"
        # These addresses are only visible inside the namespaces.
        self.addresses = {host: f"10.77.0.{index + 1}" for index, host in enumerate(hosts)}
        self.made = []

    def namespace(self, host):
        return self.prefix + host

    def within(self, host):
        """Returns the beginning of a command that runs on `host`."""
        return ["ip", "netns", "exec", self.namespace(host)]

    def add_namespace(self, host):
        run("ip", "netns", "add", self.namespace(host))
        self.made.append(self.namespace(host))

    def add_host(self, host, address):
        self.add_namespace(host)
        switch, own = self.namespace("switch"), self.namespace(host)
        run("ip", "-n", switch, "link", "add", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", own)
        run("ip", "-n", switch, "link", "set", f"to-{host}", "master", "bridge", "up")
        run("ip", "-n", own, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", own, "link", "set", "eth0", "up")
        run("ip", "-n", own, "link", "set", "lo", "up")
        run(*self.within(host), "nft", "add table inet cuts")
        run(*self.within(host), "nft", "add chain inet cuts incoming { type filter hook input priority 0; }")

    def __enter__(self):
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nft"):
            print("SKIPPED: network namespaces need root, ip and nft")
            sys.exit(runs.SKIPPED)
        try:
            self.add_namespace("switch")
            run("ip", "-n", self.namespace("switch"), "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", self.namespace("switch"), "link", "set", "bridge", "up")
            for host, address in self.addresses.items():
                self.add_host(host, address)
        except OSError as error:
            self.__exit__()
            print(f"SKIPPED: this machine does not permit it: {error}")
            sys.exit(runs.SKIPPED)
        return self

    def __exit__(self, *_):
        for namespace in self.made:
            subprocess.run(["ip", "netns", "del", namespace], check=False)
        self.made = []

    def drop(self, source, target):
        """Drops every packet from `source` to `target`."""
        run(*self.within(target), "nft", f"add rule inet cuts incoming ip saddr {self.addresses[source]} counter drop")

    def heal(self):
        """Ends all drops. Returns how many packets each of them has dropped."""
        lost = []
        for host in self.addresses:
            rules = run(*self.within(host), "nft", "list chain inet cuts incoming")
            lost += [int(packets) for packets in re.findall(r"counter packets (\d+)", rules)]
            run(*self.within(host), "nft", "flush chain inet cuts incoming")
        return lost
