/** Handoffs: tools with which an agent of a team passes the conversation to another agent. */

import {
  type ArgsOf,
  type DefinedTool,
  defineTool,
  inject,
  type Message,
  ToolError,
  type ToolInput,
  type ToolSpec,
} from "@statewright/core";
import {
  checkFunction,
  checkOptions,
  invalidOption,
  type JsonSchemaInput,
  jsonSchemaInput,
  listOptionNames,
  toSnakeCase,
} from "@statewright/core/adapter";
import { checkMessages } from "../agent/agent-input.ts";

/** Handoff between two agents, as seen by a filter. */
export interface HandoffInfo {
  readonly from: string;
  readonly to: string;
  /** Arguments of the handoff call. */
  readonly args: unknown;
}

/**
 * Filters the conversation shown to the next agent's model, up to and including the handoff call and its result. Must
 * keep or remove each call together with its result.
 */
export type HandoffFilter = (messages: readonly Message[], handoff: HandoffInfo) => readonly Message[];

/** Definition of the handoff tool, and the filter of handed-over messages. */
export interface HandoffOptions<Name extends string, Input extends ToolInput> {
  /** Name of the tool. Default: `transfer_to_` and the agent's name in snake case. */
  readonly name?: Name;
  /** Tells the model when to hand over. */
  readonly description?: string;
  /** Arguments of the handoff, such as a reason; visible to the next agent in the call. Default: none. */
  readonly input?: Input;
  /**
   * Filters the conversation shown to the next agent's model; the state keeps the whole conversation. Default: no
   * filter.
   */
  readonly filter?: HandoffFilter;
}

/** Handoff as registered for the team. */
export interface Handoff {
  readonly to: string;
  readonly filter: HandoffFilter | undefined;
}

/** Arguments of a handoff without `input`. */
export type NoArgs = Readonly<Record<never, never>>;

const handoffs: WeakMap<ToolSpec, Handoff> = new WeakMap();

/** Returns the handoff behind a tool; undefined for other tools. */
export function getHandoff({ spec }: { readonly spec: ToolSpec }): Handoff | undefined {
  return handoffs.get(spec);
}

/**
 * Creates a tool that passes the conversation to another agent of the `team`. The call gets a result like any tool
 * call, and the next model request is made by the other agent. Throws `invalid_option` for an invalid agent, and the
 * errors of `defineTool`.
 */
export function handoff<const Name extends string = string, Input extends ToolInput = JsonSchemaInput<NoArgs>>(
  to: string | { readonly name: string },
  options: HandoffOptions<Name, Input> = {},
): DefinedTool<Name, ArgsOf<Input>> {
  checkOptions("handoff", options, optionList);
  const agent = typeof to === "string" ? to : to?.name;
  if (typeof agent !== "string" || agent === "")
    throw invalidOption({
      where: "handoff",
      expected: "an agent or the name of an agent",
      got: to,
      fix: 'Pass an agent of the team or its name: handoff("billing")',
    });
  const { name = `transfer_to_${toSnakeCase(agent)}`, description = `Hand the conversation over to ${agent}.` } =
    options;
  checkFunction(`handoff "${name}"`, { filter: options.filter });
  const tool = defineTool({
    name: name as string,
    description,
    input: (options.input ?? getNoArgs()) as ToolInput,
    effect: "pure",
    safety: { access: "read" },
    // An inbox message during the handoff does not skip the other calls of the message: the answering agent is
    // already decided.
    execution: { onSteer: "run" },
    inject: {
      isTeam: inject.custom(({ state }) => typeof state === "object" && state !== null && "activeAgent" in state),
    },
    run: (_args, { injected }) => {
      if (!injected.isTeam)
        throw ToolError.failed(`Not handed over: the agent ${agent} does not exist here. Answer yourself.`);
      return { content: `The conversation is now with ${agent}.`, command: { update: { activeAgent: agent } } };
    },
  });
  handoffs.set(tool.spec, { to: agent, filter: options.filter });
  return tool as DefinedTool<never, never> as DefinedTool<Name, ArgsOf<Input>>;
}

const optionList = listOptionNames<HandoffOptions<string, ToolInput>>({
  name: true,
  description: true,
  input: true,
  filter: true,
});

let noArgs: JsonSchemaInput<NoArgs> | undefined;

/** Returns the arguments of a handoff without an input. Created at first use, so that an import compiles no schema. */
function getNoArgs(): JsonSchemaInput<NoArgs> {
  noArgs ??= jsonSchemaInput<NoArgs>({ type: "object", properties: {}, additionalProperties: false });
  return noArgs;
}

/**
 * Handoff filter: removes tool calls, tool results, reasoning and trailing assistant messages, so that a user message
 * comes last.
 */
export function removeToolCalls(messages: readonly Message[]): readonly Message[] {
  checkMessages("removeToolCalls", messages);
  const retained = messages.flatMap((message): readonly Message[] => {
    if (message.role === "tool") return [];
    if (message.role !== "assistant") return [message];
    const content = message.content.filter(({ type }) => type !== "call" && type !== "reasoning");
    return content.length === 0 ? [] : [{ ...message, content, finish: "stop" }];
  });
  const end = retained.findLastIndex(({ role }) => role !== "assistant");
  return retained.slice(0, end + 1);
}
