/** A call as a request: its address, its headers and its body. */
import { createHash } from "node:crypto";
import { ToolError, type ToolRuntime } from "@statewright/core";
import { sentBody } from "./body.ts";
import { mapOf } from "./document.ts";
import type { RequestPlan } from "./operation.ts";
import { encoded, inHeader, inPairs, inPath } from "./parameter-style.ts";
import type { OpenCredential } from "./security.ts";

/** What is sent. */
export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** How a request is made besides its arguments. */
export interface RequestOptions {
  readonly path: string;
  readonly credentials: readonly OpenCredential[];
  readonly headers: Readonly<Record<string, string>>;
  /** The header that takes the key of the call, where the other side wants one. */
  readonly keyHeader: string | undefined;
}

/** Make the request of a call. Throws an `invalid_args` ToolError for what would ask for something else. */
export async function requestOf(
  { base, parameters, body }: RequestPlan,
  args: unknown,
  runtime: Pick<ToolRuntime, "artifacts" | "idempotencyKey">,
  { path, credentials, headers: always, keyHeader }: RequestOptions,
): Promise<Request> {
  const given = mapOf(args);
  const filled = new Map<string, string>();
  const query: string[] = [];
  const cookies: string[] = [];
  const headers = new Map<string, string>([
    ["accept", "application/json, text/*;q=0.9, */*;q=0.5"],
    ...Object.entries(always).map(([name, value]) => [name.toLowerCase(), value] as const),
  ]);
  for (const parameter of parameters) {
    const value = Object.hasOwn(given, parameter.argument) ? given[parameter.argument] : undefined;
    if (value === undefined || value === null) continue;
    if (parameter.place === "path") filled.set(parameter.name, inPath(parameter, value));
    else if (parameter.place === "query") query.push(...inPairs(parameter, value));
    else if (parameter.place === "cookie") cookies.push(...inPairs(parameter, value));
    else headers.set(parameter.name.toLowerCase(), headerText(parameter.argument, inHeader(parameter, value)));
  }
  const sent =
    body === undefined || given["body"] === undefined ? undefined : await sentBody(body, given["body"], runtime);
  if (sent !== undefined) headers.set("content-type", sent.type);
  if (keyHeader !== undefined) headers.set(keyHeader.toLowerCase(), keyText(runtime.idempotencyKey));
  for (const { put } of credentials) {
    // Members of an object are named by the model.
    const own = `${encoded(put.name)}=`;
    if ((put.in === "query" ? query : put.in === "cookie" ? cookies : []).some((pair) => pair.startsWith(own)))
      throw ToolError.invalidArgs(`An argument would set "${put.name}", which is not yours to give.`);
  }
  for (const { put, text } of credentials) {
    if (put.in === "header") headers.set(put.name.toLowerCase(), text);
    else if (put.in === "query") query.push(`${encoded(put.name)}=${encoded(text)}`);
    else cookies.push(`${put.name}=${encoded(text)}`);
  }
  if (cookies.length > 0) headers.set("cookie", cookies.join("; "));
  return {
    url: address(base, path, filled, query),
    headers: Object.fromEntries(headers),
    ...(sent === undefined ? {} : { body: sent.bytes }),
  };
}

function address(base: URL, path: string, filled: ReadonlyMap<string, string>, query: readonly string[]): string {
  const from = base.pathname.replace(/\/+$/, "");
  const parts = path.split(/\{([^{}]*)\}/).map((part, index) => {
    if (index % 2 === 0) return part;
    const text = filled.get(part) ?? "";
    if (text === "") throw ToolError.invalidArgs(`The argument for {${part}} of the path is empty.`);
    return text;
  });
  const whole = from + parts.join("");
  // An address is made plain before it is asked: a part of dots would lead to another path.
  if (whole.split("/").some((step) => /^(?:\.|%2e){1,2}$/i.test(step)))
    throw ToolError.invalidArgs("An argument would lead to another path: . and .. name none.");
  const url = new URL(base);
  url.pathname = whole;
  url.hash = "";
  url.search = [url.search.slice(1), ...query].filter((pair) => pair !== "").join("&");
  return url.href;
}

function headerText(argument: string, text: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) return text;
  throw ToolError.invalidArgs(`The argument "${argument}" holds a sign that no header can.`);
}

/** The key as it is, which people can read in the other side's log; its hash where a header cannot hold it. */
function keyText(key: string): string {
  return /^[\x21-\x7e]{1,255}$/.test(key) ? key : createHash("sha256").update(key).digest("hex");
}
