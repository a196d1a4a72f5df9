/** Base of all readers without a graph: options, a single moment of the store, codec and redaction. */
import { checkId } from "../../base/ids.ts";
import { checkOptions } from "../../base/options.ts";
import { createPatternRedactor, type Redact } from "../../base/redaction/redact-patterns.ts";
import type { Store, StoreReads, ThreadRow } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import { checkGraphOption } from "../../define/check-graph-option.ts";
import { checkCodecOption, checkStoreOption } from "../../run/session/options/check-run-options.ts";
import { type Codec, createGuardedCodec } from "../../state/codec.ts";
import { createLenientCodec } from "../../state/lenient-codec.ts";
import type { RedactionPolicy } from "../../tool/artifacts/redaction-policy.ts";
import type { Tool } from "../../tool/definition/tool.ts";
import { toolRegistry } from "../../tool/registry.ts";
import { requireThread } from "../get-history.ts";
import { createToolRedactor } from "./redact-tool-data.ts";

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
export interface ThreadReader {
  readonly reads: StoreReads;
  readonly thread: string;
  readonly threadRow: ThreadRow;
  readonly codec: Codec;
  /** Redacts a value for the caller. */
  readonly redact: Redact;
  /** Redacts the outcome of a tool call, by tool name. */
  readonly redactOutcome: (tool: string, outcome: unknown) => unknown;
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
  const { codec = createLenientCodec(), redact, graph, tools = [] } = options;
  if (graph !== undefined) checkGraphOption(call, graph);
  const thread = checkId("thread", options.thread);
  const toolRedactor = createToolRedactor(createPolicyFinder(graph, tools));
  const redactTexts: Redact = redact === undefined ? (value) => value : createPatternRedactor(call, redact);
  const readWith = async (reads: StoreReads): Promise<Value> =>
    await read({
      reads,
      thread,
      threadRow: await requireThread(reads, thread),
      codec: createGuardedCodec(codec),
      redact: (value) => redactTexts(toolRedactor.redactMessages(value)),
      redactOutcome: (tool, outcome) => redactTexts(toolRedactor.redactOutcome(tool, outcome)),
    });
  return store.snapshot === undefined ? await readWith(store) : await store.snapshot(readWith);
}

/** Returns a function that finds the redaction policy of a tool by any of its names. */
function createPolicyFinder(
  graph: Graph | undefined,
  tools: readonly Tool<never, never>[],
): (name: string) => RedactionPolicy | undefined {
  const given = toolRegistry(tools);
  const registries = [given, ...(graph === undefined ? [] : getPlan(graph).toolNodes.map(({ registry }) => registry))];
  return (name) => {
    for (const registry of registries) {
      const policy = registry.get(name)?.spec.safety.redact;
      if (policy !== undefined) return policy;
    }
    return undefined;
  };
}
