/**
 * From the result of a call to what is told, saved and sent of it: redacted, bounded, and what is too large for a model kept
 * whole. Bodies go to the store in the write that records the outcome, or to a store of artifacts of their own before it.
 */
import { fromBase64 } from "../../base/base64.ts";
import { describeThrown } from "../../base/errors.ts";
import { deepestLevel, isPlainObject } from "../../base/json.ts";
import type { ArtifactBlock, ContentBlock, FileBlock, ImageBlock } from "../../model/message.ts";
import {
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  handleOf,
  keyOfBody,
} from "../../tool/artifacts/artifact.ts";
import type { ArtifactDraft, ArtifactRef } from "../../tool/artifacts/artifact-draft.ts";
import { defaultLimits, type ResultLimits } from "../../tool/artifacts/artifact-limits.ts";
import { redactedResult, textFrom } from "../../tool/artifacts/redaction-policy.ts";
import { cutText, isWithin, utf8Bytes } from "../../tool/artifacts/truncate-text.ts";
import type { ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { resultOfError, type ToolResult } from "../../tool/result.ts";
import { whenAborted } from "../session/abort.ts";
import { recordOf } from "../session/redact-error.ts";
import { type CallAtWork, event, facts } from "./context.ts";

/** Whether artifacts of the call are kept anywhere. */
export function keepsArtifacts({ session, node }: CallAtWork): boolean {
  return node.artifacts !== undefined || session.saved !== undefined;
}

/** The result as it may be told, saved and sent: at once where it is that already, as most are. */
export function presentable(call: CallAtWork, result: ToolResult): ToolResult | Promise<ToolResult> {
  const spec = call.tool?.spec;
  const limits = limitsOf(call, spec);
  const redact = spec?.safety.redact?.result;
  if (redact === undefined && result.drafts === undefined && isSmall(result, limits)) return result;
  return present(call, result, limits, redact);
}

/** A tool knows its results; what it does not say holds for the node. */
function limitsOf({ node }: CallAtWork, spec: ToolSpec | undefined): Required<ResultLimits> {
  const { limits: own } = spec ?? {};
  const { limits: ofNode } = node;
  if (own === undefined && ofNode === undefined) return defaultLimits;
  const resultBytes = own?.resultBytes ?? ofNode?.resultBytes ?? defaultLimits.resultBytes;
  const artifactBytes = own?.artifactBytes ?? ofNode?.artifactBytes ?? defaultLimits.artifactBytes;
  return { resultBytes, artifactBytes: Math.min(artifactBytes, resultBytes) };
}

/** Whether a result is within its limits for certain, told without looking at its texts. */
function isSmall({ content, error }: ToolResult, { resultBytes, artifactBytes }: Required<ResultLimits>): boolean {
  if (error !== undefined && error.message.length * 3 > artifactBytes) return false;
  let left = resultBytes;
  for (const block of content) {
    const bytes = mostBytes(block, artifactBytes);
    if (bytes > artifactBytes && block.type !== "image" && block.type !== "file") return false;
    left -= bytes;
  }
  return left >= 0;
}

/** A number that a block has at most as bytes, or one above `enough`. */
function mostBytes(block: ContentBlock, enough: number): number {
  switch (block.type) {
    case "text":
      return block.text.length * 3;
    case "artifact":
      return block.preview.length * 3;
    case "json":
      return mostJson(block.value, enough, 0);
    default:
      return addressOrBytes(block).length;
  }
}

/**
 * A character is at most six in JSON, and a number or a word at most 25. What is no data is small: whoever saves the result
 * refuses it.
 */
function mostJson(value: unknown, enough: number, level: number): number {
  if (typeof value === "string") return value.length * 6 + 2;
  if (typeof value !== "object" || value === null) return 25;
  if (level > deepestLevel) return enough + 1;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const item of value) {
      bytes += mostJson(item, enough - bytes, level + 1) + 1;
      if (bytes > enough) return bytes;
    }
  } else if (isPlainObject(value)) {
    for (const key in value) {
      bytes += key.length * 6 + 4 + mostJson(value[key], enough - bytes, level + 1);
      if (bytes > enough) return bytes;
    }
  }
  return bytes;
}

async function present(
  call: CallAtWork,
  { drafts = [], ...plain }: ToolResult,
  limits: Required<ResultLimits>,
  redact: ((text: string) => string) | undefined,
): Promise<ToolResult> {
  const given = withheldUnless(call, redact, plain, drafts);
  const external = call.node.artifacts;
  let shape = await bounded(given, shaping(call, limits, redact, new Set()));
  if (external !== undefined) {
    const lost = await putInto(call, external, shape.artifacts);
    // What could not be kept must not be promised.
    if (lost.size > 0) shape = await bounded(given, shaping(call, limits, redact, lost));
  } else if (shape.artifacts.length > 0) call.artifacts = shape.artifacts;
  return shape.result;
}

interface Given {
  readonly result: ToolResult;
  readonly drafts: readonly Draft[];
}

/** A draft whose text has been redacted, if it was to be. */
interface Draft extends ArtifactDraft {
  readonly redaction: ArtifactRow["redaction"];
}

/** Redacted, or withheld whole where that fails. */
function withheldUnless(
  call: CallAtWork,
  redact: ((text: string) => string) | undefined,
  result: ToolResult,
  drafts: readonly ArtifactDraft[],
): Given {
  // Bytes are seen to be text only now: the secrets in them were not.
  const texts = drafts.length === 0 ? drafts : call.session.mask.hide(drafts.map(asText));
  if (redact === undefined) return { result, drafts: texts.map((draft) => ({ ...draft, redaction: "none" })) };
  try {
    return { result: redactedResult(redact, result), drafts: texts.map((draft) => redactedDraft(redact, draft)) };
  } catch (thrown) {
    const { session, block } = call;
    session.world.log("error", `a result of the tool "${block.name}" was withheld: its redaction failed`, {
      callId: block.id,
      error: recordOf(session, thrown),
    });
    const text = `The tool "${block.name}" ran, but its result is withheld: it could not be redacted.`;
    return { result: resultOfError(new ToolError("invalid_output", text), facts(call, result.attempts)), drafts: [] };
  }
}

function redactedDraft(redact: (text: string) => string, draft: ArtifactDraft): Draft {
  const name = textFrom(redact, draft.name);
  if (typeof draft.body !== "string") return { ...draft, name, redaction: "none" };
  if (draft.redact === false) return { ...draft, name, redaction: "skipped" };
  return { ...draft, name, body: textFrom(redact, draft.body), redaction: "done" };
}

const textTypes = /^text\/|[/+](?:json|xml|yaml|toml|csv|javascript|x-ndjson|jsonl)\b/i;

/** Bytes that say that they are text, and are, count as that text. */
function asText(draft: ArtifactDraft): ArtifactDraft {
  if (typeof draft.body === "string" || !textTypes.test(draft.mimeType)) return draft;
  try {
    return { ...draft, body: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(draft.body) };
  } catch {
    return draft;
  }
}

/** What a result is cut by, and what is kept of it. */
interface Shaping {
  readonly call: CallAtWork;
  readonly limits: Required<ResultLimits>;
  /** Of the texts that are kept because they are large. */
  readonly redaction: ArtifactRow["redaction"];
  readonly keeps: boolean;
  /** Keys of what could not be kept. */
  readonly lost: ReadonlySet<string>;
  readonly artifacts: ArtifactWrite[];
}

function shaping(
  call: CallAtWork,
  limits: Required<ResultLimits>,
  redact: ((text: string) => string) | undefined,
  lost: ReadonlySet<string>,
): Shaping {
  const redaction = redact === undefined ? "none" : "done";
  return { call, limits, redaction, keeps: keepsArtifacts(call), lost, artifacts: [] };
}

async function bounded(
  { result, drafts }: Given,
  shape: Shaping,
): Promise<{ readonly result: ToolResult; readonly artifacts: readonly ArtifactWrite[] }> {
  const blocks: ContentBlock[] = [];
  for (const block of result.content) blocks.push(await boundedBlock(shape, block));
  for (const draft of drafts) blocks.push(draftBlock(draft, await kept(shape, draft)));
  const content = await withinAll(shape, blocks);
  const { error } = result;
  const refs = shape.artifacts.map(({ row }) => refOf(row));
  return {
    result: {
      ...result,
      content,
      ...(error === undefined ? {} : { error: { ...error, message: shortened(error.message, shape) } }),
      ...(refs.length === 0 ? {} : { artifacts: refs }),
    },
    artifacts: shape.artifacts,
  };
}

function shortened(text: string, { limits }: Shaping): string {
  return cutText(text, limits.artifactBytes, (cut) => ` [… ${cut} bytes …] `);
}

async function boundedBlock(shape: Shaping, block: ContentBlock): Promise<ContentBlock> {
  const { artifactBytes, resultBytes } = shape.limits;
  const tool = shape.call.block.name;
  switch (block.type) {
    case "text":
      if (isWithin(block.text, artifactBytes)) return block;
      return previewOf(shape, { name: `${tool}.txt`, mimeType: "text/plain", text: block.text }, artifactBytes);
    case "json": {
      const text = jsonOf(block.value);
      if (text === undefined || isWithin(text, artifactBytes)) return block;
      return previewOf(shape, { name: `${tool}.json`, mimeType: "application/json", text }, artifactBytes);
    }
    case "artifact":
      if (isWithin(block.preview, artifactBytes)) return block;
      return {
        ...block,
        preview: cutText(block.preview, artifactBytes, (cut) => `\n[… ${cut} bytes are cut here.]\n`),
      };
    default:
      return addressOrBytes(block).length <= resultBytes ? block : mediaNote(shape, block);
  }
}

/** Head and tail of a text that is kept whole, where that is possible. */
async function previewOf(
  shape: Shaping,
  { name, mimeType, text }: { readonly name: string; readonly mimeType: string; readonly text: string },
  maxBytes: number,
): Promise<ContentBlock> {
  const ref = await kept(shape, { name, mimeType, body: text, redaction: shape.redaction });
  const bytes = ref?.bytes ?? utf8Bytes(text);
  const where = ref === undefined ? "" : ` All of it is the ${pointerTo(shape, ref)}.`;
  const preview = cutText(text, maxBytes, (cut) => `\n[… ${cut} of ${bytes} bytes are cut here.${where}]\n`);
  return ref === undefined ? { type: "text", text: preview } : artifactBlock(ref, preview);
}

/** An image or a file is never cut: one that is too large is named. */
async function mediaNote(shape: Shaping, block: ImageBlock | FileBlock): Promise<ContentBlock> {
  const { mimeType, data } = block;
  if (data === undefined) return { type: "text", text: addressNote(block) };
  const name =
    block.type === "file" && block.name !== undefined ? block.name : `${shape.call.block.name}.${block.type}`;
  const ref = await kept(shape, { name, mimeType, body: bytesOf(data), redaction: "none" });
  const what = `${block.type} (${mimeType}, ${data.length} bytes as base64) is too large to be shown`;
  if (ref === undefined) return { type: "text", text: `[The ${what}.]` };
  return artifactBlock(ref, `[The ${what}. It is the artifact ${ref.handle}.]`);
}

function addressNote({ type, mimeType, url = "" }: ImageBlock | FileBlock): string {
  if (url.length > 2_048) return `[The address of the ${type} (${mimeType}) is too long to be shown.]`;
  return `[The ${type} (${mimeType}) is at ${url}]`;
}

/** Text that is no base64 is kept as it is. */
function bytesOf(data: string): string | Uint8Array {
  try {
    return fromBase64(data);
  } catch {
    return data;
  }
}

function draftBlock({ name, mimeType }: Draft, ref: ArtifactRef | undefined): ContentBlock {
  const what = `${JSON.stringify(name)} (${mimeType}`;
  if (ref === undefined) return { type: "text", text: `[${what}) could not be kept.]` };
  return artifactBlock(ref, `[${what}, ${ref.bytes} bytes) is the artifact ${ref.handle}.]`);
}

function artifactBlock({ handle, name, mimeType, bytes }: ArtifactRef, preview: string): ArtifactBlock {
  return { type: "artifact", ref: { handle, name, mimeType, bytes }, preview };
}

function pointerTo({ call }: Shaping, { handle }: ArtifactRef): string {
  const readable = call.node.registry.get("read_artifact") !== undefined;
  return `artifact ${handle}${readable ? ": read it with read_artifact" : ""}`;
}

/** All blocks together: those that have no room any more become one text that is cut, and kept whole. */
async function withinAll(shape: Shaping, blocks: readonly ContentBlock[]): Promise<readonly ContentBlock[]> {
  const { resultBytes } = shape.limits;
  const sizes = blocks.map(blockBytes);
  if (sizes.reduce((sum, size) => sum + size, 0) <= resultBytes) return blocks;
  const room = resultBytes - Math.min(1_024, Math.floor(resultBytes / 2));
  let [count, used] = [0, 0];
  for (const size of sizes) {
    if (used + size > room) break;
    used += size;
    count += 1;
  }
  const texts: string[] = [];
  for (const block of blocks.slice(count))
    texts.push(textOf(block.type === "image" || block.type === "file" ? await mediaNote(shape, block) : block));
  const text = texts.join("\n");
  const left = resultBytes - used;
  const rest: ContentBlock = isWithin(text, left)
    ? { type: "text", text }
    : await previewOf(shape, { name: `${shape.call.block.name}-rest.txt`, mimeType: "text/plain", text }, left);
  return [...blocks.slice(0, count), rest];
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "artifact":
      return block.preview;
    case "json":
      return jsonOf(block.value) ?? "";
    default:
      return addressOrBytes(block);
  }
}

function addressOrBytes(block: ImageBlock | FileBlock): string {
  return block.data ?? block.url ?? JSON.stringify(block.uploaded);
}

/** Nothing for what is no data. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function blockBytes(block: ContentBlock): number {
  return utf8Bytes(textOf(block));
}

/** Keep a body; gives what it is known by, or nothing where it cannot be kept. */
async function kept(shape: Shaping, draft: Omit<Draft, "redact">): Promise<ArtifactRef | undefined> {
  if (!shape.keeps) return undefined;
  const { call, artifacts } = shape;
  const { session, scope, block } = call;
  const { name, mimeType, redaction } = draft;
  const text = typeof draft.body === "string";
  const body = typeof draft.body === "string" ? new TextEncoder().encode(draft.body) : draft.body;
  const key = await keyOfBody(body);
  if (shape.lost.has(key)) return undefined;
  const row: ArtifactRow = {
    key,
    name,
    mimeType,
    bytes: body.length,
    text,
    redaction,
    tool: block.name,
    run: session.run.id,
    branch: session.line,
    step: session.step,
    task: scope.task.id,
    call: block.id,
    at: session.world.clock.now(),
  };
  artifacts.push({ row, body });
  return refOf(row);
}

function refOf({ key, name, mimeType, bytes }: ArtifactRow): ArtifactRef {
  return { key, handle: handleOf(key), name, mimeType, bytes };
}

/** Put what a call gave into a store of its own; gives the keys of what that store failed on: the call goes on without it. */
async function putInto(
  call: CallAtWork,
  external: ArtifactStore,
  artifacts: readonly ArtifactWrite[],
): Promise<ReadonlySet<string>> {
  const { session, block, scope } = call;
  const lost = new Set<string>();
  for (const artifact of artifacts) {
    const { key, name } = artifact.row;
    try {
      await unlessAborted(scope.signal(), external.put(session.run.thread, artifact));
    } catch (thrown) {
      lost.add(key);
      session.world.log("warn", `the artifact "${name}" of the tool "${block.name}" could not be kept`, {
        callId: block.id,
        key,
        error: recordOf(session, thrown),
      });
      event(call, { type: "tool.artifact_lost", key, name, error: session.mask.hide(describeThrown(thrown)) });
    }
  }
  return lost;
}

/** A store that hangs does not hold a run that was cancelled. */
function unlessAborted(signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new ToolError("cancelled", "The run was stopped meanwhile"));
    if (signal.aborted) stop();
    const forget = signal.aborted ? undefined : whenAborted(signal, stop);
    work.then(resolve, reject).finally(() => forget?.());
  });
}
