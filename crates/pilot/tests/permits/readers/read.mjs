// Reads a permit token as a target written in JavaScript would: from the issuer's address to verified claims.
//
// Usage: node read.mjs ISSUER AUDIENCE < token
import { readFileSync } from 'node:fs';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const [issuer, audience] = process.argv.slice(2);
const token = readFileSync(0, 'utf8').trim();
const found = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
if (found.issuer !== issuer) throw new Error(`the metadata is of ${found.issuer}`);
const keys = createRemoteJWKSet(new URL(found.jwks_uri));
const options = { issuer, audience, algorithms: ['ES256'], typ: 'JWT', requiredClaims: ['exp', 'nbf', 'jti', 'sub'] };
try {
  const { payload } = await jwtVerify(token, keys, options);
  console.log(JSON.stringify(payload));
} catch (error) {
  console.error(error.code ?? error.message);
  process.exit(1);
}
