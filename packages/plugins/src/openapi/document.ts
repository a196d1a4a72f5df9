/** An OpenAPI document: where it is read from, and how its references are followed. None of them leads out of it. */
import { createHash } from "node:crypto";
import { basename, dirname, resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import { type FetchOptions, fetchUrl, workspace } from "@statewright/host";
import { parse } from "yaml";
import { isObject } from "../protocol.ts";

/** A part of a document. */
export type Part = Readonly<Record<string, unknown>>;

/** A document that was read. */
export interface Document {
  readonly root: Part;
  /** Where it came from, for people. */
  readonly from: string;
  /** The address that it came from, where it did. */
  readonly url: URL | undefined;
  /** SHA-256 of what it says, in hexadecimal. */
  readonly digest: string;
}

const longest = 2 ** 25;
const deepestRef = 32;

/** Read a document from an object, a URL of http or https, or a file in JSON or YAML. Throws `invalid_option`. */
export async function readDocument(source: string | URL | object, way: FetchOptions): Promise<Document> {
  if (typeof source !== "string" && !(source instanceof URL)) return documentOf(source, "the document", undefined);
  const text = String(source);
  if (!/^https?:/i.test(text)) return documentOf(parsed(text, await fileText(text)), text, undefined);
  const { status, body, truncated, url } = await fetchUrl(text, { ...way, maxBytes: longest }).catch(unread(text));
  if (status !== 200) throw unfit(text, `was answered with ${status}`, "Give the address of the document itself");
  if (truncated) throw unfit(text, "is longer than 32 MiB", "Give a file, or the document itself");
  return documentOf(parsed(text, new TextDecoder().decode(body)), text, new URL(url));
}

/** What a part is once its references are followed. Throws `invalid_tool` for one that leads nowhere or out of the document. */
export function followed(document: Document, given: unknown, place: string): Part {
  let part = given;
  for (let count = 0; count < deepestRef; count++) {
    if (!isObject(part)) throw unfitPart(document, place, "is no object");
    if (typeof part["$ref"] !== "string") return part;
    part = partAt(document, part["$ref"], place);
  }
  throw unfitPart(document, place, "refers to itself");
}

/** The part that a reference names. */
export function partAt(document: Document, ref: string, place: string): unknown {
  if (!ref.startsWith("#"))
    throw unfitPart(document, place, `refers to ${quoted(ref)}, which is outside of the document and is not read`);
  let part: unknown = document.root;
  for (const step of ref === "#" ? [] : ref.slice(2).split("/").map(stepOf)) {
    const inside = Array.isArray(part) || isObject(part) ? (part as Part) : {};
    part = ref.startsWith("#/") && Object.hasOwn(inside, step) ? inside[step] : undefined;
  }
  if (part === undefined) throw unfitPart(document, place, `refers to ${quoted(ref)}, which is not there`);
  return part;
}

/** A map of a document, which may be left out. */
export function mapOf(given: unknown): Part {
  return isObject(given) ? given : {};
}

/** A list of a document, which may be left out. */
export function listOf(given: unknown): readonly unknown[] {
  return Array.isArray(given) ? given : [];
}

/** A text of a document, which may be left out. */
export function textAt(part: Part, key: string): string | undefined {
  const given = part[key];
  return typeof given === "string" && given !== "" ? given : undefined;
}

/** What of a document cannot become a tool. */
export function unfitPart({ from }: Document, place: string, what: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `${place} of ${from} ${what}`,
    next: 'Mend the document or bundle it into one file, leave the operation out, or give unfit: "skip"',
  });
}

function documentOf(given: unknown, from: string, url: URL | undefined): Document {
  let text: string;
  try {
    text = JSON.stringify(given);
  } catch (cause) {
    throw unfit(from, `is no data: ${cause instanceof Error ? cause.message : String(cause)}`, "Give plain JSON");
  }
  // A copy: what the caller does with its own does not change the tools, and an alias of YAML is no circle.
  const root: unknown = text === undefined ? undefined : JSON.parse(text);
  const version = isObject(root) ? root["openapi"] : undefined;
  if (!isObject(root) || typeof version !== "string" || !/^3\.[01](?:\.|$)/.test(version)) {
    const said = isObject(root) ? (version ?? root["swagger"]) : undefined;
    const is = said === undefined ? "is no OpenAPI document" : `is of the version ${quoted(String(said))}`;
    throw unfit(from, is, "Give a document of OpenAPI 3.0 or 3.1; others can be converted to it");
  }
  const digest = createHash("sha256").update(text).digest("hex");
  return { root, from, url, digest };
}

async function fileText(path: string): Promise<string> {
  const read = await workspace(dirname(resolve(path)))
    .read(basename(path), { maxBytes: longest })
    .catch(unread(path));
  if (read.kind === "text" && !read.truncated) return read.text;
  throw unfit(path, "is no text of up to 32 MiB", "Give a file in JSON or YAML");
}

function unread(from: string): (cause: unknown) => never {
  return (cause) => {
    const why = (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, "");
    throw unfit(from, `cannot be read: ${why}`, "Give its path or its address, or the document itself", cause);
  };
}

function parsed(from: string, text: string): unknown {
  try {
    return /^\s*\{/.test(text) ? JSON.parse(text) : parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw unfit(from, `is neither JSON nor YAML: ${why}`, "Mend what it names");
  }
}

function stepOf(step: string): string {
  let decoded = step;
  try {
    decoded = decodeURIComponent(step);
  } catch {
    // It holds a sign of percent as it is.
  }
  return decoded.replaceAll("~1", "/").replaceAll("~0", "~");
}

function unfit(from: string, what: string, next: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_option", { what: `the OpenAPI document ${from} ${what}`, next, cause });
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}
