/** Files of a user message (bytes, base64, data URLs, URLs) as content blocks. */
import { toBase64 } from "../base/base64.ts";
import { StatewrightError } from "../base/errors.ts";
import type { FileBlock, ImageBlock } from "./message.ts";

/** Content of a file: bytes, base64, a data URL, or a URL that the provider fetches. */
export type FileData = Uint8Array | ArrayBuffer | URL | string;

/** File content with its MIME type and name. */
export interface NamedFile {
  readonly data: FileData;
  /**
   * MIME type such as `image/png`. Required when neither the content nor the URL reveals the type. Only `image/*`
   * types become image blocks.
   */
  readonly mimeType?: string;
  readonly name?: string;
}

/** File uploaded to providers before: file ids by provider name, such as `{ openai: "file-1" }`. */
export interface UploadedFile {
  readonly uploaded: Readonly<Record<string, string>>;
  /** MIME type such as `application/pdf`. */
  readonly mimeType: string;
  readonly name?: string;
}

/** File attached to a user message. */
export type MessageFile = FileData | NamedFile | UploadedFile;

/**
 * Maximum total bytes of the files of a message. The store persists the files, and every model request of the
 * thread repeats the files.
 */
export const maxFileBytes: number = 20 * 2 ** 20;

/**
 * Converts files to content blocks. Throws `invalid_input` for an unreadable file, an unknown MIME type, or files
 * above `maxFileBytes`.
 */
export function toFileBlocks(files: readonly MessageFile[]): readonly (ImageBlock | FileBlock)[] {
  let bytes = 0;
  return files.map((file, index) => {
    const label = `file ${index + 1} of the input`;
    if (isUploaded(file)) return toUploadedBlock(label, file);
    const { data, mimeType: declaredType, name } = parseFile(label, file);
    const content = readData(label, data);
    const mimeType = parseMimeType(label, declaredType ?? content.mimeType);
    if (content.data !== undefined) bytes += countBytes(content.data);
    if (bytes > maxFileBytes) throw createSizeError(label, bytes);
    const source = content.data === undefined ? { url: content.url } : { data: content.data };
    if (mimeType.startsWith("image/")) return { type: "image", mimeType, ...source };
    return { type: "file", mimeType, ...source, ...(name === undefined ? {} : { name }) };
  });
}

function isUploaded(file: unknown): file is { readonly [Part in keyof UploadedFile]: unknown } {
  return typeof file === "object" && file !== null && "uploaded" in file;
}

function toUploadedBlock(
  label: string,
  { uploaded, mimeType: declaredType, name, ...unexpected }: { readonly [Part in keyof UploadedFile]: unknown },
): ImageBlock | FileBlock {
  const [unexpectedKey] = Object.keys(unexpected);
  if (unexpectedKey !== undefined)
    throw createFileError(label, `has the property ${JSON.stringify(unexpectedKey)} next to "uploaded"`);
  const ids = typeof uploaded === "object" && uploaded !== null ? Object.values(uploaded) : [];
  if (ids.length === 0 || !ids.every((id) => typeof id === "string" && id !== ""))
    throw createFileError(label, 'has no file ids by provider name in "uploaded", such as { openai: "file-1" }');
  if (declaredType !== undefined && typeof declaredType !== "string")
    throw createFileError(label, "has a mimeType that is not a string");
  if (name !== undefined && typeof name !== "string") throw createFileError(label, "has a name that is not a string");
  const source = {
    mimeType: parseMimeType(label, declaredType),
    uploaded: { ...(uploaded as Readonly<Record<string, string>>) },
  };
  if (source.mimeType.startsWith("image/")) return { type: "image", ...source };
  return { type: "file", ...source, ...(name === undefined ? {} : { name }) };
}

function parseFile(label: string, file: unknown): NamedFile {
  if (typeof file === "string" || file instanceof Uint8Array || file instanceof ArrayBuffer || file instanceof URL)
    return { data: file };
  if (typeof file !== "object" || file === null || !("data" in file)) throw createFileError(label, "is not a file");
  const unexpectedKey = Object.keys(file).find((key) => key !== "data" && key !== "mimeType" && key !== "name");
  if (unexpectedKey !== undefined)
    throw createFileError(label, `has the unknown property ${JSON.stringify(unexpectedKey)}`);
  const { data, mimeType, name } = file as { readonly [Part in keyof NamedFile]: unknown };
  if (mimeType !== undefined && typeof mimeType !== "string")
    throw createFileError(label, "has a mimeType that is not a string");
  if (name !== undefined && typeof name !== "string") throw createFileError(label, "has a name that is not a string");
  return {
    data: data as FileData,
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(name === undefined ? {} : { name }),
  };
}

type FileContent = { readonly mimeType: string | undefined } & (
  | { readonly data: string; readonly url?: undefined }
  | { readonly url: string; readonly data?: undefined }
);

function readData(label: string, data: unknown): FileContent {
  if (data instanceof ArrayBuffer) return readBytes(label, new Uint8Array(data));
  if (data instanceof Uint8Array) return readBytes(label, data);
  if (data instanceof URL) return readText(label, data.href);
  if (typeof data === "string") return readText(label, data);
  throw createFileError(label, "has data that is neither bytes, a string nor a URL");
}

function readBytes(label: string, bytes: Uint8Array): FileContent {
  if (bytes.length === 0) throw createFileError(label, "is empty");
  if (bytes.length > maxFileBytes) throw createSizeError(label, bytes.length);
  const data = toBase64(bytes);
  return { data, mimeType: detectMimeType(data) };
}

function readText(label: string, text: string): FileContent {
  if (text.startsWith("data:")) return readDataUrl(label, text);
  if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return { data: parseBase64(label, text), mimeType: detectMimeType(text) };
  if (!URL.canParse(text)) throw createFileError(label, "has an invalid URL");
  const { protocol, pathname, href } = new URL(text);
  if (protocol === "file:" || protocol === "blob:")
    throw createFileError(label, `has a ${protocol} URL, which no provider can read: read the file and pass its bytes`);
  return { url: href, mimeType: findMimeTypeByExtension(pathname) };
}

function readDataUrl(label: string, url: string): FileContent {
  const comma = url.indexOf(",");
  if (comma < 0) throw createFileError(label, "is a data URL without data");
  const [mimeType, ...parameters] = url.slice("data:".length, comma).split(";");
  const body = url.slice(comma + 1);
  const data = parameters.includes("base64") ? parseBase64(label, body) : decodePercentEncoding(label, body);
  return { data, mimeType: mimeType === "" ? "text/plain" : mimeType };
}

function decodePercentEncoding(label: string, body: string): string {
  try {
    return toBase64(new TextEncoder().encode(decodeURIComponent(body)));
  } catch {
    throw createFileError(label, "is a data URL that cannot be decoded");
  }
}

function parseBase64(label: string, text: string): string {
  if (text === "") throw createFileError(label, "is empty");
  if (text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)) return text;
  throw createFileError(label, "is a string that is neither base64 nor a URL");
}

function countBytes(base64: string): number {
  return (base64.length / 4) * 3 - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}

/** Base64 prefixes of common file types. */
const base64Prefixes: readonly (readonly [string, RegExp])[] = [
  ["image/png", /^iVBORw0KGgo/],
  ["image/jpeg", /^\/9j\//],
  ["image/gif", /^R0lGOD/],
  ["image/webp", /^UklGR.{7}RUJQ/],
  ["application/pdf", /^JVBERi0/],
];

function detectMimeType(base64: string): string | undefined {
  return base64Prefixes.find(([, prefix]) => prefix.test(base64))?.[0];
}

const mimeTypesByExtension: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  pdf: "application/pdf",
  txt: "text/plain",
  md: "text/markdown",
  csv: "text/csv",
  json: "application/json",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  mp4: "video/mp4",
};

function findMimeTypeByExtension(path: string): string | undefined {
  const extension = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase();
  return extension !== undefined && Object.hasOwn(mimeTypesByExtension, extension)
    ? mimeTypesByExtension[extension]
    : undefined;
}

function parseMimeType(label: string, mimeType: string | undefined): string {
  if (mimeType === undefined) throw createFileError(label, "has an unknown MIME type: pass { data, mimeType }");
  if (/^[\w.+-]+\/[\w.+*-]+$/.test(mimeType)) return mimeType.toLowerCase();
  throw createFileError(label, `has the invalid mimeType ${JSON.stringify(mimeType)}`);
}

function createSizeError(label: string, bytes: number): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `the files up to ${label} have ${bytes.toLocaleString("en")} bytes, the maximum per message is ${maxFileBytes.toLocaleString("en")}`,
    next: "Pass a URL that the provider fetches, or a smaller file",
  });
}

function createFileError(label: string, problem: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `${label} ${problem}`,
    next: "Pass bytes, base64, a data URL or a URL; { data, mimeType, name } adds a type and a name, { uploaded, mimeType } refers to an uploaded file",
  });
}
