"""Checks an attestation as a pipeline with the tools of in-toto would: with the public key as PEM, and nothing of Pilot.

Usage: python3 attestation.py KEY.pem < attestation
"""

import json
import sys

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

with open(sys.argv[1], "rb") as file:
    public_key = load_pem_public_key(file.read())
envelope = json.load(sys.stdin)
# The id is a hint for those who have many keys; the library looks keys up by it.
key = SSlibKey.from_crypto(public_key, keyid=envelope["signatures"][0]["keyid"])
try:
    envelope = Envelope.from_dict(envelope)
    envelope.verify([key], 1)
except VerificationError as error:
    sys.exit(type(error).__name__)
if envelope.payload_type != "application/vnd.in-toto+json":
    sys.exit(f"another kind of payload: {envelope.payload_type}")
print(envelope.payload.decode())
