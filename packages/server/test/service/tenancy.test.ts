/** Tenants: threads and runs of another tenant do not exist. */
import { isStatewrightError } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { createThread } from "@statewright/core/inspect";
import { describe, expect, test } from "vitest";
import type { CallerService } from "../../src/index.ts";
import { ann, bob, createTestServices, never } from "../support/create-test-services.ts";
import { openTestStore, storeKinds } from "../support/test-store.ts";

/** Acts on a thread and a run, by name. */
const acts: Readonly<Record<string, (service: CallerService, thread: string, run: string) => Promise<unknown>>> = {
  getThread: (service, thread) => service.getThread(thread),
  updateThread: (service, thread) => service.updateThread(thread, { title: "mine" }),
  deleteThread: (service, thread) => service.deleteThread(thread),
  copyThread: (service, thread) => service.copyThread(thread),
  pruneThread: (service, thread) => service.pruneThread(thread, { latest: 1 }),
  answer: (service, thread) => service.answer(thread, { answers: { "1:0:approve": { approved: true } } }),
  resumeRun: (service, thread) => service.resumeRun(thread, {}),
  cancelRun: (service, thread, run) => service.cancelRun(thread, { run }),
  pauseRun: (service, thread) => service.pauseRun(thread, {}),
  sendMessage: (service, thread) => service.sendMessage(thread, { kind: "steer", messages: [] }),
  listRuns: (service, thread) => service.listRuns(thread, {}),
  getRun: (service, _thread, run) => service.getRun(run),
  findRunStart: (service, _thread, run) => service.findRunStart(run),
  waitForRun: (service, _thread, run) => service.waitForRun(run, never),
  getState: (service, thread) => service.getState(thread),
  listStates: (service, thread) => service.listStates(thread, {}),
  listBranches: (service, thread) => service.listBranches(thread),
  fork: (service, thread) => service.fork(thread, { at: 1 }),
  updateState: (service, thread) => service.updateState(thread, { changes: { topic: "mine" } }),
  listInterrupts: (service, thread) => service.listInterrupts({ thread }),
  streamEvents: (service, thread) => service.streamEvents(thread, { signal: never }),
};

async function findFailure(work: Promise<unknown>): Promise<unknown> {
  const error = await work.then(
    () => expect.fail("the act was not refused"),
    (reason: unknown) => reason,
  );
  return isStatewrightError(error) ? { code: error.code, message: error.message, details: error.details } : error;
}

describe.each(storeKinds)("in a store of kind %s", (kind) => {
  test("each act on a thread or a run of another tenant fails like one on a missing thread [V99]", async () => {
    const store = openTestStore(kind, systemWorld());
    const { services } = createTestServices(store);
    const [own, other] = [services.forCaller(ann, "native"), services.forCaller(bob, "native")];
    const { run } = await own.startRun("trip", { graph: "poem", input: { topic: "boats" } });
    await own.waitForRun(run.id, never);
    for (const [name, act] of Object.entries(acts)) {
      const refused = await findFailure(act(other, "trip", run.id));
      await other.createThread({ id: "warm-up", ifExists: "keep" });
      expect(refused, name).toMatchObject({ code: expect.stringMatching(/^unknown_(thread|run)$/) });
      const missing = JSON.stringify(await findFailure(act(other, "nope", "run_nope")));
      expect(JSON.stringify(refused), name).toBe(missing.replaceAll("run_nope", run.id).replaceAll("nope", "trip"));
      expect(JSON.stringify(refused)).not.toMatch(/acme|globex/);
    }
    expect(await own.getThread("trip")).toMatchObject({ id: "trip", status: "waiting" });
    expect((await other.listThreads({})).data.map(({ id }) => id)).toEqual(["warm-up"]);
    expect(await other.countThreads({ graph: "poem" })).toBe(0);
    expect((await other.listInterrupts({})).data).toEqual([]);
  });

  test("a row whose column disagrees with the prefix of its id is served to neither tenant [V99]", async () => {
    const store = openTestStore(kind, systemWorld());
    const { services } = createTestServices(store);
    await createThread(store, { thread: "t.acme.mixed", tenant: "globex" });
    for (const caller of [ann, bob]) {
      const service = services.forCaller(caller, "native");
      expect((await service.listThreads({})).data).toEqual([]);
      expect(await findFailure(service.getThread("mixed"))).toMatchObject({ code: "unknown_thread" });
      expect(await findFailure(service.getThread("t.acme.mixed"))).toMatchObject({ code: "unknown_thread" });
    }
  });
});

test("in the scope `caller` two users of a tenant reach only their own threads [V99]", async () => {
  const store = openTestStore("memory", systemWorld());
  const { services } = createTestServices(store, { scope: "caller" });
  const [one, other] = [services.forCaller(ann, "native"), services.forCaller({ ...ann, id: "eve" }, "native")];
  await one.createThread({ id: "mine", title: "of ann" });
  expect(await findFailure(other.getThread("mine"))).toMatchObject({ code: "unknown_thread" });
  expect((await other.listThreads({})).data).toEqual([]);
  await other.createThread({ id: "mine", title: "of eve" });
  expect((await one.getThread("mine")).title).toBe("of ann");
});
