/**
 * How the calls of a message share time. Units run one after the other: each call is one (sequential), so many calls are
 * (batch), or all of them (parallel). Inside a unit calls run at the same time, save those of tools that run alone.
 */
import type { ToolNode } from "../../define/tool-node.ts";
import { toolFor } from "../conversation/advertised-tools.ts";
import { mapBounded } from "../session/concurrency.ts";
import type { OpenCall } from "./context.ts";

/** Do `work` for each call by the strategy of the node, results in call order; `between` is awaited with those there are before each unit but the first. */
export async function mapInUnits<Result>(
  node: ToolNode<never, never>,
  calls: readonly OpenCall[],
  work: (call: OpenCall) => Promise<Result>,
  between: (before: readonly Result[]) => Promise<void>,
): Promise<readonly Result[]> {
  const [only] = calls;
  if (calls.length === 1 && only !== undefined) return [await work(only)];
  const { strategy, maxConcurrency } = node;
  const size = strategy === "parallel" ? calls.length : strategy === "sequential" ? 1 : strategy.batch;
  const results: Result[] = [];
  for (let start = 0; start < calls.length; start += size) {
    if (start > 0) await between(results);
    for (const together of phases(node, calls.slice(start, start + size)))
      results.push(...(await mapBounded(together, maxConcurrency, work)));
  }
  return results;
}

/** The calls of a unit in runs that may overlap: one of a tool that runs alone is a run of its own, in its place. */
function phases(node: ToolNode<never, never>, unit: readonly OpenCall[]): readonly (readonly OpenCall[])[] {
  const isAlone = (call: OpenCall): boolean => toolFor(node, call)?.spec.execution.mode === "sequential";
  if (unit.length === 1 || !unit.some(isAlone)) return [unit];
  const found: OpenCall[][] = [];
  let open: OpenCall[] | undefined;
  for (const call of unit) {
    if (open === undefined || isAlone(call)) {
      open = [];
      found.push(open);
    }
    open.push(call);
    if (isAlone(call)) open = undefined;
  }
  return found;
}
