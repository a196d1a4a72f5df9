/** Files that go with a person's words: bytes, base64, data URLs and addresses, as blocks of a message. */
import { type FileBlock, type ImageBlock, StatewrightError, toBase64 } from "@statewright/core";

/** What a file is: its bytes, a data URL, an address that the provider reads itself, or base64. */
export type FileData = Uint8Array | ArrayBuffer | URL | string;

/** A file, with what its data alone does not say. */
export interface NamedFile {
  readonly data: FileData;
  /** Such as `image/png`. Needed where neither the data nor the address tells it; it decides whether the model sees an image. */
  readonly mimeType?: string;
  readonly name?: string;
}

/** A file that was uploaded to providers before: its ids, by their names, such as `{ openai: "file-1" }`. */
export interface UploadedFile {
  readonly uploaded: Readonly<Record<string, string>>;
  /** Such as `application/pdf`. */
  readonly mimeType: string;
  readonly name?: string;
}

/** A file that goes with a person's words. */
export type AgentFile = FileData | NamedFile | UploadedFile;

/** The bytes that may go with one message: they are saved with it, and sent again with every request of the thread. */
export const mostFileBytes: number = 20 * 2 ** 20;

/** The blocks of files. Throws `invalid_input` for what cannot be read, has no known type, or is too large. */
export function fileBlocks(files: readonly AgentFile[]): readonly (ImageBlock | FileBlock)[] {
  let bytes = 0;
  return files.map((file, index) => {
    const who = `file ${index + 1} of the input`;
    if (isUploaded(file)) return uploadedBlock(who, file);
    const { data, mimeType: said, name } = partsOf(who, file);
    const read = readData(who, data);
    const mimeType = typeOf(who, said ?? read.mimeType);
    if (read.data !== undefined) bytes += bytesIn(read.data);
    if (bytes > mostFileBytes) throw tooLarge(who, bytes);
    const source = read.data === undefined ? { url: read.url } : { data: read.data };
    if (mimeType.startsWith("image/")) return { type: "image", mimeType, ...source };
    return { type: "file", mimeType, ...source, ...(name === undefined ? {} : { name }) };
  });
}

function isUploaded(file: unknown): file is { readonly [Part in keyof UploadedFile]: unknown } {
  return typeof file === "object" && file !== null && "uploaded" in file;
}

function uploadedBlock(
  who: string,
  { uploaded, mimeType: said, name, ...stray }: { readonly [Part in keyof UploadedFile]: unknown },
): ImageBlock | FileBlock {
  const [other] = Object.keys(stray);
  if (other !== undefined) throw unread(who, `has ${JSON.stringify(other)} beside uploaded`);
  const ids = typeof uploaded === "object" && uploaded !== null ? Object.values(uploaded) : [];
  if (ids.length === 0 || !ids.every((id) => typeof id === "string" && id !== ""))
    throw unread(who, 'has no ids by the names of providers, uploaded: { openai: "file-1" }');
  if (said !== undefined && typeof said !== "string") throw unread(who, "has a mimeType that is no text");
  if (name !== undefined && typeof name !== "string") throw unread(who, "has a name that is no text");
  const source = { mimeType: typeOf(who, said), uploaded: { ...(uploaded as Readonly<Record<string, string>>) } };
  if (source.mimeType.startsWith("image/")) return { type: "image", ...source };
  return { type: "file", ...source, ...(name === undefined ? {} : { name }) };
}

function partsOf(who: string, file: unknown): NamedFile {
  if (typeof file === "string" || file instanceof Uint8Array || file instanceof ArrayBuffer || file instanceof URL)
    return { data: file };
  if (typeof file !== "object" || file === null || !("data" in file)) throw unread(who, "is no file");
  const stray = Object.keys(file).find((key) => key !== "data" && key !== "mimeType" && key !== "name");
  if (stray !== undefined) throw unread(who, `has ${JSON.stringify(stray)}, which no file has`);
  const { data, mimeType, name } = file as { readonly [Part in keyof NamedFile]: unknown };
  if (mimeType !== undefined && typeof mimeType !== "string") throw unread(who, "has a mimeType that is no text");
  if (name !== undefined && typeof name !== "string") throw unread(who, "has a name that is no text");
  return {
    data: data as FileData,
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(name === undefined ? {} : { name }),
  };
}

type Read = { readonly mimeType: string | undefined } & (
  | { readonly data: string; readonly url?: undefined }
  | { readonly url: string; readonly data?: undefined }
);

function readData(who: string, data: unknown): Read {
  if (data instanceof ArrayBuffer) return readBytes(who, new Uint8Array(data));
  if (data instanceof Uint8Array) return readBytes(who, data);
  if (data instanceof URL) return readText(who, data.href);
  if (typeof data === "string") return readText(who, data);
  throw unread(who, "has data that is neither bytes nor text nor an address");
}

function readBytes(who: string, bytes: Uint8Array): Read {
  if (bytes.length === 0) throw unread(who, "is empty");
  if (bytes.length > mostFileBytes) throw tooLarge(who, bytes.length);
  const data = toBase64(bytes);
  return { data, mimeType: typeInBytes(data) };
}

function readText(who: string, text: string): Read {
  if (text.startsWith("data:")) return readDataUrl(who, text);
  if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return { data: base64In(who, text), mimeType: typeInBytes(text) };
  if (!URL.canParse(text)) throw unread(who, "has an address that is none");
  const { protocol, pathname, href } = new URL(text);
  if (protocol === "file:" || protocol === "blob:")
    throw unread(who, `is at a ${protocol} address, which no provider can read: read it, and give its bytes`);
  return { url: href, mimeType: typeInName(pathname) };
}

function readDataUrl(who: string, url: string): Read {
  const comma = url.indexOf(",");
  if (comma < 0) throw unread(who, "is a data URL without data");
  const [mimeType, ...marks] = url.slice("data:".length, comma).split(";");
  const body = url.slice(comma + 1);
  const data = marks.includes("base64") ? base64In(who, body) : fromPercents(who, body);
  return { data, mimeType: mimeType === "" ? "text/plain" : mimeType };
}

function fromPercents(who: string, body: string): string {
  try {
    return toBase64(new TextEncoder().encode(decodeURIComponent(body)));
  } catch {
    throw unread(who, "is a data URL that cannot be decoded");
  }
}

function base64In(who: string, text: string): string {
  if (text === "") throw unread(who, "is empty");
  if (text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)) return text;
  throw unread(who, "is a text that is neither base64 nor an address");
}

function bytesIn(base64: string): number {
  return (base64.length / 4) * 3 - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}

/** How the base64 of well-known kinds of files begins. */
const beginnings: readonly (readonly [string, RegExp])[] = [
  ["image/png", /^iVBORw0KGgo/],
  ["image/jpeg", /^\/9j\//],
  ["image/gif", /^R0lGOD/],
  ["image/webp", /^UklGR.{7}RUJQ/],
  ["application/pdf", /^JVBERi0/],
];

function typeInBytes(base64: string): string | undefined {
  return beginnings.find(([, beginning]) => beginning.test(base64))?.[0];
}

const endings: Readonly<Record<string, string>> = {
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

function typeInName(path: string): string | undefined {
  const ending = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase();
  return ending !== undefined && Object.hasOwn(endings, ending) ? endings[ending] : undefined;
}

function typeOf(who: string, mimeType: string | undefined): string {
  if (mimeType === undefined) throw unread(who, "does not say what it is: give { data, mimeType }");
  if (/^[\w.+-]+\/[\w.+*-]+$/.test(mimeType)) return mimeType.toLowerCase();
  throw unread(who, `has the mimeType ${JSON.stringify(mimeType)}, which is none`);
}

function tooLarge(who: string, bytes: number): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `with ${who} the files have ${bytes.toLocaleString("en")} bytes, and at most ${mostFileBytes.toLocaleString("en")} go with one message`,
    next: "Give an address that the provider reads itself, or a smaller file",
  });
}

function unread(who: string, why: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `${who} ${why}`,
    next: "Give bytes, base64, a data URL or an address; { data, mimeType, name } says more of it, { uploaded, mimeType } names one that a provider has",
  });
}
