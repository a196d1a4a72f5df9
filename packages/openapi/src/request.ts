/** Conversion of a tool call to an HTTP request: URL, headers and body. */
import { createHash } from "node:crypto";
import { ToolError, type ToolRuntime } from "@statewright/core";
import { encodeBody } from "./body.ts";
import { toMap } from "./document.ts";
import type { RequestPlan } from "./operation.ts";
import { encodePairs, encodePathValue, formatHeaderValue, percentEncode } from "./parameter-style.ts";
import type { ResolvedCredential } from "./security.ts";

/** HTTP request. */
export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** Fixed parts of a request. */
export interface RequestOptions {
  readonly path: string;
  readonly credentials: readonly ResolvedCredential[];
  readonly headers: Readonly<Record<string, string>>;
  /** Header for the idempotency key, if the option is set. */
  readonly keyHeader: string | undefined;
}

/**
 * Creates the request of a tool call. Throws an `invalid_args` ToolError for arguments that would change the target
 * or a credential.
 */
export async function createRequest(
  { base, parameters, body }: RequestPlan,
  args: unknown,
  runtime: Pick<ToolRuntime, "artifacts" | "idempotencyKey">,
  { path, credentials, headers: fixedHeaders, keyHeader }: RequestOptions,
): Promise<Request> {
  const values = toMap(args);
  const pathValues = new Map<string, string>();
  const query: string[] = [];
  const cookies: string[] = [];
  const headers = new Map<string, string>([
    ["accept", "application/json, text/*;q=0.9, */*;q=0.5"],
    ...Object.entries(fixedHeaders).map(([name, value]) => [name.toLowerCase(), value] as const),
  ]);
  for (const parameter of parameters) {
    const value = Object.hasOwn(values, parameter.argument) ? values[parameter.argument] : undefined;
    if (value === undefined || value === null) continue;
    if (parameter.place === "path") pathValues.set(parameter.name, encodePathValue(parameter, value));
    else if (parameter.place === "query") query.push(...encodePairs(parameter, value));
    else if (parameter.place === "cookie") cookies.push(...encodePairs(parameter, value));
    else
      headers.set(
        parameter.name.toLowerCase(),
        checkHeaderText(parameter.argument, formatHeaderValue(parameter, value)),
      );
  }
  const encodedBody =
    body === undefined || values["body"] === undefined ? undefined : await encodeBody(body, values["body"], runtime);
  if (encodedBody !== undefined) headers.set("content-type", encodedBody.type);
  if (keyHeader !== undefined) headers.set(keyHeader.toLowerCase(), toKeyHeader(runtime.idempotencyKey));
  for (const { put } of credentials) {
    // The model chooses the keys of object arguments.
    const credentialPrefix = `${percentEncode(put.name)}=`;
    if (
      (put.in === "query" ? query : put.in === "cookie" ? cookies : []).some((pair) =>
        pair.startsWith(credentialPrefix),
      )
    )
      throw ToolError.invalidArgs(`An argument must not set "${put.name}". Remove it.`);
  }
  for (const { put, text } of credentials) {
    if (put.in === "header") headers.set(put.name.toLowerCase(), text);
    else if (put.in === "query") query.push(`${percentEncode(put.name)}=${percentEncode(text)}`);
    else cookies.push(`${put.name}=${percentEncode(text)}`);
  }
  if (cookies.length > 0) headers.set("cookie", cookies.join("; "));
  return {
    url: buildUrl(base, path, pathValues, query),
    headers: Object.fromEntries(headers),
    ...(encodedBody === undefined ? {} : { body: encodedBody.bytes }),
  };
}

function buildUrl(base: URL, path: string, pathValues: ReadonlyMap<string, string>, query: readonly string[]): string {
  const basePath = base.pathname.replace(/\/+$/, "");
  const parts = path.split(/\{([^{}]*)\}/).map((part, index) => {
    if (index % 2 === 0) return part;
    const text = pathValues.get(part) ?? "";
    if (text === "") throw ToolError.invalidArgs(`The path argument {${part}} must not be empty.`);
    return text;
  });
  const fullPath = basePath + parts.join("");
  // URL parsing resolves dot segments: such a segment would change the path.
  if (fullPath.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment)))
    throw ToolError.invalidArgs("A path argument must not be . or .., which would change the path.");
  const url = new URL(base);
  url.pathname = fullPath;
  url.hash = "";
  url.search = [url.search.slice(1), ...query].filter((pair) => pair !== "").join("&");
  return url.href;
}

function checkHeaderText(argument: string, text: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return text;
  throw ToolError.invalidArgs(`The argument "${argument}" contains a character that is invalid in a header.`);
}

/** Returns the idempotency key, readable in the server's log, or its hash if a header cannot contain the key. */
function toKeyHeader(key: string): string {
  return /^[\x21-\x7e]{1,255}$/.test(key) ? key : createHash("sha256").update(key).digest("hex");
}
