/** The artifacts of a thread as its calls read them: whole for programs, redacted page by page for a model. */
import { type ArtifactRow, handleLength, handleOf, type KeptArtifacts } from "../../tool/artifacts/artifact.ts";
import type { ArtifactPage, ToolArtifacts } from "../../tool/artifacts/artifact-access.ts";
import { textFrom } from "../../tool/artifacts/redaction-policy.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import type { CallAtWork } from "./context.ts";

/** What a call may read. */
export function artifactsOf(call: CallAtWork): ToolArtifacts {
  const { node, session } = call;
  const { thread } = session.run;
  const place = (): KeptArtifacts | undefined => node.artifacts ?? session.saved?.store.artifacts;
  return {
    list: async () => (await place()?.list(thread)) ?? [],
    read: async (artifact) => {
      const { at, rows } = await find(place(), thread, artifact);
      return wholeBody(at, thread, artifact, rows);
    },
    page: async (artifact, range) => {
      const { at, rows } = await find(place(), thread, artifact);
      return page(call, at, artifact, rows, range);
    },
  };
}

type Rows = readonly [ArtifactRow, ...ArtifactRow[]];

const name = new RegExp(`^(?:[0-9a-f]{${handleLength}}|[0-9a-f]{64})$`);

/** The rows of one body: calls of several tools may have given the same. */
async function find(
  at: KeptArtifacts | undefined,
  thread: string,
  artifact: string,
): Promise<{ readonly at: KeptArtifacts; readonly rows: Rows }> {
  const [first, ...others] = at === undefined || !name.test(artifact) ? [] : await at.list(thread, { key: artifact });
  if (at === undefined || first === undefined)
    throw ToolError.notFound(`There is no artifact "${shown(artifact)}" in this thread.`);
  return { at, rows: [first, ...others.filter(({ key }) => key === first.key)] };
}

function shown(artifact: string): string {
  return artifact.length > 100 ? `${artifact.slice(0, 100)}…` : artifact;
}

async function wholeBody(at: KeptArtifacts, thread: string, artifact: string, [row]: Rows): Promise<Uint8Array> {
  const body = await at.read(thread, row.key);
  if (body === undefined) throw gone(artifact, row);
  return body;
}

function gone(artifact: string, { name, bytes }: ArtifactRow): ToolError {
  return ToolError.notFound(
    `The artifact "${artifact}" (${JSON.stringify(name)}, ${bytes} bytes) is not kept any more.`,
  );
}

async function page(
  call: CallAtWork,
  at: KeptArtifacts,
  artifact: string,
  rows: Rows,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<ArtifactPage> {
  const { thread } = call.session.run;
  const [{ key, name, mimeType, text, bytes }] = rows;
  if (!text)
    throw ToolError.failed(
      `The artifact "${artifact}" (${mimeType}, ${bytes} bytes) is not text and cannot be read here.`,
    );
  const policies = policiesOf(call, artifact, rows);
  const known = { handle: handleOf(key), name, mimeType };
  if (policies.length === 0) {
    // One code point more than is shown: whether the last one is whole is seen in the byte after it.
    const part = await at.read(thread, key, { offset, limit: limit + 4 });
    if (part === undefined) throw gone(artifact, rows[0]);
    return { ...known, ...cutOut(part, limit, offset), bytes, ...nextOf(part, limit, offset, bytes) };
  }
  const body = await wholeBody(at, thread, artifact, rows);
  const whole = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const redacted = new TextEncoder().encode(policies.reduce((shown, redact) => textFrom(redact, shown), whole));
  const part = redacted.subarray(offset, offset + limit + 4);
  const total = redacted.length;
  return { ...known, ...cutOut(part, limit, offset), bytes: total, ...nextOf(part, limit, offset, total) };
}

/** What is to be taken out before a model sees anything: by every tool that gave this body, unless that was done before it was kept. */
function policiesOf({ node }: CallAtWork, artifact: string, rows: Rows): readonly ((text: string) => string)[] {
  const policies = new Set<(text: string) => string>();
  for (const { tool, redaction } of rows) {
    if (redaction === "done") continue;
    const spec = node.registry.get(tool)?.spec;
    const redact = spec?.safety.redact?.result;
    if (redact !== undefined) policies.add(redact);
    // Who knows what to take out is not here: nothing is shown.
    else if (redaction === "skipped")
      throw new ToolError("denied", `The artifact "${artifact}" cannot be shown: only "${tool}" could redact it.`);
  }
  return [...policies];
}

/** The page in some bytes that begin at `offset`: from the first whole code point, at most `limit` bytes, but one code point at least. */
function cutOut(part: Uint8Array, limit: number, offset: number): Pick<ArtifactPage, "text" | "offset"> {
  const [start, end] = bounds(part, limit);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(part.subarray(start, end));
  return { text, offset: offset + start };
}

function nextOf(part: Uint8Array, limit: number, offset: number, bytes: number): Pick<ArtifactPage, "next"> {
  const next = offset + bounds(part, limit)[1];
  return next < bytes ? { next } : {};
}

function bounds(part: Uint8Array, limit: number): readonly [start: number, end: number] {
  let start = 0;
  while (start < 3 && isInside(part[start])) start++;
  let end = Math.min(limit, part.length);
  while (end > start && isInside(part[end])) end--;
  if (end <= start) {
    end = Math.min(start + 1, part.length);
    while (isInside(part[end])) end++;
  }
  return [start, end];
}

/** Whether a byte goes on with a code point that an earlier one began. */
function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
