/** Routes of runs without a thread: each gets a thread of its own, which is deleted after the run unless it is kept. */
import type { Route, RouteCall } from "../../http/route.ts";
import type { RunView, StartedRun } from "../../service/caller-service.ts";
import { loadAssistantGraph } from "../assistants.ts";
import { createRefusal } from "../create-problem.ts";
import type { LangGraphSettings } from "../options.ts";
import { findCheckpointId, isGiven, listStreamModes, type RunBody, runBodySchema } from "../run-request.ts";
import { startWireRun } from "../start-run.ts";
import { toWireRun } from "../wire-run.ts";
import { cancelOnDisconnect, respondWithOutcome, respondWithStream, toRunPath } from "./run-routes.ts";

/** Creates the routes of runs without a thread. */
export function createStatelessRoutes(settings: LangGraphSettings): readonly Route[] {
  const start = { action: "run.start", isRead: false } as const;
  return [
    { method: "POST", path: "/runs", ...start, handle: (call) => createRun(call, settings) },
    { method: "POST", path: "/runs/stream", ...start, handle: (call) => startStream(call, settings) },
    { method: "POST", path: "/runs/wait", ...start, handle: (call) => startAndWait(call, settings) },
  ];
}

/** Run on a thread of its own, and what removes the thread when the run has ended. */
interface StatelessRun {
  readonly body: RunBody;
  readonly started: StartedRun;
  readonly removeThread: () => Promise<void>;
}

async function startStateless(call: RouteCall, { hitl }: LangGraphSettings): Promise<StatelessRun> {
  const { service } = call;
  const body = await call.readJson(runBodySchema);
  if (isGiven(body.command) || isGiven(findCheckpointId(body)))
    throw createRefusal("command and checkpoint need a thread. Use POST /threads/{thread_id}/runs.");
  const { name, schemas } = await loadAssistantGraph(service, body.assistant_id);
  const keeps = body.on_completion === "keep";
  if (!keeps && Object.keys(schemas.answers).length > 0)
    throw createRefusal(
      `The graph "${name}" may wait for a person, and a run without a thread could not be answered. Pass on_completion: "keep", or use a thread.`,
    );
  const { thread } = await service.createThread({ metadata: { stateless: true } });
  const started = await startOrRemove(call, { thread: thread.id, body, hitl });
  return { body, started, removeThread: async () => (keeps ? undefined : removeThread(call, started.run)) };
}

/** Starts the run. A refused run leaves no thread behind. */
async function startOrRemove(
  { service }: RouteCall,
  request: Omit<Parameters<typeof startWireRun>[0], "service">,
): Promise<Awaited<ReturnType<typeof startWireRun>>> {
  try {
    return await startWireRun({ ...request, service });
  } catch (error) {
    await service.deleteThread(request.thread);
    throw error;
  }
}

/** Deletes the thread of a run when the run has ended. A run that waits for a person keeps its thread. */
async function removeThread({ service }: RouteCall, { id, thread }: RunView): Promise<void> {
  const { status } = await service.waitForRun(id, new AbortController().signal);
  if (status === "done" || status === "failed" || status === "cancelled") await service.deleteThread(thread);
}

const deletion = "the deletion of the thread of a run without a thread";

async function createRun(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { started, removeThread } = await startStateless(call, settings);
  call.watchWork(deletion, removeThread());
  return Response.json(await toWireRun(started.run), { headers: { "content-location": toRunPath(started.run) } });
}

async function startStream(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { body, started, removeThread } = await startStateless(call, settings);
  const { run, after } = started;
  if (body.on_disconnect === "cancel") cancelOnDisconnect(call, run);
  const selection = { modes: listStreamModes(body), subgraphs: body.stream_subgraphs === true };
  // The run goes on when its reader leaves, and its thread is removed then, too.
  const onEnd = (): void => call.watchWork(deletion, removeThread());
  return respondWithStream(call, settings, { run, after, place: undefined, ...selection, onEnd });
}

async function startAndWait(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { body, started, removeThread } = await startStateless(call, settings);
  if (body.on_disconnect === "cancel") cancelOnDisconnect(call, started.run);
  const response = await respondWithOutcome(call, settings, started);
  await removeThread();
  return response;
}
