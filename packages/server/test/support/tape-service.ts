/** Acts of a caller over a recorded tape: a reader that was away gets stored events, a snapshot, and the rest. */
import type { OpenWork, RunEvent } from "@statewright/core";
import { applyDelta } from "@statewright/core/store";
import type { RunStream } from "../../src/langgraph/legacy/stream-run.ts";
import type { RunView, StateView } from "../../src/service/caller-service.ts";

const durableTypes: ReadonlySet<string> = new Set([
  "run.started",
  "run.waiting",
  "run.paused",
  "run.failed",
  "run.cancelled",
  "run.completed",
  "step.committed",
]);

type Message = OpenWork["messages"][number];

/** Service of a thread whose reader connects when `now` events of the tape have happened. */
export function createTapeService(events: readonly RunEvent[], now: number): RunStream["service"] {
  const past = events.slice(0, now);
  return {
    streamEvents: async (_thread, { after = 0 }) => readTape(after),
    getState: async (thread, place = {}) => createState(events, thread, place.at),
    getRun: async (run) => createRunView(run),
  };

  async function* readTape(after: number): AsyncGenerator<RunEvent> {
    yield* past.filter(({ type, seq }) => durableTypes.has(type) && seq > after);
    yield createSnapshot(past);
    yield* events.slice(now);
  }
}

/** Row of the run of a tape. */
export function createRunView(id: string): RunView {
  const times = { createdAt: 0, endedAt: 1 };
  return { id, thread: "t1", branch: "main", graph: "assistant", status: "done", attempt: 1, metadata: {}, ...times };
}

/** What is open after these events. */
function createSnapshot(past: readonly RunEvent[]): RunEvent {
  const { seq = 0, at = 0, branch = "main" } = past.at(-1) ?? {};
  const started = past.findLast((event) => event.type === "run.started");
  const since = past.slice(past.findLastIndex(({ type }) => type === "step.committed" || type === "run.started") + 1);
  const messages = new Map<string, Message>();
  for (const event of since) foldMessage(messages, event);
  const run = started?.type === "run.started" ? started.run : undefined;
  return { type: "snapshot", run, messages: [...messages.values()], tools: [], seq, at, branch };
}

function foldMessage(messages: Map<string, Message>, event: RunEvent): void {
  if (event.type === "message.retracted") messages.delete(event.messageId);
  if (event.type === "message.completed") {
    const known = messages.get(event.message.id);
    if (known !== undefined) messages.set(event.message.id, { ...known, complete: true });
  }
  if (event.type !== "message.delta" && event.type !== "message.call_delta") return;
  const { messageId: id, node, task, branch } = event;
  const known = messages.get(id) ?? { id, node, task, branch, text: "", reasoning: "", calls: [], complete: false };
  if (event.type === "message.delta") messages.set(id, { ...known, [event.kind]: known[event.kind] + event.text });
  else messages.set(id, { ...known, calls: addArgs(known.calls, event) });
}

type Calls = Message["calls"];

function addArgs(calls: Calls, { callId, tool, argsText }: Calls[number]): Calls {
  const known = calls.find((call) => call.callId === callId);
  if (known === undefined) return [...calls, { callId, tool, argsText }];
  return calls.map((call) => (call === known ? { ...call, argsText: call.argsText + argsText } : call));
}

/** State at a checkpoint of the tape: the changes of all checkpoints up to it. */
function createState(events: readonly RunEvent[], thread: string, at = Number.POSITIVE_INFINITY): StateView {
  const values: Record<string, unknown> = {};
  let checkpoint = 0;
  for (const event of events) {
    if (event.type !== "step.committed" || event.within !== undefined || (event.checkpoint ?? 0) > at) continue;
    checkpoint = event.checkpoint ?? 0;
    for (const [channel, delta] of Object.entries(event.changes)) values[channel] = applyDelta(values[channel], delta);
  }
  const place = { thread, graph: "assistant", branch: "main", checkpoint, step: 0, source: "step", next: [], at: 0 };
  return { ...place, values: JSON.parse(JSON.stringify(values)), interrupts: [], answered: [] };
}
