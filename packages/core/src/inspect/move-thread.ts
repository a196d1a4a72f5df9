/** Whole threads: copied, written as text, taken in from text, deleted. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { ThreadImage } from "../checkpoint/export/thread-export.ts";
import { imageOfText, textOfImage } from "../checkpoint/export/thread-export-text.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkStore } from "../run/session/check-run-options.ts";

/** What `importThread` takes besides the text. */
export interface ImportOptions {
  /** The id of the thread in its new store; the one that it had by default. */
  readonly as?: string;
  /** Refuse a text that is longer, 256 MiB by default. */
  readonly maxBytes?: number;
}

const names = optionNames<ImportOptions>({ as: true, maxBytes: true });

/** Remove a thread with all that belongs to it. Throws `unknown_thread`, and `thread_busy` while a living process runs it. */
export async function deleteThread(store: Store, thread: string): Promise<void> {
  checkStore("deleteThread", store ?? null);
  await store.delete(checkId("thread", thread));
}

/**
 * A thread as text: its history with every state, branches, journal, questions, timers and runs, as of one moment. The
 * text is not encrypted, whatever the store does. Throws `unknown_thread`.
 */
export async function exportThread(store: Store, thread: string): Promise<string> {
  checkStore("exportThread", store ?? null);
  return textOfImage(await store.image(checkId("thread", thread)));
}

/**
 * Take a thread in from the text that `exportThread` gave; gives its id. It goes on in the new store where it stood.
 * Throws `invalid_export` for another or a changed text, `store_newer`, `invalid_id`, `thread_exists`.
 */
export async function importThread(store: Store, text: string, options: ImportOptions = {}): Promise<string> {
  checkStore("importThread", store ?? null);
  checkOptions("importThread", options, names);
  const { as, maxBytes = 256 * 1024 * 1024 } = options;
  if (!(maxBytes > 0))
    throw invalid(`the maxBytes of importThread is ${describeValue(maxBytes)}`, "Give a number of bytes");
  if (typeof text !== "string")
    throw invalid(`importThread got ${describeValue(text)} where a text is due`, "Give what exportThread gave");
  const image = await imageOfText(text, maxBytes);
  const id = checkId("thread", as ?? image.id);
  await store.insert(named(image, id));
  return id;
}

/**
 * Copy a thread in its store. Both go on from where it stands; of an effect under way both know the same idempotency key.
 * Throws `unknown_thread`, `thread_exists`.
 */
export async function copyThread(store: Store, from: string, to: string): Promise<void> {
  checkStore("copyThread", store ?? null);
  checkId("thread", to);
  await store.insert(named(await store.image(checkId("thread", from)), to));
}

function named(image: ThreadImage, id: string): ThreadImage {
  return {
    ...image,
    id,
    runs: image.runs.map((run) => ({ ...run, thread: id })),
    lines: image.lines.map((line) => ({ ...line, timers: line.timers.map((timer) => ({ ...timer, thread: id })) })),
  };
}

function invalid(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what, next });
}
