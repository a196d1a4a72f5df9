/** Bodies of requests: which kind an operation takes, what the model gives for it, and the bytes that are sent. */
import { createHash } from "node:crypto";
import { type Json, ToolError, type ToolRuntime } from "@statewright/core";
import { isObject } from "../protocol.ts";
import { type Document, followed, mapOf, type Part, textAt, unfitPart } from "./document.ts";
import { encoded, inPairs, textOf } from "./parameter-style.ts";
import type { ParameterStyle } from "./parameters.ts";
import type { SchemaReader } from "./schema.ts";

/** How a body is written. */
export type BodyKind = "json" | "form" | "multipart" | "text" | "binary";

/** The body that an operation takes. */
export interface Body {
  readonly kind: BodyKind;
  readonly mimeType: string;
  readonly required: boolean;
  readonly schema: Json;
  /** How single members of a form are written, where the document says it. */
  readonly encoding: Part;
}

/** A body as it is sent. */
export interface SentBody {
  readonly type: string;
  readonly bytes: string | Uint8Array;
}

/** Kinds in the order in which one is chosen, where an operation takes several. */
const kinds: readonly (readonly [BodyKind, RegExp])[] = [
  ["json", /^application\/json$|\+json$|^\*\/\*$|^application\/\*$/],
  ["form", /^application\/x-www-form-urlencoded$/],
  ["multipart", /^multipart\/form-data$/],
  ["text", /^text\/|[/+]xml$|^application\/(?:yaml|x-yaml|javascript)$/],
  ["binary", /^/],
];

/** What the model gives for a file. */
const fileSchema: Json = {
  type: "object",
  description: "A file: give one of text, base64 and artifact.",
  properties: {
    name: { type: "string", description: "What the file is called" },
    mimeType: { type: "string", description: "Its media type, such as image/png" },
    text: { type: "string", description: "What it holds, as text" },
    base64: { type: "string", description: "What it holds, as bytes in Base64" },
    artifact: { type: "string", description: "The handle of an artifact of this conversation that it is" },
  },
  additionalProperties: false,
};

/** The body of an operation, if it takes one. */
export function bodyOf(document: Document, given: unknown, schemas: SchemaReader, where: string): Body | undefined {
  if (given === undefined) return undefined;
  const at = `the body of ${where}`;
  const part = followed(document, given, at);
  const types = Object.entries(mapOf(part["content"])).map(([type, media]) => [bareType(type), mapOf(media)] as const);
  for (const [kind, pattern] of kinds) {
    const [type, media] = types.find(([name]) => pattern.test(name)) ?? [];
    if (type === undefined || media === undefined) continue;
    return {
      kind,
      mimeType: type.includes("*") ? (kind === "json" ? "application/json" : "application/octet-stream") : type,
      required: part["required"] === true,
      schema: described(schemaOf(document, kind, type, media["schema"], schemas, at), textAt(part, "description")),
      encoding: mapOf(media["encoding"]),
    };
  }
  throw unfitPart(document, at, "names no media type");
}

/** What the model gives as the bytes that are sent. */
export async function sentBody(
  { kind, mimeType, encoding }: Body,
  value: unknown,
  runtime: Pick<ToolRuntime, "artifacts">,
): Promise<SentBody> {
  if (kind === "json") return { type: mimeType, bytes: JSON.stringify(value) };
  if (kind === "text") return { type: `${mimeType}; charset=utf-8`, bytes: textOf(value) };
  if (kind === "form") return { type: mimeType, bytes: formText(value, encoding) };
  if (kind === "multipart") return multipart(value, encoding, runtime);
  const file = await fileOf(value, runtime);
  return { type: mimeType === "application/octet-stream" ? (file.mimeType ?? mimeType) : mimeType, bytes: file.bytes };
}

function schemaOf(
  document: Document,
  kind: BodyKind,
  type: string,
  given: unknown,
  schemas: SchemaReader,
  at: string,
): Json {
  if (kind === "binary") return { ...(fileSchema as object) };
  if (kind === "text" && !type.startsWith("text/"))
    return { type: "string", description: `The whole body, in the form of ${type}` };
  if (kind === "text") return schemas.read(given ?? { type: "string" }, at);
  if (kind === "json" || given === undefined) return schemas.read(given ?? {}, at);
  const schema = followed(document, given, at);
  const properties = schema["properties"];
  if (kind === "form" || !isObject(properties)) return schemas.read(given, at);
  const filed = Object.entries(properties).map(([name, property]) => [name, withFiles(document, property, at)]);
  return schemas.read({ ...schema, properties: Object.fromEntries(filed) }, at);
}

/** A property of a form that is bytes is given as a file. */
function withFiles(document: Document, property: unknown, at: string): unknown {
  if (!isObject(property)) return property;
  const { type, items, ...rest } = followed(document, property, at);
  if (isBytes({ type, ...rest })) return described({ ...(fileSchema as object) }, textAt(rest, "description"));
  if (!isObject(items) || !isBytes(followed(document, items, at))) return property;
  return { ...rest, type, items: fileSchema };
}

function isBytes({ type, format, contentMediaType, contentEncoding }: Part): boolean {
  const isText = type === "string" || (Array.isArray(type) && type.includes("string"));
  if (isText && format === "binary") return true;
  return contentMediaType !== undefined && contentEncoding === undefined && (type === undefined || isText);
}

function described(schema: Json, description: string | undefined): Json {
  if (!isObject(schema) || description === undefined) return schema;
  if (schema["description"] !== undefined && schema["description"] !== (fileSchema as Part)["description"])
    return schema as Json;
  return Object.assign(schema, { description }) as Json;
}

/** Members of a form: where the document gives no style, lists are repeated and what has parts is JSON. */
function formText(value: unknown, encoding: Part): string {
  const pairs = Object.entries(mapOf(value)).flatMap(([name, member]) => {
    const { style, explode, allowReserved } = mapOf(encoding[name]);
    const isStyled = typeof style === "string" || typeof explode === "boolean";
    if (!isStyled && isObject(member)) return [`${encoded(name)}=${encoded(JSON.stringify(member))}`];
    const how = { name, style: (typeof style === "string" ? style : "form") as ParameterStyle };
    const isExploded = typeof explode === "boolean" ? explode : how.style === "form";
    return inPairs({ ...how, explode: isExploded, allowReserved: allowReserved === true }, member);
  });
  // In a form a space is a plus.
  return pairs.join("&").replaceAll("%20", "+");
}

async function multipart(value: unknown, encoding: Part, runtime: Pick<ToolRuntime, "artifacts">): Promise<SentBody> {
  const parts: { readonly head: string; readonly bytes: Uint8Array }[] = [];
  for (const [name, member] of Object.entries(mapOf(value))) {
    const said = textAt(mapOf(encoding[name]), "contentType");
    const type = said === undefined || /[,*\r\n]/.test(said) ? undefined : said;
    for (const item of Array.isArray(member) ? member : [member]) {
      const file = isFile(item) ? await fileOf(item, runtime) : undefined;
      const partType = type ?? file?.mimeType ?? (file !== undefined ? "application/octet-stream" : undefined);
      const plain = isObject(item) || Array.isArray(item) ? (partType ?? "application/json") : partType;
      const fileName = file === undefined ? "" : `; filename="${inQuotes(file.name)}"`;
      const head = `Content-Disposition: form-data; name="${inQuotes(name)}"${fileName}`;
      const bytes = file?.bytes ?? Buffer.from(textOf(item));
      parts.push({ head: plain === undefined ? head : `${head}\r\nContent-Type: ${plain}`, bytes });
    }
  }
  const hash = createHash("sha256");
  for (const { head, bytes } of parts) hash.update(head).update(bytes);
  // Of all that it holds: nobody can write a part that ends itself.
  const boundary = `statewright-${hash.digest("hex")}`;
  const pieces = parts.flatMap(({ head, bytes }) => [
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    bytes,
    Buffer.from("\r\n"),
  ]);
  const bytes = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${boundary}`, bytes };
}

const fileMembers = ["text", "base64", "artifact"];

function isFile(value: unknown): boolean {
  if (!isObject(value)) return false;
  const known = [...fileMembers, "name", "mimeType"];
  return Object.keys(value).every((key) => known.includes(key)) && fileMembers.some((key) => key in value);
}

async function fileOf(
  value: unknown,
  { artifacts }: Pick<ToolRuntime, "artifacts">,
): Promise<{ readonly bytes: Uint8Array; readonly name: string; readonly mimeType: string | undefined }> {
  const { name = "file", mimeType, text, base64, artifact } = mapOf(value);
  const given = [text, base64, artifact].filter((each) => typeof each === "string");
  if (given.length !== 1) throw ToolError.invalidArgs("A file is given by one of text, base64 and artifact.");
  const type = typeof mimeType === "string" ? mimeType : undefined;
  if (type !== undefined && !/^[\w.+-]+\/[\w.+-]+(?:; ?[\w-]+=[\w.-]+)?$/.test(type))
    throw ToolError.invalidArgs("The mimeType of a file is no media type such as image/png.");
  const bytes =
    typeof text === "string"
      ? Buffer.from(text)
      : typeof base64 === "string"
        ? Buffer.from(base64, "base64")
        : await artifacts.read(String(artifact));
  return { bytes, name: String(name), mimeType: type };
}

/** A name in quotes, as browsers write it. */
function inQuotes(name: string): string {
  return name.replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll('"', "%22");
}

function bareType(type: string): string {
  return (type.split(";")[0] ?? "").trim().toLowerCase();
}
