/** A call of a tool without a body: a question under the tool's name, whose answer is what the tool returns. */
import { StatewrightError } from "../../base/errors.ts";
import { fingerprint } from "../../base/ids.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { clientAnswer, clientOutput } from "../../tool/definition/client-tool.ts";
import { jsonSchemaOf, modelToolOf } from "../../tool/definition/model-tool.ts";
import type { ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { argsDigest } from "../journal/args-digest.ts";
import { placeOf } from "../session/session.ts";
import { type CallAtWork, shownArgs } from "./context.ts";

/** What the application answered, as the tool's return; or the open question. A time limit counts from the question. */
export function askClient(
  call: CallAtWork,
  spec: ToolSpec,
): { readonly output: () => unknown } | { readonly open: InterruptRow } {
  const { block, key, scope, session, toolCall } = call;
  const { timeoutMs } = spec;
  if (!Object.hasOwn(session.plan.graph.interrupts, spec.name)) throw undeclared(call, spec.name);
  const asked = scope.consult({
    id: clientQuestion(scope.task, key),
    key: spec.name,
    payload: { callId: block.id, tool: spec.name, args: shownArgs(call) },
    schema: jsonSchemaOf(clientAnswer(spec)),
    about: fingerprint(`${JSON.stringify(modelToolOf(spec))} ${argsDigest(session.codec, toolCall.args)}`),
    expiry: timeoutMs === undefined ? undefined : { ms: timeoutMs, answer: { value: null } },
  });
  if ("open" in asked) return asked;
  call.move("call.decided");
  if (!asked.expired) return { output: () => clientOutput(spec, asked.answer) };
  return {
    output: () => {
      throw ToolError.timeout(timeoutMs ?? 0);
    },
  };
}

/** The id of the question that such a call is. */
export function clientQuestion({ id }: Pick<Task, "id">, call: string): string {
  return `${id}/client:${call}`;
}

/** A tool that came into the registry after the graph was made. */
function undeclared({ session, scope, block }: CallAtWork, tool: string): StatewrightError {
  return new StatewrightError("unknown_interrupt", {
    what: `the tool "${tool}" has no body, and graph "${session.plan.graph.name}" does not declare its question`,
    next: `Add it to the graph's interrupts: { ${tool}: the schema of its answer }, or to an agent's tools before it is made`,
    place: placeOf(session, { node: scope.task.node, tool, callId: block.id }),
  });
}
