/** Copies, exports, imports and deletes whole threads. */

import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import type { ThreadExport } from "../checkpoint/export/thread-export.ts";
import { parseExport, stringifyExport } from "../checkpoint/export/thread-export-text.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkStoreOption } from "../run/session/options/check-run-options.ts";

/** Options of `importThread`. */
export interface ImportOptions {
  /** Id of the imported thread; default: the exported id. */
  readonly as?: string;
  /** Maximum size of the text in bytes, default 256 MiB. */
  readonly maxBytes?: number;
}

const optionKeys = listOptionNames<ImportOptions>({ as: true, maxBytes: true });

/**
 * Deletes a thread with all its rows. Throws `unknown_thread`, and `thread_busy` while a live process runs the
 * thread.
 */
export async function deleteThread(store: Store, thread: string): Promise<void> {
  checkStoreOption("deleteThread", store ?? null);
  await store.delete(checkId("thread", thread));
}

/**
 * Returns a thread as text: history with every state, branches, journal, interrupts, timers and runs, in one
 * consistent snapshot. The text is not encrypted, even for an encrypted store. Throws `unknown_thread`.
 */
export async function exportThread(store: Store, thread: string): Promise<string> {
  checkStoreOption("exportThread", store ?? null);
  return stringifyExport(await store.exportThread(checkId("thread", thread)));
}

/**
 * Imports a thread from the text of `exportThread` and returns its id. The thread continues in the new store from its
 * last checkpoint. Throws `invalid_export` for a foreign or modified text, `store_newer`, `invalid_id`,
 * `thread_exists`.
 */
export async function importThread(store: Store, text: string, options: ImportOptions = {}): Promise<string> {
  checkStoreOption("importThread", store ?? null);
  checkOptions("importThread", options, optionKeys);
  const { as, maxBytes = 256 * 1024 * 1024 } = options;
  if (!(maxBytes > 0))
    throw invalidOption({
      where: "importThread",
      option: "maxBytes",
      expected: "a number of bytes > 0",
      got: maxBytes,
    });
  if (typeof text !== "string")
    throw invalidOption({
      where: "importThread",
      expected: "a text",
      got: text,
      fix: "Pass the result of exportThread",
    });
  const threadExport = await parseExport(text, maxBytes);
  const id = checkId("thread", as ?? threadExport.id);
  await store.importThread(assignThreadId(threadExport, id));
  return id;
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
