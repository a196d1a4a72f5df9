/** Hand-offs: tools by which an agent of a team passes the conversation to another. */
import {
  type ArgsOf,
  checkOptions,
  custom,
  type DefinedTool,
  defineTool,
  type JsonSchemaInput,
  jsonSchemaInput,
  type Message,
  optionNames,
  StatewrightError,
  snakeCaseOf,
  ToolError,
  type ToolInput,
  type ToolSpec,
} from "@statewright/core";
import { checkFunction } from "../agent/check-option.ts";

/** What passes from one agent to another, as an input filter sees it. */
export interface HandoffFacts {
  readonly from: string;
  readonly to: string;
  /** The arguments of the call. */
  readonly args: unknown;
}

/**
 * What the next agent's model is shown of the conversation up to the hand-off, the call and its answer included. What stays
 * must be whole: a call with its answer, or neither.
 */
export type HandoffFilter = (messages: readonly Message[], handoff: HandoffFacts) => readonly Message[];

/** What `handoff` takes beside the agent. */
export interface HandoffOptions<Name extends string, Input extends ToolInput> {
  /** Default: `transfer_to_` and the agent's name. */
  readonly name?: Name;
  /** When the model is to hand over, in words for it. */
  readonly description?: string;
  /** Arguments that the model gives along, such as a reason: the next agent reads them in the call. Default: none. */
  readonly input?: Input;
  /** Changes what the next agent's model is shown; the state keeps the whole conversation. Default: all of it. */
  readonly filter?: HandoffFilter;
}

/** A hand-off, as the team that it happens in knows it. */
export interface Handoff {
  readonly to: string;
  readonly filter: HandoffFilter | undefined;
}

/** The arguments of a hand-off that declares none. */
export type NoArgs = Readonly<Record<never, never>>;

const handoffs: WeakMap<ToolSpec, Handoff> = new WeakMap();

/** The hand-off that a tool is; undefined for any other tool. */
export function handoffOf({ spec }: { readonly spec: ToolSpec }): Handoff | undefined {
  return handoffs.get(spec);
}

/**
 * A tool by which the agent that has it passes the conversation to another agent of its `team`. The call is answered like any
 * other, and the next request is the other agent's. Throws `invalid_option` for what is no agent, and what `defineTool` throws.
 */
export function handoff<const Name extends string = string, Input extends ToolInput = JsonSchemaInput<NoArgs>>(
  to: string | { readonly name: string },
  options: HandoffOptions<Name, Input> = {},
): DefinedTool<Name, ArgsOf<Input>> {
  checkOptions("handoff", options, names);
  const agent = typeof to === "string" ? to : to?.name;
  if (typeof agent !== "string" || agent === "")
    throw new StatewrightError("invalid_option", {
      what: "handoff got something that is neither an agent nor the name of one",
      next: 'Give an agent of the team or its name: handoff("billing")',
    });
  const { name = `transfer_to_${snakeCaseOf(agent)}`, description = `Hand the conversation over to ${agent}.` } =
    options;
  checkFunction(`the hand-off "${name}"`, { filter: options.filter });
  const tool = defineTool({
    name: name as string,
    description,
    input: (options.input ?? noArgs) as ToolInput,
    effect: "pure",
    safety: { access: "read" },
    // Nothing of the same message is skipped for what somebody says meanwhile: who is to answer is decided already.
    execution: { onSteer: "run" },
    inject: { isTeam: custom(({ state }) => typeof state === "object" && state !== null && "activeAgent" in state) },
    run: (_args, { injected }) => {
      if (!injected.isTeam) throw ToolError.failed(`Not handed over: ${agent} is not there. Answer yourself.`);
      return { content: `The conversation is with ${agent} now.`, command: { update: { activeAgent: agent } } };
    },
  });
  handoffs.set(tool.spec, { to: agent, filter: options.filter });
  return tool as DefinedTool<never, never> as DefinedTool<Name, ArgsOf<Input>>;
}

const names = optionNames<HandoffOptions<string, ToolInput>>({
  name: true,
  description: true,
  input: true,
  filter: true,
});

const noArgs: JsonSchemaInput<NoArgs> = jsonSchemaInput<NoArgs>({
  type: "object",
  properties: {},
  additionalProperties: false,
});

/** An input filter: no calls of tools and no results, and nothing that an agent said last, so that a person's words come last. */
export function withoutToolCalls(messages: readonly Message[]): readonly Message[] {
  const kept = messages.flatMap((message): readonly Message[] => {
    if (message.role === "tool") return [];
    if (message.role !== "assistant") return [message];
    const content = message.content.filter(({ type }) => type !== "call" && type !== "reasoning");
    return content.length === 0 ? [] : [{ ...message, content, finish: "stop" }];
  });
  const end = kept.findLastIndex(({ role }) => role !== "assistant");
  return kept.slice(0, end + 1);
}
