/**
 * A call that the provider of the model would run itself, and asks about. Hooks decide about it and people are asked as about
 * any other call; the answer goes back with the next request, and the provider runs it or not.
 */
import { StatewrightError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { jsonSchemaInput } from "../../tool/arguments/json-schema.ts";
import type { Tool, ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { approveKey } from "../../tool/policy/approval.ts";
import { resultOf, resultOfError, textOfBlocks } from "../../tool/result.ts";
import { placeOf } from "../session/session.ts";
import { type CallAtWork, event, facts, hooks } from "./context.ts";
import { consult, type Decided, decideInRounds } from "./decide-call.ts";

/** Ask the before hooks and a person, or read the answer: what the provider is told. */
export async function askForProvider(call: CallAtWork): Promise<Decided> {
  const tool = ofProvider(call);
  if (hooks(call).some(({ beforeTool }) => beforeTool !== undefined)) {
    const decided = await decideInRounds(call, tool);
    if (decided.kind !== "run") return asNo(call, decided);
  }
  // What no hook minds is still a question of the provider to a person.
  const said = call.approved === undefined ? consult(call, tool, question(call)) : "yes";
  return said === "yes" ? { kind: "answer", result: resultOf("Approved.", facts(call, 1)) } : asNo(call, said);
}

/** Throws `unknown_interrupt` where nobody could be asked. */
export function checkAsked({ session, scope, block }: CallAtWork): void {
  if (Object.hasOwn(session.plan.graph.interrupts, approveKey)) return;
  throw new StatewrightError("unknown_interrupt", {
    what: `the provider asks before it runs "${block.name}", and graph "${session.plan.graph.name}" does not declare "${approveKey}"`,
    next: `Add it to the graph's interrupts: { ${approveKey}: approval }`,
    place: placeOf(session, { node: scope.task.node, tool: block.name, callId: block.id }),
  });
}

function question({ toolCall: { id, name, args } }: CallAtWork): Parameters<typeof consult>[2] {
  const payload = { callId: id, tool: name, args: args as Json, reason: "the provider asks before it runs this" };
  return { action: "interrupt", key: approveKey, payload };
}

const anything = jsonSchemaInput({ type: "object" });

/** What hooks are told of a tool that only the provider knows: nothing that would make it look harmless. */
function ofProvider({ block: { name } }: CallAtWork): Tool<never, never> {
  const spec: ToolSpec = {
    name,
    label: `the provider's tool "${name}"`,
    description: "A tool that the provider of the model runs.",
    input: anything,
    inject: {},
    effect: "once",
    safety: { access: "destructive", network: true, confirm: "always" },
    execution: {},
  };
  return { spec, call: () => undefined };
}

/** Words in the tool's place are a no with these words: the provider has the answer only when it runs the call. */
function asNo(call: CallAtWork, decided: Decided): Decided {
  if (decided.kind !== "answer" || decided.result.isError) return decided;
  const why = textOfBlocks(decided.result.content);
  event(call, { type: "tool.denied", by: "approval", reason: why });
  return { kind: "answer", result: resultOfError(new ToolError("denied", why), facts(call, 0)) };
}
