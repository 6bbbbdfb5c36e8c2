"""Reads a permit token as a target written in Python would: from the issuer's address to verified claims.

Usage: python3 read.py ISSUER AUDIENCE < token
"""

import json
import sys
import urllib.request

import jwt

issuer, audience = sys.argv[1:]
token = sys.stdin.read().strip()
with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration") as answer:
    found = json.load(answer)
if found["issuer"] != issuer:
    sys.exit(f"the metadata is of {found['issuer']}")
try:
    key = jwt.PyJWKClient(found["jwks_uri"]).get_signing_key_from_jwt(token)
    options = {"require": ["exp", "nbf", "jti", "sub"]}
    claims = jwt.decode(token, key, algorithms=["ES256"], issuer=issuer, audience=audience, options=options)
except jwt.PyJWTError as error:
    sys.exit(type(error).__name__)
print(json.dumps(claims))
