/** The state of an agent, and the types of its graph. */
import type { approval, Message, StateTypes, TypesOf, TypesWith } from "@statewright/core";
import type { CountedTurns } from "../turns/agent-turns.ts";

/** The state of an agent: the user's own and the conversation. */
export interface AgentState<Types extends StateTypes> extends StateTypes {
  readonly state: Types["state"] & { readonly messages: readonly Message[] };
  readonly update: Types["update"] & { readonly messages?: readonly Message[] };
  readonly input: Types["input"] & { readonly messages?: readonly Message[] | undefined };
}

/** The state of an agent that has none of its own. */
export interface NoState extends StateTypes {
  readonly state: Readonly<Record<never, never>>;
  readonly update: Readonly<Record<never, never>>;
  readonly input: Readonly<Record<never, never>>;
}

/** The types of an agent's graph; `Output` is `never` for an agent without an output of its own. */
export type AgentTypes<
  Types extends StateTypes,
  Context,
  Given,
  Output = never,
  Tools extends string = string,
> = TypesWith<
  TypesOf<
    AgentState<Types>,
    Context,
    Given,
    { readonly approve: typeof approval },
    never,
    never,
    [Output] extends [never] ? never : Output | undefined
  >,
  "model" | "tools",
  Record<never, never>,
  Tools
>;

/** What a finished run of an agent gives: its output, where it has one and came to it, or its state. */
export type OutputOf<Types extends StateTypes, Output> = [Output] extends [never]
  ? AgentState<Types>["state"]
  : Output | undefined;

/** What the functions of an agent's own read of any state. */
export type Conversation = { readonly messages: readonly Message[] } & Partial<CountedTurns>;
