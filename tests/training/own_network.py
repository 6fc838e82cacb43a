"""A loopback interface of the test's own. Tests run at the same time, and a server that is started again needs the
port that it had: here nobody else can take it meanwhile."""

import ctypes
import fcntl
import socket
import struct

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def enter():
    """Moves this process, before it has threads, and all that it starts into a network namespace of its own. Where
    the system does not permit that (it takes root) everything stays as it is."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
