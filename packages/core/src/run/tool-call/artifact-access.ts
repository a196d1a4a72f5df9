/** Artifacts of a thread for its tool calls: full bodies for programs, redacted pages for models. */
import {
  type ArtifactRow,
  getArtifactHandle,
  handleLength,
  type StoredArtifacts,
} from "../../tool/artifacts/artifact.ts";
import type { ArtifactPage, ToolArtifacts } from "../../tool/artifacts/artifact-access.ts";
import { applyRedaction } from "../../tool/artifacts/redaction-policy.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import type { ToolCallContext } from "./context.ts";

/** Creates the artifact reader of a tool call. */
export function createToolArtifacts(call: ToolCallContext): ToolArtifacts {
  const { node, position, journal } = call;
  const { thread } = position.run;
  const getStore = (): StoredArtifacts | undefined => node.artifacts ?? journal.saved?.store.artifacts;
  return {
    list: async () => (await getStore()?.list(thread)) ?? [],
    read: async (artifact) => {
      const { at, rows } = await findArtifact(getStore(), thread, artifact);
      return readBody(at, thread, artifact, rows);
    },
    page: async (artifact, range) => {
      const { at, rows } = await findArtifact(getStore(), thread, artifact);
      return readPage(call, at, range, { artifact, rows });
    },
  };
}

type Rows = readonly [ArtifactRow, ...ArtifactRow[]];

const handlePattern = new RegExp(`^(?:[0-9a-f]{${handleLength}}|[0-9a-f]{64})$`);

/** Finds all rows of one body. Calls of several tools may have stored the same body. */
async function findArtifact(
  at: StoredArtifacts | undefined,
  thread: string,
  artifact: string,
): Promise<{ readonly at: StoredArtifacts; readonly rows: Rows }> {
  const [first, ...others] =
    at === undefined || !handlePattern.test(artifact) ? [] : await at.list(thread, { key: artifact });
  if (at === undefined || first === undefined)
    throw ToolError.notFound(`There is no artifact "${truncateHandle(artifact)}" in this thread.`);
  return { at, rows: [first, ...others.filter(({ key }) => key === first.key)] };
}

function truncateHandle(artifact: string): string {
  return artifact.length > 100 ? `${artifact.slice(0, 100)}…` : artifact;
}

async function readBody(store: StoredArtifacts, thread: string, artifact: string, [row]: Rows): Promise<Uint8Array> {
  const body = await store.read(thread, row.key);
  if (body === undefined) throw createDeletedError(artifact, row);
  return body;
}

function createDeletedError(artifact: string, { name, bytes }: ArtifactRow): ToolError {
  return ToolError.notFound(
    `The artifact "${artifact}" (${JSON.stringify(name)}, ${bytes} bytes) is no longer stored.`,
  );
}

async function readPage(
  call: ToolCallContext,
  store: StoredArtifacts,
  { offset, limit }: { readonly offset: number; readonly limit: number },
  { artifact, rows }: { readonly artifact: string; readonly rows: Rows },
): Promise<ArtifactPage> {
  const { thread } = call.position.run;
  const [{ key, name, mimeType, text, bytes }] = rows;
  if (!text)
    throw ToolError.failed(
      `The artifact "${artifact}" (${mimeType}, ${bytes} bytes) is not text and cannot be read here.`,
    );
  const policies = listRedactions(call, artifact, rows);
  const header = { handle: getArtifactHandle(key), name, mimeType };
  if (policies.length === 0) {
    // Reads one code point more than the page: the byte after the last code point shows that the code point is
    // complete.
    const part = await store.read(thread, key, { offset, limit: limit + 4 });
    if (part === undefined) throw createDeletedError(artifact, rows[0]);
    return { ...header, ...slicePage(part, limit, offset), bytes, ...getNextOffset(part, limit, offset, bytes) };
  }
  const body = await readBody(store, thread, artifact, rows);
  const fullText = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const redacted = new TextEncoder().encode(
    policies.reduce((shown, redact) => applyRedaction(redact, shown), fullText),
  );
  const part = redacted.subarray(offset, offset + limit + 4);
  const total = redacted.length;
  return { ...header, ...slicePage(part, limit, offset), bytes: total, ...getNextOffset(part, limit, offset, total) };
}

/**
 * Lists the redaction functions to apply before a model reads the body: one of each tool that returned the body,
 * unless the stored text was redacted already.
 */
function listRedactions(
  { node }: ToolCallContext,
  artifact: string,
  rows: Rows,
): readonly ((text: string) => string)[] {
  const policies = new Set<(text: string) => string>();
  for (const { tool, redaction } of rows) {
    if (redaction === "done") continue;
    const spec = node.registry.get(tool)?.spec;
    const redact = spec?.safety.redact?.result;
    if (redact !== undefined) policies.add(redact);
    // The tool with the redaction function is not registered here: refuse to show the text.
    else if (redaction === "skipped")
      throw new ToolError("denied", `The artifact "${artifact}" cannot be shown: only "${tool}" could redact it.`);
  }
  return [...policies];
}

/**
 * Cuts a page from bytes that start at `offset`: from the first complete code point, at most `limit` bytes, at least
 * one code point.
 */
function slicePage(part: Uint8Array, limit: number, offset: number): Pick<ArtifactPage, "text" | "offset"> {
  const [start, end] = findPageBounds(part, limit);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(part.subarray(start, end));
  return { text, offset: offset + start };
}

function getNextOffset(part: Uint8Array, limit: number, offset: number, bytes: number): Pick<ArtifactPage, "next"> {
  const next = offset + findPageBounds(part, limit)[1];
  return next < bytes ? { next } : {};
}

function findPageBounds(part: Uint8Array, limit: number): readonly [start: number, end: number] {
  let start = 0;
  while (start < 3 && isContinuationByte(part[start])) start++;
  let end = Math.min(limit, part.length);
  while (end > start && isContinuationByte(part[end])) end--;
  if (end <= start) {
    end = Math.min(start + 1, part.length);
    while (isContinuationByte(part[end])) end++;
  }
  return [start, end];
}

/** True for a UTF-8 continuation byte. */
function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
