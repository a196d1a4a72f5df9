/** Configuration of a team, and the middleware for handoffs between its agents. */
import {
  decide,
  defineMiddleware,
  type GraphDefinition,
  type Message,
  type Middleware,
  type ToolNode,
} from "@statewright/core";
import { isFromPerson } from "../agent/is-from-person.ts";
import { listEarlierSiblings } from "../middleware/conversation-calls.ts";
import { getHandoff, type Handoff, type HandoffFilter, type HandoffInfo } from "./handoff.ts";

/** Node in a graph definition. */
export type NodeRecord = NonNullable<ReturnType<GraphDefinition["nodes"]["get"]>>;

/** Agent of a team, with its nodes. */
export interface Member {
  readonly name: string;
  readonly graph: GraphDefinition;
  readonly model: NodeRecord;
  readonly tools: ToolNode<never, never> | undefined;
}

/** Validated configuration of a team. */
export interface TeamConfig {
  readonly name: string;
  readonly members: ReadonlyMap<string, Member>;
  readonly start: string;
  readonly inputTo: "active" | "start";
  readonly maxHandoffs: number;
}

/** State of a team, as read by its functions. */
export interface TeamConversation {
  readonly messages: readonly Message[];
  readonly activeAgent: string;
}

/**
 * Creates middleware that denies a handoff to the active agent, a second handoff in a single message, and handoffs
 * above `maxHandoffs`.
 */
export function createHandoffGuard(config: TeamConfig, member: Member): Middleware {
  const { maxHandoffs } = config;
  const { name } = member;
  const getTarget = (tool: string): string | undefined => findHandoff(member, tool)?.to;
  return defineMiddleware<unknown, TeamConversation>({
    name: "team",
    required: true,
    beforeTool: ({ call }, { state }) => {
      const to = getTarget(call.name);
      if (to === undefined) return undefined;
      if (to === name) return decide.deny(`Not handed over: you are ${name}.`);
      const first = listEarlierSiblings(state.messages, call.id).find((each) => getTarget(each.name) !== undefined);
      if (first !== undefined)
        return decide.deny(`Not handed over: ${getTarget(first.name)} has the conversation already.`);
      if (countHandoffs(config, state.messages) < maxHandoffs) return undefined;
      return decide.deny(
        `Not handed over: the conversation was already handed over ${maxHandoffs} times since the last user message. Answer yourself.`,
      );
    },
  }) as Middleware;
}

/** Counts the handoffs since the last user message. */
function countHandoffs({ members }: TeamConfig, conversation: readonly Message[]): number {
  const turnStart = conversation.findLastIndex(isFromPerson) + 1;
  const isHandoff = (message: Message): boolean =>
    message.role === "tool" &&
    !message.isError &&
    [...members.values()].some((member) => findHandoff(member, message.name) !== undefined);
  return conversation.slice(turnStart).filter(isHandoff).length;
}

/** Finds the handoff behind a tool of a member. */
function findHandoff({ tools }: Member, tool: string): Handoff | undefined {
  const defined = tools?.registry.get(tool);
  return defined === undefined ? undefined : getHandoff(defined);
}

/** View of a conversation. */
export type ConversationView = (messages: readonly Message[]) => readonly Message[];

/** Creates the view of a member's model on the conversation; undefined when no handoff to the member has a filter. */
export function createView(config: TeamConfig, { name }: Member): ConversationView | undefined {
  const filters = new Map<string, HandoffFilter>();
  for (const { name: from, tools } of config.members.values())
    for (const [tool, defined] of tools?.initialTools ?? []) {
      const { to, filter } = getHandoff(defined) ?? {};
      if (to === name && filter !== undefined) filters.set(`${from}/${tool}`, filter);
    }
  if (filters.size === 0) return undefined;
  return (conversation) => {
    const last = findLastHandoff(config, conversation);
    const filter = last?.to === name ? filters.get(`${last.from}/${last.tool}`) : undefined;
    if (last === undefined || filter === undefined) return conversation;
    const { from, to, args, end } = last;
    return [...filter(conversation.slice(0, end), { from, to, args }), ...conversation.slice(end)];
  };
}

interface HandoffRecord extends HandoffInfo {
  readonly tool: string;
  /** End index of the tool results of the handoff message. */
  readonly end: number;
}

/** Finds the last handoff of the conversation. */
function findLastHandoff(
  { members, start, inputTo }: TeamConfig,
  conversation: readonly Message[],
): HandoffRecord | undefined {
  let active = start;
  let last: HandoffRecord | undefined;
  for (const [index, message] of conversation.entries()) {
    if (isFromPerson(message) && inputTo === "start") active = start;
    const member = members.get(active);
    if (message.role !== "tool" || message.isError || member === undefined) continue;
    const to = findHandoff(member, message.name)?.to;
    if (to === undefined) continue;
    const offset = conversation.slice(index).findIndex(({ role }) => role !== "tool");
    const end = offset < 0 ? conversation.length : index + offset;
    last = { from: active, to, tool: message.name, args: findCallArgs(conversation, message.callId), end };
    active = to;
  }
  return last;
}

function findCallArgs(conversation: readonly Message[], callId: string): unknown {
  for (const message of conversation.toReversed()) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "call" && block.id === callId) return block.args;
  }
  return {};
}

/** Creates middleware that applies a view to model requests. */
export function createViewMiddleware(view: ConversationView): Middleware {
  return defineMiddleware({
    name: "handoff",
    beforeModel: (request) => ({ ...request, messages: view(request.messages) }),
  });
}

/** Wraps the body of a model node with additional middleware. */
export function wrapModelNode(middleware: readonly Middleware[], body: NodeRecord["body"]): NodeRecord["body"] {
  if (middleware.length === 0) return body;
  const addMiddleware = (call: object): object => {
    const { middleware: existing = [] } = call as { readonly middleware?: readonly Middleware[] };
    return { ...call, middleware: [...middleware.filter((each) => !existing.includes(each)), ...existing] };
  };
  return (state: never, runtime: never) => {
    const modelRuntime: ModelRuntime = runtime;
    const callModel = (turn: TurnOptions, key?: string): unknown =>
      modelRuntime.model(
        { ...addMiddleware(turn), prepare: async (current: never) => addMiddleware(await turn.prepare(current)) },
        key,
      );
    return body(state, Object.create(runtime, { model: { value: callModel, enumerable: true } }) as never);
  };
}

interface TurnOptions {
  readonly prepare: (state: never) => object | Promise<object>;
}

interface ModelRuntime {
  readonly model: (turn: TurnOptions, key?: string) => unknown;
}
