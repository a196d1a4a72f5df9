/** Commands of a person: answers to interrupts, and messages to a run at work. */
import type { RunStatus } from "@statewright/core";
import * as z from "zod";
import type { StateView } from "../../service/caller-service.ts";
import { loadAssistantGraph } from "../assistants.ts";
import { buildUpdate } from "../build-input.ts";
import { parseResume, type WireAnswers } from "../parse-resume.ts";
import { isGiven } from "../run-request.ts";
import { groupInterrupts, type WireInterrupt } from "../to-wire-interrupts.ts";
import { isMessage } from "../to-wire-message.ts";
import { type CommandCall, readParams } from "./command-call.ts";
import { CommandError, type CommandResult } from "./command-reply.ts";
import { hashIdentity } from "./hash-identity.ts";

const responseSchema = z.object({ interrupt_id: z.string(), response: z.unknown().optional() });

const respondSchema = z.intersection(
  z.union([responseSchema, z.object({ responses: z.array(responseSchema).min(1).max(200) })]),
  z.object({ update: z.unknown().optional(), goto: z.unknown().optional() }),
);

const injectSchema = z.object({
  message: z.object({ role: z.enum(["user", "human", "system"]), content: z.string().min(1) }),
});

/** Answers interrupts by their ids, all in a single continuation of the run. */
export async function respondInput(call: CommandCall): Promise<CommandResult> {
  const { service, thread } = call;
  const params = readParams(call, respondSchema);
  if (isGiven(params.goto))
    throw new CommandError("not_supported", "goto: the edges of the graph decide which node runs next. Use update.");
  const given = "responses" in params ? params.responses : [params];
  const state = await service.getState(thread);
  const answers = parseResponses(given, state, call);
  if (isGiven(params.update)) await sendUpdate(call, params.update, state);
  const { run, after } = await service.answer(thread, { answers, branch: state.branch });
  return { result: { run_id: run.id }, after };
}

/**
 * Sends the messages of an update to the run, which reads them before its next superstep. A write to the state would end
 * the task that waits, and with it the interrupt.
 */
async function sendUpdate({ service, thread }: CommandCall, update: unknown, state: StateView): Promise<void> {
  const graph = await loadAssistantGraph(service, state.graph);
  const { messages = [], ...others } = buildUpdate(graph, update, "/params/update");
  const given = Array.isArray(messages) ? messages.filter(isMessage) : [];
  if (Object.keys(others).length > 0 || given.length === 0 || given.some(({ role }) => role !== "user"))
    throw new CommandError(
      "not_supported",
      "update: beside an answer a client writes messages of the user only. Use POST /threads/{thread_id}/state for others.",
    );
  const sent = given.map((message, index) => ({
    ...message,
    id: message.id === "" ? `c:${hashIdentity(thread, state.checkpoint, index, message)}` : message.id,
  }));
  const id = `c:${hashIdentity(thread, state.checkpoint, sent)}`;
  await service.sendMessage(thread, { id, kind: "steer", messages: sent, branch: state.branch });
}

type Response = z.infer<typeof responseSchema>;

function parseResponses(given: readonly Response[], state: StateView, { hitl }: CommandCall): WireAnswers {
  const open = groupInterrupts(state.interrupts, { hitl });
  for (const { interrupt_id: id } of given) checkOpen(id, open, state);
  const values = given.map(({ interrupt_id: id, response }) => [id, response] as const);
  return parseResume(Object.fromEntries(values), open);
}

/** Throws `no_such_interrupt` for an id that is not open. */
function checkOpen(id: string, open: readonly WireInterrupt[], { answered }: StateView): void {
  const calls = open.flatMap((wire) => (wire.kind === "approvals" ? wire.calls : []));
  if (open.some((wire) => wire.id === id) || calls.some(({ interrupt }) => interrupt === id)) return;
  const hasAnswer = answered.some((interrupt) => interrupt.id === id);
  const reason = hasAnswer ? "has an answer already" : "is not open";
  throw new CommandError("no_such_interrupt", `The interrupt ${JSON.stringify(id)} ${reason}.`);
}

const workStatuses: readonly RunStatus[] = ["queued", "running", "crashed", "waiting", "paused"];

/** Sends a message of the user to the run at work, which reads it before its next superstep. */
export async function injectInput(call: CommandCall): Promise<CommandResult> {
  const { service, thread, id } = call;
  const { message } = readParams(call, injectSchema);
  if (message.role === "system")
    throw new CommandError(
      "not_supported",
      "message.role: a client sends messages of the user only. Use the role user.",
    );
  const { data: unfinished } = await service.listRuns(thread, { status: workStatuses, limit: 1 });
  if (unfinished.length === 0) throw new CommandError("no_such_run", "The thread has no run at work. Use run.start.");
  const state = await service.getState(thread);
  // The same command twice is one message: its id stands for the command at this state of the thread.
  const messageId = `c:${hashIdentity(thread, state.checkpoint, id, message.content)}`;
  const content = [{ type: "text", text: message.content }] as const;
  await service.sendMessage(thread, {
    id: messageId,
    kind: "steer",
    messages: [{ role: "user", id: messageId, content }],
    branch: state.branch,
  });
  return { result: {} };
}
