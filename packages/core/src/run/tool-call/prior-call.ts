/**
 * Prior `once` tool calls on other branches.
 *
 * The call id is useless after a new model reply. A call is the same when task, tool and arguments are equal; the
 * second of two equal calls matches the second call there. An unregistered tool of a prior call may be this tool
 * under its former name.
 */
import { deepFreeze } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { type InDoubtAnswer, inDoubtKey } from "../../tool/policy/approval.ts";
import type { ToolResult } from "../../tool/result.ts";
import { digestArgs } from "../journal/args-digest.ts";
import { createPriorDoubt, decideDoubt, unwrapOutcome } from "../journal/decide-effect.ts";
import { type PriorEffect, selectPriorEffect } from "../journal/prior-effects.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import { consultAboutCall } from "./call-in-doubt.ts";
import { redactCallArgs, type ToolCallContext } from "./context.ts";

/**
 * Decision about a call with a prior call: raise an interrupt, or reuse the prior result. Undefined means that the
 * call runs.
 */
export type PriorCallDecision =
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "happened"; readonly found: PriorEffect; readonly result: ToolResult | InDoubtAnswer };

/** Finds the prior call on other branches and applies the `onPriorEffect` policy of the run. */
export function resolvePriorCall(
  call: ToolCallContext,
  saved: Persistence,
  args: string | undefined,
  priorEffects: readonly PriorEffect[],
): PriorCallDecision | undefined {
  const matches = findPriorCalls(call, saved, args, priorEffects);
  const found = selectPriorEffect(matches);
  if (found === undefined) return undefined;
  const result = decodePriorResult(call, saved, found);
  const { idempotencyKey, startedAt } = found.row;
  const { block, scope } = call;
  const details = { callId: block.id, tool: block.name, args: redactCallArgs(call), idempotencyKey, startedAt };
  const outcome = result === undefined ? undefined : { value: result };
  const doubt = createPriorDoubt<ToolResult | InDoubtAnswer>(found, matches, outcome);
  const decision = decideDoubt(call.env.onPriorEffect, doubt, ({ about }) =>
    consultAboutCall(scope, {
      id: getPriorCallInterruptId(scope.task, call.key),
      about,
      payload: { ...details, alreadyOn: found.branch, ...(result === undefined ? {} : { outcome: result }) },
    }),
  );
  if (decision.kind === "denied") return undefined;
  return decision.kind === "waiting" ? decision : { kind: "happened", found, result: unwrapOutcome(decision.outcome) };
}

/** Returns the id of the interrupt that asks if the prior call counts here. */
export function getPriorCallInterruptId({ id }: Pick<Task, "id">, call: string): string {
  return `${id}:${call}/prior_effect:${inDoubtKey}`;
}

/** Finds the matching call on each branch. */
function findPriorCalls(
  call: ToolCallContext,
  { codec }: Persistence,
  args: string | undefined,
  priorEffects: readonly PriorEffect[],
): readonly PriorEffect[] {
  const { block, scope, node } = call;
  const { calls: siblings } = call.batch;
  const taskEffects = priorEffects.filter(({ row }) => row.kind === "tool" && row.task === scope.task.id);
  const isUnregistered = ({ row: { name } }: PriorEffect): boolean => node.registry.get(name) === undefined;
  const matches = taskEffects.filter(
    (each) => (each.row.name === block.name || isUnregistered(each)) && each.row.args === args,
  );
  // A tool with another name may take other arguments: match by call id.
  if (matches.length === 0) return taskEffects.filter((each) => each.row.key === call.key && isUnregistered(each));
  if (args === undefined) return matches.filter(({ row }) => row.key === call.key);
  const digest = digestArgs(codec, block.args);
  const earlier = siblings.slice(
    0,
    siblings.findIndex((sibling) => sibling.block === block),
  );
  const nth = earlier.filter(
    (sibling) => sibling.block.name === block.name && digestArgs(codec, sibling.block.args) === digest,
  ).length;
  return [...new Set(matches.map(({ branch }) => branch))].flatMap((branch) => {
    const branchMatches = matches.filter((each) => each.branch === branch);
    return branchMatches.find(({ row }) => row.key === call.key) ?? branchMatches[nth] ?? [];
  });
}

/** Decodes the result of the prior call as the answer to this call. */
function decodePriorResult(
  { block }: ToolCallContext,
  { codec }: Persistence,
  { row }: PriorEffect,
): ToolResult | undefined {
  if (row.state !== "ok" || row.outcome === undefined) return undefined;
  return deepFreeze({ ...(codec.decode(row.outcome) as ToolResult), callId: block.id, name: block.name });
}
