/** Turn of an agent, its limit and its end: the part of the node contract that only agents use. */
import type { AgentEnd } from "../model/message.ts";
import type { Model } from "../model/model.ts";
import type { AnyModel } from "../model/model-source.ts";
import type { Middleware } from "../tool/policy/middleware.ts";
import type { ModelCall } from "./model-call.ts";

/**
 * Turn of an agent: a model call with the hooks at both ends of the agent's run. The state needs the channel
 * `messages`.
 */
export interface AgentTurn {
  /** Middleware whose `beforeAgent` and `afterAgent` hooks apply to the agent's run. */
  readonly middleware?: readonly Middleware[];
  /**
   * Creates the model call from the state after `beforeAgent`; called in every attempt and after every resume.
   * `toModel` finds the `Model` of a model option, for decisions that depend on its abilities.
   */
  readonly prepare: (state: never, toModel: (given: AnyModel) => Model) => ModelCall | Promise<ModelCall>;
  readonly ends: AgentEndCheck;
  readonly limit?: TurnLimit | undefined;
}

/** Maximum number of model calls between two user messages; the agent then ends with this text. */
export interface TurnLimit {
  readonly turns: number;
  readonly text: string;
  readonly ended: AgentEnd;
}

/**
 * Returns how an agent ends in a state that holds the answer; undefined to continue. Called only with `afterAgent`
 * hooks, and not for an answer with tool calls: an agent answers tool calls before its end.
 */
export type AgentEndCheck = (state: never) => AgentEnd | undefined | Promise<AgentEnd | undefined>;
