/** State of an agent, and the types of the graph. */
import type { approval, GraphTypesWithNodes, GraphTypesWithoutNodes, Message, StateTypes } from "@statewright/core";
import type { CountedTurns } from "../turns/agent-turn-kind.ts";

/**
 * Messages of a run's input. The compiler shows the sentence for a text or a list of messages: both have the property,
 * and an object of channels does not.
 */
interface MessagesInput<Sentence extends string = "pass agent.toInput(text), or call agent.run with the text"> {
  readonly messages?: readonly Message[] | undefined;
  readonly [Symbol.iterator]?: Sentence;
}

/** State of an agent: user-defined channels and the conversation. */
export interface AgentState<Types extends StateTypes> extends StateTypes {
  readonly state: Types["state"] & { readonly messages: readonly Message[] };
  readonly update: Types["update"] & { readonly messages?: readonly Message[] };
  readonly input: Types["input"] & MessagesInput;
  readonly editable: Types["editable"];
}

/** State types of an agent without channels of its own. */
export interface NoState extends StateTypes {
  readonly state: Readonly<Record<never, never>>;
  readonly update: Readonly<Record<never, never>>;
  readonly input: Readonly<Record<never, never>>;
  readonly editable: never;
}

/** Types of an agent's graph; `Output` is `never` for an agent without structured output. */
export type AgentTypes<
  Types extends StateTypes,
  Context,
  ContextInput,
  Output = never,
  Tools extends string = string,
> = GraphTypesWithNodes<
  string,
  "model" | "tools",
  "approve",
  Tools,
  GraphTypesWithoutNodes<
    AgentState<Types>,
    Context,
    ContextInput,
    { readonly approve: typeof approval },
    never,
    never,
    [Output] extends [never] ? never : Output | undefined
  >
>;

/**
 * Output of a finished agent run: the structured output (undefined when the agent ended without an answer), or the
 * state.
 */
export type OutputOf<Types extends StateTypes, Output> = [Output] extends [never]
  ? AgentState<Types>["state"]
  : Output | undefined;

/** State as read by the functions of this package, independent of user-defined channels. */
export type Conversation = { readonly messages: readonly Message[] } & Partial<CountedTurns>;
