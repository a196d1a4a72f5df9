/** OpenAPI documents: reading, and resolution of references within the document. */
import { createHash } from "node:crypto";
import { basename, dirname, resolve } from "node:path";
import { StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { type FetchOptions, fetchUrl, workspace } from "@statewright/host";
import { isJsonObject } from "@statewright/json-schema";
import { parse } from "yaml";

/** Object of a document. */
export type Part = Readonly<Record<string, unknown>>;

/** Parsed document. */
export interface Document {
  readonly root: Part;
  /** Source of the document, for messages. */
  readonly source: string;
  /** URL of the document, if it was fetched. */
  readonly url: URL | undefined;
  /** SHA-256 of the document in hexadecimal. */
  readonly digest: string;
}

const maxDocumentBytes = 2 ** 25;
const maxRefDepth = 32;

/** Reads a document from an object, an http or https URL, or a file in JSON or YAML. Throws `invalid_option`. */
export async function readDocument(source: string | URL | object, fetchOptions: FetchOptions): Promise<Document> {
  if (typeof source !== "string" && !(source instanceof URL)) return createDocument(source, "the document", undefined);
  const text = String(source);
  if (!/^https?:/i.test(text)) return createDocument(parseText(text, await readFileText(text)), text, undefined);
  const { status, body, truncated, url } = await fetchUrl(text, { ...fetchOptions, maxBytes: maxDocumentBytes }).catch(
    createReadErrorHandler(text),
  );
  if (status !== 200)
    throw invalidOption({
      where: describeSource(text),
      expected: "a response with status 200",
      found: `status ${status}`,
      fix: "Use the URL of the document itself",
    });
  if (truncated)
    throw invalidOption({
      where: describeSource(text),
      expected: "a document of at most 32 MiB",
      found: "a longer one",
      fix: "Pass a file, or the document as an object",
    });
  return createDocument(parseText(text, new TextDecoder().decode(body)), text, new URL(url));
}

/**
 * Resolves the references of a part. Throws `invalid_tool` for a missing target, a target outside the document, and a
 * circular reference.
 */
export function resolveRefs(document: Document, value: unknown, location: string): Part {
  let part = value;
  for (let count = 0; count < maxRefDepth; count++) {
    if (!isJsonObject(part)) throw createPartError(document, location, "is not an object");
    if (typeof part["$ref"] !== "string") return part;
    part = findPart(document, part["$ref"], location);
  }
  throw createPartError(document, location, "has a circular reference");
}

/** Finds the target of a reference. Throws `invalid_tool` for a missing target and a target outside the document. */
export function findPart(document: Document, ref: string, location: string): unknown {
  if (!ref.startsWith("#"))
    throw createPartError(
      document,
      location,
      `refers to ${quoteText(ref)} outside the document, which is not supported`,
    );
  let part: unknown = document.root;
  for (const segment of ref === "#" ? [] : ref.slice(2).split("/").map(decodeSegment)) {
    const container = Array.isArray(part) || isJsonObject(part) ? (part as Part) : {};
    part = ref.startsWith("#/") && Object.hasOwn(container, segment) ? container[segment] : undefined;
  }
  if (part === undefined)
    throw createPartError(document, location, `refers to ${quoteText(ref)}, which does not exist`);
  return part;
}

/** Returns an optional map of a document; empty if missing. */
export function toMap(value: unknown): Part {
  return isJsonObject(value) ? value : {};
}

/** Returns an optional list of a document; empty if missing. */
export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns an optional text of a document; undefined if missing or empty. */
export function getText(part: Part, key: string): string | undefined {
  const value = part[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Creates the error for a part that cannot become a tool. */
export function createPartError({ source }: Document, location: string, what: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `${location} of ${source} ${what}`,
    next: 'Fix the document, bundle it into one file, exclude the operation, or set onUnsupported: "skip"',
  });
}

function createDocument(value: unknown, source: string, url: URL | undefined): Document {
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw invalidOption({
      where: describeSource(source),
      expected: "plain JSON",
      found: cause instanceof Error ? cause.message : String(cause),
    });
  }
  // Copy the document: later changes by the caller must not change the tools, and YAML aliases must not form cycles.
  const root: unknown = text === undefined ? undefined : JSON.parse(text);
  const version = isJsonObject(root) ? root["openapi"] : undefined;
  if (!isJsonObject(root) || typeof version !== "string" || !/^3\.[01](?:\.|$)/.test(version)) {
    const declaredVersion = isJsonObject(root) ? (version ?? root["swagger"]) : undefined;
    throw invalidOption({
      where: describeSource(source),
      expected: "a document of OpenAPI 3.0 or 3.1",
      found: declaredVersion === undefined ? "no OpenAPI document" : `version ${quoteText(String(declaredVersion))}`,
      fix: "Use OpenAPI 3.0 or 3.1; convert documents of other versions",
    });
  }
  const digest = createHash("sha256").update(text).digest("hex");
  return { root, source, url, digest };
}

async function readFileText(path: string): Promise<string> {
  const read = await workspace(dirname(resolve(path)))
    .read(basename(path), { maxBytes: maxDocumentBytes })
    .catch(createReadErrorHandler(path));
  if (read.kind === "text" && !read.truncated) return read.text;
  throw invalidOption({
    where: describeSource(path),
    expected: "a text file of at most 32 MiB",
    found: read.kind === "text" ? "a longer file" : "a binary file",
    fix: "Use a file in JSON or YAML",
  });
}

function createReadErrorHandler(source: string): (cause: unknown) => never {
  return (cause) => {
    const reason = (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, "");
    throw invalidOption({
      where: describeSource(source),
      expected: "a readable document",
      found: reason,
      fix: "Pass the path or the URL of the document, or the document as an object",
      cause,
    });
  };
}

function parseText(source: string, text: string): unknown {
  try {
    return /^\s*\{/.test(text) ? JSON.parse(text) : parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw invalidOption({
      where: describeSource(source),
      expected: "JSON or YAML",
      found: reason,
      fix: "Fix the named error",
    });
  }
}

function decodeSegment(segment: string): string {
  let decoded = segment;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    // The segment contains a literal percent sign.
  }
  return decoded.replaceAll("~1", "/").replaceAll("~0", "~");
}

function describeSource(source: string): string {
  return `loadOpenApi of ${source}`;
}

function quoteText(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}
