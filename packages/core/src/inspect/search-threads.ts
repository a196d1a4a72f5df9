/** `searchThreads`: text search in the titles and the newest messages of threads, read without their graphs. */
import { isStatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import type { Redact } from "../base/redaction/redact-patterns.ts";
import { applySavedDeltas } from "../checkpoint/codec/saved-state.ts";
import type { Store, StoreReads } from "../checkpoint/store.ts";
import { findMessageIssue, getMessageText, type Message } from "../model/message.ts";
import { checkCodecOption, checkStoreOption } from "../run/session/options/check-run-options.ts";
import { type Codec, createGuardedCodec } from "../state/codec.ts";
import { lenientCodec } from "../state/lenient-codec.ts";
import { type ListedThread, type ListThreadsOptions, listThreads, redactThread } from "./list-threads.ts";
import { createTextRedactor } from "./read/read-redactor.ts";

/** Options of `searchThreads`: the text, and a filter of threads. */
export interface SearchThreadsOptions extends Omit<ListThreadsOptions, "search"> {
  /** Text to find, in any case. */
  readonly text: string;
  /** Maximum number of searched threads. Default 20. */
  readonly limit?: number;
  /** Maximum number of searched messages of each thread, newest first. Default 100. */
  readonly maxMessages?: number;
  /** Channel of the messages. Default `messages`. */
  readonly channel?: string;
  /** Codec of values other than plain data. Default: `createLenientCodec()`. */
  readonly codec?: Codec;
  /**
   * Texts and patterns to redact in titles, metadata and messages, before the search, besides texts that look like a
   * key. Default: values are searched and shown as saved.
   */
  readonly redact?: readonly (string | RegExp)[];
}

/** Message that contains the text. */
export interface MessageMatch {
  readonly id: string | undefined;
  readonly role: Message["role"];
  /** Index in the channel. */
  readonly index: number;
  /** The text with up to 60 characters before and after it. */
  readonly excerpt: string;
}

/** Thread whose title or messages contain the text. */
export interface ThreadMatch {
  readonly thread: ListedThread;
  readonly isTitle: boolean;
  /** Newest first. */
  readonly messages: readonly MessageMatch[];
}

/** Result of `searchThreads`, with the extent of the search. */
export interface ThreadSearch {
  /** In the order of the list: most recently changed first. */
  readonly matches: readonly ThreadMatch[];
  readonly searchedThreads: number;
  readonly searchedMessages: number;
  /** Number of threads with older messages, which were not searched. */
  readonly cutThreads: number;
  /** Ids of threads whose messages could not be read: damaged, or without a key. */
  readonly unreadable: readonly string[];
  /** Cursor to pass as `before` for the next threads; undefined after the last thread. */
  readonly next: string | undefined;
}

const optionNames = listOptionNames<SearchThreadsOptions>({
  text: true,
  limit: true,
  maxMessages: true,
  channel: true,
  codec: true,
  redact: true,
  status: true,
  graph: true,
  tenant: true,
  owner: true,
  metadata: true,
  runMetadata: true,
  since: true,
  until: true,
  before: true,
});

/** Characters of an excerpt before and after the text. */
const excerptMargin = 60;

/**
 * Finds a text in the titles and the newest messages of a page of threads, most recently changed first. Reads the state
 * of each thread of the page, so that the cost is that of `limit` states; the result says how many threads and messages
 * were searched, and how many threads have older messages.
 *
 * @throws `invalid_option`, and errors of the store.
 * @example
 * ```ts
 * const found = await searchThreads(store, { text: "refund", tenant: "acme" });
 * for (const { thread, messages } of found.matches) console.log(thread.title, messages[0]?.excerpt);
 * if (found.next !== undefined) await searchThreads(store, { text: "refund", tenant: "acme", before: found.next });
 * ```
 */
export async function searchThreads(store: Store, options: SearchThreadsOptions): Promise<ThreadSearch> {
  checkStoreOption("searchThreads", store ?? null);
  checkOptions("searchThreads", options, optionNames);
  const { text, limit = 20, maxMessages = 100, channel = "messages", codec, redact, ...filter } = options;
  if (typeof text !== "string" || text.trim() === "")
    throw invalidOption({ where: "searchThreads", option: "text", expected: "a text that is not blank", got: text });
  checkCount("searchThreads", { limit, maxMessages });
  checkCodecOption("searchThreads", codec);
  const search: MessageSearch = {
    text,
    maxMessages,
    channel,
    codec: createGuardedCodec(codec ?? lenientCodec),
    redact: createTextRedactor("searchThreads", redact),
  };
  const threads = await listThreads(store, { ...filter, limit });
  const searchPage = async (reads: Pick<StoreReads, "head" | "state">): Promise<readonly SearchedThread[]> => {
    const searched: SearchedThread[] = [];
    for (const thread of threads) searched.push(await searchThread(reads, thread, search));
    return searched;
  };
  // The same moment for all threads of the page: another process may prune or delete them meanwhile.
  const searched = store.snapshot === undefined ? await searchPage(store) : await store.snapshot(searchPage);
  return {
    matches: searched.flatMap(({ match }) => match ?? []),
    searchedThreads: threads.length,
    searchedMessages: searched.reduce((sum, { count }) => sum + count, 0),
    cutThreads: searched.filter(({ isCut }) => isCut).length,
    unreadable: searched.flatMap(({ unreadable }) => unreadable ?? []),
    next: threads.length < limit ? undefined : threads.at(-1)?.cursor,
  };
}

/** What to find in each thread. */
interface MessageSearch {
  readonly text: string;
  readonly maxMessages: number;
  readonly channel: string;
  readonly codec: Codec;
  readonly redact: Redact;
}

/** Result of a thread. */
interface SearchedThread {
  readonly match: ThreadMatch | undefined;
  /** Number of searched messages. */
  readonly count: number;
  readonly isCut: boolean;
  readonly unreadable?: string;
}

async function searchThread(
  reads: Pick<StoreReads, "head" | "state">,
  thread: ListedThread,
  search: MessageSearch,
): Promise<SearchedThread> {
  const shown = redactThread(search.redact, thread);
  const isTitle = shown.title !== undefined && findText(shown.title, search.text) >= 0;
  try {
    const messages = await loadMessages(reads, thread.id, search);
    const first = Math.max(0, messages.length - search.maxMessages);
    const found = messages
      .slice(first)
      .flatMap((message, offset) => findMessage(search, message, first + offset) ?? [])
      .reverse();
    const match = isTitle || found.length > 0 ? { thread: shown, isTitle, messages: found } : undefined;
    return { match, count: messages.length - first, isCut: first > 0 };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    const match = isTitle ? { thread: shown, isTitle, messages: [] } : undefined;
    return { match, count: 0, isCut: false, unreadable: thread.id };
  }
}

/** Returns true for an error of a thread: damaged, without a key, or deleted during a search without a snapshot. */
function isUnreadable(error: unknown): boolean {
  if (!isStatewrightError(error)) return false;
  return error.code === "store_corrupt" || error.code === "missing_key" || error.code === "unknown_checkpoint";
}

/** Loads the messages of the newest checkpoint; empty for a channel without messages, and without a checkpoint. */
async function loadMessages(
  reads: Pick<StoreReads, "head" | "state">,
  thread: string,
  { channel, codec }: MessageSearch,
): Promise<readonly unknown[]> {
  const head = await reads.head(thread);
  if (head === undefined) return [];
  const rows = (await reads.state(thread, head.id)).find((row) => row.channel === channel);
  const value = rows === undefined ? undefined : applySavedDeltas(codec, rows.deltas);
  return Array.isArray(value) ? value : [];
}

function findMessage(search: MessageSearch, value: unknown, index: number): MessageMatch | undefined {
  if (findMessageIssue(value) !== undefined) return undefined;
  const message = value as Message;
  const content = search.redact(getMessageText(message));
  const at = findText(content, search.text);
  if (at < 0) return undefined;
  const [start, end] = [Math.max(0, at - excerptMargin), at + search.text.length + excerptMargin];
  return { id: message.id, role: message.role, index, excerpt: content.slice(start, end).toWellFormed() };
}

function findText(content: string, text: string): number {
  return content.toLowerCase().indexOf(text.toLowerCase());
}
