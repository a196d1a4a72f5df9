/** Authentication of requests: a function of the user, tokens, or no authentication. */
import { checkOptions, invalidOption } from "@statewright/core/adapter";
import { type Caller, checkCaller } from "./caller.ts";
import { createTokenFinder, getToken, type TokenOwner } from "./tokens.ts";

/** Token with the caller that it stands for. */
export interface TokenGrant {
  /** At least 16 characters. */
  readonly token: string;
  /** Tenant of the caller. Default: the id of the caller. */
  readonly tenant?: string;
  /** Rights of the caller, such as `admin`. Default: none. */
  readonly scopes?: readonly string[];
}

/** Ways to know the caller of a request. Exactly one is set. */
export interface AuthenticationOptions {
  /**
   * Returns the caller of a request, or undefined for a request without a valid credential. Take the identity only
   * from what you verify, never from a body or from a header that any client can set.
   */
  readonly authenticate?: ((request: Request) => Caller | undefined | Promise<Caller | undefined>) | undefined;
  /** Token of a single caller `local` in the tenant `local`. At least 16 characters. */
  readonly token?: string | undefined;
  /** Tokens by the id of the caller: a text, or a token with tenant and scopes. */
  readonly tokens?: Readonly<Record<string, string | TokenGrant>> | undefined;
}

/** Returns the caller of a request; undefined for a request without a valid credential. */
export type Authenticate = (request: Request) => Promise<Caller | undefined>;

/** Caller of each request of a server without authentication. */
export const anyone: Caller = Object.freeze({ id: "local", tenant: "local", scopes: Object.freeze([]), claims: {} });

/**
 * Creates the authentication of a server. `"open"` accepts each request as the caller `local`. Throws `invalid_option`
 * for none or several of `authenticate`, `token` and `tokens`, for a short token, and for a token of two callers.
 */
export function createAuthenticator(where: string, options: AuthenticationOptions | "open"): Authenticate {
  if (options === "open") return async () => anyone;
  const { authenticate, token, tokens } = options;
  const given = Object.entries({ authenticate, token, tokens }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (given.length !== 1)
    throw invalidOption({
      where,
      option: "access",
      expected: 'one of authenticate, token and tokens, or "open"',
      found: given.join(" and ") || "none",
      fix: "Pass authenticate, token or tokens",
    });
  if (authenticate !== undefined) {
    if (typeof authenticate !== "function")
      throw invalidOption({ where, option: "authenticate", expected: "a function", got: authenticate });
    return async (request) => {
      const caller = await authenticate(request);
      return caller === undefined ? undefined : checkCaller(`${where}: authenticate`, caller);
    };
  }
  const findOwner = createTokenFinder(where, tokens === undefined ? listSingleToken(token) : listTokens(where, tokens));
  return async (request) => {
    const shown = getToken(request);
    return shown === undefined ? undefined : findOwner(shown);
  };
}

function listSingleToken(token: string | undefined): readonly TokenOwner<Caller>[] {
  return token === undefined ? [] : [{ name: "local", token, owner: anyone }];
}

function listTokens(
  where: string,
  tokens: Readonly<Record<string, string | TokenGrant>>,
): readonly TokenOwner<Caller>[] {
  if (typeof tokens !== "object" || tokens === null)
    throw invalidOption({ where, option: "tokens", expected: "tokens by the id of the caller", got: tokens });
  return Object.entries(tokens).map(([id, grant]) => {
    if (typeof grant === "string")
      return { name: id, token: grant, owner: checkCaller(`${where}: tokens`, { id, tenant: id }) };
    checkOptions(`${where}: tokens["${id}"]`, grant, ["token", "tenant", "scopes"]);
    const { token, tenant = id, scopes = [] } = grant;
    return { name: id, token, owner: checkCaller(`${where}: tokens`, { id, tenant, scopes }) };
  });
}
