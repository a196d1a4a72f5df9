/** Batches of the tool calls of a message, by the strategy of their node. */
import type { ToolNode } from "../../define/tool-node.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import { resolveTool } from "../model-call/advertised-tools.ts";

/**
 * Lists the batches of calls: a batch per call (sequential), per fixed number of calls, or for all calls (parallel).
 */
export function listBatches(
  { strategy }: ToolNode<never, never>,
  calls: readonly PendingCall[],
): readonly (readonly PendingCall[])[] {
  const size = strategy === "parallel" ? calls.length : strategy === "sequential" ? 1 : strategy.batch;
  const batches: (readonly PendingCall[])[] = [];
  for (let start = 0; start < calls.length; start += size) batches.push(calls.slice(start, start + size));
  return batches;
}

/**
 * Splits a batch into groups of concurrent calls: a call of a sequential tool is a group of its own, in call order.
 */
export function splitGroups(
  node: ToolNode<never, never>,
  batch: readonly PendingCall[],
): readonly (readonly PendingCall[])[] {
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

/** Lists the calls that begin together when the node begins. */
export function listFirstCalls(node: ToolNode<never, never>, calls: readonly PendingCall[]): readonly PendingCall[] {
  const [batch = []] = listBatches(node, calls);
  const [group = []] = splitGroups(node, batch);
  return group.slice(0, node.maxConcurrency);
}
