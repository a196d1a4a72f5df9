/** Copies, exports, imports and deletes whole threads. */

import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import { systemWorld } from "../base/world.ts";
import { type ExportText, parseExport } from "../checkpoint/export/parse-export.ts";
import { bodyPieceBytes, streamExport } from "../checkpoint/export/stream-export.ts";
import type { ThreadExport } from "../checkpoint/export/thread-export.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkParties } from "../checkpoint/thread-rules.ts";
import { checkStoreOption } from "../run/session/options/check-run-options.ts";
import type { ArtifactRow } from "../tool/artifacts/artifact.ts";

/** Options of `importThread`. */
export interface ImportOptions {
  /** Id of the imported thread, or a function of the exported id. Default: the exported id. */
  readonly as?: string | ((exported: string) => string);
  /** Maximum size of the text in bytes, default 256 MiB. */
  readonly maxBytes?: number;
  /** Tenant of the imported thread and of its runs. Default: the exported tenant. */
  readonly tenant?: string;
  /** Owner of the imported thread and of its runs. Default: the exported owners. */
  readonly owner?: string;
}

const importKeys = listOptionNames<ImportOptions>({ as: true, maxBytes: true, tenant: true, owner: true });

/**
 * Deletes a thread with all its rows. Throws `unknown_thread`, and `thread_busy` while a live process runs the
 * thread.
 */
export async function deleteThread(store: Store, thread: string): Promise<void> {
  checkStoreOption("deleteThread", store ?? null);
  await store.delete(checkId("thread", thread));
}

/** Options of `exportThread`. */
export interface ExportOptions {
  /** Maximum characters of the text, default 536,870,888: the longest string of Node.js. */
  readonly maxCharacters?: number;
}

/** Options of `streamThreadExport`. */
export interface StreamExportOptions {
  /** Id of the thread in the export. Default: its id in the store. */
  readonly as?: string;
}

const streamKeys = listOptionNames<StreamExportOptions>({ as: true });

const exportKeys = listOptionNames<ExportOptions>({ maxCharacters: true });

/**
 * Returns a thread as text: history with every state, branches, journal, interrupts, timers and runs, in one
 * consistent snapshot. The text is not encrypted, even for an encrypted store. Throws `unknown_thread`, and
 * `unencodable_value` for a text above `maxCharacters`, which `streamThreadExport` returns in chunks.
 */
export async function exportThread(store: Store, thread: string, options: ExportOptions = {}): Promise<string> {
  checkStoreOption("exportThread", store ?? null);
  checkOptions("exportThread", options, exportKeys);
  const { maxCharacters = 2 ** 29 - 24 } = options;
  checkPositive("exportThread", "maxCharacters", maxCharacters);
  const chunks: string[] = [];
  let length = 0;
  for await (const chunk of streamThreadExport(store, thread)) {
    length += chunk.length;
    if (length > maxCharacters)
      throw new StatewrightError("unencodable_value", {
        what: `exportThread: expected a text of at most ${maxCharacters} characters, got more for thread "${thread}"`,
        next: "Use streamThreadExport, which returns the text in chunks",
        place: { thread },
      });
    chunks.push(chunk);
  }
  return chunks.join("");
}

/**
 * Returns the text of `exportThread` in chunks of about 256 Ki characters, for threads with large artifacts. Bodies of
 * artifacts are read piece by piece, and other work runs between the chunks. Throws `unknown_thread`, and
 * `store_failed` if an artifact is deleted meanwhile.
 *
 * @example
 * ```ts
 * await pipeline(streamThreadExport(store, "t7"), createWriteStream("/app/t7.jsonl"));
 * await importThread(otherStore, createReadStream("/app/t7.jsonl", "utf8"), { maxBytes: 2 ** 32 });
 * ```
 */
export async function* streamThreadExport(
  store: Store,
  thread: string,
  options: StreamExportOptions = {},
): AsyncGenerator<string, void> {
  checkStoreOption("streamThreadExport", store ?? null);
  checkOptions("streamThreadExport", options, streamKeys);
  const as = checkId("thread", options.as ?? thread);
  const exported = assignThreadId(await store.exportThread(checkId("thread", thread), { bodies: "omit" }), as);
  for await (const chunk of streamExport(exported, (row) => readBody(store, thread, row))) {
    yield chunk;
    await pause();
  }
}

/** Reads a body in pieces. The bytes never change: the key of a body is its hash. */
async function* readBody(store: Store, thread: string, { key, bytes }: ArtifactRow): AsyncGenerator<Uint8Array, void> {
  for (let offset = 0; offset < bytes; offset += bodyPieceBytes) {
    const piece = await store.artifacts.read(thread, key, { offset, limit: bodyPieceBytes });
    if (piece?.length !== Math.min(bodyPieceBytes, bytes - offset))
      throw new StatewrightError("store_failed", {
        what: `the artifact ${key} was deleted during the export of thread "${thread}"`,
        next: "Export the thread again",
        place: { thread },
      });
    yield piece;
  }
}

/** Lets timers and I/O run. */
function pause(): Promise<void> {
  return new Promise((resolve) => systemWorld().schedule.soon(resolve));
}

/**
 * Imports a thread from the text of `exportThread`, or from the chunks of `streamThreadExport`, and returns its id. The
 * thread continues in the new store from its last checkpoint. Throws `invalid_export` for a foreign or modified text,
 * `store_newer`, `invalid_id`, `thread_exists`.
 */
export async function importThread(
  store: Store,
  text: string | Iterable<string> | AsyncIterable<string>,
  options: ImportOptions = {},
): Promise<string> {
  checkStoreOption("importThread", store ?? null);
  checkOptions("importThread", options, importKeys);
  const { as, maxBytes = 256 * 1024 * 1024, tenant, owner } = options;
  const parties = { tenant, owner };
  checkPositive("importThread", "maxBytes", maxBytes);
  checkParties("importThread", parties);
  if (!isExportText(text))
    throw invalidOption({
      where: "importThread",
      expected: "a text or chunks of a text",
      got: text,
      fix: "Pass the result of exportThread or streamThreadExport",
    });
  const threadExport = await parseExport(text, { maxBytes, pause });
  const id = checkId("thread", typeof as === "function" ? as(threadExport.id) : (as ?? threadExport.id));
  await store.importThread(assignParties(assignThreadId(threadExport, id), parties));
  return id;
}

function isExportText(text: unknown): text is ExportText {
  if (typeof text === "string") return true;
  return typeof text === "object" && text !== null && (Symbol.iterator in text || Symbol.asyncIterator in text);
}

function checkPositive(where: string, option: string, value: unknown): void {
  if (typeof value === "number" && value > 0) return;
  throw invalidOption({ where, option, expected: "a number > 0", got: value });
}

/**
 * Copies a thread within its store. Both threads continue from the same checkpoint; an effect that has started
 * has the same idempotency key in both. Throws `unknown_thread`, `thread_exists`.
 */
export async function copyThread(store: Store, from: string, to: string): Promise<void> {
  checkStoreOption("copyThread", store ?? null);
  checkId("thread", to);
  await store.importThread(assignThreadId(await store.exportThread(checkId("thread", from)), to));
}

/** Replaces tenant and owner of a thread and of its runs, as far as given. */
function assignParties(
  threadExport: ThreadExport,
  { tenant, owner }: { readonly tenant: string | undefined; readonly owner: string | undefined },
): ThreadExport {
  const parties = { ...(tenant === undefined ? {} : { tenant }), ...(owner === undefined ? {} : { owner }) };
  return { ...threadExport, ...parties, runs: threadExport.runs.map((run) => ({ ...run, ...parties })) };
}

function assignThreadId(threadExport: ThreadExport, id: string): ThreadExport {
  return {
    ...threadExport,
    id,
    runs: threadExport.runs.map((run) => ({ ...run, thread: id })),
    namespaces: threadExport.namespaces.map((namespace) => ({
      ...namespace,
      timers: namespace.timers.map((timer) => ({ ...timer, thread: id })),
    })),
  };
}
