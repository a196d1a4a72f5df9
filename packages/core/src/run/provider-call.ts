/**
 * A call that the provider of the model would run itself, and asks about. A person is asked as about any other call; the answer
 * goes back with the next request, and the provider runs it or not.
 */
import { StatewrightError } from "../base/errors.ts";
import { fingerprint } from "../base/ids.ts";
import { deepFreeze, isPlainObject } from "../base/json.ts";
import { parseWith } from "../base/schema.ts";
import { approval, approveKey } from "../tool/approval.ts";
import { jsonSchemaOf } from "../tool/model-tool.ts";
import { resultOf, resultOfError } from "../tool/result.ts";
import { ToolError } from "../tool/tool-error.ts";
import { argsDigest } from "./args-digest.ts";
import { type CallAtWork, event, facts, shownArgs } from "./call-at-work.ts";
import type { Decided } from "./decide-call.ts";
import { placeOf } from "./session.ts";

/** Ask a person, or read the answer: what the provider is told. */
export function askForProvider(call: CallAtWork): Decided {
  const { session, scope, block } = call;
  if (!Object.hasOwn(session.plan.graph.interrupts, approveKey)) throw undeclared(call);
  for (const step of ["call.resolved", "call.validated", "call.admitted"] as const) call.move(step);
  call.toolCall = deepFreeze({ id: block.id, name: block.name, args: block.args });
  call.move("call.started");
  event(call, { type: "tool.started", args: shownArgs(call) });
  call.move("call.checking");
  const asked = scope.consult({
    id: `${scope.task.id}:${call.key}`,
    key: approveKey,
    payload: {
      callId: block.id,
      tool: block.name,
      args: shownArgs(call),
      reason: "the provider asks before it runs this",
    },
    schema: jsonSchemaOf(approval),
    about: fingerprint(`${block.name} ${argsDigest(session.codec, block.args)}`),
    expiry: undefined,
  });
  call.move("call.asked");
  if ("open" in asked) return { kind: "waiting", open: asked.open };
  const why = refusalIn(asked.answer);
  if (why === undefined) return { kind: "answer", result: resultOf("Approved.", facts(call, 0)) };
  event(call, { type: "tool.denied", by: "approval", reason: why });
  return { kind: "answer", result: resultOfError(new ToolError("denied", why), facts(call, 0)) };
}

/** Why the answer is a no, or nothing where it is a yes. */
function refusalIn(answer: unknown): string | undefined {
  const parsed = parseWith(approval, answer);
  if (!parsed.ok) return "The answer was not understood.";
  const said = parsed.value;
  if (said === true) return undefined;
  if (isPlainObject(said) && "respond" in said) return String(said["respond"]);
  if (!isPlainObject(said) || said["approved"] !== true) {
    const reason = isPlainObject(said) ? said["reason"] : undefined;
    return typeof reason === "string" ? `A person refused this call: ${reason}` : "A person refused this call.";
  }
  return said["args"] === undefined
    ? undefined
    : "A person wanted other arguments, and the provider runs the call as it is.";
}

function undeclared({ session, scope, block }: CallAtWork): StatewrightError {
  return new StatewrightError("unknown_interrupt", {
    what: `the provider asks before it runs "${block.name}", and graph "${session.plan.graph.name}" does not declare "${approveKey}"`,
    next: `Add it to the graph's interrupts: { ${approveKey}: approval }`,
    place: placeOf(session, { node: scope.task.node, tool: block.name, callId: block.id }),
  });
}
