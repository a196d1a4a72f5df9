/**
 * Concurrency of the calls of a message. Batches run one after another: one call (sequential), a fixed number
 * (batch), or all calls (parallel). Calls of one batch run concurrently, except calls of sequential tools.
 */
import type { ToolNode } from "../../define/tool-node.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import { resolveTool } from "../model-call/advertised-tools.ts";
import { mapBounded } from "../session/concurrency.ts";

/**
 * Runs `work` for each call by the node's strategy, results in call order; awaits `between` with the results so far
 * before each batch after the first.
 */
export async function runInBatches<Result>(
  node: ToolNode<never, never>,
  calls: readonly PendingCall[],
  work: (call: PendingCall) => Promise<Result>,
  between: (before: readonly Result[]) => Promise<void>,
): Promise<readonly Result[]> {
  const [only] = calls;
  if (calls.length === 1 && only !== undefined) return [await work(only)];
  const { strategy, maxConcurrency } = node;
  const size = strategy === "parallel" ? calls.length : strategy === "sequential" ? 1 : strategy.batch;
  const results: Result[] = [];
  for (let start = 0; start < calls.length; start += size) {
    if (start > 0) await between(results);
    for (const group of splitGroups(node, calls.slice(start, start + size)))
      results.push(...(await mapBounded(group, maxConcurrency, work)));
  }
  return results;
}

/**
 * Splits a batch into groups of concurrent calls: a call of a sequential tool is a group of its own, in call order.
 */
function splitGroups(node: ToolNode<never, never>, batch: readonly PendingCall[]): readonly (readonly PendingCall[])[] {
  const isAlone = (call: PendingCall): boolean => resolveTool(node, call)?.spec.execution.mode === "sequential";
  if (batch.length === 1 || !batch.some(isAlone)) return [batch];
  const groups: PendingCall[][] = [];
  let open: PendingCall[] | undefined;
  for (const call of batch) {
    if (open === undefined || isAlone(call)) {
      open = [];
      groups.push(open);
    }
    open.push(call);
    if (isAlone(call)) open = undefined;
  }
  return groups;
}
