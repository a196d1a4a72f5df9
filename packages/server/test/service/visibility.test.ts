/** What callers see: no private data, no details of failures, sealed cursors. */
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  engine,
  inject,
  memoryStore,
  type RunEvent,
  type RunStatus,
  START,
  toolNode,
} from "@statewright/core";
import { errorCodes, systemWorld } from "@statewright/core/adapter";
import { createThread } from "@statewright/core/inspect";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { RequestProblem } from "../../src/http/problem.ts";
import { type CallerService, createServices, type ServiceOptions } from "../../src/index.ts";
import { findFailureTitle } from "../../src/service/failure-titles.ts";
import { statusTable } from "../../src/service/status-table.ts";
import { ann, bob, createTestServices, never } from "../support/create-test-services.ts";
import { openTestStore, storeKinds } from "../support/test-store.ts";

/** Private data, planted at once in each place that no caller may see. */
const sentinels = {
  context: "SENTINEL-context-4711",
  channel: "SENTINEL-channel-4711",
  secret: "SENTINEL-secret-4711",
  injected: "SENTINEL-injected-4711",
};

const Desk = defineContext({ desk: z.string() });

/** Graph whose tool gets hidden arguments, and whose private channel holds a text. */
function createVault() {
  const open = defineTool({
    name: "open",
    description: "Opens a box.",
    input: z.object({ box: z.string() }),
    effect: "pure",
    inject: {
      desk: inject.context(Desk, ({ desk }) => desk),
      token: inject.secret("VAULT_TOKEN"),
      plan: inject.custom(() => sentinels.injected),
    },
    run: async ({ box }, { injected }) => {
      const hidden = [injected.desk, await injected.token.reveal(), injected.plan];
      return `opened ${box} with ${hidden.filter((text) => text.startsWith("SENTINEL")).length} hidden values`;
    },
  });
  return defineGraph({
    name: "vault",
    state: defineState({ messages: channel.messages(), plan: z.string().default(""), log: channel.list(z.string()) }),
    context: Desk,
    private: ["plan"],
  })
    .nodes({
      ask: () => ({
        plan: sentinels.channel,
        messages: [
          {
            role: "assistant",
            id: "a1",
            finish: "calls",
            content: [{ type: "call", id: "c1", name: "open", args: { box: "b1" } }],
          },
        ],
      }),
      tools: toolNode({ tools: [open] }),
      end: ({ plan }) => ({ log: [`planned ${plan.length} characters`] }),
    })
    .edges({ [START]: "ask", ask: "tools", tools: "end", end: END });
}

/** Everything that the acts of a service show about a thread, as one text. */
async function readAll(service: CallerService, thread: string): Promise<string> {
  const shown: unknown[] = [
    await service.getThread(thread),
    await service.listThreads({}),
    await service.listRuns(thread, {}),
    await service.getState(thread),
    await service.listStates(thread, {}),
    await service.getGraph("vault"),
    await service.listInterrupts({}),
    await readEvents(service, thread),
  ];
  return JSON.stringify(shown);
}

async function readEvents(service: CallerService, thread: string): Promise<readonly unknown[]> {
  const events: unknown[] = [];
  for await (const frame of await service.streamEvents(thread, { end: "idle", signal: never })) events.push(frame);
  return events;
}

/** Finds a text raw, in base64 at each offset, and escaped as JSON. */
function holds(text: string, searched: string): boolean {
  const bytes = (padding: string): string =>
    Buffer.from(padding + searched)
      .toString("base64")
      .slice(4, -4);
  return [searched, bytes(""), bytes(" "), bytes("  "), JSON.stringify(JSON.stringify(searched)).slice(2, -2)].some(
    (form) => text.includes(form),
  );
}

describe.each(storeKinds)("in a store of kind %s", (kind) => {
  test("no act shows a private channel, the context, a secret or a hidden argument [V21]", async () => {
    const store = openTestStore(kind, systemWorld());
    const host = engine({
      store,
      graphs: [createVault()],
      context: () => ({ desk: sentinels.context }),
      secrets: { get: (name) => (name === "VAULT_TOKEN" ? sentinels.secret : undefined) },
    });
    const service = createServices({ engine: host }).forCaller(ann, "native");
    const { run } = await service.startRun("t", { graph: "vault", input: {} });
    expect((await service.waitForRun(run.id, never)).status).toBe("done");
    const shown = await readAll(service, "t");
    expect(shown).toContain("opened b1 with 3 hidden values");
    expect(shown).toContain("planned 21 characters");
    for (const [place, text] of Object.entries(sentinels)) expect(holds(shown, text), place).toBe(false);
    const refused = { plan: "mine" };
    for (const act of [
      service.startRun("u", { graph: "vault", input: refused }),
      service.updateState("t", { changes: refused }),
      service.fork("t", { at: 1, changes: refused }),
    ])
      expect(await act.catch(({ code }) => code)).toMatch(/^invalid_(input|update)$/);
  });

  test("a page has the rows after its cursor, each row once, newest first [V22]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    for (const id of ["a", "b", "c", "d", "e"])
      await service.createThread({ id, metadata: { odd: id !== "b" && id !== "d" } });
    const seen: string[][] = [];
    for (let before: string | undefined; ; ) {
      const page = await service.listThreads({ limit: 2, before });
      seen.push(page.data.map(({ id }) => id));
      before = page.next;
      if (before === undefined) break;
    }
    expect(seen.map(({ length }) => length)).toEqual([2, 2, 1]);
    expect(new Set(seen.flat())).toEqual(new Set(["a", "b", "c", "d", "e"]));
    expect((await service.listThreads({ metadata: { odd: true } })).data).toHaveLength(3);
    expect(await service.countThreads({ metadata: { odd: true } })).toBe(3);
    expect((await service.listThreads({ search: "a" })).data.map(({ id }) => id)).toEqual(["a"]);
    expect(await service.countThreads({ search: "a" })).toBe(1);
  });

  test("a cursor holds nothing readable, and only its tenant and its list accept it [V22]", async () => {
    const store = openTestStore(kind, systemWorld());
    const { services, service } = createTestServices(store);
    for (const id of ["a", "b", "c"]) await service.createThread({ id });
    const { next = "" } = await service.listThreads({ limit: 1 });
    expect(Buffer.from(next, "base64url").toString("latin1")).not.toMatch(/acme/);
    const refuse = (act: Promise<unknown>) =>
      act.catch((error: unknown) => error instanceof RequestProblem && error.problem.status);
    const other = services.forCaller(bob, "native");
    expect(await refuse(other.listThreads({ before: next }))).toBe(422);
    expect(await refuse(service.listRuns("a", { before: next }))).toBe(422);
    expect(await refuse(service.listThreads({ before: `${next.slice(0, -2)}AA` }))).toBe(422);
    expect(await refuse(service.listThreads({ before: "not-a-cursor" }))).toBe(422);
    expect(await refuse(service.listThreads({ limit: 201 }))).toBe(422);
    // A later process of the same store accepts it, and one with a key of its own does not.
    expect((await createTestServices(store).service.listThreads({ before: next })).data).toHaveLength(2);
    const sealed = createTestServices(store, { cursorKey: "a-key-of-its-own-for-cursors" });
    expect(await refuse(sealed.service.listThreads({ before: next }))).toBe(422);
  });

  test("a failed run tells its code and its title, and nothing of the failure [V34]", async () => {
    const store = openTestStore(kind, systemWorld());
    const { service } = createTestServices(store);
    const { run } = await service.startRun("t", { graph: "poem", input: { topic: "fail" } });
    const failed = await service.waitForRun(run.id, never);
    expect(failed.error).toEqual({ code: "node_failed", title: "A node of the graph failed." });
    const events = JSON.stringify(await readEvents(service, "t"));
    expect(events).toContain('"code":"node_failed"');
    expect(events + JSON.stringify(await service.listRuns("t", {}))).not.toMatch(/SELECT|var.lib|agents\.db|stack/);
    const open = createTestServices(store, { exposeErrors: true }).service;
    expect((await open.getRun(run.id)).error?.title).toContain("SELECT secret");
  });
});

test("each error code of core has a title of its own, without a value [V34]", () => {
  const titles = errorCodes.map((code) => findFailureTitle(code) ?? "");
  expect(titles.filter((title) => !/^[A-Z][^$`{}]+\.$/.test(title))).toEqual([]);
  expect(titles).not.toContain(findFailureTitle("internal"));
});

test("redact cuts events for a caller, and an event for which it throws is left out and logged [V21]", async () => {
  const lines: string[] = [];
  const redact: ServiceOptions["redact"] = (event: RunEvent) => {
    if (event.type === "step.committed") throw new Error("no");
    return event.type === "task.started" ? undefined : { ...event, seq: 0 };
  };
  const world = systemWorld({ log: (level) => lines.push(level) });
  const { service } = createTestServices(memoryStore(), { redact, engine: { world } });
  const { run } = await service.startRun("t", { graph: "poem", input: { topic: "quick" } });
  await service.waitForRun(run.id, never);
  const events = (await readEvents(service, "t")) as readonly RunEvent[];
  expect(events.map(({ type }) => type)).toEqual(["run.started", "run.completed", "snapshot"]);
  expect(events[0]?.seq).toBe(1);
  expect(lines.filter((level) => level === "error")).toHaveLength(3);
});

test("each status of a run has words in each protocol, and exactly the resting ones end a stream [V35]", () => {
  const statuses: readonly RunStatus[] = [
    "queued",
    "running",
    "waiting",
    "paused",
    "crashed",
    "failed",
    "parked",
    "cancelled",
    "done",
  ];
  expect(Object.keys(statusTable).sort()).toEqual([...statuses].sort());
  expect(statuses.filter((status) => !statusTable[status].isResting)).toEqual(["queued", "running", "crashed"]);
  expect(
    Object.fromEntries(statuses.map((status) => [status, Object.values(statusTable[status]).slice(0, 3).join(" ")])),
  ).toEqual({
    queued: "pending busy ",
    running: "running busy ",
    crashed: "running busy ",
    waiting: "interrupted interrupted tool-calls",
    paused: "interrupted idle other",
    failed: "error error error",
    parked: "error error error",
    cancelled: "interrupted idle abort",
    done: "success idle stop",
  });
});

test("the keys of a client's metadata that are named like columns have no effect on tenant and owner [V103]", async () => {
  const store = memoryStore();
  const { service } = createTestServices(store);
  const metadata = { tenant: "globex", owner: "bob", "x-user-id": "bob" };
  const { run } = await service.startRun("t", { graph: "poem", input: { topic: "quick" }, metadata });
  await createThread(store, { thread: "t.globex.t", tenant: "globex" });
  expect(await store.run(run.id)).toMatchObject({ tenant: "acme", owner: "ann", metadata });
  expect(await store.thread("t.acme.t")).toMatchObject({ tenant: "acme", owner: "ann" });
  expect(run.owner).toBe("ann");
});
