/** Security schemes: the secrets of an operation, and their location in a request. */
import { type InjectionKind, type InjectionSource, inject, type SecretValue } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { isJsonObject } from "@statewright/json-schema";
import { type Document, getText, resolveRefs, toList, toMap } from "./document.ts";
import { percentEncode, toWellFormed } from "./parameter-style.ts";
import type { ParameterLocation } from "./parameters.ts";

/**
 * Secret names of a scheme: a single name of a key or a token, or the names of user name and password. Resolved from
 * the secrets of the run at each call, so a source can return a fresh token each time.
 */
export type OpenApiAuth = string | { readonly username: string; readonly password: string } | CustomScheme;

/** Custom scheme, missing in the document: sent with every operation. */
export interface CustomScheme {
  /** Name of the secret. */
  readonly secret: string;
  readonly in: "query" | "cookie" | "header";
  /** Name of the header, the query parameter or the cookie. */
  readonly name: string;
  /** Prefix of the secret, such as `Bearer `. */
  readonly prefix?: string;
}

/** Security scheme of an operation. */
export interface Credential {
  readonly scheme: string;
  /** Names of its secrets: one, or user name and password. */
  readonly secrets: readonly string[];
  readonly put: { readonly in: "query" | "cookie" | "header"; readonly name: string; readonly prefix: string };
}

/** Credential with resolved secrets, for a single call. */
export interface ResolvedCredential {
  readonly put: Credential["put"];
  readonly text: string;
  /** Texts to redact in responses. */
  readonly secrets: readonly string[];
}

/** Prefix of injection names; no argument name contains a dot. */
const injectionPrefix = "auth.";

/**
 * Lists the credentials of an operation: all custom schemes, and the first alternative of the document with all
 * schemes in `auth`. Throws `invalid_option` if a required scheme is missing.
 */
export function listCredentials(
  document: Document,
  operation: unknown,
  auth: Readonly<Record<string, OpenApiAuth>> | false,
  operationName: string,
): readonly Credential[] {
  if (auth === false) return [];
  const available = Object.entries(auth).map(([scheme, each]) => createCredential(document, scheme, each));
  const custom = available.filter(({ isCustom }) => isCustom);
  const alternatives = toList(operation ?? document.root["security"]).map((wanted) => Object.keys(toMap(wanted)));
  const chosen = alternatives.find(
    (wanted) => wanted.length > 0 && wanted.every((scheme) => available.some((each) => each.scheme === scheme)),
  );
  if (chosen !== undefined) return available.filter(({ scheme, isCustom }) => isCustom || chosen.includes(scheme));
  if (custom.length > 0 || alternatives.length === 0 || alternatives.some((wanted) => wanted.length === 0))
    return custom;
  const wanted = alternatives.map((schemes) => schemes.join(" and ")).join(", or ");
  throw invalidOption({
    where: `loadOpenApi: ${operationName}`,
    option: "auth",
    expected: `set for the security scheme ${wanted}`,
    found: "no secret of the scheme",
    fix: `Pass auth: { ${alternatives[0]?.[0]}: "NAME_OF_A_SECRET" }, or auth: false to send no credentials`,
  });
}

/** Throws `invalid_option` for an unknown scheme: a misspelt name would never be sent. */
export function checkAuth(document: Document, auth: Readonly<Record<string, OpenApiAuth>> | false): void {
  for (const [scheme, schemeAuth] of Object.entries(auth === false ? {} : auth))
    createCredential(document, scheme, schemeAuth);
}

/** Returns the injections of a tool with these credentials, by name. */
export function getInjectionKinds(credentials: readonly Credential[]): Readonly<Record<string, InjectionKind>> {
  return Object.fromEntries(credentials.map(({ scheme }) => [injectionPrefix + scheme, "secret"]));
}

/** Secrets of a call, by the names of {@link getInjectionKinds}. Printing a secret shows no text. */
export type InjectedSecrets = Readonly<Record<string, readonly SecretValue[]>>;

/** Resolves the secrets of a call. */
export async function resolveSecrets(
  credentials: readonly Credential[],
  source: InjectionSource,
): Promise<InjectedSecrets> {
  const resolved: [string, readonly SecretValue[]][] = [];
  for (const { scheme, secrets } of credentials) {
    const values: SecretValue[] = [];
    for (const name of secrets) values.push(await inject.secret(name).resolve(source));
    resolved.push([injectionPrefix + scheme, values]);
  }
  return Object.fromEntries(resolved);
}

/** Combines credentials with their secrets. */
export function resolveCredentials(
  credentials: readonly Credential[],
  injected: InjectedSecrets,
): readonly ResolvedCredential[] {
  return credentials.map(({ scheme, put }) => {
    const texts = (injected[injectionPrefix + scheme] ?? []).map((value) => value.reveal());
    if (texts.length === 1) return { put, text: put.prefix + texts.join(""), secrets: texts };
    const pair = Buffer.from(texts.join(":")).toString("base64");
    return { put, text: put.prefix + pair, secrets: [pair, ...texts.slice(1)] };
  });
}

/** Redacts the secrets in a text, in every encoding that a response may contain. */
export function redactSecrets(text: string, credentials: readonly ResolvedCredential[]): string {
  let redacted = text;
  const forms = credentials
    .flatMap(({ secrets }) => secrets)
    .flatMap((each) => [
      each,
      JSON.stringify(each).slice(1, -1),
      percentEncode(each),
      encodeURIComponent(toWellFormed(each)),
    ])
    .filter((form) => form.length >= 4)
    .sort((first, second) => second.length - first.length);
  for (const form of forms) redacted = redacted.replaceAll(form, "[secret]");
  return redacted;
}

/** Returns true if the parameter is a credential, which the model must not set. */
export function isCredential(credentials: readonly Credential[], place: ParameterLocation, name: string): boolean {
  const isSameName = (other: string): boolean =>
    place === "header" ? other.toLowerCase() === name.toLowerCase() : other === name;
  return credentials.some(({ put }) => put.in === place && isSameName(put.name));
}

function createCredential(
  document: Document,
  scheme: string,
  auth: OpenApiAuth,
): Credential & { readonly isCustom: boolean } {
  const schemes = toMap(toMap(document.root["components"])["securitySchemes"]);
  if (isCustomScheme(auth)) return createCustomCredential(scheme, auth);
  if (!Object.hasOwn(schemes, scheme)) {
    const known = Object.keys(schemes).join(", ") || "none";
    throw invalidOption({
      where: "loadOpenApi",
      option: "auth",
      expected: "secrets of the security schemes of the document",
      found: `the unknown scheme "${scheme}"`,
      fix: `Use one of the schemes ${known}, or a custom scheme { secret, in, name }`,
    });
  }
  const schemePart = resolveRefs(document, schemes[scheme], `the security scheme "${scheme}"`);
  const kind = `${schemePart["type"]} ${String(schemePart["scheme"] ?? "").toLowerCase()}`.trim();
  const build = (put: Credential["put"], ...secrets: readonly string[]) => ({ scheme, secrets, put, isCustom: false });
  if (kind === "http basic") {
    if (isJsonObject(auth) && areNonEmptyTexts(auth["username"], auth["password"]))
      return build(
        { in: "header", name: "authorization", prefix: "Basic " },
        `${auth["username"]}`,
        `${auth["password"]}`,
      );
    throw invalidOption({
      where: "loadOpenApi",
      option: `auth.${scheme}`,
      expected: "{ username, password } with the names of two secrets",
      got: auth,
    });
  }
  if (typeof auth !== "string" || auth === "")
    throw invalidOption({
      where: "loadOpenApi",
      option: `auth.${scheme}`,
      expected: "the name of a secret",
      got: auth,
      fix: `Pass { ${scheme}: "NAME_OF_A_SECRET" }`,
    });
  if (kind === "http bearer" || schemePart["type"] === "oauth2" || schemePart["type"] === "openIdConnect")
    return build({ in: "header", name: "authorization", prefix: "Bearer " }, auth);
  const name = getText(schemePart, "name");
  const location = schemePart["in"];
  if (schemePart["type"] === "apiKey" && name !== undefined && isCredentialLocation(location))
    return build({ in: location, name, prefix: "" }, auth);
  throw invalidOption({
    where: "loadOpenApi",
    option: `auth.${scheme}`,
    expected: "a scheme of a supported type",
    found: `a scheme of the type ${kind}`,
    fix: "Remove the scheme from auth, or use another scheme",
  });
}

function createCustomCredential(scheme: string, auth: CustomScheme): Credential & { readonly isCustom: boolean } {
  const { secret: name, in: place, name: target, prefix: secretPrefix = "" } = auth;
  if (areNonEmptyTexts(name, target, `${secretPrefix}.`) && isCredentialLocation(place))
    return { scheme, secrets: [name], put: { in: place, name: target, prefix: secretPrefix }, isCustom: true };
  throw invalidOption({
    where: "loadOpenApi",
    option: `auth.${scheme}`,
    expected: "a custom scheme { secret, in, name }",
    found: "an invalid scheme",
    fix: 'Pass { secret: "NAME", in: "header", name: "authorization" }',
  });
}

function isCustomScheme(auth: OpenApiAuth): auth is CustomScheme {
  return isJsonObject(auth) && "secret" in auth;
}

function areNonEmptyTexts(...values: readonly unknown[]): boolean {
  return values.every((name) => typeof name === "string" && name !== "");
}

function isCredentialLocation(value: unknown): value is "query" | "cookie" | "header" {
  return value === "query" || value === "cookie" || value === "header";
}
