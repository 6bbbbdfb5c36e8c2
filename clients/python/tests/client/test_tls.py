"""Certificates: whom a client believes, and that it does not insist where it does not."""

import datetime
import http.server
import ssl
import tempfile
import threading
import unittest
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from scripted import Clock, new_token

from pilot_client import Pilot, PilotError, Unavailable


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def certificate(directory: Path) -> Path:
    """For localhost, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    signed = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    path = directory / "localhost.pem"
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(private + signed.sign(key, hashes.SHA256()).public_bytes(pem))
    return path


class Tls(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.pem = certificate(Path(directory.name))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def session(self, host, **options):
        clock = Clock()
        with Pilot(
            f"https://{host}:{self.port}", token=new_token, sleep=clock.sleep, clock=clock.read, **options
        ) as pilot:
            try:
                return pilot.get_session(), clock.pauses
            except PilotError as error:
                return error, clock.pauses

    def test_an_issuer_that_was_named_is_trusted(self):
        self.assertEqual(self.session("localhost", ca_file=self.pem), ({}, []))

    def test_another_issuer_and_another_name_are_refused_at_once(self):
        for host, options in (("localhost", {}), ("127.0.0.1", {"ca_file": self.pem})):
            error, pauses = self.session(host, **options)
            self.assertIsInstance(error, PilotError)
            self.assertNotIsInstance(error, Unavailable)
            self.assertIn("certificate is not trusted", str(error))
            self.assertEqual(pauses, [])


if __name__ == "__main__":
    unittest.main()
