#!/usr/bin/python3
"""Writes the seeds of the corpora: small complete inputs of every format, from which the fuzzers start.

Usage: seeds.py REPOSITORY; needs protoc. What the fuzzers found later lies beside them and stays.
"""

import gzip
import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
CORPUS = ROOT / "tests/fuzz/corpus"


def save(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{name}").write_bytes(data if isinstance(data, bytes) else data.encode())


def proto(message, file, text):
    """Returns the wire form of a message in protobuf's text format."""
    return subprocess.run(
        ["protoc", f"-I{ROOT}/proto", f"--encode=leeway.v1.{message}", f"leeway/v1/{file}.proto"],
        input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def floats(count, value=0.5):
    return struct.pack(f"<{count}f", *[value * (i + 1) for i in range(count)])


def short(number):
    return struct.pack("<H", number)


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def with_payload(head, field, payload):
    return head + varint(field << 3 | 2) + varint(len(payload)) + payload


def request(method, block, clock, rank=0, size=64, more=""):
    return (f"requests {{ id: {clock * 10 + block + 1} method: EXCHANGE_METHOD_{method} payload_bytes: {size} {more} "
            f"header {{ rank: {rank} incarnation: 1 clock: {clock} block: {block} examples: 10 }} }}\n")


def wire():
    # [what] [mode, workers, rule] [codec of the weights] [slice] frame
    start = request("INITIALIZE", 0, 0) + request("INITIALIZE", 2, 0, size=32)
    exchange = "".join(request("PUSH_PULL", 0, clock) for clock in range(3))
    both = "".join(request("PUSH_PULL", 0, c, r) for c in range(2) for r in range(2))
    reads = request("PULL", 0, 1, size=0) + request("PULL", 0, 0, size=0, more="latest: true")
    push = request("PUSH", 2, 0, size=32)
    cases = {
        "sync": (0x00, 0, start + exchange + reads, 96 + 3 * 64),
        "sync-two": (0x28, 0, start + both + reads, 96 + 4 * 64),
        "async-adam-int8": (0x42, 1, start + exchange + push + reads, 96 + 3 * 64 + 32),
        "bounded-top-k": (0x09, 3, start + both + reads, 96 + 4 * 64),
        "elastic-sign": (0x82, 4, start + exchange + reads, 96 + 3 * 64),
        "elastic-sync-fp16": (0xa8, 2, start + both, 96 + 4 * 64),
    }
    for name, (shape, codec, text, size) in cases.items():
        frame = with_payload(proto("RequestFrame", "parameter_server", text), 15, floats(size // 4))
        save("wire", name, bytes([0, shape, codec, 0]) + frame)
        save("wire", name + "-sliced", bytes([0, shape, codec, 7]) + frame)
    nan = with_payload(proto("RequestFrame", "parameter_server", start + exchange), 15,
                       floats(24) + struct.pack("<f", float("nan")) * 48)
    save("wire", "not-finite", bytes([0, 0, 0, 0]) + nan)
    reply = proto("ReplyFrame", "parameter_server",
                  'replies { id: 1 payload_bytes: 16 version { block: 1 version: 3 } } '
                  'replies { id: 2 code: 14 message: "waiting for worker 1" } '
                  'replies { id: 3 payload_bytes: 8 version { encoding: ENCODING_BF16 } }')
    save("wire", "reply", bytes([1, 4, 5]) + with_payload(reply, 15, floats(6)))
    push = proto("PushRequest", "parameter_server", "header { rank: 1 clock: 2 encoding: ENCODING_INT8 }")
    save("wire", "push", bytes([2, 8, 3]) + with_payload(push, 2, b"\x00\x3c" + bytes(8)))
    pull = proto("PullReply", "parameter_server", "header { block: 1 version: 2 since_version: 1 }")
    save("wire", "pull", bytes([3, 4, 0]) + with_payload(pull, 2, floats(4)))


def codec():
    # [0] [encoding] count [piece] 8 bytes of ranges, payload
    ranges = bytes(range(8))
    top_k = struct.pack("<IB", 2, 3) + b"\x11\x02" + struct.pack("<HH", 0x3f80, 0xbf80)
    payloads = [floats(8), bytes([0x80, 0x3f] * 8), bytes([0, 0x3c] * 8), struct.pack("<f", 0.1) + bytes(range(8)),
                top_k, struct.pack("<f", 0.1) + b"\xa5"]
    for encoding, payload in enumerate(payloads):
        save("codec", f"decode-{encoding}", bytes([0, encoding]) + short(8) + b"\x05" + ranges + payload)
    # [1] [codec] (share) [piece] [repeat] [residual] floats
    for kind in range(6):
        share = b"\x20" if kind == 5 else b""
        save("codec", f"encode-{kind}", bytes([1, kind]) + share + bytes([9, kind, 1]) + floats(12, -0.37))


def blocks(*parts):
    text = ""
    for offset, count, keys in parts:
        values = " ".join(f'values {{ key: "{key}" }}' for key in keys)
        text += f"blocks {{ offset: {offset} count: {count} version: 5 clocks: [5, 5] {values} }}\n"
    return proto("ShardFileHeader", "checkpoint", "clock: 7 servers: 1 " + text)


def checkpoint():
    header = blocks((0, 4, ["weights", "momentum"]), (4, 2, ["weights", "momentum"]))
    save("checkpoint", "shard", bytes([0, 0, 0]) + short(len(header)) + header + floats(12))
    # Positions are right (the header has 60 bytes), but checksums are wrong.
    text = 'servers: 1 blocks { count: 2 version: 5 clocks: 5 values { key: "weights" position: 84 } ' \
           f'values {{ key: "{"m" * 30}" position: 92 }} }}'
    by_hand = proto("ShardFileHeader", "checkpoint", text)
    assert len(by_hand) == 60, len(by_hand)
    save("checkpoint", "shard-by-hand", bytes([0, 0, 1]) + short(60) + by_hand + floats(4))
    save("checkpoint", "shard-as-it-is", bytes([0, 1, 0]) + b"LWSHARD1" + bytes(40) + b"LWSHEND1")
    save("checkpoint", "state", bytes([1, 0]) + struct.pack("<QQI", 77, 7, 1) + b"what a worker keeps")
    save("checkpoint", "state-as-it-is", bytes([1, 1]) + b"LWWORKR1" + bytes(36) + b"LWWKEND1")

    def shard(*parts):
        data = blocks(*parts)
        return short(len(data)) + data + bytes([sum(count * len(keys) for _, count, keys in parts)])

    keys = ["weights", "m"]
    one = bytes([2, 0, 0, 6, 4, 1, 3]) + shard((0, 4, keys), (4, 2, keys))
    two = bytes([2, 1, 0, 10, 4, 3, 4]) + shard((0, 4, keys), (8, 2, keys)) + shard((4, 4, keys))
    save("checkpoint", "whole-of-one", one)
    save("checkpoint", "whole-of-two", two)


def json_file():
    save("json_file", "record",
         b'\0\0{"format": 1, "job_id": "77", "job_sha256": "aa", "generation": "2", "outcome": "JOB_RUNNING"}')
    save("json_file", "manifest",
         b'\0\1{"format": 1, "job_id": "77", "clock": "7", "schema": {"tensors": [{"name": "w", "shape": ["6"]}], '
         b'"trained": "6", "total": "6"}, "job": {"metadata": {"name": "j"}, "update": {"learning_rate": 0.1, '
         b'"sgd": {}}}, "shards": [{"file": "part-0", "bytes": "9", "sha256": "aa"}], '
         b'"worker_states": [{"rank": 1, "file": {"file": "worker-1", "bytes": "3"}}]}')
    save("json_file", "manifest-as-it-is", b'\1\1{}\nsha256 ' + b"0" * 64 + b"\n")


def yaml():
    for name in ["quickstart", "mnist-cnn-top-k", "mnist-easgd", "cifar10-cnn", "heart-federated", "a9a-logistic"]:
        lines = (ROOT / f"config/jobs/{name}.yaml").read_text().splitlines()
        save("yaml", name, "\n".join(line.split(" #")[0] for line in lines if not line.startswith("#")) + "\n")
    small = ("apiVersion: leeway/v1\nkind: TrainingJob\nmetadata: {name: s}\nmodel: {layers: [dense: {units: 2}]}\n"
             "data: {train: {type: idx, images: a, labels: b}, batch_size: 2}\nupdate: {type: sgd, learning_rate: 0.1}\n"
             "stop: {epochs: 2}\n")
    save("yaml", "overrides", small + "\n%%\nstop.clocks=3\nmodel.layers.0.dense.units=5\nworkers.count=3\n")


def data():
    # [format] [loss] [classes where softmax] ...
    images = struct.pack(">4B3I", 0, 0, 8, 3, 2, 2, 2) + bytes(range(8))
    labels = struct.pack(">4BI", 0, 0, 8, 1, 2) + bytes([1, 0])
    save("data", "idx", bytes([0, 0, 3, len(labels)]) + labels + images)
    save("data", "csv", bytes([1, 2, 0xff, 0]) + b"1.5,2,0.25\n\n-3e2, 4 ,+1\r\n")
    save("data", "csv-names", bytes([1, 2, 0xff, 128 + 8]) + b',"a, b",x\n0,1.5,2\n1,?,"3"\n')
    save("data", "csv-categories", bytes([1, 2, 0xff, 64, 0, 0]) + b'a,1,2\n"b c",-1,3\n')
    save("data", "csv-shape", bytes([1, 1, 0, 8 + 16 + 32, 1]) + b"1,?,2,3,4\n0,1,2,3,?\n")
    save("data", "libsvm", bytes([2, 1, 9]) + b"+1 1:0.5 9:2 # so\n-1 2:1e-3\n")
    save("data", "cifar", bytes([3, 0, 10, 2, 0]) + bytes(range(1, 8)))
    save("data", "gzip", bytes([4]) + gzip.compress(b"content, content, content", mtime=0)[2:])
    save("data", "text", bytes([5]) + b"\xef\xbb\xbf1.5\r\n +2 \n1e400\n0x10\nnan\n\x01")


def safetensors():
    def tensor(name, dtype, shape, begin, end):
        return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}'

    header = ('{"__metadata__":{"format":"pt"},' + tensor("a", "F32", [2, 3], 0, 24) + "," + tensor("b", "BF16", [2], 24, 28) +
              "," + tensor("c", "F16", [], 28, 30) + "," + tensor("d", "F64", [1], 30, 38) + "}  ").encode()
    values = floats(6) + bytes([0x80, 0x3f, 0, 0x40]) + bytes([0, 0x3c]) + struct.pack("<d", 0.1)
    save("safetensors", "dtypes", bytes([0]) + short(len(header)) + header + values)
    counter = ("{" + tensor("n", "I64", [], 0, 8) + "}").encode()
    save("safetensors", "counter", bytes([0]) + short(len(counter)) + counter + bytes(8))
    save("safetensors", "as-it-is", bytes([1]) + struct.pack("<Q", 2) + b"{}")


def history():
    save("history", "run", (
        '{"time":1.0,"event":"job_started","workers":2,"resumed":false}\n'
        '{"time":2.0,"event":"step","rank":0,"clock":2,"epoch":0.5,"steps":2,"examples":64,"train_loss":2.3,'
        '"staleness":1,"compute_seconds":0.5,"exchange_seconds":0.1,"wait_seconds":0.05,"bytes_sent":99}\n'
        '{"time":2.5,"event":"evaluation","clock":2,"epoch":0.5,"test_loss":2.2,"test_accuracy":0.4}\n'
        '{"time":2.6,"event":"worker_lost","rank":1,"message":"no sign of life"}\n'
        '{"time":2.7,"event":"went_back","clock":0}\n'
        '{"time":3.0,"event":"step","rank":0,"clock":1,"steps":1,"examples":32,"train_loss":null}\n'
        '{"time":4.0,"event":"job_finished","state":"finished","message":""}\n{"time":5'))


def cores():
    # mode, staleness, workers - 1, elastic, cuts; then [input] and its fields. A sender is rank, life, clock.
    contribute = lambda rank: bytes([2, rank, 0, 0, 1])
    start = bytes([0, 0]) + bytes(4)
    step = contribute(0) + contribute(1) + bytes([6, 0])
    for mode in range(3):
        rank = bytes([6, 0]) if mode else b""
        body = contribute(0) + rank + contribute(1) + bytes([6])
        save("block_core", f"mode-{mode}", bytes([mode, 1, 1, 0, 2]) + start[:2 + (2 if mode else 0)] + body * 3 +
             bytes([5, 0, 0, 0, 0x84]) + bytes([8, 0]))
    save("block_core", "rejected", bytes([0, 0, 1, 0, 0]) + start[:2] + contribute(0) + contribute(1) + bytes([7, 1]) +
         contribute(0) + bytes([6]) + step)
    save("block_core", "elastic", bytes([2, 0, 1, 1, 2]) + start[:4] + step * 2 + bytes([1, 0, 1, 0]))
    # workers - 1, elastic, cuts, blocks - 1, backup, live only; then [block, input] and its fields
    hand_in = lambda block, rank: bytes([block, 0, rank, 0, 1])
    apply = lambda block: bytes([block, 9])
    clock = b"".join(hand_in(b, r) for b in range(2) for r in range(3)) + bytes([0, 6, 0, 0, 8, 1]) + apply(0) + apply(1)
    save("committed_sets", "all", bytes([2, 0, 2, 1, 0, 0]) + clock * 3)
    without = b"".join(hand_in(b, r) for b in range(2) for r in range(2)) + bytes([0, 6, 0, 0, 8, 1]) + hand_in(0, 2)
    save("committed_sets", "backup", bytes([2, 0, 0, 1, 1, 0]) + (without + apply(0) + apply(1) + bytes([1, 4, 2, 0])) * 2)
    # 0 (gate) or 1; floats - 1, shards - 1, shard, slots, previous; then block, lie, version, clocks, shadow, previous, pieces
    state = lambda block, version: bytes([block, 0, version, 2, 1, 1, 2, 2, version & 1, 0, 9, 255])
    save("replica", "states", bytes([1, 40, 0, 0, 1, 1]) + state(0, 0) + state(1, 1) + state(2, 1) + state(0, 1) * 2 + bytes(8))
    save("replica", "gate", bytes([0, 0, 4, 6, 1, 2, 4, 6, 0, 4, 2, 6, 1, 0, 1]))
    # workers, servers, mode, clocks, cuts, elastic; started; then [input] and its fields
    beat = lambda rank, clock: bytes([2, rank, 0, 0, clock, 1])
    leave = lambda rank, clock: bytes([4, rank, 0, 0, clock, 0, 0])
    answer = bytes([11, 0, 0x11])
    for mode in range(3):
        save("coordinator_core", f"mode-{mode}", bytes([1, 1, mode, 3, 2, 0, 1]) + answer * 4 + beat(0, 1) + beat(1, 1) +
             bytes([7, 0, 2, 0, 1, 7, 1, 2, 0, 1]) + answer * 3 + leave(0, 4) + leave(1, 4) + answer * 4)
    save("coordinator_core", "lost", bytes([1, 1, 0, 7, 2, 1, 1]) + answer * 2 + bytes([9, 60]) + bytes([1, 0, 3, 1]) +
         bytes([5, 0, 0, 0, 2]) + bytes([0, 0, 2]) + answer * 5)
    # The third byte from the end of the head: 2 leased, 4 by epochs, 8 resumed.
    lease = bytes([11, 0, 0, 0, 1, 0, 2, 0, 4])
    save("coordinator_core", "leased", bytes([1, 1, 2, 7, 2, 6, 1]) + lease * 6 + bytes([7, 0, 2, 0, 1, 1, 1, 7, 1, 2, 0, 1, 1, 1]) +
         answer * 4 + lease * 3 + bytes([9, 60]) + lease)
    save("coordinator_core", "leased-resumed", bytes([1, 1, 0, 7, 2, 10, 3, 1, 1, 20, 2, 4, 1, 7, 2, 1]) + answer * 6 + lease * 4)
    save("coordinator_core", "stop", bytes([1, 0, 0, 7, 0, 0, 1]) + bytes([8]) + bytes([3, 0, 0, 0, 2]) + leave(0, 3) +
         leave(1, 3) + answer * 6)


for make in (wire, codec, checkpoint, json_file, yaml, data, safetensors, history, cores):
    make()
