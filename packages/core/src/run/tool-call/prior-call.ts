/**
 * A `once` call that was made on another branch too. Its id tells nothing where a model was asked again: it is the same call
 * when it stands in the same task with the same tool and the same arguments, the second of two alike being the second there.
 * A tool that the node does not have any more may be this one, under the name that it had when the call was made.
 */
import { deepFreeze } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { jsonSchemaOf } from "../../tool/definition/model-tool.ts";
import { type InDoubtAnswer, inDoubtAnswer, inDoubtKey } from "../../tool/policy/approval.ts";
import type { ToolResult } from "../../tool/result.ts";
import { argsDigest } from "../journal/args-digest.ts";
import { aboutElsewhere, bestOf, type Elsewhere } from "../journal/prior-effects.ts";
import type { Saved } from "../session/session.ts";
import { type CallAtWork, shownArgs } from "./context.ts";

/** What becomes of such a call: a person is asked, what happened there counts here, or nothing does and it is made. */
export type Met =
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "happened"; readonly found: Elsewhere; readonly result: ToolResult | InDoubtAnswer };

/** Look for the call among those of other branches, and settle by the run's policy what that means. */
export function meetElsewhere(
  call: CallAtWork,
  saved: Saved,
  args: string | undefined,
  others: readonly Elsewhere[],
): Met | undefined {
  const same = sameCalls(call, saved, args, others);
  const found = bestOf(same);
  if (found === undefined) return undefined;
  const result = resultThere(call, saved, found);
  if (result !== undefined && call.session.onceElsewhere === "reuse") return { kind: "happened", found, result };
  const { idempotencyKey, startedAt } = found.row;
  const { block, scope } = call;
  const made = { callId: block.id, tool: block.name, args: shownArgs(call), idempotencyKey, startedAt };
  const asked = scope.consult({
    id: elsewhereQuestion(scope.task, call.key),
    about: aboutElsewhere(same),
    key: inDoubtKey,
    payload: { ...made, alreadyOn: found.branch, ...(result === undefined ? {} : { outcome: result }) },
    schema: jsonSchemaOf(inDoubtAnswer),
  });
  if ("open" in asked) return { kind: "waiting", open: asked.open };
  const answer = asked.answer as InDoubtAnswer;
  if (!answer.happened) return undefined;
  return { kind: "happened", found, result: answer.content === undefined && result !== undefined ? result : answer };
}

/** The id of the question whether what happened there counts here. */
export function elsewhereQuestion({ id }: Pick<Task, "id">, call: string): string {
  return `${id}:${call}/elsewhere:${inDoubtKey}`;
}

/** The call on each branch that made it. */
function sameCalls(
  call: CallAtWork,
  { codec }: Saved,
  args: string | undefined,
  others: readonly Elsewhere[],
): readonly Elsewhere[] {
  const { block, scope, node } = call;
  const { calls: siblings } = call.set;
  const ofTask = others.filter(({ row }) => row.kind === "tool" && row.task === scope.task.id);
  const isGone = ({ row: { name } }: Elsewhere): boolean => node.registry.get(name) === undefined;
  const alike = ofTask.filter((each) => (each.row.name === block.name || isGone(each)) && each.row.args === args);
  // A tool of another name may take other arguments: the very call is known by its id.
  if (alike.length === 0) return ofTask.filter((each) => each.row.key === call.key && isGone(each));
  if (args === undefined) return alike.filter(({ row }) => row.key === call.key);
  const asMade = argsDigest(codec, block.args);
  const earlier = siblings.slice(
    0,
    siblings.findIndex((sibling) => sibling.block === block),
  );
  const nth = earlier.filter(
    (sibling) => sibling.block.name === block.name && argsDigest(codec, sibling.block.args) === asMade,
  ).length;
  return [...new Set(alike.map(({ branch }) => branch))].flatMap((branch) => {
    const there = alike.filter((each) => each.branch === branch);
    return there.find(({ row }) => row.key === call.key) ?? there[nth] ?? [];
  });
}

/** What the call gave there, as the answer to this one. */
function resultThere({ block }: CallAtWork, { codec }: Saved, { row }: Elsewhere): ToolResult | undefined {
  if (row.state !== "ok" || row.outcome === undefined) return undefined;
  return deepFreeze({ ...(codec.decode(row.outcome) as ToolResult), callId: block.id, name: block.name });
}
