/** `onFinish`: callback at the end of an agent. */
import type { AgentEnd, Message, Middleware, RunIdentity } from "@statewright/core";
import { type AgentOutput, parseFinalOutput } from "../output/agent-output.ts";
import { getAnswerText } from "./agent-end.ts";

/** Argument of `onFinish`. */
export interface AgentFinish<State = unknown, Context = unknown, Output = unknown> {
  /** Text of the answer; JSON for an agent with structured output; empty when the agent ended without an answer. */
  readonly text: string;
  /** Structured output; undefined for an agent without `output`, and for an end without an answer. */
  readonly output: Output;
  readonly ended: AgentEnd;
  readonly messages: readonly Message[];
  readonly state: State;
  readonly context: Context;
  readonly run: RunIdentity;
}

/**
 * Called when an agent ends, before its end is saved and emitted: after an answer, or by a tool, a condition or a
 * hook; not when the run is cancelled, waits or fails. The call is recorded: after the call has returned, no resume
 * repeats the call. A crash during the call repeats the call on resume. An exception fails the run; a resume calls
 * again and ends the run.
 */
export type OnFinish<State = unknown, Context = unknown, Output = unknown> = (
  finish: AgentFinish<State, Context, Output>,
) => void | Promise<void>;

/** Creates the middleware that calls `onFinish`. Outermost middleware: hooks that continue the agent run earlier. */
export function createFinishMiddleware(
  onFinish: OnFinish<never, never, never>,
  output: AgentOutput | undefined,
): Middleware {
  return {
    name: "onFinish",
    afterAgent: async ({ messages, ended }, { state, context, run }) => {
      const text = getAnswerText(messages);
      const parsed = output === undefined ? undefined : parseFinalOutput(output.schema, messages);
      const value = parsed?.ok === true ? parsed.value : undefined;
      const finish = { text, output: value, ended, messages, state, context, run };
      await onFinish(finish as AgentFinish<never, never, never>);
    },
  };
}
