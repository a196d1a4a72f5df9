/** Request bodies: the body kind of an operation, its schema for the model, and the encoded bytes. */
import { createHash } from "node:crypto";
import { type Json, ToolError, type ToolRuntime } from "@statewright/core";
import { isJsonObject } from "@statewright/json-schema";
import { createPartError, type Document, getText, type Part, resolveRefs, toMap } from "./document.ts";
import { encodePairs, percentEncode, toText } from "./parameter-style.ts";
import type { ParameterStyle } from "./parameters.ts";
import type { SchemaReader } from "./schema.ts";

/** Encoding of a body. */
export type BodyKind = "json" | "form" | "multipart" | "text" | "binary";

/** Body of an operation. */
export interface Body {
  readonly kind: BodyKind;
  readonly mimeType: string;
  readonly required: boolean;
  readonly schema: Json;
  /** Encoding object of single form members. */
  readonly encoding: Part;
}

/** Encoded body. */
export interface EncodedBody {
  readonly type: string;
  readonly bytes: string | Uint8Array;
}

/** Body kinds by preference, for an operation with several media types. */
const bodyKinds: readonly (readonly [BodyKind, RegExp])[] = [
  ["json", /^application\/json$|\+json$|^\*\/\*$|^application\/\*$/],
  ["form", /^application\/x-www-form-urlencoded$/],
  ["multipart", /^multipart\/form-data$/],
  ["text", /^text\/|[/+]xml$|^application\/(?:yaml|x-yaml|javascript)$/],
  ["binary", /^/],
];

/** Schema of a file argument. */
const fileSchema: Json = {
  type: "object",
  description: "File with exactly one of text, base64 and artifact.",
  properties: {
    name: { type: "string", description: "File name" },
    mimeType: { type: "string", description: "Media type, such as image/png" },
    text: { type: "string", description: "Content as text" },
    base64: { type: "string", description: "Content as bytes in Base64" },
    artifact: { type: "string", description: "Handle of an artifact of this conversation" },
  },
  additionalProperties: false,
};

/** Parses the body of an operation; undefined for an operation without a body. */
export function parseBody(
  document: Document,
  value: unknown,
  schemas: SchemaReader,
  operationName: string,
): Body | undefined {
  if (value === undefined) return undefined;
  const location = `the body of ${operationName}`;
  const part = resolveRefs(document, value, location);
  const types = Object.entries(toMap(part["content"])).map(
    ([type, media]) => [getMediaType(type), toMap(media)] as const,
  );
  for (const [kind, pattern] of bodyKinds) {
    const [type, media] = types.find(([name]) => pattern.test(name)) ?? [];
    if (type === undefined || media === undefined) continue;
    return {
      kind,
      mimeType: type.includes("*") ? (kind === "json" ? "application/json" : "application/octet-stream") : type,
      required: part["required"] === true,
      schema: addDescription(
        createBodySchema({ document, schemas, location }, { kind, type, value: media["schema"] }),
        getText(part, "description"),
      ),
      encoding: toMap(media["encoding"]),
    };
  }
  throw createPartError(document, location, "has no media type");
}

/** Encodes the body argument. */
export async function encodeBody(
  { kind, mimeType, encoding }: Body,
  value: unknown,
  runtime: Pick<ToolRuntime, "artifacts">,
): Promise<EncodedBody> {
  if (kind === "json") return { type: mimeType, bytes: JSON.stringify(value) };
  if (kind === "text") return { type: `${mimeType}; charset=utf-8`, bytes: toText(value) };
  if (kind === "form") return { type: mimeType, bytes: encodeForm(value, encoding) };
  if (kind === "multipart") return encodeMultipart(value, encoding, runtime);
  const file = await loadFile(value, runtime);
  return { type: mimeType === "application/octet-stream" ? (file.mimeType ?? mimeType) : mimeType, bytes: file.bytes };
}

/** Body of an operation, as read from the document. */
interface BodySource {
  readonly document: Document;
  readonly schemas: SchemaReader;
  /** Name of the body in errors. */
  readonly location: string;
}

function createBodySchema(
  { document, schemas, location }: BodySource,
  { kind, type, value }: { readonly kind: BodyKind; readonly type: string; readonly value: unknown },
): Json {
  if (kind === "binary") return { ...(fileSchema as object) };
  if (kind === "text" && !type.startsWith("text/"))
    return { type: "string", description: `The whole body in the format ${type}` };
  if (kind === "text") return schemas.read(value ?? { type: "string" }, location);
  if (kind === "json" || value === undefined) return schemas.read(value ?? {}, location);
  const schema = resolveRefs(document, value, location);
  const properties = schema["properties"];
  if (kind === "form" || !isJsonObject(properties)) return schemas.read(value, location);
  const entries = Object.entries(properties).map(([name, property]) => [
    name,
    replaceBinarySchema(document, property, location),
  ]);
  return schemas.read({ ...schema, properties: Object.fromEntries(entries) }, location);
}

/** Replaces the schema of a binary form property by the file schema. */
function replaceBinarySchema(document: Document, property: unknown, location: string): unknown {
  if (!isJsonObject(property)) return property;
  const { type, items, ...rest } = resolveRefs(document, property, location);
  if (isBytes({ type, ...rest })) return addDescription({ ...(fileSchema as object) }, getText(rest, "description"));
  if (!isJsonObject(items) || !isBytes(resolveRefs(document, items, location))) return property;
  return { ...rest, type, items: fileSchema };
}

function isBytes({ type, format, contentMediaType, contentEncoding }: Part): boolean {
  const isText = type === "string" || (Array.isArray(type) && type.includes("string"));
  if (isText && format === "binary") return true;
  return contentMediaType !== undefined && contentEncoding === undefined && (type === undefined || isText);
}

function addDescription(schema: Json, description: string | undefined): Json {
  if (!isJsonObject(schema) || description === undefined) return schema;
  if (schema["description"] !== undefined && schema["description"] !== (fileSchema as Part)["description"])
    return schema as Json;
  return Object.assign(schema, { description }) as Json;
}

/** Encodes form members. Without a style in the document, lists are repeated members and objects are JSON. */
function encodeForm(value: unknown, encoding: Part): string {
  const pairs = Object.entries(toMap(value)).flatMap(([name, member]) => {
    const { style, explode, allowReserved } = toMap(encoding[name]);
    const isStyled = typeof style === "string" || typeof explode === "boolean";
    if (!isStyled && isJsonObject(member)) return [`${percentEncode(name)}=${percentEncode(JSON.stringify(member))}`];
    const styleOptions = { name, style: (typeof style === "string" ? style : "form") as ParameterStyle };
    const isExploded = typeof explode === "boolean" ? explode : styleOptions.style === "form";
    return encodePairs({ ...styleOptions, explode: isExploded, allowReserved: allowReserved === true }, member);
  });
  // Forms encode a space as a plus.
  return pairs.join("&").replaceAll("%20", "+");
}

async function encodeMultipart(
  value: unknown,
  encoding: Part,
  runtime: Pick<ToolRuntime, "artifacts">,
): Promise<EncodedBody> {
  const parts: { readonly head: string; readonly bytes: Uint8Array }[] = [];
  for (const [name, member] of Object.entries(toMap(value))) {
    const declaredType = getText(toMap(encoding[name]), "contentType");
    const type = declaredType === undefined || /[,*\r\n]/.test(declaredType) ? undefined : declaredType;
    for (const item of Array.isArray(member) ? member : [member]) {
      const file = isFile(item) ? await loadFile(item, runtime) : undefined;
      const partType = type ?? file?.mimeType ?? (file !== undefined ? "application/octet-stream" : undefined);
      const contentType = isJsonObject(item) || Array.isArray(item) ? (partType ?? "application/json") : partType;
      const fileName = file === undefined ? "" : `; filename="${escapeQuoted(file.name)}"`;
      const head = `Content-Disposition: form-data; name="${escapeQuoted(name)}"${fileName}`;
      const bytes = file?.bytes ?? Buffer.from(toText(item));
      parts.push({ head: contentType === undefined ? head : `${head}\r\nContent-Type: ${contentType}`, bytes });
    }
  }
  const hash = createHash("sha256");
  for (const { head, bytes } of parts) hash.update(head).update(bytes);
  // Boundary from a hash of all parts: no part can contain the boundary.
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
  if (!isJsonObject(value)) return false;
  const known = [...fileMembers, "name", "mimeType"];
  return Object.keys(value).every((key) => known.includes(key)) && fileMembers.some((key) => key in value);
}

async function loadFile(
  value: unknown,
  { artifacts }: Pick<ToolRuntime, "artifacts">,
): Promise<{ readonly bytes: Uint8Array; readonly name: string; readonly mimeType: string | undefined }> {
  const { name = "file", mimeType, text, base64, artifact } = toMap(value);
  const sources = [text, base64, artifact].filter((each) => typeof each === "string");
  if (sources.length !== 1) throw ToolError.invalidArgs("A file needs exactly one of text, base64 and artifact.");
  const type = typeof mimeType === "string" ? mimeType : undefined;
  if (type !== undefined && !/^[\w.+-]+\/[\w.+-]+(?:; ?[\w-]+=[\w.-]+)?$/.test(type))
    throw ToolError.invalidArgs("The mimeType of a file must be a media type such as image/png.");
  const bytes =
    typeof text === "string"
      ? Buffer.from(text)
      : typeof base64 === "string"
        ? Buffer.from(base64, "base64")
        : await artifacts.read(String(artifact));
  return { bytes, name: String(name), mimeType: type };
}

/** Escapes a name in quotes, as browsers do. */
function escapeQuoted(name: string): string {
  return name.replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll('"', "%22");
}

function getMediaType(type: string): string {
  return (type.split(";")[0] ?? "").trim().toLowerCase();
}
