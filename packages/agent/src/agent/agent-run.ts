/**
 * Handle of an agent run: the handle of the graph run with messages instead of state updates. Also the registry of the
 * active runs of an agent.
 */
import type { AgentEnd, Message, OutputSchema, RunEvent, RunHandle, RunResult } from "@statewright/core";
import { invalidOption, mapResult } from "@statewright/core/adapter";
import { type PartialOutput, streamPartialOutputs } from "../output/partial-output.ts";
import { getAgentEnd, getAnswerText } from "./agent-end.ts";
import { type AgentInput, toMessages } from "./agent-input.ts";

type WithEnd<Result> = Result extends { readonly status: "done" }
  ? Result & Ended
  : Result & { readonly [Part in keyof Ended]?: undefined } & { readonly output?: undefined };

interface Ended {
  readonly ended: AgentEnd;
  /** Text of the answer; JSON for an agent with structured output; empty when the agent ended without an answer. */
  readonly text: string;
}

/** Result of an agent run. When `status` is "done", `text` is the answer and `ended` the reason of the end. */
export type AgentResult<State, Output = unknown> = WithEnd<RunResult<State, Output>>;

/** Handle of an agent run. */
export interface AgentRun<State, Output = unknown> extends RunHandle<State, Output> {
  readonly result: Promise<AgentResult<State, Output>>;
  /** Sends a message to the active run; delivered before the next model request. */
  steer(input: AgentInput): Promise<void>;
  /** Sends a message that is delivered only when the agent would otherwise end; the run then continues. */
  followUp(input: AgentInput): Promise<void>;
  /**
   * Streams the structured output while the model writes it, as growing partial values. Partial values are not
   * validated; use `output` of the result for the validated value. Throws the error of a failed run, and
   * `invalid_option` for an agent without `output`.
   */
  partialOutput(): AsyncIterableIterator<PartialOutput<NonNullable<Output>>>;
}

/** Agent run with all its events: `for await (const event of agent.stream({ input }))`. */
export interface AgentStream<State, Output = unknown>
  extends AgentRun<State, Output>,
    AsyncIterable<RunEvent, undefined, undefined> {}

type ConversationState = { readonly messages: readonly Message[] };

/** Creates the handle of an agent run from the handle of the graph run. */
export function createAgentRun<State extends ConversationState>(
  handle: RunHandle<State, unknown>,
  output: OutputSchema | undefined,
): AgentRun<State> {
  const result = mapResult(handle, (runResult): AgentResult<State> => {
    if (runResult.status !== "done") return runResult;
    const { messages } = runResult.state;
    return { ...runResult, ended: getAgentEnd(messages), text: getAnswerText(messages) };
  });
  return {
    ...handle,
    result,
    steer: async (input) => handle.steer(toMessages(input)),
    followUp: async (input) => handle.followUp(toMessages(input)),
    partialOutput: () => {
      if (output === undefined)
        throw invalidOption({
          where: "partialOutput",
          expected: "an agent with structured output",
          found: "an agent without `output`",
          fix: "Add `output` to createAgent, or use text()",
        });
      const partial: AsyncIterableIterator<unknown> = streamPartialOutputs(handle.events(), output);
      return partial as AsyncIterableIterator<never>;
    },
  };
}

/** Adds an async iterator over all events, from the first event on. */
export function toAgentStream<State>(run: AgentRun<State>): AgentStream<State> {
  const events = run.events();
  return { ...run, [Symbol.asyncIterator]: () => events };
}

/** Id and thread of the run of an event. */
export type EventSource = Pick<RunHandle<unknown>, "id" | "run" | "thread">;

/** Listener for the events of all runs of an agent. */
export type AgentListener = (event: RunEvent, run: EventSource) => void;

/** Active runs of an agent. */
export interface ActiveRuns {
  /** Adds a started run; removes the run when the result resolves or rejects. */
  readonly add: (run: RunHandle<unknown>) => void;
  /** Lists the active runs of a thread, or all active runs. */
  readonly list: (thread: string | undefined) => readonly RunHandle<unknown>[];
  /** Subscribes a listener to active and future runs; returns the function that unsubscribes. */
  readonly subscribe: (listener: AgentListener) => () => void;
}

/** Creates an empty registry. */
export function createActiveRuns(): ActiveRuns {
  type Run = RunHandle<unknown>;
  const runs = new Set<Run>();
  /** Unsubscribe functions per listener and run. */
  const listeners = new Map<{ readonly notify: AgentListener }, Map<Run, () => void>>();
  return {
    add: (run) => {
      runs.add(run);
      for (const [{ notify }, unsubscribers] of listeners)
        unsubscribers.set(
          run,
          run.on((event) => notify(event, run)),
        );
      const remove = (): void => {
        runs.delete(run);
        for (const unsubscribers of listeners.values()) unsubscribers.delete(run);
      };
      run.result.then(remove, remove);
    },
    list: (thread) => [...runs].filter((run) => thread === undefined || run.thread === thread),
    subscribe: (notify) => {
      const listener = { notify };
      listeners.set(listener, new Map([...runs].map((run) => [run, run.on((event) => notify(event, run))])));
      return () => {
        for (const unsubscribe of listeners.get(listener)?.values() ?? []) unsubscribe();
        listeners.delete(listener);
      };
    },
  };
}
