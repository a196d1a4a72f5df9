/** Routes of threads: create, list, change, delete. */
import { type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { newThread, thread, threadPage, threadPatch, threadQuery } from "../schemas/threads.ts";
import { toPage, toThread } from "../to-wire.ts";

/** Creates the routes of threads. */
export function createThreadRoutes(): readonly ApiRoute[] {
  return [...createListRoutes(), ...createHeadRoutes()];
}

function createListRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/threads", action: "thread.read", id: "listThreads", tag: "threads" },
      summary: "Threads, most recently changed first",
      query: threadQuery,
      answers: { 200: { description: "A page of threads", schema: threadPage } },
      handle: async ({ service }, { query: { q, ...query } }) =>
        createJson(toPage(await service.listThreads({ ...query, search: q }), toThread)),
    }),
    defineRoute({
      ...{ method: "POST", path: "/threads", action: "thread.write", id: "createThread", tag: "threads" },
      summary: "Create a thread before its first run",
      body: newThread,
      answers: {
        200: { description: "The thread existed, with `ifExists: keep`", schema: thread },
        201: { description: "The new thread", schema: thread, headers: ["location"] },
      },
      handle: async ({ service, base }, { body }) => {
        const { thread: made, isNew } = await service.createThread(body);
        const headers = { location: `${base}/threads/${made.id}` };
        return createJson(toThread(made), { status: isNew ? 201 : 200, headers });
      },
    }),
  ];
}

function createHeadRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/threads/:thread", action: "thread.read", id: "getThread", tag: "threads" },
      summary: "A thread",
      answers: { 200: { description: "The thread", schema: thread } },
      handle: async ({ service, params }) => createJson(toThread(await service.getThread(params["thread"] ?? ""))),
    }),
    defineRoute({
      ...{ method: "PATCH", path: "/threads/:thread", action: "thread.write", id: "updateThread", tag: "threads" },
      summary: "Change title and metadata",
      body: threadPatch,
      answers: { 200: { description: "The changed thread", schema: thread } },
      handle: async ({ service, params }, { body }) =>
        createJson(toThread(await service.updateThread(params["thread"] ?? "", body))),
    }),
    defineRoute({
      ...{ method: "DELETE", path: "/threads/:thread", action: "thread.delete", id: "deleteThread", tag: "threads" },
      summary: "Delete a thread with its runs, states and artifacts",
      answers: { 204: { description: "The thread is deleted" } },
      handle: async ({ service, params }) => {
        await service.deleteThread(params["thread"] ?? "");
        return new Response(null, { status: 204 });
      },
    }),
  ];
}
