/** Identity of callers: tokens, JSON Web Tokens, and what has no effect on it. */
import { serveHttp } from "@statewright/host";
import { createTokenFinder } from "@statewright/host/access";
import { virtualClock } from "@statewright/testing";
import { exportJWK, generateKeyPair, type JSONWebKeySet, type JWTPayload, SignJWT } from "jose";
import { beforeAll, expect, test } from "vitest";
import { jwt } from "../../src/index.ts";
import { type BareServer, bareToken, createBareServer } from "../support/create-bare-server.ts";

const path = "/bare/threads/t";

test("a token is accepted in Authorization or x-api-key only, and no part of it is enough [V104]", async () => {
  const { send, lines } = createBareServer({
    access: {
      tokens: { ann: bareToken, bob: { token: "another-token-long-enough", tenant: "acme", scopes: ["admin"] } },
    },
  });
  const statusOf = async (headers: Readonly<Record<string, string | undefined>>, url = path): Promise<number> =>
    (await send(url, { headers: { authorization: undefined, ...headers } })).status;
  expect(await statusOf({ authorization: `Bearer ${bareToken}` })).toBe(200);
  expect(await statusOf({ authorization: `bearer ${bareToken}` })).toBe(200);
  expect(await statusOf({ "x-api-key": bareToken })).toBe(200);
  const bob = await send(path, { headers: { authorization: "Bearer another-token-long-enough" } });
  expect(JSON.parse(bob.text)).toMatchObject({ caller: { id: "bob", tenant: "acme", scopes: ["admin"] } });
  for (const headers of [
    {},
    { authorization: bareToken },
    { authorization: `Basic ${btoa(`ann:${bareToken}`)}` },
    { authorization: `Bearer ${bareToken.slice(0, -1)}` },
    { authorization: `Bearer ${bareToken}x` },
    { authorization: `Bearer x, Bearer ${bareToken}` },
    { authorization: "Bearer ", "x-api-key": bareToken },
    { "x-api-key": `${bareToken} `.repeat(2) },
    { cookie: `token=${bareToken}` },
    { "x-token": bareToken },
  ])
    expect([headers, await statusOf(headers)]).toEqual([headers, 401]);
  for (const url of [`${path}?token=${bareToken}`, `${path}?api_key=${bareToken}`, `/bare/threads/${bareToken}`])
    expect([url, await statusOf({}, url)]).toEqual([url, 401]);
  expect(
    lines.filter(({ fields }) => JSON.stringify(fields).includes(bareToken)).map(({ fields }) => fields?.["route"]),
  ).toEqual(["/bare/threads/:thread"]);
});

test("a token finds its owner as a whole only, and short or shared tokens are refused [V104]", () => {
  const owners = ["ann", "bob", "eve"].map((name) => ({ name, token: `token-of-${name}-0123456789`, owner: name }));
  const find = createTokenFinder("test", owners);
  expect(owners.map(({ token }) => find(token))).toEqual(["ann", "bob", "eve"]);
  expect(["", "token-of-ann-012345678", "token-of-ann-01234567890", "TOKEN-OF-ANN-0123456789"].map(find)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(() => createTokenFinder("serve", [{ name: "ann", token: "15-characters-x", owner: 1 }])).toThrow(
    'serve: expected a token of at least 16 characters for "ann", got 15 characters',
  );
  expect(() => createTokenFinder("serve", [owners[0]!, { ...owners[0]!, name: "bob" }])).toThrow(
    /two clients with the same token/,
  );
});

test("no header, query or body that a client can set changes the caller [V102]", async () => {
  const { send } = createBareServer();
  const forged = {
    "x-auth-scheme": "langsmith",
    "x-user-id": "root",
    "x-tenant": "globex",
    "x-forwarded-user": "root",
    "x-resource-id": "root",
    forwarded: "for=127.0.0.1",
  };
  const read = await send(`${path}?user_id=root&tenant=globex`, { headers: forged });
  expect(JSON.parse(read.text)).toMatchObject({ caller: { id: "local", tenant: "local", scopes: [] } });
  const anonymous = await send(path, { headers: { ...forged, authorization: undefined } });
  expect(anonymous.status).toBe(401);
  const body = JSON.stringify({
    text: "x",
    more: { user_id: "root", resourceId: "root", forwardedProps: { tenant: "globex" } },
  });
  const posted = await send("/bare/threads/t/runs", { body, headers: forged });
  expect(JSON.parse(posted.text)).toMatchObject({ caller: { id: "local", tenant: "local" } });
});

const issuer = "https://id.example";
const clock = virtualClock();
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let foreign: Awaited<ReturnType<typeof generateKeyPair>>;
let jwks: JSONWebKeySet;

beforeAll(async () => {
  keys = await generateKeyPair("ES256", { extractable: true });
  foreign = await generateKeyPair("ES256", { extractable: true });
  jwks = { keys: [{ ...(await exportJWK(keys.publicKey)), kid: "k1", alg: "ES256" }] };
});

function createJwtServer(): BareServer {
  return createBareServer({ access: { authenticate: jwt({ jwks, issuer, audience: "agents", clock: clock.clock }) } });
}

function sign(claims: JWTPayload, { key = keys.privateKey, exp = 300 } = {}): Promise<string> {
  const now = Math.floor(clock.clock.now() / 1_000);
  return new SignJWT({ iss: issuer, aud: "agents", sub: "ann", exp: now + exp, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "k1" })
    .sign(key);
}

async function sendToken(
  { send }: BareServer,
  token: string,
): Promise<{ readonly status: number; readonly text: string }> {
  return send(path, { headers: { authorization: `Bearer ${token}` } });
}

test("a JSON Web Token of the provider names the caller, and a clock difference of 60 seconds is accepted [V104]", async () => {
  const server = createJwtServer();
  const plain = await sendToken(server, await sign({ scope: "read admin" }));
  expect(JSON.parse(plain.text)).toMatchObject({ caller: { id: "ann", tenant: "ann", scopes: ["read", "admin"] } });
  const long = await sendToken(server, await sign({ sub: "auth0|5f7c8ec7c33c6c004bbafe82", tenant: "acme" }));
  expect(JSON.parse(long.text)).toMatchObject({
    caller: { id: expect.stringMatching(/^[0-9a-f]{40}$/), tenant: "acme" },
  });
  expect((await sendToken(server, await sign({}, { exp: -59 }))).status).toBe(200);
  expect((await sendToken(server, await sign({}, { exp: -61 }))).status).toBe(401);
});

test("a token without a signature, by a shared secret, by the public key as a secret, or of another key is refused [V104]", async () => {
  const server = createJwtServer();
  const now = Math.floor(clock.clock.now() / 1_000);
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: issuer, aud: "agents", sub: "ann", exp: now + 300 };
  const publicText = new TextEncoder().encode(JSON.stringify(jwks.keys[0]));
  const good = await sign({});
  const refused = {
    none: `${encode({ alg: "none" })}.${encode(claims)}.`,
    hmac: await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "k1" }).sign(publicText),
    "another key": await sign({}, { key: foreign.privateKey }),
    "another issuer": await sign({ iss: "https://evil.example" }),
    "another audience": await sign({ aud: "billing" }),
    "no subject": await sign({ sub: "" }),
    "changed claims": `${good.split(".")[0]}.${encode({ ...claims, sub: "root" })}.${good.split(".")[2]}`,
    "not a token": "abcdefghijklmnopqrstuvwxyz",
  };
  for (const [name, token] of Object.entries(refused))
    expect([name, (await sendToken(server, token)).status]).toEqual([name, 401]);
  expect((await sendToken(server, good)).status).toBe(200);
});

test("the key set of a provider is fetched once for many tokens, and a failure of the provider answers 503 [V104]", async () => {
  let fetches = 0;
  const provider = await serveHttp(
    async () => {
      fetches++;
      return Response.json(jwks);
    },
    { port: 0 },
  );
  const options = { issuer, audience: "agents", clock: clock.clock };
  const url = `http://127.0.0.1:${provider.port}/keys`;
  const server = createBareServer({ access: { authenticate: jwt({ ...options, jwks: url }) } });
  const token = await sign({});
  expect([(await sendToken(server, token)).status, (await sendToken(server, token)).status, fetches]).toEqual([
    200, 200, 1,
  ]);
  await provider.close();
  expect((await sendToken(server, token)).status).toBe(200);
  const late = createBareServer({ access: { authenticate: jwt({ ...options, jwks: url }) } });
  const unavailable = await late.send(path, { headers: { authorization: `Bearer ${token}` } });
  expect([unavailable.status, unavailable.code, unavailable.headers.get("retry-after")]).toEqual([
    503,
    "identity_unavailable",
    "5",
  ]);
  expect(() => jwt({ ...options, jwks: "keys" })).toThrow(/`jwks` must be a URL or a key set/);
});
