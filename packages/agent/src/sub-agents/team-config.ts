/** What a team goes by, and how the conversation passes between its agents. */
import {
  defineMiddleware,
  deny,
  type GraphDefinition,
  type Message,
  type Middleware,
  type ToolNode,
} from "@statewright/core";
import { isFromPerson } from "../agent/is-from-person.ts";
import { earlierSiblings } from "../middleware/conversation-calls.ts";
import { type Handoff, type HandoffFacts, type HandoffFilter, handoffOf } from "./handoff.ts";

/** A node as a graph has it. */
export type NodeRecord = NonNullable<ReturnType<GraphDefinition["nodes"]["get"]>>;

/** An agent as a team runs it. */
export interface Member {
  readonly name: string;
  readonly graph: GraphDefinition;
  readonly model: NodeRecord;
  readonly tools: ToolNode<never, never> | undefined;
}

/** What a team goes by. */
export interface TeamRules {
  readonly name: string;
  readonly members: ReadonlyMap<string, Member>;
  readonly start: string;
  readonly inputTo: "active" | "start";
  readonly maxHandoffs: number;
}

/** What the functions of a team read of its state. */
export interface TeamTalk {
  readonly messages: readonly Message[];
  readonly activeAgent: string;
}

/** Keeps the conversation from being passed on twice at once, to whom it is with, and for ever. */
export function handingOver(rules: TeamRules, member: Member): Middleware {
  const { maxHandoffs } = rules;
  const { name } = member;
  const toOf = (tool: string): string | undefined => handoffBy(member, tool)?.to;
  return defineMiddleware<unknown, TeamTalk>({
    name: "team",
    required: true,
    asks: [],
    beforeTool: ({ call }, { state }) => {
      const to = toOf(call.name);
      if (to === undefined) return undefined;
      if (to === name) return deny(`Not handed over: you are ${name}.`);
      const first = earlierSiblings(state.messages, call.id).find((each) => toOf(each.name) !== undefined);
      if (first !== undefined) return deny(`Not handed over: ${toOf(first.name)} has the conversation already.`);
      if (passedOn(rules, state.messages) < maxHandoffs) return undefined;
      return deny(
        `Not handed over: the conversation was passed on ${maxHandoffs} times since a person spoke. Answer yourself.`,
      );
    },
  }) as Middleware;
}

/** How often the conversation was passed on since a person spoke last. */
function passedOn({ members }: TeamRules, conversation: readonly Message[]): number {
  const since = conversation.findLastIndex(isFromPerson) + 1;
  const isPassing = (message: Message): boolean =>
    message.role === "tool" &&
    !message.isError &&
    [...members.values()].some((member) => handoffBy(member, message.name) !== undefined);
  return conversation.slice(since).filter(isPassing).length;
}

/** The hand-off that a tool of a member is. */
function handoffBy({ tools }: Member, tool: string): Handoff | undefined {
  const defined = tools?.registry.get(tool);
  return defined === undefined ? undefined : handoffOf(defined);
}

/** What is shown of a conversation. */
export type Seen = (messages: readonly Message[]) => readonly Message[];

/** What a member's model is shown of a conversation; undefined where no hand-off to it has a filter. */
export function viewOf(rules: TeamRules, { name }: Member): Seen | undefined {
  const filters = new Map<string, HandoffFilter>();
  for (const { name: from, tools } of rules.members.values())
    for (const [tool, defined] of tools?.defined ?? []) {
      const { to, filter } = handoffOf(defined) ?? {};
      if (to === name && filter !== undefined) filters.set(`${from}/${tool}`, filter);
    }
  if (filters.size === 0) return undefined;
  return (conversation) => {
    const last = lastHandoff(rules, conversation);
    const filter = last?.to === name ? filters.get(`${last.from}/${last.tool}`) : undefined;
    if (last === undefined || filter === undefined) return conversation;
    const { from, to, args, end } = last;
    return [...filter(conversation.slice(0, end), { from, to, args }), ...conversation.slice(end)];
  };
}

interface HandedOver extends HandoffFacts {
  readonly tool: string;
  /** Where the answers of its message end. */
  readonly end: number;
}

/** The last time that the conversation was passed on. */
function lastHandoff({ members, start, inputTo }: TeamRules, conversation: readonly Message[]): HandedOver | undefined {
  let active = start;
  let last: HandedOver | undefined;
  for (const [index, message] of conversation.entries()) {
    if (isFromPerson(message) && inputTo === "start") active = start;
    const member = members.get(active);
    if (message.role !== "tool" || message.isError || member === undefined) continue;
    const to = handoffBy(member, message.name)?.to;
    if (to === undefined) continue;
    const rest = conversation.slice(index).findIndex(({ role }) => role !== "tool");
    const end = rest < 0 ? conversation.length : index + rest;
    last = { from: active, to, tool: message.name, args: argsOf(conversation, message.callId), end };
    active = to;
  }
  return last;
}

function argsOf(conversation: readonly Message[], callId: string): unknown {
  for (const message of conversation.toReversed()) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "call" && block.id === callId) return block.args;
  }
  return {};
}

/** Shows a model a conversation as `view` has it. */
export function showing(view: Seen): Middleware {
  return defineMiddleware({
    name: "handoff",
    beforeModel: (request) => ({ ...request, messages: view(request.messages) }),
  });
}

/** A model node with more middleware around it. */
export function within(middleware: readonly Middleware[], body: NodeRecord["body"]): NodeRecord["body"] {
  if (middleware.length === 0) return body;
  const around = (call: object): object => {
    const { middleware: own = [] } = call as { readonly middleware?: readonly Middleware[] };
    return { ...call, middleware: [...middleware.filter((each) => !own.includes(each)), ...own] };
  };
  return (state: never, runtime: never) => {
    const asking: AskingRuntime = runtime;
    const model = (turn: Turn, key?: string): unknown =>
      asking.model({ ...around(turn), prepare: async (now: never) => around(await turn.prepare(now)) }, key);
    return body(state, Object.create(runtime, { model: { value: model, enumerable: true } }) as never);
  };
}

interface Turn {
  readonly prepare: (state: never) => object | Promise<object>;
}

interface AskingRuntime {
  readonly model: (turn: Turn, key?: string) => unknown;
}
