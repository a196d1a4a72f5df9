/** A run of an agent at work: the handle of its graph's run, in the words of agents. */
import {
  type AgentEnd,
  type Message,
  type OutputSchema,
  type RunEvent,
  type RunHandle,
  type RunResult,
  StatewrightError,
  type World,
} from "@statewright/core";
import { type PartialOutput, partialOutputs } from "../output/partial-output.ts";
import { answerText, endedBy } from "./agent-end.ts";
import { type AgentInput, toMessages } from "./agent-input.ts";

type WithEnd<Result> = Result extends { readonly status: "done" }
  ? Result & Ended
  : Result & { readonly [Part in keyof Ended]?: undefined } & { readonly output?: undefined };

interface Ended {
  readonly ended: AgentEnd;
  /** The text of the answer, which is JSON where the agent has an output; empty when it ended without one. */
  readonly text: string;
}

/** How a run of an agent ended for now; where it is done, `text` is its answer, and `ended` says by what it ended. */
export type AgentResult<State, Output = unknown> = WithEnd<RunResult<State, Output>>;

/** A run of an agent at work. */
export interface AgentRun<State, Output = unknown> extends RunHandle<State, Output> {
  readonly result: Promise<AgentResult<State, Output>>;
  /** Say something to the run while it works: it is heard before the next request to the model. */
  steer(input: AgentInput): Promise<void>;
  /** Say something that is heard only when the agent would end otherwise: it goes on instead. */
  followUp(input: AgentInput): Promise<void>;
  /**
   * The output of an agent that has one, while its model writes it: what there is of it, each time that there is more. The
   * schema has not seen it; what counts is `output` of the result. Throws `invalid_option` for an agent without an output.
   */
  partialOutput(): AsyncIterableIterator<PartialOutput<NonNullable<Output>>>;
}

/** A run of an agent, and every event of it: `for await (const event of agent.stream({ input }))`. */
export interface AgentStream<State, Output = unknown>
  extends AgentRun<State, Output>,
    AsyncIterable<RunEvent, undefined, undefined> {}

type Talk = { readonly messages: readonly Message[] };

/** The handle of an agent's run from that of its graph's. */
export function agentRun<State extends Talk>(
  handle: RunHandle<State, unknown>,
  world: World | undefined,
  output: OutputSchema | undefined,
): AgentRun<State> {
  const result = handle.result.then((ended): AgentResult<State> => {
    if (ended.status !== "done") return ended;
    const { messages } = ended.state;
    return { ...ended, ended: endedBy(messages), text: answerText(messages) };
  });
  /** Whoever reads the events learns of a failure by them. */
  const read = <Reader>(reader: Reader): Reader => {
    result.catch(toldByEvents);
    return reader;
  };
  return {
    ...handle,
    result,
    events: (...options) => read(handle.events(...options)),
    values: () => read(handle.values()),
    text: (...options) => read(handle.text(...options)),
    on: (listener) => read(handle.on(listener)),
    steer: async (input) => handle.steer(toMessages(input, world)),
    followUp: async (input) => handle.followUp(toMessages(input, world)),
    partialOutput: () => {
      if (output === undefined) throw noOutput();
      const partial: AsyncIterableIterator<unknown> = partialOutputs(read(handle.events()), output);
      return partial as AsyncIterableIterator<never>;
    },
  };
}

function noOutput(): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: "the output of a run was to be read while it is written, and its agent has none",
    next: "Give createAgent an output, or read text()",
  });
}

function toldByEvents(): void {
  // Awaiting `result` still rejects.
}

/** The run with all its events from the first on. */
export function agentStream<State>(run: AgentRun<State>): AgentStream<State> {
  const events = run.events();
  return { ...run, [Symbol.asyncIterator]: () => events };
}
