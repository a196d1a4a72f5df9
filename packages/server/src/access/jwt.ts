/** Authentication by JSON Web Tokens of an identity provider. */
import type { Clock } from "@statewright/core";
import {
  checkFunction,
  checkOptions,
  createSha256,
  invalidOption,
  listOptionNames,
  systemWorld,
} from "@statewright/core/adapter";
import { getToken } from "@statewright/host/access";
import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from "jose";
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";
import type { Caller } from "./caller.ts";

/** Options of {@link jwt}. */
export interface JwtOptions {
  /** URL of the key set of the identity provider, or the key set. */
  readonly jwks: string | JSONWebKeySet;
  /** Expected `iss`. */
  readonly issuer: string;
  /** Expected `aud`. */
  readonly audience: string;
  /**
   * Returns the caller of verified claims; undefined refuses the token. Default: `sub` is the id, the claim `tenant` or
   * else `sub` the tenant, and `scope` the scopes.
   */
  readonly toCaller?: (claims: Readonly<Record<string, unknown>>) => Caller | undefined;
  /** Clock for `exp` and `nbf`. Default: the clock of the system. */
  readonly clock?: Pick<Clock, "now">;
}

const names = listOptionNames<JwtOptions>({ jwks: true, issuer: true, audience: true, toCaller: true, clock: true });

/** Accepted algorithms: public keys only. A shared secret, or a public key used as one, verifies nothing. */
const algorithms: readonly string[] = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** Accepted difference between the clocks of the provider and of this process, in seconds. */
const clockToleranceSeconds = 60;

/** Codes of errors of a token; another error is one of the key set. */
const tokenErrorCodes: ReadonlySet<unknown> = new Set([
  "ERR_JWT_EXPIRED",
  "ERR_JWT_CLAIM_VALIDATION_FAILED",
  "ERR_JWT_INVALID",
  "ERR_JWS_INVALID",
  "ERR_JWS_SIGNATURE_VERIFICATION_FAILED",
  "ERR_JOSE_ALG_NOT_ALLOWED",
  "ERR_JOSE_NOT_SUPPORTED",
  "ERR_JWKS_NO_MATCHING_KEY",
  "ERR_JWKS_MULTIPLE_MATCHING_KEYS",
]);

/**
 * Creates the option `authenticate` for the tokens of an identity provider. It accepts signatures by public keys only,
 * and a clock difference of 60 seconds; the key set is kept in memory. Throws `invalid_option`.
 *
 * @example
 * const authenticate = jwt({ jwks: "https://id.example/keys", issuer: "https://id.example", audience: "agents" });
 * serve({ engine: host, access: { authenticate } });
 */
export function jwt(options: JwtOptions): (request: Request) => Promise<Caller | undefined> {
  checkOptions("jwt", options, names);
  const { jwks, issuer, audience, toCaller = createCaller, clock = systemWorld().clock } = options;
  checkFunction("jwt", { toCaller });
  for (const [option, value] of Object.entries({ issuer, audience }))
    if (typeof value !== "string" || value === "")
      throw invalidOption({ where: "jwt", option, expected: "a text", got: value });
  if (typeof jwks === "string" && !URL.canParse(jwks))
    throw invalidOption({ where: "jwt", option: "jwks", expected: "a URL or a key set", got: jwks });
  let keys: Promise<JWTVerifyGetKey> | undefined;
  return async (request) => {
    const token = getToken(request);
    if (token === undefined) return undefined;
    keys ??= loadKeys(jwks);
    const claims = await verifyToken(token, await keys, { issuer, audience, currentDate: new Date(clock.now()) });
    return claims === undefined ? undefined : toCaller(claims);
  };
}

async function loadKeys(jwks: string | JSONWebKeySet): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, createRemoteJWKSet } = await import("jose");
  return typeof jwks === "string" ? createRemoteJWKSet(new URL(jwks)) : createLocalJWKSet(jwks);
}

/** Returns the claims of a valid token. Throws 503 when the key set cannot be read. */
async function verifyToken(
  token: string,
  keys: JWTVerifyGetKey,
  expected: { readonly issuer: string; readonly audience: string; readonly currentDate: Date },
): Promise<JWTPayload | undefined> {
  const { jwtVerify } = await import("jose");
  try {
    const { payload } = await jwtVerify(token, keys, {
      ...expected,
      algorithms: [...algorithms],
      clockTolerance: clockToleranceSeconds,
      requiredClaims: ["exp", "sub"],
    });
    return payload;
  } catch (error) {
    const code = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
    if (tokenErrorCodes.has(code)) return undefined;
    throw new RequestProblem(createProblem("identity_unavailable", { retryAfterMs: 5_000 }), { cause: error });
  }
}

function createCaller(claims: Readonly<Record<string, unknown>>): Caller | undefined {
  const { sub, tenant = sub, scope } = claims;
  if (typeof sub !== "string" || sub === "" || typeof tenant !== "string") return undefined;
  return {
    id: toName(sub, /^[A-Za-z0-9_.:@-]{1,128}$/),
    tenant: toName(tenant, /^[A-Za-z0-9_-]{1,40}$/),
    scopes: typeof scope === "string" ? scope.split(" ") : [],
    claims,
  };
}

/** Returns a name that fits the pattern; another name becomes a hash. */
function toName(name: string, pattern: RegExp): string {
  if (pattern.test(name)) return name;
  const hash = createSha256();
  hash.add(new TextEncoder().encode(name));
  return hash.finish().slice(0, 40);
}
