/**
 * Access matrix: another tenant calls every route and command of every protocol with the ids of a thread, a run, an
 * interrupt, a checkpoint, an artifact and a schedule. The response must be that for ids that do not exist.
 */
import { longTermStore, memoryStore } from "@statewright/core";
import { expect, test } from "vitest";
import { uiStream } from "../src/ai-sdk.ts";
import type { Server } from "../src/index.ts";
import { langgraph } from "../src/langgraph.ts";
import { createTestServer, type TestServer } from "./support/create-test-server.ts";

/** Text in the messages, titles and metadata of ann's threads. */
const sentinel = "sentinel-of-ann";

/** Ids of one thread and its parts, of ann's or of none. */
interface Ids {
  readonly thread: string;
  readonly run: string;
  readonly interrupt: string;
  readonly artifact: string;
  readonly message: string;
  readonly schedule: string;
}

/** Ids that no tenant has. */
const missing: Ids = {
  thread: "no-such-thread",
  run: "run_00000000000000000000",
  interrupt: "9:9:call_9",
  artifact: "0".repeat(64),
  message: "no-such-message",
  schedule: "no-such-schedule",
};

/** Request to a route: its query, and its body if it has one. */
interface Case {
  readonly query?: string;
  readonly body?: unknown;
}

const text = "Hello";
const message = (id: string) => ({ role: "user", id, content: [{ type: "text", text }] });
const input = { messages: [message("mb")] };
const human = { messages: [{ type: "human", id: "mb", content: text }] };
const nativeRun = { graph: "assistant", input };
const wireRun = { assistant_id: "assistant", input: human };
const calendar = { cron: "0 9 * * *", timeZone: "UTC" };
const newSchedule = { graph: "assistant", input, ...calendar };
const read: readonly Case[] = [{}];

/** Cases of each route. A route without a case fails the test. */
const cases: Readonly<Record<string, (ids: Ids) => readonly Case[]>> = {
  "GET /api/info": () => read,
  "GET /api/openapi.json": () => read,
  "GET /api/graphs": () => read,
  "GET /api/graphs/:graph": () => read,
  "GET /api/threads": ({ thread }) => [{}, { query: `q=${thread}` }, { query: `metadata.note=${sentinel}` }],
  "POST /api/threads": ({ thread }) => [{ body: { id: thread } }, { body: { id: thread, ifExists: "keep" } }],
  "GET /api/threads/:thread": () => read,
  "PATCH /api/threads/:thread": () => [{ body: { title: "Mine" } }],
  "DELETE /api/threads/:thread": () => read,
  "POST /api/threads/:thread/copies": () => [{ body: { id: "copy" } }],
  "GET /api/threads/:thread/export": () => read,
  "POST /api/threads/imports": () => [{ body: {} }],
  "GET /api/threads/:thread/runs": () => read,
  "GET /api/runs/:run": () => read,
  "POST /api/threads/:thread/runs": () => [{ body: nativeRun }, { body: { ...nativeRun, key: "k1" } }],
  "POST /api/threads/:thread/answers": ({ interrupt }) => [{ body: { answers: { [interrupt]: true } } }],
  "POST /api/threads/:thread/resume": () => [{ body: {} }],
  "POST /api/threads/:thread/cancel": ({ run }) => [{ body: {} }, { body: { run } }],
  "POST /api/threads/:thread/pause": ({ run }) => [{ body: {} }, { body: { run } }],
  "POST /api/threads/:thread/inbox": () => [{ body: { id: "in1", kind: "steer", messages: [message("mi")] } }],
  "POST /api/runs/bulk": ({ thread }) => [{ body: { action: "cancel", filter: { thread } } }],
  "GET /api/threads/:thread/state": () => [{}, { query: "at=1" }],
  "GET /api/threads/:thread/history": () => read,
  "GET /api/threads/:thread/diff": () => [{ query: "from=1&to=2" }],
  "GET /api/threads/:thread/branches": () => read,
  "POST /api/threads/:thread/state": () => [{ body: { changes: {} } }],
  "POST /api/threads/:thread/forks": () => [{ body: { at: 1, name: "mine" } }],
  "POST /api/threads/:thread/messages/:message/edits": ({ message: id }) => [{ body: { message: message(id) } }],
  "GET /api/threads/:thread/events": () => [{}, { query: "after=1" }],
  "GET /api/interrupts": ({ thread }) => [{}, { query: `thread=${thread}` }],
  "GET /api/interrupts/events": () => read,
  "GET /api/threads/:thread/artifacts": () => read,
  "GET /api/threads/:thread/artifacts/:artifact": () => read,
  "POST /api/threads/:thread/files": () => [{ body: { note: "a file" } }],
  "GET /api/schedules": () => read,
  "GET /api/schedules/:schedule": () => read,
  "POST /api/schedules": ({ schedule, thread }) => [{ body: { ...newSchedule, id: schedule, thread } }],
  "PUT /api/schedules/:schedule": () => [{ body: newSchedule }],
  "DELETE /api/schedules/:schedule": () => read,
  "POST /api/schedules/:schedule/pause": () => [{ body: {} }],
  "POST /api/schedules/:schedule/resume": () => [{ body: {} }],
  "POST /api/schedules/:schedule/runs": () => [{ body: {} }],
  "GET /api/schedules/:schedule/slots": () => read,
  "POST /api/schedules/slots": () => [{ body: calendar }],

  "GET /langgraph/info": () => read,
  "GET /langgraph/ok": () => read,
  "POST /langgraph/assistants/search": () => [{ body: {} }],
  "POST /langgraph/assistants/count": () => [{ body: {} }],
  "GET /langgraph/assistants/:assistant": () => read,
  "GET /langgraph/assistants/:assistant/graph": () => read,
  "GET /langgraph/assistants/:assistant/schemas": () => read,
  "GET /langgraph/assistants/:assistant/subgraphs": () => read,
  "POST /langgraph/assistants": () => [{ body: {} }],
  "POST /langgraph/assistants/:assistant/versions": () => [{ body: {} }],
  "POST /langgraph/assistants/:assistant/latest": () => [{ body: {} }],
  "PATCH /langgraph/assistants/:assistant": () => [{ body: {} }],
  "DELETE /langgraph/assistants/:assistant": () => read,
  "POST /langgraph/threads": ({ thread }) => [
    { body: { thread_id: thread } },
    { body: { thread_id: thread, if_exists: "do_nothing" } },
  ],
  "POST /langgraph/threads/search": ({ thread }) => [
    { body: {} },
    { body: { metadata: { note: sentinel } } },
    { body: { ids: [thread] } },
  ],
  "POST /langgraph/threads/count": () => [{ body: {} }, { body: { metadata: { note: sentinel } } }],
  "POST /langgraph/threads/prune": ({ thread }) => [{ body: { thread_ids: [thread] } }],
  "GET /langgraph/threads/:thread": () => read,
  "PATCH /langgraph/threads/:thread": () => [{ body: { metadata: { mine: true } } }],
  "DELETE /langgraph/threads/:thread": () => read,
  "POST /langgraph/threads/:thread/copy": () => [{ body: {} }],
  "GET /langgraph/threads/:thread/state": () => read,
  "GET /langgraph/threads/:thread/state/:checkpoint": () => read,
  "POST /langgraph/threads/:thread/state/checkpoint": ({ thread }) => [
    { body: { checkpoint: { thread_id: thread, checkpoint_ns: "", checkpoint_id: "000000000001" } } },
  ],
  "POST /langgraph/threads/:thread/state": () => [{ body: { values: {}, as_node: "model" } }],
  "GET /langgraph/threads/:thread/history": () => read,
  "POST /langgraph/threads/:thread/history": () => [{ body: { limit: 10 } }],
  "POST /langgraph/threads/:thread/runs": () => [{ body: wireRun }],
  "GET /langgraph/threads/:thread/runs": () => read,
  "POST /langgraph/threads/:thread/runs/stream": ({ interrupt }) => [
    { body: { ...wireRun, stream_mode: ["values"] } },
    { body: { assistant_id: "assistant", command: { resume: { [interrupt]: true } } } },
  ],
  "POST /langgraph/threads/:thread/runs/wait": () => [{ body: wireRun }],
  "GET /langgraph/threads/:thread/runs/:run": () => read,
  "DELETE /langgraph/threads/:thread/runs/:run": () => read,
  "GET /langgraph/threads/:thread/runs/:run/join": () => read,
  "GET /langgraph/threads/:thread/runs/:run/stream": () => read,
  "POST /langgraph/threads/:thread/runs/:run/cancel": () => [{}],
  "POST /langgraph/runs": () => [{ body: { ...wireRun, on_completion: "keep" } }],
  "POST /langgraph/runs/stream": () => [{ body: { ...wireRun, on_completion: "keep" } }],
  "POST /langgraph/runs/wait": () => [{ body: { ...wireRun, on_completion: "keep" } }],
  "POST /langgraph/runs/batch": () => [{ body: [] }],
  "POST /langgraph/runs/crons": () => [{ body: {} }],
  "POST /langgraph/threads/:thread/runs/crons": () => [{ body: {} }],
  "POST /langgraph/runs/crons/search": () => [{ body: {} }],
  "POST /langgraph/runs/crons/count": () => [{ body: {} }],
  "PATCH /langgraph/runs/crons/:cron": () => [{ body: {} }],
  "DELETE /langgraph/runs/crons/:cron": () => read,
  "PUT /langgraph/store/items": () => [{ body: { namespace: ["notes"], key: "k", value: {} } }],
  "GET /langgraph/store/items": () => [{ query: "namespace=notes&key=k" }],
  "DELETE /langgraph/store/items": () => [{ body: { namespace: ["notes"], key: "k" } }],
  "POST /langgraph/store/items/search": () => [{ body: { namespace_prefix: [] } }],
  "POST /langgraph/store/namespaces": () => [{ body: {} }],
  "POST /langgraph/threads/:thread/commands": ({ interrupt }) =>
    (
      [
        ["run.start", { assistant_id: "assistant", input: human }],
        ["input.respond", { namespace: [], interrupt_id: interrupt, response: true }],
        ["input.inject", { namespace: [], message: { role: "user", content: text } }],
        ["state.get", { namespace: [] }],
        ["state.listCheckpoints", { namespace: [] }],
        ["state.fork", { checkpoint_id: "000000000001" }],
        ["agent.getTree", {}],
        ["toString", {}],
      ] as const
    ).map(([method, params], index) => ({ body: { id: index + 1, method, params } })),
  "POST /langgraph/threads/:thread/stream/events": () => [{ body: { channels: ["lifecycle", "values", "messages"] } }],

  "POST /ui/:graph": ({ thread, message: id, interrupt }) => [
    { body: { id: thread, trigger: "submit-message", messages: [uiMessage("mb")] } },
    { body: { id: thread, trigger: "regenerate-message", messageId: id, messages: [uiMessage("mb")] } },
    { body: { id: thread, trigger: "submit-message", messages: [uiMessage("mb"), uiApproval(interrupt)] } },
  ],
  "GET /ui/:graph/:thread/stream": () => read,
  "POST /ui/:graph/:thread/stop": () => [{ body: {} }],
  "GET /ui/:graph/:thread/messages": () => read,
};

function uiMessage(id: string) {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

function uiApproval(interrupt: string) {
  const approval = { id: interrupt, approved: true };
  const part = { type: "tool-transfer", toolCallId: "call_1", state: "approval-responded", input: {}, approval };
  return { id: "ma", role: "assistant", parts: [part] };
}

interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
}

interface Matrix extends TestServer {
  readonly own: Ids;
}

/** Starts a server with a waiting thread, an artifact and a schedule of ann. */
async function startMatrix(): Promise<Matrix> {
  const store = memoryStore();
  const longTerm = longTermStore(store);
  const started = await createTestServer({
    store,
    protocols: [langgraph({ longTerm }), uiStream()],
    access: {
      // Each call comes from a tenant of its own: a case leaves nothing for the next.
      authenticate: ({ headers }) => {
        const [id, tenant] = (headers.get("authorization") ?? "").replace("Bearer ", "").split("@");
        return id === undefined || tenant === undefined ? undefined : { id, tenant, scopes: ["admin"] };
      },
    },
    schedules: { minIntervalMs: 0 },
  });
  const { clock, server } = started;
  const ask = async (path: string, body: unknown): Promise<Response> =>
    await clock.until(server.fetch(createRequest("ann@acme", path, { method: "POST", body })));
  const note = await clock.until(
    server.fetch(
      createRequest("ann@acme", "/langgraph/store/items", {
        method: "PUT",
        body: { namespace: ["notes"], key: "k", value: { note: sentinel } },
      }),
    ),
  );
  expect(note.status).toBeLessThan(300);
  await ask("/api/threads", { id: "trip-of-ann", title: sentinel, metadata: { note: sentinel } });
  const content = [{ type: "text", text: `transfer ${sentinel}` }];
  const begun = await ask("/api/threads/trip-of-ann/runs", {
    graph: "assistant",
    input: { messages: [{ role: "user", id: "message-of-ann", content }] },
    key: "k1",
  });
  const run = readField(await begun.text(), "id");
  await clock.waitUntilIdle();
  const scheduled = await ask("/api/schedules", { id: "daily-of-ann", ...newSchedule });
  expect([begun.status, scheduled.status]).toEqual([201, 201]);
  const [open] = await started.store.openInterrupts();
  return {
    ...started,
    own: {
      ...missing,
      thread: "trip-of-ann",
      run,
      interrupt: open?.id ?? "",
      message: "message-of-ann",
      schedule: "daily-of-ann",
    },
  };
}

function readField(json: string, name: string): string {
  const found = new RegExp(`"${name}":"([^"]+)"`).exec(json);
  return found?.[1] ?? "";
}

function createRequest(
  token: string,
  path: string,
  { method, body, signal }: { readonly method: string; readonly body?: unknown; readonly signal?: AbortSignal },
): Request {
  return new Request(`http://localhost${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** Sends a case, and reads its response until it ends or brings nothing new. */
async function callRoute(
  { server, clock }: Matrix,
  token: string,
  { route, ids, one }: { readonly route: Server["routes"][number]; readonly ids: Ids; readonly one: Case },
): Promise<Answer> {
  const path = route.path.replaceAll(/:([a-zA-Z]+)/g, (_all, name: string) =>
    encodeURIComponent(getParameter(ids, name)),
  );
  const left = new AbortController();
  const url = `${path}${one.query === undefined ? "" : `?${one.query}`}`;
  const { method } = route;
  const response = await clock.until(
    server.fetch(createRequest(token, url, { method, body: one.body, signal: left.signal })),
  );
  const reader = response.body?.getReader();
  let body = "";
  let isOver = reader === undefined;
  const reading = (async () => {
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) break;
      body += decoder.decode(value, { stream: true });
    }
    isOver = true;
  })();
  // Beats are every five seconds: a stream that shows only beats from then on has nothing to say.
  for (let turn = 0; turn < 3 && !isOver; turn++) await clock.advance(5_000);
  left.abort();
  await reading.catch(() => undefined);
  return { status: response.status, type: response.headers.get("content-type"), text: body };
}

function getParameter(ids: Ids, name: string): string {
  const fixed: Readonly<Record<string, string>> = {
    graph: "assistant",
    assistant: "assistant",
    checkpoint: "000000000001",
    cron: "cron-1",
  };
  return fixed[name] ?? new Map(Object.entries(ids)).get(name) ?? "";
}

/** Replaces the ids that the caller sent, and values that differ from call to call. */
function normalize({ status, type, text: body }: Answer, ids: Ids): Answer {
  let normal = body;
  for (const [name, id] of Object.entries(ids)) normal = normal.replaceAll(id, `<${name}>`);
  normal = normal
    .replaceAll(/\b(?:run|req|in|thread)_[a-z0-9]{10,}\b/g, "<new>")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<uuid>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replaceAll(/"(?:timestamp|expiresAt|durationMs|elapsedMs)":[\d.]+/g, "<number>")
    .replaceAll(/"(?:cursor|before|next)":"[A-Za-z0-9_.~=-]{20,}"/g, "<cursor>");
  return { status, type, text: normal };
}

test("for another tenant each route and command of each protocol answers as for a thread that does not exist [V100, SS3, SS4, SS10]", async () => {
  const matrix = await startMatrix();
  const { server, own } = matrix;
  const routes = server.routes.filter(({ action }) => action !== "public");
  expect(routes.map(({ method, path }) => `${method} ${path}`).filter((name) => cases[name] === undefined)).toEqual([]);
  const known = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  expect(Object.keys(cases).filter((name) => !known.has(name))).toEqual([]);
  const before = await readOwn(matrix);
  let nth = 0;
  const differing: unknown[] = [];
  for (const route of routes) {
    const name = `${route.method} ${route.path}`;
    const [theirs, nobodys] = [own, missing].map((ids) => cases[name]?.(ids) ?? []);
    for (const [index, one] of (theirs ?? []).entries()) {
      nth += 1;
      const theirAnswer = await callRoute(matrix, `bob@other${nth}a`, { route, ids: own, one });
      const nobody = nobodys?.[index] ?? {};
      const nobodysAnswer = await callRoute(matrix, `bob@other${nth}b`, { route, ids: missing, one: nobody });
      const [their, none] = [normalize(theirAnswer, own), normalize(nobodysAnswer, missing)];
      const leaks = theirAnswer.text.includes(sentinel) && !JSON.stringify(one).includes(sentinel);
      if (leaks || JSON.stringify(their) !== JSON.stringify(none)) differing.push({ name, index, their, none });
    }
  }
  expect(differing).toEqual([]);
  expect(nth).toBeGreaterThan(90);
  expect(await readOwn(matrix)).toEqual(before);
});

/** What ann sees of her thread, her interrupts and her schedules. */
async function readOwn(matrix: Matrix): Promise<readonly string[]> {
  const paths = [
    "/threads/trip-of-ann",
    "/threads/trip-of-ann/state",
    "/threads/trip-of-ann/runs",
    "/interrupts",
    "/threads",
    "/schedules",
  ];
  const answers: string[] = [];
  for (const path of paths) {
    const request = createRequest("ann@acme", `/api${path}`, { method: "GET" });
    answers.push(await (await matrix.clock.until(matrix.server.fetch(request))).text());
  }
  return answers;
}

test("an open stream of another tenant on the id of a thread receives no event of that thread [V100]", async () => {
  const matrix = await startMatrix();
  const { server, clock, own } = matrix;
  const reads: Promise<unknown>[] = [];
  const received: string[] = [];
  const left = new AbortController();
  const open = async (path: string, body?: unknown): Promise<void> => {
    const method = body === undefined ? "GET" : "POST";
    const request = createRequest("bob@globex", path, { method, body, signal: left.signal });
    const response = await clock.until(server.fetch(request));
    expect([path, response.status]).toEqual([path, 200]);
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    const readAll = async (): Promise<void> => {
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) return;
        received.push(decoder.decode(value, { stream: true }));
      }
    };
    reads.push(readAll().catch(() => undefined));
  };
  // A thread of bob with the same id.
  await clock.until(
    server.fetch(createRequest("bob@globex", "/api/threads", { method: "POST", body: { id: own.thread } })),
  );
  await open(`/api/threads/${own.thread}/events`);
  await open("/api/interrupts/events");
  await open(`/langgraph/threads/${own.thread}/stream/events`, {
    channels: ["lifecycle", "values", "messages", "input"],
  });
  const answers = { [own.interrupt]: { approved: true } };
  const answered = createRequest("ann@acme", `/api/threads/${own.thread}/answers`, {
    method: "POST",
    body: { answers },
  });
  expect((await clock.until(server.fetch(answered))).status).toBe(202);
  await clock.advance(2_000);
  expect(matrix.transfers).toHaveLength(1);
  left.abort();
  await Promise.all(reads);
  const all = received.join("");
  expect(all).not.toContain(sentinel);
  expect(all).not.toContain(own.run);
  expect(all).not.toContain("transfer");
});
