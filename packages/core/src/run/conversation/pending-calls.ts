/** The calls of a conversation that wait for their answers. */
import type { AssistantMessage, Message } from "../../model/message.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import type { OpenCall } from "../tool-call/context.ts";

/** The key under which a tool node that would end its agent calls the hooks for that. */
export const afterCalls = "tools";

/**
 * The calls of the last assistant message that have no answer yet. One that did not come from a model call here may give two
 * calls one id: it is then written again with an id for each.
 */
export function openCalls(messages: readonly Message[]): {
  readonly renamed: readonly AssistantMessage[];
  readonly calls: readonly OpenCall[];
} {
  const index = messages.findLastIndex((message) => message.role === "assistant");
  const asking = messages[index];
  if (asking?.role !== "assistant") return { renamed: [], calls: [] };
  const content = withOwnIds(asking.content);
  const answered = answeredAfter(messages, index);
  const cut = asking.finish === "length";
  const calls: OpenCall[] = [];
  let place = 0;
  for (const block of content) {
    if (block.type !== "call") continue;
    if (answered?.has(block.id) !== true) calls.push({ block, key: callKey(block.id), place, cut, message: asking });
    place += 1;
  }
  return { renamed: content === asking.content ? [] : [{ ...asking, content }], calls };
}

/**
 * What a call is known by in the journal, in ledgers and in questions: its id. A model makes ids as it likes: one that reads like
 * a place of ours, such as that of the hooks at the end of an agent, gets a word before it that no such place has.
 */
export function callKey(id: string): string {
  return taken.test(id) ? `call:${id}` : id;
}

/** The places of tasks, of hooks, of graphs that calls run and of other such calls, and what ends the id of a question about a doubt. */
const taken = new RegExp(`^(?:$|${afterCalls}:|call:|\\d+/)|:${inDoubtKey}$|/elsewhere$`);

/** The ids of the calls that were answered behind this message; nothing where none was. */
function answeredAfter(messages: readonly Message[], index: number): ReadonlySet<string> | undefined {
  let answered: Set<string> | undefined;
  for (let next = index + 1; next < messages.length; next++) {
    const message = messages[next];
    if (message?.role === "tool") answered = (answered ?? new Set<string>()).add(message.callId);
  }
  return answered;
}

/** What stands for a call below the line of its graph: its task, and its place among the calls of its message. */
export function callSegment(task: string, place: number): string {
  return `${task}:${place}`;
}

/** Whether an event is of a graph that a tool runs: its line has a segment of a call. */
export function isWithinCall({ withinId }: { readonly withinId?: string }): boolean {
  return withinId !== undefined && /(^|\/)\d+:\d+:\d+(\/|$)/.test(withinId);
}

/** A model may give two calls one id. Each gets its own: providers refuse a transcript that tells them apart by place only. */
export function withOwnIds(content: AssistantMessage["content"]): AssistantMessage["content"] {
  if (content.length < 2) return content;
  const given = content.flatMap((block) => (block.type === "call" ? [block.id] : []));
  const taken = new Set(given);
  if (taken.size === given.length) return content;
  const seen = new Set<string>();
  /** The number to try next for an id. */
  const numbers = new Map<string, number>();
  return content.map((block) => {
    if (block.type !== "call") return block;
    let { id } = block;
    let nth = numbers.get(id) ?? 2;
    for (; seen.has(id) || (id !== block.id && taken.has(id)); nth++) id = `${block.id}_${nth}`;
    if (id !== block.id) numbers.set(block.id, nth);
    seen.add(id);
    return id === block.id ? block : { ...block, id };
  });
}
