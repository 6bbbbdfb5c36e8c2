// An identity provider for the tests: the certified `oidc-provider`, with clients and people as the test wants them.
//
// Takes one argument, a JSON text: `issuer` (without it, where it listens), `audience`, `lifetime` of access tokens in
// seconds, `keys`: a file the signing key is kept in between starts, `clients`: names with secrets, `console`: whether
// pages of this machine may fetch tokens, and `refresh`: whether they can be renewed. Says `ready` and its port.

import { createServer } from 'node:http';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createPrivateKey, generateKeyPairSync, randomUUID, timingSafeEqual } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { Provider } from 'oidc-provider';

const options = JSON.parse(process.argv[2]);
const { audience } = options;
const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address();
const issuer = options.issuer ?? `http://127.0.0.1:${port}`;

function signingKeys() {
  if (options.keys && existsSync(options.keys)) return JSON.parse(readFileSync(options.keys, 'utf8'));
  // By way of text: Node 20 can hang when it exports a key while it lets go of what made that same key.
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const keys = [{ ...createPrivateKey(privateKey).export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }];
  if (options.keys) writeFileSync(options.keys, JSON.stringify(keys), { mode: 0o600 });
  return keys;
}

const keys = signingKeys();
const machine = ([client_id, client_secret]) => ({
  client_id,
  client_secret,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
  token_endpoint_auth_method: 'client_secret_basic',
});
// On this machine, whatever its port (RFC 8252).
const consoleClient = {
  client_id: 'console',
  application_type: 'native',
  grant_types: ['authorization_code', 'refresh_token'],
  redirect_uris: ['http://127.0.0.1/console/signed-in'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};
const terminalClient = {
  client_id: 'pilot-terminal',
  application_type: 'native',
  grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
  redirect_uris: [],
  response_types: [],
  token_endpoint_auth_method: 'none',
};

const provider = new Provider(issuer, {
  clients: [...Object.entries(options.clients ?? {}).map(machine), consoleClient, terminalClient],
  jwks: { keys },
  cookies: { keys: [randomUUID()] },
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  clientBasedCORS: (_, origin) => options.console === true && new URL(origin).hostname === '127.0.0.1',
  issueRefreshToken: () => options.refresh === true,
  pkce: { required: () => true },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        audience: resource,
        scope: 'pilot',
        accessTokenFormat: 'jwt',
        accessTokenTTL: options.lifetime ?? 600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  ttl: { Session: 3600, Grant: 3600, Interaction: 3600, RefreshToken: 3600, IdToken: 600, DeviceCode: 600 },
});

// `oidc-provider` does not answer questions about tokens it keeps no record of, which signed ones are. Others do, so
// here is an endpoint that does, over its keys, with a list of tokens that were revoked.
const revoked = new Set();
const published = createLocalJWKSet({ keys: keys.map(({ kty, n, e, kid, alg }) => ({ kty, n, e, kid, alg })) });

async function body(ctx) {
  const parts = [];
  for await (const part of ctx.req) parts.push(part);
  return new URLSearchParams(Buffer.concat(parts).toString());
}

function isKnown(ctx) {
  const [name, secret] = Buffer.from((ctx.get('authorization') ?? '').replace('Basic ', ''), 'base64').toString().split(':');
  const given = Buffer.from(decodeURIComponent(secret ?? ''));
  const known = Buffer.from(options.clients?.[decodeURIComponent(name)] ?? '');
  return known.length > 0 && known.length === given.length && timingSafeEqual(known, given);
}

// Its own pages want a font from elsewhere; tests have no elsewhere.
provider.use(async (ctx, next) => {
  await next();
  if (typeof ctx.body === 'string') ctx.body = ctx.body.replace(/@import url\(https:[^)]*\);?/g, '');
});

provider.use(async (ctx, next) => {
  if (ctx.method !== 'POST' || !['/status', '/revoke-signed'].includes(ctx.path)) return next();
  if (!isKnown(ctx)) {
    ctx.status = 401;
    return undefined;
  }
  const token = (await body(ctx)).get('token') ?? '';
  const payload = await jwtVerify(token, published, { issuer }).then((verified) => verified.payload, () => undefined);
  if (ctx.path === '/revoke-signed' && payload) revoked.add(payload.jti);
  const active = payload !== undefined && !revoked.has(payload.jti);
  ctx.body = active ? { active, sub: payload.sub, client_id: payload.client_id } : { active };
  return undefined;
});

// What a person does in the browser with the code of a device: says who they are, and yes or no.
provider.use(async (ctx, next) => {
  if (ctx.method !== 'POST' || ctx.path !== '/device-decision') return next();
  if (!isKnown(ctx)) {
    ctx.status = 401;
    return undefined;
  }
  const said = await body(ctx);
  const code = await provider.DeviceCode.findByUserCode(said.get('user_code').replaceAll('-', ''));
  if (said.get('denied')) {
    Object.assign(code, { error: 'access_denied', errorDescription: 'no' });
  } else {
    const accountId = said.get('sub');
    const grant = new provider.Grant({ accountId, clientId: code.clientId });
    grant.addOIDCScope('openid offline_access');
    grant.addResourceScope(code.params.resource ?? audience, 'pilot');
    const scope = code.params.scope ?? '';
    Object.assign(code, { accountId, grantId: await grant.save(), scope, resource: code.params.resource });
    Object.assign(code, { authTime: Math.floor(Date.now() / 1000) });
  }
  await code.save(600);
  ctx.body = {};
  return undefined;
});

server.on('request', provider.callback());
process.stdout.write(`ready ${port}\n`);
