/**
 * Calls of client tools (tools without a body): an interrupt under the tool's name, whose answer is the tool's return
 * value.
 */
import { StatewrightError } from "../../base/errors.ts";
import { fingerprint } from "../../base/ids.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { clientAnswer, toToolOutput } from "../../tool/definition/client-tool.ts";
import { toJsonSchema, toModelTool } from "../../tool/definition/model-tool.ts";
import type { ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { digestArgs } from "../journal/args-digest.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { redactCallArgs, type ToolCallContext } from "./context.ts";

/**
 * Returns the answer of the application as the tool output, or the open interrupt. A timeout counts from the
 * interrupt.
 */
export function askClient(
  call: ToolCallContext,
  spec: ToolSpec,
): { readonly output: () => unknown } | { readonly open: InterruptRow } {
  const { block, key, scope, position, env, toolCall } = call;
  const { timeoutMs } = spec;
  if (!Object.hasOwn(position.plan.graph.interrupts, spec.name)) throw createUndeclaredError(call, spec.name);
  const reply = scope.consult({
    id: getClientInterruptId(scope.task, key),
    key: spec.name,
    payload: { callId: block.id, tool: spec.name, args: redactCallArgs(call) },
    schema: toJsonSchema(clientAnswer(spec)),
    about: fingerprint(`${JSON.stringify(toModelTool(spec))} ${digestArgs(env.codec, toolCall.args)}`),
    expiry: timeoutMs === undefined ? undefined : { ms: timeoutMs, answer: { value: null } },
  });
  if ("open" in reply) return reply;
  call.transition("call.decided");
  if (!reply.expired) return { output: () => toToolOutput(spec, reply.answer) };
  return {
    output: () => {
      throw ToolError.timeout(timeoutMs ?? 0);
    },
  };
}

/** Returns the id of the interrupt of a client tool call. */
export function getClientInterruptId({ id }: Pick<Task, "id">, call: string): string {
  return `${id}/client:${call}`;
}

/** Creates the error for a client tool that was registered after the graph was defined. */
function createUndeclaredError({ position, scope, block }: ToolCallContext, tool: string): StatewrightError {
  return new StatewrightError("unknown_interrupt", {
    what: `the tool "${tool}" has no body, and the graph "${position.plan.graph.name}" does not declare its interrupt`,
    next: `Add it to the graph's interrupts: { ${tool}: the schema of its answer }, or to the agent's tools before the agent is created`,
    place: getErrorPlace(position, { node: scope.task.node, tool, callId: block.id }),
  });
}
