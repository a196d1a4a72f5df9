/** Security schemes: which secrets an operation needs, and where they are put in a request. */
import {
  type InjectionKind,
  type InjectionSource,
  type SecretValue,
  StatewrightError,
  secret,
} from "@statewright/core";
import { isObject } from "../protocol.ts";
import { type Document, followed, listOf, mapOf, textAt } from "./document.ts";
import { encoded, wellFormed } from "./parameter-style.ts";
import type { ParameterPlace } from "./parameters.ts";

/**
 * The secrets of a scheme by their names: one, such as a key or a token, or a user's name and password. Both are looked up in
 * the secrets of the run when a call is made, so a source that fetches a fresh token is asked each time.
 */
export type OpenApiAuth = string | { readonly username: string; readonly password: string } | OwnScheme;

/** A scheme that the document lacks: it goes with every operation. */
export interface OwnScheme {
  /** The name of the secret. */
  readonly secret: string;
  readonly in: "query" | "cookie" | "header";
  /** Of the header, the parameter or the cookie. */
  readonly name: string;
  /** What stands before the secret, such as `Bearer `. */
  readonly prefix?: string;
}

/** One scheme that an operation is asked with. */
export interface Credential {
  readonly scheme: string;
  /** The names of its secrets: one, or a user's name and password. */
  readonly secrets: readonly string[];
  readonly put: { readonly in: "query" | "cookie" | "header"; readonly name: string; readonly prefix: string };
}

/** A credential in the hands of a call. */
export interface OpenCredential {
  readonly put: Credential["put"];
  readonly text: string;
  /** All that must not be shown. */
  readonly secrets: readonly string[];
}

/** Names of injections begin so, as no argument does. */
const prefix = "auth.";

/**
 * The credentials of an operation: those of the caller's own schemes, and of the first of its alternatives whose schemes are
 * all given. Throws `invalid_option` for an operation that wants what was not given.
 */
export function credentialsOf(
  document: Document,
  operation: unknown,
  auth: Readonly<Record<string, OpenApiAuth>> | false,
  where: string,
): readonly Credential[] {
  if (auth === false) return [];
  const given = Object.entries(auth).map(([scheme, each]) => credential(document, scheme, each));
  const own = given.filter(({ isOwn }) => isOwn);
  const alternatives = listOf(operation ?? document.root["security"]).map((wanted) => Object.keys(mapOf(wanted)));
  const chosen = alternatives.find(
    (wanted) => wanted.length > 0 && wanted.every((scheme) => given.some((each) => each.scheme === scheme)),
  );
  if (chosen !== undefined) return given.filter(({ scheme, isOwn }) => isOwn || chosen.includes(scheme));
  if (own.length > 0 || alternatives.length === 0 || alternatives.some((wanted) => wanted.length === 0)) return own;
  const wanted = alternatives.map((schemes) => schemes.join(" and ")).join(", or ");
  throw unfit(
    `${where} wants the security scheme ${wanted}, which is not given`,
    `Give auth: { ${alternatives[0]?.[0]}: "NAME_OF_A_SECRET" }, or auth: false to ask without`,
  );
}

/** Refuse schemes that the document does not have: one that is misspelt would never be sent. */
export function checkAuth(document: Document, auth: Readonly<Record<string, OpenApiAuth>> | false): void {
  for (const [scheme, given] of Object.entries(auth === false ? {} : auth)) credential(document, scheme, given);
}

/** What a tool with these credentials injects, by name. */
export function injectionKinds(credentials: readonly Credential[]): Readonly<Record<string, InjectionKind>> {
  return Object.fromEntries(credentials.map(({ scheme }) => [prefix + scheme, "secret"]));
}

/** Secrets as a call is given them, by the names of {@link injectionKinds}: printed, they show nothing. */
export type InjectedSecrets = Readonly<Record<string, readonly SecretValue[]>>;

/** Look the secrets up, when a call is made. */
export async function injectedSecrets(
  credentials: readonly Credential[],
  source: InjectionSource,
): Promise<InjectedSecrets> {
  const found: [string, readonly SecretValue[]][] = [];
  for (const { scheme, secrets } of credentials) {
    const values: SecretValue[] = [];
    for (const name of secrets) values.push(await secret(name).resolve(source));
    found.push([prefix + scheme, values]);
  }
  return Object.fromEntries(found);
}

/** The credentials with their secrets. */
export function openCredentials(
  credentials: readonly Credential[],
  injected: InjectedSecrets,
): readonly OpenCredential[] {
  return credentials.map(({ scheme, put }) => {
    const texts = (injected[prefix + scheme] ?? []).map((value) => value.reveal());
    if (texts.length === 1) return { put, text: put.prefix + texts.join(""), secrets: texts };
    const pair = Buffer.from(texts.join(":")).toString("base64");
    return { put, text: put.prefix + pair, secrets: [pair, ...texts.slice(1)] };
  });
}

/** Text without the secrets, in whatever way an answer may hold them. */
export function withoutSecrets(text: string, credentials: readonly OpenCredential[]): string {
  let clean = text;
  const forms = credentials
    .flatMap(({ secrets }) => secrets)
    .flatMap((each) => [each, JSON.stringify(each).slice(1, -1), encoded(each), encodeURIComponent(wellFormed(each))])
    .filter((form) => form.length >= 4)
    .sort((one, other) => other.length - one.length);
  for (const form of forms) clean = clean.replaceAll(form, "[secret]");
  return clean;
}

/** Whether a parameter is where a credential is put: it is not the model's to give. */
export function isCredential(credentials: readonly Credential[], place: ParameterPlace, name: string): boolean {
  const same = (one: string): boolean => (place === "header" ? one.toLowerCase() === name.toLowerCase() : one === name);
  return credentials.some(({ put }) => put.in === place && same(put.name));
}

function credential(document: Document, scheme: string, auth: OpenApiAuth): Credential & { readonly isOwn: boolean } {
  const schemes = mapOf(mapOf(document.root["components"])["securitySchemes"]);
  if (isOwnScheme(auth)) return ownCredential(scheme, auth);
  if (!Object.hasOwn(schemes, scheme)) {
    const known = Object.keys(schemes).join(", ") || "none";
    throw unfit(
      `the document has no security scheme "${scheme}"`,
      `Its schemes are: ${known}. Give one of your own as { secret, in, name }`,
    );
  }
  const said = followed(document, schemes[scheme], `the security scheme "${scheme}"`);
  const kind = `${said["type"]} ${String(said["scheme"] ?? "").toLowerCase()}`.trim();
  const made = (put: Credential["put"], ...secrets: readonly string[]) => ({ scheme, secrets, put, isOwn: false });
  if (kind === "http basic") {
    if (isObject(auth) && areNames(auth["username"], auth["password"]))
      return made(
        { in: "header", name: "authorization", prefix: "Basic " },
        `${auth["username"]}`,
        `${auth["password"]}`,
      );
    throw unfit(`"${scheme}" is a name and a password`, "Give { username, password }, the names of two secrets");
  }
  if (typeof auth !== "string" || auth === "")
    throw unfit(`the auth of "${scheme}" names no secret`, `Give { ${scheme}: "NAME_OF_A_SECRET" }`);
  if (kind === "http bearer" || said["type"] === "oauth2" || said["type"] === "openIdConnect")
    return made({ in: "header", name: "authorization", prefix: "Bearer " }, auth);
  const name = textAt(said, "name");
  const at = said["in"];
  if (said["type"] === "apiKey" && name !== undefined && isPlace(at)) return made({ in: at, name, prefix: "" }, auth);
  throw unfit(`"${scheme}" is of the kind ${kind}, which is not known`, "Leave it out, or ask with another scheme");
}

function ownCredential(scheme: string, auth: OwnScheme): Credential & { readonly isOwn: boolean } {
  const { secret: name, in: place, name: at, prefix: before = "" } = auth;
  if (areNames(name, at, `${before}.`) && isPlace(place))
    return { scheme, secrets: [name], put: { in: place, name: at, prefix: before }, isOwn: true };
  throw unfit(`the auth of "${scheme}" is no scheme`, 'Give { secret: "NAME", in: "header", name: "authorization" }');
}

function isOwnScheme(auth: OpenApiAuth): auth is OwnScheme {
  return isObject(auth) && "secret" in auth;
}

function areNames(...given: readonly unknown[]): boolean {
  return given.every((name) => typeof name === "string" && name !== "");
}

function isPlace(given: unknown): given is "query" | "cookie" | "header" {
  return given === "query" || given === "cookie" || given === "header";
}

function unfit(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what, next });
}
