/** Routes of the streaming events protocol: commands, and the stream of a thread. */
import { isStatewrightError } from "@statewright/core";
import * as z from "zod";
import { RequestProblem } from "../../http/problem.ts";
import type { Route, RouteCall, SseLine } from "../../http/route.ts";
import type { LangGraphSettings } from "../options.ts";
import { getThreadId } from "../routes/thread-routes.ts";
import type { CommandHandler } from "./command-call.ts";
import { CommandError, formatFailedCommand, formatStreamFailure, formatSuccess } from "./command-reply.ts";
import { injectInput, respondInput } from "./input-commands.ts";
import { forkState, startRun } from "./run-commands.ts";
import { getState, getTree, listCheckpoints } from "./state-commands.ts";
import { openThreadEvents, streamThreadEvents, type ThreadEventStream } from "./stream-thread-events.ts";
import { subscriptionSchema } from "./subscription.ts";

const commandSchema = z.object({
  id: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  method: z.string().max(256),
  params: z.unknown().optional(),
});

/** Commands by their method. */
export const v2Commands: ReadonlyMap<string, CommandHandler> = new Map<string, CommandHandler>([
  ["run.start", startRun],
  ["input.respond", respondInput],
  ["input.inject", injectInput],
  ["state.get", getState],
  ["state.listCheckpoints", listCheckpoints],
  ["state.fork", forkState],
  ["agent.getTree", getTree],
]);

/** Creates the routes of the streaming events protocol. The service asks for the right of each command. */
export function createV2Routes(settings: LangGraphSettings): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/threads/:thread/commands",
      action: "thread.read",
      isRead: false,
      handle: (call) => performCommand(call, settings),
    },
    {
      method: "POST",
      path: "/threads/:thread/stream/events",
      action: "thread.read",
      isRead: true,
      handle: (call) => openStream(call, settings),
    },
  ];
}

async function performCommand(call: RouteCall, { hitl }: LangGraphSettings): Promise<Response> {
  const { id, method, params } = await call.readJson(commandSchema);
  const thread = getThreadId(call);
  const { service } = call;
  try {
    const perform = v2Commands.get(method);
    if (perform === undefined) throw createUnknownCommandError(method);
    const result = await perform({ service, thread, id, params, hitl });
    return Response.json(formatSuccess(id, thread, result));
  } catch (error) {
    return Response.json(formatFailedCommand(id, error));
  }
}

function createUnknownCommandError(method: string): CommandError {
  const next = method.startsWith("subscription.")
    ? "Subscribe with POST /threads/{thread_id}/stream/events"
    : `Use one of ${[...v2Commands.keys()].join(", ")}`;
  return new CommandError("unknown_command", `This server has no command ${JSON.stringify(method)}. ${next}.`);
}

async function openStream(call: RouteCall, { hitl }: LangGraphSettings): Promise<Response> {
  const subscription = await call.readJson(subscriptionSchema);
  const thread = getThreadId(call);
  const { service } = call;
  await ensureThread(call, thread);
  const read = async function* (signal: AbortSignal): AsyncGenerator<SseLine, undefined, undefined> {
    const stream: ThreadEventStream = { service, thread, subscription, hitl, signal };
    return yield* streamThreadEvents(stream, await openThreadEvents(stream));
  };
  return call.stream(read, { formatFailure: (problem) => [{ event: "error", data: formatStreamFailure(problem) }] });
}

/**
 * Creates a thread that a client subscribes to before its first run: clients make the ids of threads. A caller without
 * the right to create threads gets the refusal of an unknown thread.
 */
async function ensureThread({ service }: RouteCall, thread: string): Promise<void> {
  try {
    await service.getThread(thread);
  } catch (error) {
    if (!isStatewrightError(error, "unknown_thread")) throw error;
    try {
      await service.createThread({ id: thread, ifExists: "keep" });
    } catch (refusal) {
      throw refusal instanceof RequestProblem && refusal.problem.status === 403 ? error : refusal;
    }
  }
}
