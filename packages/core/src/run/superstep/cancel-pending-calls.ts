/** Tool calls that nobody goes on with: each gets its answer, the recorded result or the reason, so that the conversation stays whole. */
import type { EffectRow } from "../../checkpoint/journal.ts";
import { START } from "../../define/edge.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { callsOf, type Message, type MessageWrite, type ToolMessage } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import type { ToolResult } from "../../tool/result.ts";
import { openCalls } from "../conversation/pending-calls.ts";
import { changesInJournal } from "../journal/long-term-writes.ts";
import { readUpdate, type State, type Write } from "../session/returns.ts";
import type { Saved, Session } from "../session/session.ts";
import type { OpenCall } from "../tool-call/context.ts";

/** Writes that answer calls, and what the calls that were made have put into the long-term store. */
export interface Closing {
  readonly writes: readonly Write[];
  readonly longTerm: readonly LongTermChange[];
}

/** What answers the open calls of the last assistant message, or those of them that are `wanted`. */
export function closeCalls(
  { plan, step }: Session,
  codec: Codec,
  journal: readonly EffectRow[],
  state: State,
  reason: string,
  wanted?: (call: OpenCall) => boolean,
): Closing | undefined {
  if (plan.graph.state.channels["messages"]?.kind !== "messages") return undefined;
  const { renamed, calls: open } = openCalls(state["messages"] as readonly Message[]);
  const calls = wanted === undefined ? open : open.filter(wanted);
  if (calls.length === 0) return undefined;
  const answers = calls.map(({ block, key: own }) => {
    const row = journal.findLast(({ kind, key }) => kind === "tool" && key === own);
    const result = resultOf(codec, row);
    const text =
      row === undefined ? `Not carried out: ${reason}.` : `Cut off: ${reason}. Whether it happened is not known.`;
    const message: ToolMessage = {
      role: "tool",
      id: `${step}:end:${block.id}`,
      callId: block.id,
      name: block.name,
      content: result?.content ?? [{ type: "text", text }],
      isError: result?.isError ?? true,
    };
    const longTerm =
      result === undefined || row === undefined ? [] : changesInJournal(codec, journal, row.task, row.key);
    return { message, update: result?.command?.update, longTerm };
  });
  const messages = [...renamed, ...answers.map(({ message }) => message)];
  const updates = [{ messages }, ...answers.flatMap(({ update }) => update ?? [])];
  return {
    writes: updates.flatMap((update) => readUpdate(plan, START, update)),
    longTerm: answers.flatMap(({ longTerm }) => longTerm),
  };
}

/** What answers the calls that were open, where something else comes next that has not answered them, or taken them away, in the state `after` it. */
export async function closeLeft(
  session: Session,
  { codec, store }: Saved,
  after: State,
  reason: string,
): Promise<Closing | undefined> {
  const { run, line, step, state } = session;
  const messages = (after["messages"] ?? []) as readonly Message[];
  const answered = new Set(messages.flatMap((message) => (message.role === "tool" ? [message.callId] : [])));
  const asked = messages.flatMap((message) => (message.role === "assistant" ? callsOf(message) : []));
  const standing = new Set(asked.map(({ id }) => id));
  const isLeft = ({ block }: OpenCall): boolean => standing.has(block.id) && !answered.has(block.id);
  return closeCalls(session, codec, await store.effects(run.thread, line, step), state, reason, isLeft);
}

/** Such answers stand before what comes next, and behind the answers that it gives itself. */
export function closedFirst({ writes: closing }: Closing, writes: readonly Write[]): readonly Write[] {
  const answers = writes.some(
    ({ channel, value }) =>
      channel === "messages" &&
      (value as readonly MessageWrite[]).some((each) => "role" in each && each.role === "tool"),
  );
  return answers ? [...writes, ...closing] : [...closing, ...writes];
}

function resultOf(codec: Codec, row: EffectRow | undefined): ToolResult | undefined {
  if (row?.state !== "ok" || row.outcome === undefined) return undefined;
  return codec.decode(row.outcome) as ToolResult;
}
