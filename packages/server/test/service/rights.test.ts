/** Rights: each act asks for its right first, and a server that only reads refuses each change. */
import { memoryStore } from "@statewright/core";
import { expect, test } from "vitest";
import { RequestProblem } from "../../src/http/problem.ts";
import type { AccessRequest, Action, Caller, CallerService } from "../../src/index.ts";
import { CallerScope } from "../../src/service/caller-scope.ts";
import { ann, createTestServices, never, startWaiting } from "../support/create-test-services.ts";

interface Act {
  readonly action: Action;
  readonly isRead: boolean;
  readonly call: (service: CallerService) => Promise<unknown>;
}

const user = { role: "user", id: "m1", content: [{ type: "text", text: "hello" }] } as const;
const read = (call: Act["call"], action: Action = "thread.read"): Act => ({ action, isRead: true, call });
const change = (action: Action, call: Act["call"]): Act => ({ action, isRead: false, call });

/** All acts of a service with the right that each needs. A new act does not compile without its row. */
const acts: Readonly<Record<keyof CallerService, Act>> = {
  listGraphs: read((service) => service.listGraphs(), "graph.read"),
  getGraph: read((service) => service.getGraph("poem"), "graph.read"),
  listThreads: read((service) => service.listThreads({})),
  countThreads: read((service) => service.countThreads({})),
  createThread: change("thread.write", (service) => service.createThread({ id: "new" })),
  getThread: read((service) => service.getThread("trip")),
  updateThread: change("thread.write", (service) => service.updateThread("trip", { title: "x" })),
  deleteThread: change("thread.delete", (service) => service.deleteThread("trip")),
  copyThread: change("thread.write", (service) => service.copyThread("trip", "copy")),
  pruneThread: change("thread.delete", (service) => service.pruneThread("trip", { latest: 1 })),
  startRun: change("run.start", (service) => service.startRun("new", { graph: "poem", input: {} })),
  answer: change("run.answer", (service) => service.answer("trip", { answers: { x: 1 } })),
  resumeRun: change("run.start", (service) => service.resumeRun("trip", {})),
  cancelRun: change("run.cancel", (service) => service.cancelRun("trip", {})),
  pauseRun: change("run.cancel", (service) => service.pauseRun("trip", {})),
  sendMessage: change("run.start", (service) => service.sendMessage("trip", { kind: "steer", messages: [user] })),
  listRuns: read((service) => service.listRuns("trip", {})),
  getRun: read(async (service) => service.getRun(await runOf(service))),
  findRunStart: read(async (service) => service.findRunStart(await runOf(service))),
  waitForRun: read(async (service) => service.waitForRun(await runOf(service), never)),
  getState: read((service) => service.getState("trip")),
  listStates: read((service) => service.listStates("trip", {})),
  listBranches: read((service) => service.listBranches("trip")),
  fork: change("thread.write", (service) => service.fork("trip", { at: 1, name: "b2" })),
  updateState: change("thread.write", (service) => service.updateState("trip", { changes: { topic: "x" } })),
  editMessage: change("thread.write", (service) => service.editMessage("trip", { message: user })),
  listInterrupts: read((service) => service.listInterrupts({})),
  streamEvents: read((service) => service.streamEvents("trip", { end: "idle", signal: never })),
};

let waitingRun = "";
const runOf = async (_service: CallerService): Promise<string> => waitingRun;

const getProblem = (error: unknown): string => (error instanceof RequestProblem ? error.problem.code : String(error));

test("each act asks for its right, and changes nothing without it [V98]", async () => {
  const store = memoryStore();
  const { service } = createTestServices(store);
  waitingRun = (await startWaiting(service, "trip")).run;
  const before = JSON.stringify(await store.exportThread("t.acme.trip"));
  const asked: AccessRequest[] = [];
  const { services } = createTestServices(store, {
    authorize: (_caller, request) => {
      asked.push(request);
      return false;
    },
  });
  const refused = services.forCaller(ann, "native");
  for (const [name, { action, call, isRead }] of Object.entries(acts)) {
    asked.length = 0;
    const code = getProblem(await call(refused).catch((error: unknown) => error));
    // A thread that the caller may not read does not exist.
    const isNamed = isRead && asked[0]?.thread !== undefined;
    expect(code, name).toMatch(isNamed ? /unknown_(thread|run)/ : /^forbidden$/);
    expect(
      asked.map((request) => request.action),
      name,
    ).toContain(action);
  }
  expect(JSON.stringify(await store.exportThread("t.acme.trip"))).toBe(before);
  expect((await store.threads()).map(({ id }) => id)).toEqual(["t.acme.trip"]);
});

test("the action admin needs the scope admin, also where authorize allows it", async () => {
  const { host } = createTestServices(memoryStore());
  const options = { engine: host, authorize: () => true };
  const ask = (caller: Caller) => new CallerScope(options, caller, "native").ask({ action: "admin" });
  expect(await ask(ann).catch(getProblem)).toBe("forbidden");
  expect(await ask({ ...ann, scopes: ["admin"] })).toBeUndefined();
});

test("a server that only reads refuses each change in every protocol, and answers each read [V11]", async () => {
  const store = memoryStore();
  waitingRun = (await startWaiting(createTestServices(store).service, "trip")).run;
  const before = JSON.stringify(await store.exportThread("t.acme.trip"));
  const { services } = createTestServices(store, { role: "readOnly" });
  for (const protocol of ["native", "langgraph", "ai-sdk"])
    for (const [name, { call, isRead }] of Object.entries(acts)) {
      if (name === "waitForRun" && protocol !== "native") continue;
      const outcome = await call(services.forCaller(ann, protocol)).then(() => "allowed", getProblem);
      expect(outcome, `${protocol} ${name}`).toBe(isRead ? "allowed" : "read_only");
    }
  expect(JSON.stringify(await store.exportThread("t.acme.trip"))).toBe(before);
});

test("a graph that is not exposed to the protocol does not exist, nor do its threads, runs and interrupts [V12]", async () => {
  const store = memoryStore();
  const { services } = createTestServices(store, { expose: { poem: ["langgraph"] } });
  const [open, hidden] = [services.forCaller(ann, "langgraph"), services.forCaller(ann, "native")];
  const { run } = await startWaiting(open, "trip");
  await hidden.createThread({ id: "empty" });
  expect((await open.listGraphs()).map(({ name }) => name)).toContain("poem");
  expect((await hidden.listGraphs()).map(({ name }) => name)).not.toContain("poem");
  for (const act of [hidden.getGraph("poem"), hidden.startRun("other", { graph: "poem", input: {} })])
    expect(await act.catch(getProblem)).toBe("unknown_graph");
  expect((await hidden.listThreads({})).data.map(({ id }) => id)).toEqual(["empty"]);
  expect(await hidden.countThreads({})).toBe(1);
  expect((await hidden.listInterrupts({})).data).toEqual([]);
  for (const act of [hidden.getThread("trip"), hidden.getState("trip"), hidden.getRun(run)])
    expect(await act.catch(String)).toMatch(/unknown_(thread|run)/);
  const byCaller = createTestServices(store, {
    expose: ({ caller, graph }) => caller.id === "eve" || graph !== "poem",
  });
  expect((await byCaller.service.listGraphs()).map(({ name }) => name)).toEqual(["assistant", "review"]);
});

test("each change reaches the audit with its caller and its result, without any content [V113]", async () => {
  const entries: unknown[] = [];
  const { service } = createTestServices(memoryStore(), { onAudit: (entry) => entries.push(entry) });
  const { run, interrupt } = await startWaiting(service, "trip");
  await service.answer("trip", { answers: { [interrupt]: { approved: "perhaps" } } }).catch(() => undefined);
  const who = { caller: "ann", tenant: "acme", protocol: "native", at: expect.any(Number), thread: "trip" };
  expect(entries).toEqual([
    { ...who, action: "run.start", act: "startRun", run, result: "done" },
    { ...who, action: "run.answer", act: "answer", result: "invalid_answer" },
  ]);
});
