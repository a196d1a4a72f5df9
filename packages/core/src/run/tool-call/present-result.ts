/**
 * Turns a tool result into the form for events, store and model: redacted, limited in size, with oversized content
 * stored as artifacts. Bodies are committed with the outcome of the call, or put into a separate artifact store
 * before that commit.
 */
import { fromBase64 } from "../../base/base64.ts";
import { describeThrown } from "../../base/errors.ts";
import { isPlainObject, maxDepth } from "../../base/json.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { ArtifactBlock, ContentBlock, FileBlock, ImageBlock } from "../../model/message.ts";
import {
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  computeArtifactKey,
  getArtifactHandle,
} from "../../tool/artifacts/artifact.ts";
import type { ArtifactDraft, ArtifactRef } from "../../tool/artifacts/artifact-draft.ts";
import { defaultLimits, type ResultLimits } from "../../tool/artifacts/artifact-limits.ts";
import { applyRedaction, redactResult } from "../../tool/artifacts/redaction-policy.ts";
import { countUtf8Bytes, fitsBytes, truncateText } from "../../tool/artifacts/truncate-text.ts";
import type { ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { type ToolResult, toErrorResult } from "../../tool/result.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { emitCallEvent, getResultFields, type ToolCallContext } from "./context.ts";

/** True when the artifacts of the call have a store. */
export function canStoreArtifacts({ journal, node }: ToolCallContext): boolean {
  return node.artifacts !== undefined || journal.saved !== undefined;
}

/**
 * Returns the redacted and limited result. Synchronous for a small result without redaction, which is the common
 * case.
 */
export function presentResult(call: ToolCallContext, result: ToolResult): ToolResult | Promise<ToolResult> {
  const spec = call.tool?.spec;
  const limits = resolveLimits(call, spec);
  const redact = spec?.safety.redact?.result;
  if (redact === undefined && result.drafts === undefined && isSurelyWithinLimits(result, limits)) return result;
  return redactAndLimit(call, result, limits, redact);
}

/** Resolves size limits: limits of the tool first, then limits of the node, then defaults. */
function resolveLimits({ node }: ToolCallContext, spec: ToolSpec | undefined): Required<ResultLimits> {
  const { limits: toolLimits } = spec ?? {};
  const { limits: nodeLimits } = node;
  if (toolLimits === undefined && nodeLimits === undefined) return defaultLimits;
  const resultBytes = toolLimits?.resultBytes ?? nodeLimits?.resultBytes ?? defaultLimits.resultBytes;
  const artifactBytes = toolLimits?.artifactBytes ?? nodeLimits?.artifactBytes ?? defaultLimits.artifactBytes;
  return { resultBytes, artifactBytes: Math.min(artifactBytes, resultBytes) };
}

/** True when the result is within its limits by an upper bound, without encoding its texts. */
function isSurelyWithinLimits(
  { content, error }: ToolResult,
  { resultBytes, artifactBytes }: Required<ResultLimits>,
): boolean {
  if (error !== undefined && error.message.length * 3 > artifactBytes) return false;
  let remaining = resultBytes;
  for (const block of content) {
    const bytes = estimateMaxBytes(block, artifactBytes);
    if (bytes > artifactBytes && block.type !== "image" && block.type !== "file") return false;
    remaining -= bytes;
  }
  return remaining >= 0;
}

/** Returns an upper bound of the bytes of a block, or a number above `limit`. */
function estimateMaxBytes(block: ContentBlock, limit: number): number {
  switch (block.type) {
    case "text":
      return block.text.length * 3;
    case "artifact":
      return block.preview.length * 3;
    case "json":
      return estimateMaxJsonBytes(block.value, limit, 0);
    default:
      return getMediaContent(block).length;
  }
}

/**
 * Returns an upper bound of JSON bytes: six per character, 25 per number or keyword. A value that is no data counts
 * as small; validation refuses the value when the result is saved.
 */
function estimateMaxJsonBytes(value: unknown, limit: number, level: number): number {
  if (typeof value === "string") return value.length * 6 + 2;
  if (typeof value !== "object" || value === null) return 25;
  if (level > maxDepth) return limit + 1;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const item of value) {
      bytes += estimateMaxJsonBytes(item, limit - bytes, level + 1) + 1;
      if (bytes > limit) return bytes;
    }
  } else if (isPlainObject(value)) {
    for (const key in value) {
      bytes += key.length * 6 + 4 + estimateMaxJsonBytes(value[key], limit - bytes, level + 1);
      if (bytes > limit) return bytes;
    }
  }
  return bytes;
}

async function redactAndLimit(
  call: ToolCallContext,
  { drafts = [], ...plain }: ToolResult,
  limits: Required<ResultLimits>,
  redact: ((text: string) => string) | undefined,
): Promise<ToolResult> {
  const redacted = redactOrWithhold(call, redact, plain, drafts);
  const external = call.node.artifacts;
  let limited = await limitResult(redacted, createLimitContext(call, limits, redact, new Set()));
  if (external !== undefined) {
    const failedKeys = await putArtifacts(call, external, limited.artifacts);
    // A result must not refer to an artifact that was not stored.
    if (failedKeys.size > 0)
      limited = await limitResult(redacted, createLimitContext(call, limits, redact, failedKeys));
  } else if (limited.artifacts.length > 0) call.artifacts = limited.artifacts;
  return limited.result;
}

interface RedactedResult {
  readonly result: ToolResult;
  readonly drafts: readonly Draft[];
}

/** Draft with the redaction state of its text. */
interface Draft extends ArtifactDraft {
  readonly redaction: ArtifactRow["redaction"];
}

/** Redacts a result, or withholds the whole result when redaction fails. */
function redactOrWithhold(
  call: ToolCallContext,
  redact: ((text: string) => string) | undefined,
  result: ToolResult,
  drafts: readonly ArtifactDraft[],
): RedactedResult {
  // Bytes become text only here: secrets in these texts are not masked yet.
  const texts =
    drafts.length === 0
      ? drafts
      : call.env.redactor.redact(drafts.map(decodeTextDraft)).map((draft) => redactBytes(call.env.redactor, draft));
  if (redact === undefined) return { result, drafts: texts.map((draft) => ({ ...draft, redaction: "none" })) };
  try {
    return { result: redactResult(redact, result), drafts: texts.map((draft) => redactDraft(redact, draft)) };
  } catch (thrown) {
    const { env, block } = call;
    env.world.log("error", `a result of the tool "${block.name}" was withheld: redaction failed`, {
      callId: block.id,
      error: toRedactedRecord(env.redactor, thrown),
    });
    const text = `The tool "${block.name}" ran, but its result is withheld: it could not be redacted.`;
    return {
      result: toErrorResult(new ToolError("invalid_output", text), getResultFields(call, result.attempts)),
      drafts: [],
    };
  }
}

function redactDraft(redact: (text: string) => string, draft: ArtifactDraft): Draft {
  const name = applyRedaction(redact, draft.name);
  if (typeof draft.body !== "string") return { ...draft, name, redaction: "none" };
  if (draft.redact === false) return { ...draft, name, redaction: "skipped" };
  return { ...draft, name, body: applyRedaction(redact, draft.body), redaction: "done" };
}

const textTypes = /^text\/|[/+](?:json|xml|yaml|toml|csv|javascript|x-ndjson|jsonl)\b/i;

/** Decodes bytes with a text MIME type; invalid UTF-8 stays bytes. */
function decodeTextDraft(draft: ArtifactDraft): ArtifactDraft {
  if (typeof draft.body === "string" || !textTypes.test(draft.mimeType)) return draft;
  try {
    return { ...draft, body: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(draft.body) };
  } catch {
    return draft;
  }
}

/**
 * Redacts the secrets in the bytes of a binary body. The length stays, because binary formats contain offsets: each
 * byte of a secret becomes `*`.
 */
function redactBytes({ listUncommonSecrets }: Redactor, draft: ArtifactDraft): ArtifactDraft {
  if (typeof draft.body === "string") return draft;
  const body = maskBytes(draft.body, listUncommonSecrets());
  return body === draft.body ? draft : { ...draft, body };
}

function maskBytes(body: Uint8Array, secrets: readonly string[]): Uint8Array {
  if (secrets.length === 0) return body;
  // A character for each byte, so that a search of text finds bytes.
  const text = toByteString(body);
  let masked: Uint8Array | undefined;
  for (const secret of secrets) {
    const wanted = toByteString(new TextEncoder().encode(secret));
    for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) {
      masked ??= Uint8Array.from(body);
      masked.fill(maskByte, at, at + wanted.length);
    }
  }
  return masked ?? body;
}

const maskByte = 0x2a;
const maxPieceBytes = 8192;

function toByteString(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; start += maxPieceBytes)
    pieces.push(String.fromCharCode(...bytes.subarray(start, start + maxPieceBytes)));
  return pieces.join("");
}

/** Limits and stored artifacts of a result. */
interface LimitContext {
  readonly call: ToolCallContext;
  readonly limits: Required<ResultLimits>;
  /** Redaction state of texts that are stored because of their size. */
  readonly redaction: ArtifactRow["redaction"];
  readonly canStore: boolean;
  /** Keys of artifacts that could not be stored. */
  readonly failedKeys: ReadonlySet<string>;
  readonly artifacts: ArtifactWrite[];
}

function createLimitContext(
  call: ToolCallContext,
  limits: Required<ResultLimits>,
  redact: ((text: string) => string) | undefined,
  failedKeys: ReadonlySet<string>,
): LimitContext {
  const redaction = redact === undefined ? "none" : "done";
  return { call, limits, redaction, canStore: canStoreArtifacts(call), failedKeys, artifacts: [] };
}

async function limitResult(
  { result, drafts }: RedactedResult,
  context: LimitContext,
): Promise<{ readonly result: ToolResult; readonly artifacts: readonly ArtifactWrite[] }> {
  const blocks: ContentBlock[] = [];
  for (const block of result.content) blocks.push(await limitBlock(context, block));
  for (const draft of drafts) blocks.push(createDraftBlock(draft, await addArtifact(context, draft)));
  const content = await limitBlocks(context, blocks);
  const { error } = result;
  const refs = context.artifacts.map(({ row }) => toArtifactRef(row));
  return {
    result: {
      ...result,
      content,
      ...(error === undefined ? {} : { error: { ...error, message: truncateErrorText(error.message, context) } }),
      ...(refs.length === 0 ? {} : { artifacts: refs }),
    },
    artifacts: context.artifacts,
  };
}

function truncateErrorText(text: string, { limits }: LimitContext): string {
  return truncateText(text, limits.artifactBytes, (omittedBytes) => ` [… ${omittedBytes} bytes …] `);
}

async function limitBlock(context: LimitContext, block: ContentBlock): Promise<ContentBlock> {
  const { artifactBytes, resultBytes } = context.limits;
  const tool = context.call.block.name;
  switch (block.type) {
    case "text":
      if (fitsBytes(block.text, artifactBytes)) return block;
      return createPreview(context, { name: `${tool}.txt`, mimeType: "text/plain", text: block.text }, artifactBytes);
    case "json": {
      const text = toJsonText(block.value);
      if (text === undefined || fitsBytes(text, artifactBytes)) return block;
      return createPreview(context, { name: `${tool}.json`, mimeType: "application/json", text }, artifactBytes);
    }
    case "artifact":
      if (fitsBytes(block.preview, artifactBytes)) return block;
      return {
        ...block,
        preview: truncateText(
          block.preview,
          artifactBytes,
          (omittedBytes) => `\n[… ${omittedBytes} bytes are cut here.]\n`,
        ),
      };
    default:
      return getMediaContent(block).length <= resultBytes ? block : describeOversizedMedia(context, block);
  }
}

/** Creates a preview of head and tail; the full text is stored as an artifact if possible. */
async function createPreview(
  context: LimitContext,
  { name, mimeType, text }: { readonly name: string; readonly mimeType: string; readonly text: string },
  maxBytes: number,
): Promise<ContentBlock> {
  const ref = await addArtifact(context, { name, mimeType, body: text, redaction: context.redaction });
  const bytes = ref?.bytes ?? countUtf8Bytes(text);
  const pointer = ref === undefined ? "" : ` The full text is the ${formatArtifactPointer(context, ref)}.`;
  const preview = truncateText(
    text,
    maxBytes,
    (omittedBytes) => `\n[… ${omittedBytes} of ${bytes} bytes are cut here.${pointer}]\n`,
  );
  return ref === undefined ? { type: "text", text: preview } : createArtifactBlock(ref, preview);
}

/** Replaces an oversized image or file by a note. Media is never truncated. */
async function describeOversizedMedia(context: LimitContext, block: ImageBlock | FileBlock): Promise<ContentBlock> {
  const { mimeType, data } = block;
  if (data === undefined) return { type: "text", text: describeMediaUrl(block) };
  const name =
    block.type === "file" && block.name !== undefined ? block.name : `${context.call.block.name}.${block.type}`;
  const ref = await addArtifact(context, { name, mimeType, body: decodeBase64(data), redaction: "none" });
  const description = `${block.type} (${mimeType}, ${data.length} bytes as base64) is too large to be shown`;
  if (ref === undefined) return { type: "text", text: `[The ${description}.]` };
  return createArtifactBlock(ref, `[The ${description}. Its data is the artifact ${ref.handle}.]`);
}

function describeMediaUrl({ type, mimeType, url = "" }: ImageBlock | FileBlock): string {
  if (url.length > 2_048) return `[The address of the ${type} (${mimeType}) is too long to be shown.]`;
  return `[The ${type} (${mimeType}) is at ${url}]`;
}

/** Decodes base64; text that is not base64 is returned unchanged. */
function decodeBase64(data: string): string | Uint8Array {
  try {
    return fromBase64(data);
  } catch {
    return data;
  }
}

function createDraftBlock({ name, mimeType }: Draft, ref: ArtifactRef | undefined): ContentBlock {
  const description = `${JSON.stringify(name)} (${mimeType}`;
  if (ref === undefined) return { type: "text", text: `[${description}) could not be stored.]` };
  return createArtifactBlock(ref, `[${description}, ${ref.bytes} bytes) is the artifact ${ref.handle}.]`);
}

function createArtifactBlock({ handle, name, mimeType, bytes }: ArtifactRef, preview: string): ArtifactBlock {
  return { type: "artifact", ref: { handle, name, mimeType, bytes }, preview };
}

function formatArtifactPointer({ call }: LimitContext, { handle }: ArtifactRef): string {
  const readable = call.node.registry.get("read_artifact") !== undefined;
  return `artifact ${handle}${readable ? ": read it with read_artifact" : ""}`;
}

/**
 * Limits all blocks together: blocks beyond the limit become a single truncated text, stored in full as an artifact.
 */
async function limitBlocks(context: LimitContext, blocks: readonly ContentBlock[]): Promise<readonly ContentBlock[]> {
  const { resultBytes } = context.limits;
  const sizes = blocks.map(countBlockBytes);
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
    texts.push(
      getBlockText(
        block.type === "image" || block.type === "file" ? await describeOversizedMedia(context, block) : block,
      ),
    );
  const text = texts.join("\n");
  const remaining = resultBytes - used;
  const remainder: ContentBlock = fitsBytes(text, remaining)
    ? { type: "text", text }
    : await createPreview(
        context,
        { name: `${context.call.block.name}-rest.txt`, mimeType: "text/plain", text },
        remaining,
      );
  return [...blocks.slice(0, count), remainder];
}

function getBlockText(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "artifact":
      return block.preview;
    case "json":
      return toJsonText(block.value) ?? "";
    default:
      return getMediaContent(block);
  }
}

function getMediaContent(block: ImageBlock | FileBlock): string {
  return block.data ?? block.url ?? JSON.stringify(block.uploaded);
}

/** Returns JSON text, or undefined for a value that is no data. */
function toJsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function countBlockBytes(block: ContentBlock): number {
  return countUtf8Bytes(getBlockText(block));
}

/** Adds a body to the artifacts of the result. Returns its reference, or undefined when the body cannot be stored. */
async function addArtifact(context: LimitContext, draft: Omit<Draft, "redact">): Promise<ArtifactRef | undefined> {
  if (!context.canStore) return undefined;
  const { call, artifacts } = context;
  const { position, env, scope, block } = call;
  const { name, mimeType, redaction } = draft;
  const text = typeof draft.body === "string";
  const body = typeof draft.body === "string" ? new TextEncoder().encode(draft.body) : draft.body;
  const key = await computeArtifactKey(body);
  if (context.failedKeys.has(key)) return undefined;
  const row: ArtifactRow = {
    key,
    name,
    mimeType,
    bytes: body.length,
    text,
    redaction,
    tool: block.name,
    run: position.run.id,
    branch: position.namespace,
    step: position.step,
    task: scope.task.id,
    call: block.id,
    at: env.world.clock.now(),
  };
  artifacts.push({ row, body });
  return toArtifactRef(row);
}

function toArtifactRef({ key, name, mimeType, bytes }: ArtifactRow): ArtifactRef {
  return { key, handle: getArtifactHandle(key), name, mimeType, bytes };
}

/**
 * Puts artifacts into a separate artifact store. Returns the keys of failed writes; the call continues without these
 * artifacts.
 */
async function putArtifacts(
  call: ToolCallContext,
  external: ArtifactStore,
  artifacts: readonly ArtifactWrite[],
): Promise<ReadonlySet<string>> {
  const { position, env, block, scope } = call;
  const failedKeys = new Set<string>();
  for (const artifact of artifacts) {
    const { key, name } = artifact.row;
    try {
      await rejectOnAbort(scope.getSignal(), external.put(position.run.thread, artifact));
    } catch (thrown) {
      failedKeys.add(key);
      env.world.log("warn", `the artifact "${name}" of the tool "${block.name}" could not be stored`, {
        callId: block.id,
        key,
        error: toRedactedRecord(env.redactor, thrown),
      });
      emitCallEvent(call, {
        type: "tool.artifact_lost",
        key,
        name,
        error: env.redactor.redact(describeThrown(thrown)),
      });
    }
  }
  return failedKeys;
}

/** Rejects when the signal aborts, so that a hanging store does not block a cancelled run. */
function rejectOnAbort(signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new ToolError("cancelled", "The run was stopped"));
    if (signal.aborted) stop();
    const unsubscribe = signal.aborted ? undefined : subscribeToAbort(signal, stop);
    work.then(resolve, reject).finally(() => unsubscribe?.());
  });
}
