"""The cluster's DNS: A records of the names that Services give to pods, as long as the pods exist."""

import socket
import struct
import threading

TTL_SECONDS = 5
NO_ERROR, NO_SUCH_NAME = 0, 3
TYPE_A, CLASS_IN = 1, 1
ANSWER, AUTHORITATIVE, RECURSION = 0x8000, 0x0400, 0x0080


def read_name(query, at):
    labels = []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += query[at] + 1
    return ".".join(labels).lower(), at + 1


def answer(query, table):
    """Answers a query with one question."""
    number, flags = struct.unpack("!HH", query[:4])
    name, end = read_name(query, 12)
    kind = struct.unpack("!H", query[end:end + 2])[0]
    known = name in table
    found = table.get(name, []) if kind == TYPE_A else []
    head = struct.pack("!HHHHHH", number, ANSWER | AUTHORITATIVE | RECURSION | (flags & 0x0100) |
                       (NO_ERROR if known else NO_SUCH_NAME), 1, len(found), 0, 0)
    records = b"".join(struct.pack("!HHHIH", 0xC00C, TYPE_A, CLASS_IN, TTL_SECONDS, 4) + socket.inet_aton(address)
                       for address in found)
    return head + query[12:end + 4] + records


class Dns:
    """Answers on a UDP socket from `table`, which is replaced as a whole: {full name: [addresses]}."""

    def __init__(self, address):
        self.table = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        # The port is only free again once no thread waits at the socket.
        self.socket.settimeout(0.2)
        self.closing = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while not self.closing:
            try:
                query, sender = self.socket.recvfrom(4096)
                self.socket.sendto(answer(query, self.table), sender)
            except (IndexError, UnicodeDecodeError, struct.error, OSError):
                continue

    def close(self):
        self.closing = True
        self.thread.join()
        self.socket.close()
