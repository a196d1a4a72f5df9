/** The names that a migration gives: in the conversation, and in what tasks, calls and models have recorded of the pending step. */
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import type { Control } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import { type AssistantMessage, callsOf, type Message } from "../../model/message.ts";
import { type Codec, encodeAround } from "../../state/codec.ts";
import { openCalls } from "../conversation/pending-calls.ts";
import type { State, TaskOutcome, Write } from "../session/returns.ts";
import { taskKey } from "../session/session.ts";

/** The conversation with the open calls under their new names; undefined when none of them has one. */
export function renamedTools(
  plan: Plan,
  { tasks }: Control,
  state: State,
  tools: Readonly<Record<string, string>>,
): readonly Message[] | undefined {
  const talks = plan.graph.state.channels["messages"]?.kind === "messages";
  if (!talks || tasks.length === 0) return undefined;
  const messages = state["messages"] as readonly Message[];
  const renamed = openCalls(messages).calls.filter(({ block }) => Object.hasOwn(tools, block.name));
  const open = new Set(renamed.map(({ block }) => block.id));
  if (open.size === 0) return undefined;
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return deepFreeze(
    messages.map((message, index) =>
      index !== last || message.role !== "assistant" ? message : withNewNames(message, tools, open),
    ),
  );
}

/** A message with these of its calls under their new names; itself where none has one. */
function withNewNames(
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

/** What has another name in the new graph, and how results are read. */
export interface NewNames {
  readonly node: (name: string) => string;
  readonly tools: Readonly<Record<string, string>>;
  readonly codec: Codec;
}

/** A journal row under the new names. */
export function renamedEffect(row: EffectRow, { tasks }: Control, names: NewNames): EffectRow {
  const { node, tools } = names;
  if (row.kind === "tool") return Object.hasOwn(tools, row.name) ? { ...row, name: tools[row.name] ?? row.name } : row;
  if (row.kind === "model") return withOutcome(row, renamedAnswer(row, names));
  if (row.kind !== "task") return row;
  const name = tasks.some(({ id }) => id === row.task) ? node(row.name) : row.name;
  return withOutcome(name === row.name ? row : { ...row, name }, renamedResult(row, names));
}

function withOutcome(row: EffectRow, outcome: string | undefined): EffectRow {
  return outcome === row.outcome || outcome === undefined ? row : { ...row, outcome };
}

/** The recorded result of a task under the new names: where it leads, and what calls it writes. */
function renamedResult({ key, state, outcome }: EffectRow, { node, tools, codec }: NewNames): string | undefined {
  if (key !== taskKey || state !== "ok" || outcome === undefined) return outcome;
  const recorded = codec.decode(outcome) as TaskOutcome;
  const leads = recorded.leads.map((lead) => ({ ...lead, target: node(lead.target) }));
  const said = recorded.writes.flatMap(({ channel, value }) => (channel === "messages" ? messagesIn(value) : []));
  const answered = new Set(said.flatMap((message) => (message.role === "tool" ? [message.callId] : [])));
  const writes = recorded.writes.map((write): Write => {
    if (write.channel !== "messages" || write.kind === "draft" || !Array.isArray(write.value)) return write;
    const value = write.value.map((each: unknown) =>
      isSpoken(each) ? withNewNames(each, tools, openIn(each, answered)) : each,
    );
    return value.every((each, index) => each === (write.value as readonly unknown[])[index])
      ? write
      : { ...write, value };
  });
  const isSame = leads.every(({ target }, index) => target === recorded.leads[index]?.target);
  if (isSame && writes.every((write, index) => write === recorded.writes[index])) return outcome;
  return encodeAround(codec, { ...recorded, leads, writes } satisfies TaskOutcome, "a recorded result");
}

/** What a model has answered, recorded in a task that has not ended: its calls are still to be made. */
function renamedAnswer({ state, outcome }: EffectRow, { tools, codec }: NewNames): string | undefined {
  if (state !== "ok" || outcome === undefined || Object.keys(tools).length === 0) return outcome;
  const recorded = codec.decode(outcome);
  const inside = isPlainObject(recorded) && "writes" in recorded ? recorded["message"] : recorded;
  if (!isSpoken(inside)) return outcome;
  const message = withNewNames(inside, tools, openIn(inside, new Set()));
  if (message === inside) return outcome;
  return codec.encode(inside === recorded ? message : { ...(recorded as object), message }, "a recorded answer");
}

function messagesIn(value: unknown): readonly Message[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isMessage) : [];
}

function isMessage(value: unknown): value is Message {
  return isPlainObject(value) && typeof value["role"] === "string";
}

function isSpoken(value: unknown): value is AssistantMessage {
  return isMessage(value) && value.role === "assistant" && Array.isArray(value.content);
}

function openIn(message: AssistantMessage, answered: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(callsOf(message).flatMap(({ id }) => (answered.has(id) ? [] : [id])));
}
