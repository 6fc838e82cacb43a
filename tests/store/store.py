#!/usr/bin/env python3
"""An object store to test with: s3rver, from npm, behind a gate of ours that does what s3rver leaves out. The gate
checks each signature and each checksum, passes a request on only when all of it has arrived, knows which uploads are
unfinished, and injects the faults that a test asks for.

    tests/store/store.py FOLDER      serves the bucket "bucket" from a folder; prints the endpoint, ends with its input
    tests/store/store.py --install   installs s3rver into the build folder, where it is not yet

The access key and the secret are both S3RVER. Exits with 77 where node or npm is missing.
"""

import base64
import ctypes
import dataclasses
import fcntl
import hashlib
import hmac
import http.client
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import xml.sax.saxutils

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
PR_SET_PDEATHSIG = 1
BUCKET = "bucket"
KEY = SECRET = "S3RVER"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}


class Missing(Exception):
    """Says what keeps the store from starting on this machine."""


def installed():
    """Returns the folder with s3rver, below the build folder. It is installed there once."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Missing("node or npm is not installed (nodejs, npm)")
    build = pathlib.Path(os.environ.get("LEEWAY_BIN", HERE.parents[1] / "build/release/bin")).parent
    folder = build / "store"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "installed").exists():
            return folder
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder / name)
        # npm must not try for minutes if there is no registry.
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--fetch-retries", "1", "--fetch-timeout", "10000"],
                              cwd=folder, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(f"npm cannot install s3rver: {done.stderr[-400:]}")
        (folder / "installed").touch()
    return folder


@dataclasses.dataclass
class Request:
    """The request that a fault function decides about. `number` counts from 0."""
    number: int
    method: str
    key: str
    query: dict

    @property
    def operation(self):
        """Returns the operation by S3's name."""
        if "uploadId" in self.query:
            return {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload"}[self.method]
        if "uploads" in self.query:
            return "CreateMultipartUpload" if self.method == "POST" else "ListMultipartUploads"
        if self.method == "GET" and not self.key:
            return "ListObjectsV2"
        return {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}[self.method]


# What a fault function returns: None, or one of these. A Status is the answer in the store's place. A Cut closes the
# connection: in the middle of the body, before the store receives the request, or after it has carried the request out.
# A Slow waits, and then passes the request on.
@dataclasses.dataclass
class Status:
    code: int
    name: str


@dataclasses.dataclass
class Cut:
    where: str  # body, before, after


@dataclasses.dataclass
class Slow:
    seconds: float


def die_with_parent():
    """Runs in the child: however this process ends, the child ends with it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def encode(text):
    return urllib.parse.quote(text, safe="-._~")


def signature_of(handler, secret):
    """Returns the signature that the request must have, by the rules of AWS (version 4), computed from what arrived."""
    fields = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), *SignedHeaders=([^,]+), *Signature=([0-9a-f]+)",
                          handler.headers.get("Authorization", ""))
    if fields is None:
        return None, None
    scope = fields.group(1).split("/", 1)[1]
    path, _, query = handler.path.partition("?")
    pairs = sorted((encode(urllib.parse.unquote(name)), encode(urllib.parse.unquote(value)))
                   for name, _, value in (part.partition("=") for part in query.split("&") if part))
    names = fields.group(2).split(";")
    canonical = "\n".join([
        handler.command, urllib.parse.quote(urllib.parse.unquote(path), safe="-._~/"),
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{' '.join(handler.headers.get(name, '').split())}" for name in names), "", ";".join(names),
        handler.headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return fields.group(3), hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Gate(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None

    def log_message(self, *_):
        pass

    def refuse(self, code, name):
        body = b"" if self.command == "HEAD" else (
            f'<?xml version="1.0"?><Error><Code>{name}</Code><Message>by the gate</Message></Error>').encode()
        self.answer(code, {"Content-Type": "application/xml"}, body)

    def answer(self, code, headers, body):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def cut(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def wrong(self, body):
        """Returns the name of what is wrong with the request; None if nothing is."""
        found = re.search(r"Credential=([^/,]+)/", self.headers.get("Authorization", ""))
        secret, wrong = self.secret_of(found.group(1)) if found else (SECRET, None)
        if wrong:
            return wrong
        given, wanted = signature_of(self, secret)
        if given is None:
            return "AccessDenied"
        if given != wanted:
            return "SignatureDoesNotMatch"
        if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            return "XAmzContentSHA256Mismatch"
        md5 = self.headers.get("Content-MD5")
        if md5 and md5 != base64.b64encode(hashlib.md5(body).digest()).decode():
            return "BadDigest"
        return None

    def secret_of(self, name):
        """Returns the secret of a key, and what is wrong with the key."""
        self.store.keys_used.add(name)
        service = self.store.service
        if service is None or name == KEY:
            return SECRET, None
        key, signed = service.keys.get(name), self.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0]
        if key is None:
            return None, "InvalidAccessKeyId"
        if self.headers.get("x-amz-security-token") != key.session or "x-amz-security-token" not in signed.split(";"):
            return None, "InvalidToken"
        if time.time() >= key.expires:
            self.store.expired += 1
            return None, "ExpiredToken"
        return key.secret, None

    def handle_request(self):
        path, _, query = self.path.partition("?")
        parts = urllib.parse.unquote(path).lstrip("/").split("/", 1)
        request = self.store.count(self.command, parts[1] if len(parts) > 1 else "",
                                   dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        fault = self.store.fault(request)
        length = int(self.headers.get("Content-Length", 0))
        if isinstance(fault, Cut) and fault.where == "body":
            self.rfile.read(length // 2)
            return self.cut()
        body = self.rfile.read(length)
        if isinstance(fault, Slow):
            time.sleep(fault.seconds)
        if isinstance(fault, Status):
            return self.refuse(fault.code, fault.name)
        if isinstance(fault, Cut) and fault.where == "before":
            return self.cut()
        if wrong := self.wrong(body):
            return self.refuse(403 if wrong in ("AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId") else 400, wrong)
        code, headers, answer = self.carry_out(request, body)
        if isinstance(fault, Cut):
            return self.cut()
        return self.answer(code, headers, answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def carry_out(self, request, body):
        """Answers what s3rver does not support: unfinished uploads, and aborting them."""
        store, upload = self.store, request.query.get("uploadId")
        if request.operation == "ListMultipartUploads":
            return 200, {}, store.uploads_text(request.query.get("prefix", ""))
        with store.lock:
            gone = upload is not None and upload not in store.uploads
            if not gone and request.operation == "AbortMultipartUpload":
                del store.uploads[upload]
        if gone:
            return 404, {}, b"<Error><Code>NoSuchUpload</Code></Error>"
        if request.operation == "AbortMultipartUpload":
            return 204, {}, b""
        code, headers, answer = store.forward(self.command, self.path, dict(self.headers), body)
        if code == 200 and request.operation == "ListObjectsV2":
            answer = store.with_prefixes(request.query, answer)
        with store.lock:
            if code == 200 and request.operation == "CreateMultipartUpload":
                found = re.search(rb"<UploadId>(.*?)</UploadId>", answer)
                store.uploads[found.group(1).decode()] = request.key
            if code == 200 and request.operation == "CompleteMultipartUpload":
                store.uploads.pop(upload, None)
        return code, headers, answer


class Store:
    """A store in a folder. A context. `fault(request)` may be set to a function that says what happens to the
    request."""

    def __init__(self, folder, host="127.0.0.1"):
        self.folder, self.host = pathlib.Path(folder), host
        self.fault = lambda request: None
        self.lock = threading.Lock()
        self.requests = []
        # {id: key}
        self.uploads = {}
        # A TokenService of sts.py whose keys are accepted, too; the keys that requests came with; and how many of those
        # keys had expired.
        self.service, self.keys_used, self.expired = None, set(), 0
        # One request at a time for each key, because s3rver overwrites an object in place.
        self.keys = {}

    def __enter__(self):
        program = installed() / "node_modules/s3rver/bin/s3rver.js"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            ["node", "--no-deprecation", "--openssl-legacy-provider", program, "-d", self.folder, "-a", "127.0.0.1", "-p", "0", "-s",
             "--configure-bucket", BUCKET], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            preexec_fn=die_with_parent)
        for line in self.process.stdout:
            if found := re.search(r"listening on (.*):(\d+)", line):
                self.behind = ("127.0.0.1", int(found.group(2)))
                break
        else:
            raise Missing("s3rver does not start")
        handler = type("Handler", (Gate,), {"store": self})
        self.gate = http.server.ThreadingHTTPServer((self.host, 0), handler)
        self.gate.daemon_threads = True
        # Errors of clients that were killed.
        self.gate.handle_error = lambda *_: None
        threading.Thread(target=self.gate.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.gate.shutdown()
        self.gate.server_close()
        self.process.kill()
        self.process.wait()

    @property
    def endpoint(self):
        return f"http://{self.host}:{self.gate.server_address[1]}"

    @property
    def behind_endpoint(self):
        """The endpoint of s3rver itself, past the gate."""
        return f"http://{self.behind[0]}:{self.behind[1]}"

    def environment(self):
        return {**ENVIRONMENT, "AWS_ENDPOINT_URL": self.endpoint}

    def count(self, method, key, query):
        with self.lock:
            request = Request(len(self.requests), method, key, query)
            self.requests.append(request)
            return request

    def forward(self, method, path, headers, body):
        with self.lock:
            key_lock = self.keys.setdefault(path.partition("?")[0], threading.Lock())
        headers.pop("Expect", None)
        # s3rver knows one key, and accepts unsigned requests; the gate has checked the signature.
        headers = {name: value for name, value in headers.items()
                   if name.lower() not in ("authorization", "x-amz-security-token")}
        with key_lock:
            connection = http.client.HTTPConnection(*self.behind, timeout=120)
            try:
                connection.request(method, path, body=body, headers=headers)
                answer = connection.getresponse()
                data = answer.read()
            finally:
                connection.close()
        kept = {name: value for name, value in answer.getheaders()
                if name.lower() not in ("connection", "keep-alive", "transfer-encoding", "date")}
        if method != "HEAD":
            kept.pop("Content-Length", None)
        return answer.status, kept, data

    def uploads_text(self, prefix):
        with self.lock:
            found = [(key, upload) for upload, key in self.uploads.items() if key.startswith(prefix)]
        uploads = "".join(f"<Upload><Key>{xml.sax.saxutils.escape(key)}</Key><UploadId>{upload}</UploadId></Upload>"
                          for key, upload in sorted(found))
        return (f"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{uploads}"
                "</ListMultipartUploadsResult>").encode()

    def with_prefixes(self, query, answer):
        """Adds folders that contain only folders, which s3rver leaves out."""
        if query.get("delimiter") != "/" or "continuation-token" in query or b"<IsTruncated>true" in answer:
            return answer
        prefix = query.get("prefix", "")
        found = {prefix + key[len(prefix):].partition("/")[0] + "/" for key in self.keys_below(prefix)
                 if "/" in key[len(prefix):]}
        entries = {f"<CommonPrefixes><Prefix>{xml.sax.saxutils.escape(one)}</Prefix></CommonPrefixes>".encode() for one in found}
        more = b"".join(sorted(entry for entry in entries if entry not in answer))
        return answer.replace(b"</ListBucketResult>", more + b"</ListBucketResult>")

    def keys_below(self, prefix=""):
        """Returns the keys of all objects, from s3rver's own folder."""
        root, end = self.folder / BUCKET, "._S3rver_object"
        # Not with rglob, because folders of uploads disappear while one looks.
        files = [pathlib.Path(folder) / name for folder, _, names in os.walk(root) for name in names if name.endswith(end)]
        found = [file.relative_to(root).as_posix()[:-len(end)] for file in files]
        return sorted(key for key in found if key.startswith(prefix))


def main():
    try:
        if sys.argv[1] == "--install":
            print(f"s3rver is in {installed()}")
            return 0
        with Store(sys.argv[1]) as store:
            print(store.endpoint, flush=True)
            sys.stdin.read()
    except Missing as why:
        print(f"SKIPPED: {why}", flush=True)
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
