/** `onFinish`: told once when an agent ends by itself. */
import type { AgentEnd, Message, Middleware, RunIdentity } from "@statewright/core";
import { type AgentOutput, outputIn } from "../output/agent-output.ts";
import { answerText } from "./agent-end.ts";

/** What `onFinish` is told. */
export interface AgentFinish<State = unknown, Context = unknown, Output = unknown> {
  /** The text of the answer, which is JSON where the agent has an output; empty when it ended without one. */
  readonly text: string;
  /** The output, where the agent has one and came to it. */
  readonly output: Output;
  readonly ended: AgentEnd;
  readonly messages: readonly Message[];
  readonly state: State;
  readonly context: Context;
  readonly run: RunIdentity;
}

/**
 * Called when an agent ends by itself, before its end is saved and told: with an answer, by a tool, a condition or a hook; not
 * when it is cancelled, waits or fails. Its call is recorded: once it has returned, no resume calls it again. A process that
 * dies in the middle of it calls it again after the resume, and one that throws fails the run, which a resume ends.
 */
export type OnFinish<State = unknown, Context = unknown, Output = unknown> = (
  finish: AgentFinish<State, Context, Output>,
) => void | Promise<void>;

/** Middleware that tells it. It stands outermost: hooks that let the agent go on have spoken before. */
export function tellsFinish(onFinish: OnFinish<never, never, never>, output: AgentOutput | undefined): Middleware {
  return {
    name: "onFinish",
    afterAgent: async ({ messages, ended }, { state, context, run }) => {
      const text = answerText(messages);
      const read = output === undefined ? undefined : outputIn(output.schema, messages);
      const given = read?.ok === true ? read.value : undefined;
      const finish = { text, output: given, ended, messages, state, context, run };
      await onFinish(finish as AgentFinish<never, never, never>);
    },
  };
}
