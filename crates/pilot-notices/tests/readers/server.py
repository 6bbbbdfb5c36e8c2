"""A mail server: prints its port, and then each accepted mail as Python's own library reads it, as JSON on a line.

Usage: server.py implicit|starttls|clear CERTIFICATE KEY
"""

import asyncio
import json
import logging
import ssl
import sys
from email import message_from_bytes
from email.policy import default

from aiosmtpd.smtp import SMTP, AuthResult

# It warns of what the tests ask it for.
logging.disable()

REFUSALS = {
    "unknown@example.com": "550 5.1.1 <unknown@example.com>: no such \x1b[31mrecipient " + "x" * 300,
    "later@example.com": "451 4.3.0 Try again later",
    "access@example.com": "530 5.7.0 Authentication required",
}


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in REFUSALS:
            return REFUSALS[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.content, policy=default)
        if mail["Subject"].startswith("Spam"):
            return "554 5.7.1 Not wanted"
        seen = {
            "hello": session.host_name,
            "login": session.authenticated,
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": {name: str(value) for name, value in mail.items()},
            "type": mail.get_content_type(),
            "parts": [[part.get_content_type(), part.get_content().replace("\r\n", "\n")] for part in mail.iter_parts()],
            "defects": [str(defect) for part in mail.walk() for defect in part.defects],
        }
        print(json.dumps(seen), flush=True)
        return "250 Accepted"


def authenticate(server, session, envelope, mechanism, data):
    good = data.login == b"pilot" and data.password == b"correct horse"
    return AuthResult(success=good, handled=False)


async def main(mode, certificate, key):
    context = None
    if mode != "clear":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)

    def session():
        return SMTP(
            Handler(),
            hostname="mail.example.com",
            tls_context=context if mode == "starttls" else None,
            require_starttls=mode == "starttls",
            authenticator=authenticate,
            auth_required=mode != "clear",
            # It only knows of TLS that it has started itself.
            auth_require_tls=mode == "starttls",
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=context if mode == "implicit" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
