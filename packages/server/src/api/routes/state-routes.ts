/** Routes of states: read, history, difference, branches, forks, writes and edits. */

import type { RouteCall } from "../../http/route.ts";
import type { StateView } from "../../service/caller-service.ts";
import { answerStarted, startedFrames } from "../answer-started.ts";
import { checkHead } from "../check-head.ts";
import { type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { formatEtag, matchesEtag, readKey } from "../request-headers.ts";
import { createRequestProblem } from "../request-problems.ts";
import { edit } from "../schemas/messages.ts";
import { run, runOrOutcome } from "../schemas/runs.ts";
import {
  branchList,
  diffQuery,
  historyQuery,
  newFork,
  state,
  statePage,
  stateQuery,
  stateWrite,
  type WireStateWrite,
  writtenState,
} from "../schemas/states.ts";
import { diff } from "../schemas/threads.ts";
import { toUserMessage } from "../to-user-message.ts";
import { toPage, toState } from "../to-wire.ts";

/** Creates the routes of states. */
export function createStateRoutes(): readonly ApiRoute[] {
  return [createStateRoute(), ...createReadRoutes(), ...createWriteRoutes(), createEditRoute()];
}

function createStateRoute(): ApiRoute {
  return defineRoute({
    ...{ method: "GET", path: "/threads/:thread/state", action: "thread.read", id: "getState", tag: "states" },
    summary: "State at a checkpoint, without private channels",
    query: stateQuery,
    headers: ["if-none-match"],
    answers: {
      200: { description: "The state", schema: state, headers: ["etag"] },
      304: { description: "The checkpoint is that of `If-None-Match`, and no run works on it" },
    },
    handle: async ({ service, params, request }, { query: { select, ...place } }) => {
      const found = await service.getState(params["thread"] ?? "", place);
      const headers = { etag: formatEtag(found.checkpoint), "cache-control": "private, no-cache" };
      // The status of the run changes without a checkpoint: only a whole state at rest is compared.
      const isAtRest = found.status === "done" && select === undefined;
      if (isAtRest && matchesEtag(request.headers.get("if-none-match"), headers.etag))
        return new Response(null, { status: 304, headers });
      return createJson(toState(found, select), { headers });
    },
  });
}

function createReadRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/threads/:thread/history", action: "thread.read", id: "listStates", tag: "states" },
      summary: "States of a branch and its ancestors, newest first",
      query: historyQuery,
      answers: { 200: { description: "A page of states", schema: statePage } },
      handle: async ({ service, params }, { query }) =>
        createJson(toPage(await service.listStates(params["thread"] ?? "", query), (each) => toState(each))),
    }),
    defineRoute({
      ...{ method: "GET", path: "/threads/:thread/diff", action: "thread.read", id: "diffStates", tag: "states" },
      summary: "Difference of two checkpoints as a JSON Patch",
      query: diffQuery,
      answers: { 200: { description: "The difference", schema: diff } },
      handle: async ({ service, params }, { query }) =>
        createJson({ ...query, patch: await service.diffStates(params["thread"] ?? "", query) }),
    }),
    defineRoute({
      ...{ method: "GET", path: "/threads/:thread/branches", action: "thread.read", id: "listBranches", tag: "states" },
      summary: "Branches of a thread, oldest first",
      answers: { 200: { description: "The branches", schema: branchList } },
      handle: async ({ service, params }) => {
        const branches = await service.listBranches(params["thread"] ?? "");
        return createJson({ data: branches.map(({ name, from, head }) => ({ name, from, head })) });
      },
    }),
  ];
}

function createWriteRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/state", action: "thread.write", id: "updateState", tag: "states" },
      summary: "Write channels of the state in a new checkpoint",
      headers: ["if-match"],
      body: stateWrite,
      answers: { 200: { description: "The new checkpoint", schema: writtenState, headers: ["etag"] } },
      handle: async (call, { body }) => {
        const thread = call.params["thread"] ?? "";
        await checkHead(call, thread, body.branch);
        return answerWritten(await writeState(call, thread, body), 200);
      },
    }),
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/forks", action: "thread.write", id: "fork", tag: "states" },
      summary: "Create a branch at a checkpoint",
      headers: ["if-match"],
      body: newFork,
      answers: { 201: { description: "The branch and its first state", schema: writtenState, headers: ["etag"] } },
      handle: async (call, { body: { as, changes, ...body } }) => {
        const thread = call.params["thread"] ?? "";
        if (as !== undefined && changes === undefined)
          throw createRequestProblem({ detail: "The field as names the node that writes the changes: add changes." });
        await checkHead(call, thread, undefined);
        const forked = await call.service.fork(thread, { ...body, changes: as === undefined ? changes : undefined });
        if (as === undefined || changes === undefined) return answerWritten(forked.state, 201);
        const written = await call.service.updateState(thread, { changes, as, branch: forked.branch });
        return answerWritten(written, 201);
      },
    }),
  ];
}

/** Writes on a branch, or on a new branch from the checkpoint `at`. */
async function writeState(
  { service }: RouteCall,
  thread: string,
  { at, changes, as, branch }: WireStateWrite,
): Promise<StateView> {
  if (at === undefined) return await service.updateState(thread, { changes, as, branch });
  if (as === undefined) return (await service.fork(thread, { at, changes })).state;
  const forked = await service.fork(thread, { at });
  return await service.updateState(thread, { changes, as, branch: forked.branch });
}

function answerWritten(written: StateView, status: 200 | 201): Response {
  const { checkpoint, branch } = written;
  const headers = { etag: formatEtag(checkpoint) };
  return createJson({ checkpoint, branch, state: toState(written) }, { status, headers });
}

function createEditRoute(): ApiRoute {
  return defineRoute({
    ...{ method: "POST", path: "/threads/:thread/messages/:message/edits", action: "run.start", id: "editMessage" },
    ...{ tag: "states", summary: "Replace a message of the user on a new branch, and run the graph from there" },
    headers: ["idempotency-key", "prefer"],
    body: edit,
    frames: startedFrames,
    answers: {
      200: { description: "The run at rest, with `Prefer: wait`; or the known run of the key", schema: runOrOutcome },
      201: { description: "The started run", schema: run, headers: ["location"] },
      202: { description: "A run that works longer than `Prefer: wait`", schema: run, headers: ["location"] },
    },
    handle: async (call, { body: { key, branch, message } }) => {
      const { service, params, request } = call;
      const thread = params["thread"] ?? "";
      const id = params["message"] ?? "";
      if (message.id !== undefined && message.id !== id)
        throw createRequestProblem({ detail: "The id of the message differs from that of the path." });
      const edited = await service.insertFiles(thread, toUserMessage(message, id));
      const started = await service.editMessage(thread, { message: edited, branch, key: readKey(request, key) });
      return await answerStarted(call, started, { status: started.isNew ? 201 : 200 });
    },
  });
}
