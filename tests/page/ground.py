"""A gateway of the build under test, dealers in front of which it stands, an issuer, and callers."""

import base64
import hashlib
import http.client
import http.server
import json
import pathlib
import subprocess
import threading
import time

from browser import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION, EXTENSION = "1.0", "https://autoagentprotocol.org/extensions/aap/v3.0"


class Dealer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.pause = 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        time.sleep(self.server.pause)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"message": {}}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Signs tokens whose subject can be anything at all."""

    def __init__(self, directory):
        self.key = directory / "issuer.key"
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(self.key))
        modulus = openssl("rsa", "-in", str(self.key), "-noout", "-modulus").decode().strip().split("=")[1]
        key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig",
               "n": base64url(bytes.fromhex(modulus)), "e": "AQAB"}
        (directory / "keys.json").write_text(json.dumps({"keys": [key]}))

    def token(self, subject):
        head = {"alg": "RS256", "typ": "JWT", "kid": "one"}
        claims = {"iss": "https://idp.example", "aud": "forecourt", "sub": subject, "exp": int(time.time()) + 3600}
        signed = ".".join(base64url(json.dumps(it).encode()) for it in (head, claims))
        return signed + "." + base64url(openssl("dgst", "-sha256", "-sign", str(self.key), data=signed.encode()))


def certificate(directory, name, days):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
            "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
            "-keyout", str(directory / f"{name}.key"), "-out", str(directory / f"{name}.pem"))


class Gateway:
    def __init__(self, directory, configuration, admin_port=None):
        self.admin_port = admin_port or free_port()
        self.port = free_port()
        self.file = directory / "forecourt.toml"
        self.write(configuration)
        self.log = open(directory / "gateway.log", "ab")
        self.start()

    def write(self, configuration):
        head = (f'[runtime]\nworkers = 2\n[log]\naccess = "off"\nlevel = "warn"\n'
                f'[listener.public]\naddress = "127.0.0.1:{self.port}"\n')
        after = self.file.with_suffix(".next")
        after.write_text(head + configuration.replace("ADMIN", f"127.0.0.1:{self.admin_port}"))
        after.rename(self.file)

    def start(self):
        program = ROOT / "target/debug/forecourt"
        self.process = subprocess.Popen([program, "run", "--config", self.file], stdout=self.log, stderr=self.log)
        for _ in range(200):
            try:
                if self.admin("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError("the gateway does not start:\n" + pathlib.Path(self.log.name).read_text())

    def stop(self):
        self.process.terminate()
        self.process.wait(10)

    @property
    def page(self):
        return f"http://127.0.0.1:{self.admin_port}/"

    def admin(self, method, path, **headers):
        return ask(self.admin_port, method, path, headers)

    def call(self, path="/a2a", method="SendMessage", version=VERSION, extension=EXTENSION, **headers):
        """One call of a buyer's; the HTTP status of its answer and the error code, if it is an error."""
        headers = {"Content-Type": "application/json", **headers}
        if version:
            headers["A2A-Version"] = version
        if extension:
            headers["A2A-Extensions"] = extension
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                           "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}})
        status, text = ask(self.port, "POST", path, headers, body)
        return status, text


def ask(port, method, path, headers, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()
