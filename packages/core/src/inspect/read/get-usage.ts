/** `getUsage`: the tokens and the cost of a thread, from the journal, without the graph. */
import type { EffectRow } from "../../checkpoint/journal.ts";
import { createUnknownBranchError } from "../../checkpoint/rules.ts";
import type { Store, StoreReads } from "../../checkpoint/store.ts";
import type { Usage } from "../../model/message.ts";
import { estimateCost, type Prices, type PricesInput, parsePrices } from "../../model/prices.ts";
import { sumTokenCounts } from "../../model/sum-token-counts.ts";
import { splitNamespace } from "./superstep-summary.ts";
import { readThread } from "./thread-reader.ts";

/** Options of `getUsage`. */
export interface GetUsageOptions {
  /** Id of the thread. */
  readonly thread: string;
  /**
   * Branch whose own requests count, with those of the inner graphs and without those before its fork. Default: all
   * branches.
   */
  readonly branch?: string;
  /** Prices by model id, per million tokens, for the costs. Default: no costs. */
  readonly prices?: PricesInput;
}

/** Model requests and their known tokens. */
export interface UsageSum {
  /** Requests that have ended, whatever their end. */
  readonly requests: number;
  /** Requests without a reply that counts: failed, replaced by a hook, or lost with their process. */
  readonly lost: number;
  /** Sum of the known tokens; a count that no request reported is undefined, and so is the whole without any count. */
  readonly usage: Usage | undefined;
  /** Requests whose tokens are unknown: the provider may have billed them. */
  readonly unknown: number;
  /** Sum of the known costs, in the currency of `prices`; undefined when no cost is known. */
  readonly cost: number | undefined;
  /** Requests whose cost is unknown: of an unknown price, or with unknown tokens. All requests without `prices`. */
  readonly unpriced: number;
}

/** Usage of a thread: the whole, and the same requests by superstep, by model and by namespace. */
export interface ThreadUsage extends UsageSum {
  /** Supersteps with requests, oldest first in each namespace. `step` is the superstep whose tasks made the requests. */
  readonly steps: readonly (UsageSum & { readonly namespace: string; readonly step: number })[];
  /** Requested models, in order of their first request; `model` is undefined for tokens that a tool reported. */
  readonly models: readonly (UsageSum & { readonly model: string | undefined })[];
  /** Namespaces with requests: the branch itself, such as `main`, and the inner graphs, such as `main/2:0`. */
  readonly namespaces: readonly (UsageSum & { readonly namespace: string })[];
  /** False when checkpoints of the thread were removed, and with them journal rows: older requests are missing. */
  readonly isComplete: boolean;
}

/** Model request that has ended. */
interface EndedRequest {
  readonly namespace: string;
  readonly step: number;
  readonly model: string | undefined;
  readonly isLost: boolean;
  readonly usage: Usage | undefined;
  readonly cost: number | undefined;
}

/**
 * Returns the tokens of a thread's model requests, including those that failed, that a hook replaced, or that a crash
 * lost. Read from the journal, so the sums survive trimmed conversations, and hooks and tools that call models are
 * included. Requests of inner graphs without a checkpoint are known only as far as their tool reported them. A request
 * whose tokens or price are unknown is counted as such, and adds nothing to the sums.
 *
 * @throws `unknown_thread`, `unknown_branch`, `invalid_option`, and errors of the store.
 * @example
 * ```ts
 * const { usage, cost, models } = await getUsage(store, {
 *   thread: "support-7",
 *   prices: { "anthropic/claude-sonnet-4-5": { input: 3, output: 15 } },
 * });
 * ```
 */
export async function getUsage(store: Store, options: GetUsageOptions): Promise<ThreadUsage> {
  const optionNames = ["branch", "prices"];
  return await readThread({ call: "getUsage", store, options, optionNames }, async ({ reads, thread }) => {
    const { branch, prices } = options;
    const parsedPrices = prices === undefined ? undefined : parsePrices(prices);
    const all = [...(await reads.namespaces(thread, "branch")), ...(await reads.namespaces(thread, "child"))];
    const counted = all.filter(({ name }) => branch === undefined || splitNamespace(name).branch === branch);
    if (branch !== undefined && counted.length === 0) throw createUnknownBranchError(thread, branch);
    const requests: EndedRequest[] = [];
    for (const { name } of counted) requests.push(...(await listRequests(reads, thread, name, parsedPrices)));
    const newest = Math.max(0, ...all.map(({ head }) => head?.id ?? 0));
    const left = all.reduce((sum, { checkpoints }) => sum + checkpoints, 0);
    return {
      ...sumRequests(requests),
      steps: sumBy(requests, ({ namespace, step }) => ({ namespace, step })),
      models: sumBy(requests, ({ model }) => ({ model })),
      namespaces: sumBy(requests, ({ namespace }) => ({ namespace })),
      isComplete: left >= newest,
    };
  });
}

async function listRequests(
  reads: StoreReads,
  thread: string,
  namespace: string,
  prices: Prices | undefined,
): Promise<readonly EndedRequest[]> {
  const rows = await reads.effects(thread, namespace);
  return rows.flatMap((row) =>
    listRowRequests(row).map(({ model, isLost, usage }) => {
      const price = model === undefined ? undefined : prices?.(model);
      const cost = price === undefined ? undefined : estimateCost(price, usage);
      return { namespace, step: row.step, model, isLost, usage, cost };
    }),
  );
}

/** Lists the requests of a journal row that have ended. */
function listRowRequests(row: EffectRow): readonly Pick<EndedRequest, "model" | "isLost" | "usage">[] {
  const { kind, state, name, attempts, attemptLog = [], usage } = row;
  if (kind === "tool") return usage === undefined ? [] : [{ model: undefined, isLost: false, usage }];
  if (kind !== "model") return [];
  const lost = attemptLog
    .filter(({ error }) => error !== undefined)
    .map((attempt) => ({ model: attempt.model ?? name, isLost: true, usage: attempt.usage }));
  // A message that a hook gave without a request, such as a cached reply, has no attempt.
  if (state !== "ok" || attempts === lost.length) return lost;
  const { model = name, ...tokens } = usage ?? {};
  return [...lost, { model, isLost: false, usage: usage === undefined ? undefined : tokens }];
}

function sumRequests(requests: readonly EndedRequest[]): UsageSum {
  const costs = requests.flatMap(({ cost }) => (cost === undefined ? [] : [cost]));
  return {
    requests: requests.length,
    lost: requests.filter(({ isLost }) => isLost).length,
    usage: sumTokenCounts(requests.map(({ usage }) => usage)),
    unknown: requests.filter(({ usage }) => usage === undefined).length,
    cost: costs.length === 0 ? undefined : costs.reduce((sum, cost) => sum + cost, 0),
    unpriced: requests.length - costs.length,
  };
}

/** Sums requests by a key, in order of the first request of each key. */
function sumBy<Key extends object>(
  requests: readonly EndedRequest[],
  getKey: (request: EndedRequest) => Key,
): readonly (UsageSum & Key)[] {
  const groups = new Map<string, { readonly key: Key; readonly requests: EndedRequest[] }>();
  for (const request of requests) {
    const key = getKey(request);
    const id = JSON.stringify(Object.values(key).map((value) => value ?? null));
    const group = groups.get(id);
    if (group === undefined) groups.set(id, { key, requests: [request] });
    else group.requests.push(request);
  }
  return [...groups.values()].map(({ key, requests: ofKey }) => ({ ...key, ...sumRequests(ofKey) }));
}
