/** Bearer tokens: reading a token from a request, and finding its owner in constant time. */
import { createSha256, invalidOption } from "@statewright/core/adapter";

/** Minimum characters of a token. */
const minTokenLength = 16;

/** Owner of a secret token. */
export interface TokenOwner<Owner> {
  /** Name of the owner in messages. */
  readonly name: string;
  readonly token: string;
  readonly owner: Owner;
}

/** Creates a random token of 256 bits. */
export function createToken(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/**
 * Returns a function that finds the owner of a token. It compares digests and visits all owners, so its time tells
 * nothing about the tokens. Throws `invalid_option` for a token below 16 characters, and for a token of two owners.
 */
export function createTokenFinder<Owner>(
  where: string,
  owners: readonly TokenOwner<Owner>[],
): (token: string) => Owner | undefined {
  const known = owners.map(({ name, token, owner }) => {
    if (typeof token !== "string" || token.length < minTokenLength)
      throw invalidOption({
        where,
        expected: `a token of at least ${minTokenLength} characters for "${name}"`,
        found: typeof token === "string" ? `${token.length} characters` : typeof token,
        fix: 'Use a random token, such as randomBytes(32).toString("base64url")',
      });
    return { owner, digest: hashToken(token) };
  });
  if (new Set(known.map(({ digest }) => digest)).size < known.length)
    throw invalidOption({
      where,
      option: "tokens",
      expected: "a different token for each client",
      found: "two clients with the same token",
      fix: "Use a different token for each client",
    });
  return (token) => {
    const digest = hashToken(token);
    let found: Owner | undefined;
    for (const each of known) if (hasEqualText(each.digest, digest)) found = each.owner;
    return found;
  };
}

const tokenPattern = "[A-Za-z0-9._~+/=-]{1,8192}";
const bearerPattern = new RegExp(`^Bearer (${tokenPattern})$`, "i");
const keyPattern = new RegExp(`^${tokenPattern}$`);

/** Returns the token of the header `authorization`, of the scheme Bearer. */
export function getBearerToken({ headers }: Request): string | undefined {
  return bearerPattern.exec(headers.get("authorization") ?? "")?.[1];
}

/** Returns the token of the header `authorization`, otherwise of `x-api-key`. Path and query hold no token. */
export function getToken(request: Request): string | undefined {
  const { headers } = request;
  if (headers.has("authorization")) return getBearerToken(request);
  return keyPattern.exec(headers.get("x-api-key") ?? "")?.[0];
}

function hashToken(token: string): string {
  const hash = createSha256();
  hash.add(new TextEncoder().encode(token));
  return hash.finish();
}

/** Compares two texts of equal length in a time that is independent of their content. */
function hasEqualText(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let index = 0; index < a.length; index++) difference |= a.charCodeAt(index) ^ b.charCodeAt(index);
  return difference === 0;
}
