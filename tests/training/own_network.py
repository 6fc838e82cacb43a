"""Gives the test a loopback interface of its own. Tests run at the same time, and a restarted server needs its previous
port: here no other test can take it meanwhile."""

import ctypes
import fcntl
import socket
import struct

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def enter():
    """Moves this process, before it has threads, and all that it starts into a network namespace of its own. If the
    system does not permit that (it needs root), nothing changes."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
