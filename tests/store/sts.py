"""Issues temporary credentials for tests: a security token service, which knows one role and one token, and the agent
beside a container. A Store that is given this service accepts its keys."""

import dataclasses
import http.server
import json
import pathlib
import threading
import time
import urllib.parse

ROLE, SESSION, AGENT_PATH = "arn:aws:iam::123456789012:role/leeway", "leeway-test", "/v1/credentials"


@dataclasses.dataclass
class Key:
    secret: str
    session: str
    expires: float


# What `trouble` may be set to: the name of a refusal, or one of these.
GARBAGE, SILENCE = "<garbage>", "<silence>"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = None

    def log_message(self, *_):
        pass

    def answer(self, code, text):
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def in_trouble(self, refusal):
        trouble = self.service.trouble
        if trouble == GARBAGE:
            self.answer(200, "<html>of a proxy</html>")
        elif trouble == SILENCE:
            self.service.ended.wait(60)
            self.close_connection = True
        elif trouble:
            self.answer(403, refusal(trouble))
        return bool(trouble)

    def do_POST(self):
        """Answers AssumeRoleWithWebIdentity."""
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self.service.requests.append(form)

        def refusal(name):
            return f"<ErrorResponse><Error><Type>Sender</Type><Code>{name}</Code><Message>by the test</Message></Error></ErrorResponse>"
        if self.in_trouble(refusal):
            return
        wanted = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": ROLE, "RoleSessionName": SESSION,
                  "WebIdentityToken": self.service.token}
        if form | {"WebIdentityToken": ""} != wanted | {"WebIdentityToken": ""} or "Authorization" in self.headers:
            return self.answer(400, refusal("ValidationError"))
        if form != wanted:
            return self.answer(400, refusal("ExpiredTokenException"))
        name, key = self.service.give()
        self.answer(200, '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
                    f"<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{name}</AccessKeyId>"
                    f"<SecretAccessKey>{key.secret}</SecretAccessKey><SessionToken>{key.session}</SessionToken>"
                    f"<Expiration>{date(key)}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>"
                    "</AssumeRoleWithWebIdentityResponse>")

    def do_GET(self):
        """Answers as the agent beside a container does."""
        self.service.requests.append(dict(self.headers))
        if self.in_trouble(lambda name: json.dumps({"code": name, "message": f"{name} by the test"})):
            return
        if self.path != AGENT_PATH or self.headers["Authorization"] != self.service.token:
            return self.answer(401, json.dumps({"message": "another token"}))
        name, key = self.service.give()
        self.answer(200, json.dumps({"AccessKeyId": name, "SecretAccessKey": key.secret, "Token": key.session,
                                     "Expiration": date(key)}))


def date(key):
    """Returns the key's date in whole seconds, as STS does."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(key.expires))


class TokenService:
    """A context. `life` is the life of its keys, in seconds."""

    def __init__(self, folder, life):
        self.file, self.life = pathlib.Path(folder) / "token", life
        self.requests, self.keys, self.trouble = [], {}, ""
        self.ended = threading.Event()
        self.rotate("first.token")

    def rotate(self, token):
        """Rotates the token as a kubelet does. The older token is not accepted any more."""
        self.token = token
        new = self.file.with_suffix(".new")
        new.write_text(token + "\n")
        new.replace(self.file)

    def give(self):
        # Expirations are in whole seconds. The reported one must not be later than the key's end here.
        number = len(self.keys) + 1
        key = Key(f"secret{number}", f"session{number}/+=", int(time.time() + self.life))
        self.keys[f"ASIA{number}"] = key
        return f"ASIA{number}", key

    def __enter__(self):
        handler = type("ServiceHandler", (Handler,), {"service": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def web_identity(self):
        return {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL_STS": self.endpoint,
                "AWS_ROLE_ARN": ROLE, "AWS_ROLE_SESSION_NAME": SESSION, "AWS_WEB_IDENTITY_TOKEN_FILE": str(self.file)}

    def agent(self):
        return {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": self.endpoint + AGENT_PATH,
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self.file)}
