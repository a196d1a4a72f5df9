/**
 * Tool call that the model's provider runs itself after an approval. Hooks and users decide as for any other call;
 * the answer goes back with the next request, and the provider then runs the call or not.
 */
import { StatewrightError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { type JsonSchemaInput, jsonSchemaInput } from "../../tool/arguments/json-schema.ts";
import type { Tool, ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { approveKey } from "../../tool/policy/approval.ts";
import { getContentText, toErrorResult, toResult } from "../../tool/result.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { emitCallEvent, getResultFields, listCallMiddleware, type ToolCallContext } from "./context.ts";
import { type CallDecision, consultPerson, decideInRounds } from "./decide-call.ts";

/**
 * Calls the before hooks, then raises the approval interrupt or reads its answer. Returns the answer for the
 * provider.
 */
export async function askProviderApproval(call: ToolCallContext): Promise<CallDecision> {
  const tool = createProviderTool(call);
  if (listCallMiddleware(call).some(({ beforeTool }) => beforeTool !== undefined)) {
    const decided = await decideInRounds(call, tool);
    if (decided.kind !== "run") return toDenial(call, decided);
  }
  // A call allowed by all hooks still needs the approval of a user.
  const decision = call.approvedDigest === undefined ? consultPerson(call, tool, createApprovalRequest(call)) : "yes";
  return decision === "yes"
    ? { kind: "answer", result: toResult("Approved.", getResultFields(call, 1)) }
    : toDenial(call, decision);
}

/** Throws `unknown_interrupt` when the graph does not declare the approval interrupt. */
export function checkApprovalDeclared({ position, scope, block }: ToolCallContext): void {
  if (Object.hasOwn(position.plan.graph.interrupts, approveKey)) return;
  throw new StatewrightError("unknown_interrupt", {
    what: `the provider requires an approval to run "${block.name}", and graph "${position.plan.graph.name}" does not declare "${approveKey}"`,
    next: `Add it to the graph's interrupts: { ${approveKey}: approval }`,
    place: getErrorPlace(position, { node: scope.task.node, tool: block.name, callId: block.id }),
  });
}

function createApprovalRequest({ toolCall: { id, name, args } }: ToolCallContext): Parameters<typeof consultPerson>[2] {
  const payload = {
    callId: id,
    tool: name,
    args: args as Json,
    reason: "the provider requires an approval to run this call",
  };
  return { action: "interrupt", key: approveKey, payload };
}

/** Arguments of every tool of a provider. Created at first use. */
let anyObject: JsonSchemaInput | undefined;

/**
 * Creates the tool description for hooks. Only the provider knows the tool, so the description claims the highest
 * risk.
 */
function createProviderTool({ block: { name } }: ToolCallContext): Tool<never, never> {
  anyObject ??= jsonSchemaInput({ type: "object" });
  const spec: ToolSpec = {
    name,
    label: `the provider's tool "${name}"`,
    description: "A tool that the provider of the model runs.",
    input: anyObject,
    inject: {},
    effect: "once",
    safety: { access: "destructive", network: true, confirm: "always" },
    execution: {},
  };
  return { spec, call: () => undefined };
}

/**
 * Converts a substitute result to a denial with the same text: the provider gets a result only by running the call.
 */
function toDenial(call: ToolCallContext, decided: CallDecision): CallDecision {
  if (decided.kind !== "answer" || decided.result.isError) return decided;
  const reason = getContentText(decided.result.content);
  emitCallEvent(call, { type: "tool.denied", by: "approval", reason });
  return { kind: "answer", result: toErrorResult(new ToolError("denied", reason), getResultFields(call, 0)) };
}
