/**
 * Applies the renames of a migration to the conversation, and to recorded tasks, tool calls and model replies of the
 * pending step.
 */
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import type { Control } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import { type AssistantMessage, listToolCalls, type Message } from "../../model/message.ts";
import { type Codec, encodeWrapper } from "../../state/codec.ts";
import { listPendingCalls } from "../conversation/pending-calls.ts";
import { taskKey } from "../session/parts/persistence.ts";
import type { State, TaskOutcome, Write } from "../session/returns.ts";

/** Conversation with renamed calls. */
interface RenamedConversation {
  readonly messages: readonly Message[];
  readonly callIds: ReadonlySet<string>;
}

/** Returns the conversation with renamed open tool calls; undefined when no open call is renamed. */
export function renameOpenCalls(
  plan: Plan,
  { tasks }: Control,
  state: State,
  tools: Readonly<Record<string, string>>,
): RenamedConversation | undefined {
  const isConversation = plan.graph.state.channels["messages"]?.kind === "messages";
  if (!isConversation || tasks.length === 0) return undefined;
  const messages = state["messages"] as readonly Message[];
  const renamed = listPendingCalls(messages).calls.filter(({ block }) => Object.hasOwn(tools, block.name));
  const open = new Set(renamed.map(({ block }) => block.id));
  if (open.size === 0) return undefined;
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const converted = messages.map((message, index) =>
    index !== last || message.role !== "assistant" ? message : renameCalls(message, tools, open),
  );
  return { messages: deepFreeze(converted), callIds: open };
}

/** Returns the message with these calls renamed, or the message itself when unchanged. */
function renameCalls(
  message: AssistantMessage,
  tools: Readonly<Record<string, string>>,
  open: ReadonlySet<string>,
): AssistantMessage {
  const content = message.content.map((block) => {
    const name = block.type === "call" && open.has(block.id) && Object.hasOwn(tools, block.name) && tools[block.name];
    return name ? { ...block, name } : block;
  });
  return content.every((block, index) => block === message.content[index])
    ? message
    : { ...message, content: content as AssistantMessage["content"] };
}

/** Renames of nodes and tools, and the codec of recorded outcomes. */
export interface Renames {
  readonly renameNode: (name: string) => string;
  readonly tools: Readonly<Record<string, string>>;
  /** Ids of the renamed open calls of the conversation. Their recorded answers get the new name too. */
  readonly callIds: ReadonlySet<string>;
  readonly codec: Codec;
}

/** Returns the journal row with the new names. */
export function renameEffect(row: EffectRow, { tasks }: Control, names: Renames): EffectRow {
  const { renameNode, tools } = names;
  const toolName = row.kind === "tool" && Object.hasOwn(tools, row.name) ? tools[row.name] : undefined;
  if (toolName !== undefined) return setOutcome({ ...row, name: toolName }, renameToolResult(row, toolName, names));
  if (row.kind === "tool") return row;
  if (row.kind === "model") return setOutcome(row, renameModelReply(row, names));
  if (row.kind !== "task") return row;
  const name = tasks.some(({ id }) => id === row.task) ? renameNode(row.name) : row.name;
  return setOutcome(name === row.name ? row : { ...row, name }, renameTaskOutcome(row, names));
}

function setOutcome(row: EffectRow, outcome: string | undefined): EffectRow {
  return outcome === row.outcome || outcome === undefined ? row : { ...row, outcome };
}

/** Renames the recorded result of a tool call, so that the answer of the call has the name of the call. */
function renameToolResult(
  { name, state, outcome }: EffectRow,
  newName: string,
  { codec }: Renames,
): string | undefined {
  if (state !== "ok" || outcome === undefined) return outcome;
  const recorded = codec.decode(outcome);
  if (!isPlainObject(recorded) || recorded["name"] !== name) return outcome;
  return codec.encode({ ...recorded, name: newName }, "a recorded result");
}

/** Renames the targets, and the written tool calls and answers, of a recorded task outcome. */
function renameTaskOutcome(
  { key, state, outcome }: EffectRow,
  { renameNode, tools, callIds, codec }: Renames,
): string | undefined {
  if (key !== taskKey || state !== "ok" || outcome === undefined) return outcome;
  const recorded = codec.decode(outcome) as TaskOutcome;
  const routes = recorded.routes.map((route) => ({ ...route, target: renameNode(route.target) }));
  const messages = recorded.writes.flatMap(({ channel, value }) => (channel === "messages" ? listMessages(value) : []));
  const answered = new Set(messages.flatMap((message) => (message.role === "tool" ? [message.callId] : [])));
  const writes = recorded.writes.map((write): Write => {
    if (write.channel !== "messages" || write.kind === "draft" || !Array.isArray(write.value)) return write;
    const value = write.value.map((each: unknown) => {
      if (isAssistantMessage(each)) return renameCalls(each, tools, getOpenCallIds(each, answered));
      const isRenamed = isMessage(each) && each.role === "tool" && callIds.has(each.callId);
      return isRenamed && Object.hasOwn(tools, each.name) ? { ...each, name: tools[each.name] } : each;
    });
    return value.every((each, index) => each === (write.value as readonly unknown[])[index])
      ? write
      : { ...write, value };
  });
  const isSame = routes.every(({ target }, index) => target === recorded.routes[index]?.target);
  if (isSame && writes.every((write, index) => write === recorded.writes[index])) return outcome;
  return encodeWrapper(codec, { ...recorded, routes, writes } satisfies TaskOutcome, "a recorded result");
}

/** Renames the tool calls of a recorded model reply in an unfinished task: its calls are not made yet. */
function renameModelReply({ state, outcome }: EffectRow, { tools, codec }: Renames): string | undefined {
  if (state !== "ok" || outcome === undefined || Object.keys(tools).length === 0) return outcome;
  const recorded = codec.decode(outcome);
  const reply = isPlainObject(recorded) && "writes" in recorded ? recorded["message"] : recorded;
  if (!isAssistantMessage(reply)) return outcome;
  const message = renameCalls(reply, tools, getOpenCallIds(reply, new Set()));
  if (message === reply) return outcome;
  return codec.encode(reply === recorded ? message : { ...(recorded as object), message }, "a recorded answer");
}

function listMessages(value: unknown): readonly Message[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isMessage) : [];
}

function isMessage(value: unknown): value is Message {
  return isPlainObject(value) && typeof value["role"] === "string";
}

function isAssistantMessage(value: unknown): value is AssistantMessage {
  return isMessage(value) && value.role === "assistant" && Array.isArray(value.content);
}

function getOpenCallIds(message: AssistantMessage, answered: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(listToolCalls(message).flatMap(({ id }) => (answered.has(id) ? [] : [id])));
}
