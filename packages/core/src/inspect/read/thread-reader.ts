/** Base of all readers without a graph: options, a single moment of the store, codec and redaction. */
import { checkId } from "../../base/ids.ts";
import { checkOptions } from "../../base/options.ts";
import type { Store, StoreReads, ThreadRow } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/graph.ts";
import { checkGraphOption } from "../../define/check-graph-option.ts";
import { checkCodecOption, checkStoreOption } from "../../run/session/options/check-run-options.ts";
import { type Codec, createGuardedCodec } from "../../state/codec.ts";
import { lenientCodec } from "../../state/lenient-codec.ts";
import type { Tool } from "../../tool/definition/tool.ts";
import { requireThread } from "../get-history.ts";
import { createReadRedactor, type ReadRedactor } from "./read-redactor.ts";

/** Options of every reader. */
export interface ReadOptions {
  /** Id of the thread. */
  readonly thread: string;
  /** Codec of values other than plain data. Default: `createLenientCodec()`, which shows unknown classes as foreign. */
  readonly codec?: Codec;
  /**
   * Texts and patterns to redact in every value that is read, besides texts that look like a key and values under names
   * such as `password`; an empty list redacts only the latter. Default: values are shown as saved.
   */
  readonly redact?: readonly (string | RegExp)[];
  /** Tools whose `safety.redact` applies to their calls, results and outcomes. Default: none. */
  readonly tools?: readonly Tool<never, never>[];
}

/** Access to a thread as of a single moment. */
export interface ThreadReader extends ReadRedactor {
  readonly reads: StoreReads;
  readonly thread: string;
  readonly threadRow: ThreadRow;
  readonly codec: Codec;
}

/** Reader call: its name, arguments and the names of its options. */
export interface ReadCall {
  readonly call: string;
  readonly store: Store;
  readonly options: ReadOptions & { readonly graph?: Graph | undefined };
  readonly optionNames: readonly string[];
}

const sharedNames = ["thread", "codec", "redact", "tools"] as const;

/**
 * Checks the options and calls `read` with a single moment of the store. Throws `invalid_option`, `unknown_thread`, and
 * errors of the store.
 */
export async function readThread<Value>(
  { call, store, options, optionNames }: ReadCall,
  read: (reader: ThreadReader) => Promise<Value>,
): Promise<Value> {
  checkStoreOption(call, store ?? null);
  checkOptions(call, options, [...sharedNames, ...optionNames]);
  checkCodecOption(call, options.codec);
  const { codec = lenientCodec, redact, graph, tools } = options;
  if (graph !== undefined) checkGraphOption(call, graph);
  const thread = checkId("thread", options.thread);
  const redactor = createReadRedactor(call, { redact, tools, graph });
  const readWith = async (reads: StoreReads): Promise<Value> =>
    await read({
      reads,
      thread,
      threadRow: await requireThread(reads, thread),
      codec: createGuardedCodec(codec),
      ...redactor,
    });
  return store.snapshot === undefined ? await readWith(store) : await store.snapshot(readWith);
}
