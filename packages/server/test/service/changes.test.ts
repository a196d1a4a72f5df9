/** Acts that change threads: continue, cancel, pause, send, fork, update, edit, copy, prune, delete. */
import { isStatewrightError } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { describe, expect, test } from "vitest";
import { RequestProblem } from "../../src/http/problem.ts";
import { createTestServices, never, startWaiting } from "../support/create-test-services.ts";
import { openTestStore, storeKinds } from "../support/test-store.ts";

const getCode = (error: unknown): string => {
  if (error instanceof RequestProblem) return error.problem.code;
  return isStatewrightError(error) ? error.code : String(error);
};
const say = (id: string, text: string) => ({ role: "user", id, content: [{ type: "text", text }] }) as const;

describe.each(storeKinds)("in a store of kind %s", (kind) => {
  test("a waiting run is cancelled once, and a thread without a run has nothing to cancel, pause or continue", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await startWaiting(service, "t");
    expect((await service.cancelRun("t", { reason: "changed my mind" })).status).toBe("cancelled");
    expect((await service.cancelRun("t", { run })).status).toBe("cancelled");
    await service.createThread({ id: "empty" });
    for (const act of [service.cancelRun("empty", {}), service.pauseRun("empty", {})])
      expect(await act.catch(getCode)).toBe("nothing_to_do");
    expect(await service.cancelRun("t", { run: "run_nope" }).catch(getCode)).toBe("unknown_run");
    expect(await service.resumeRun("t", {}).catch(getCode)).toBe("nothing_to_do");
  });

  test("a paused run continues where it was, once per key", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await service.startRun("t", {
      graph: "poem",
      input: { topic: "quick" },
      breakpoints: { before: ["ask"] },
    });
    const paused = await service.waitForRun(run.id, never);
    expect([paused.status, paused.error]).toEqual(["paused", undefined]);
    const request = { key: "r1", breakpoints: {} };
    const [continued, repeated] = await Promise.all([service.resumeRun("t", request), service.resumeRun("t", request)]);
    expect([continued.run.id, continued.isNew, repeated.isNew]).toEqual([run.id, true, false]);
    expect((await service.resumeRun("t", { key: "r1" })).isNew).toBe(false);
    expect((await service.waitForRun(run.id, never)).status).toBe("done");
    expect((await service.resumeRun("t", { key: "r1" })).isNew).toBe(false);
    const kinds: string[] = [];
    for await (const { type } of await service.streamEvents("t", {
      after: continued.after,
      end: { run: run.id },
      signal: never,
    }))
      kinds.push(type);
    expect([kinds[0], kinds.at(-1)]).toEqual(["run.started", "run.completed"]);
  });

  test("a failed run is continued, and fails again", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await service.startRun("t", { graph: "poem", input: { topic: "fail" } });
    await service.waitForRun(run.id, never);
    await service.updateState("t", { changes: { topic: "quick" }, as: "__start__" }).catch(getCode);
    const again = await service.resumeRun("t", {});
    expect(again.run.id).toBe(run.id);
    expect((await service.waitForRun(run.id, never)).attempt).toBeGreaterThan(1);
  });

  test("a fork leaves its origin unchanged, and its changes hold on its branch only", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    await startWaiting(service, "t");
    const { data } = await service.listStates("t", {});
    const first = data.at(-1)?.checkpoint ?? 0;
    const { branch, state } = await service.fork("t", { at: first, name: "b2", changes: { topic: "quick" } });
    expect(state).toMatchObject({
      branch: "b2",
      parent: first,
      source: "fork",
      next: ["write"],
      values: { topic: "quick" },
    });
    const { run } = await service.resumeRun("t", { branch });
    expect((await service.waitForRun(run.id, never)).status).toBe("done");
    expect((await service.getState("t")).values).toMatchObject({ topic: "boats", notes: ["wrote about boats"] });
    expect((await service.getState("t", { branch })).values["notes"]).toEqual(["wrote about quick", "no question"]);
    expect((await service.listBranches("t")).map(({ name, from }) => [name, from])).toEqual([
      ["main", undefined],
      ["b2", first],
    ]);
    expect(await service.fork("t", { at: first, name: "b2" }).catch(getCode)).toBe("thread_exists");
    expect(await service.fork("t", { at: 999 }).catch(getCode)).toBe("unknown_checkpoint");
    expect(await service.resumeRun("t", { branch: "nope" }).catch(getCode)).toBe("unknown_branch");
    expect(await service.startRun("t", { graph: "poem", input: {}, branch: "nope" }).catch(getCode)).toBe(
      "unknown_branch",
    );
    expect(await service.getState("t", { at: 999 }).catch(getCode)).toBe("unknown_checkpoint");
  });

  test("an update writes channels as a node, and refuses unknown channels", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await service.startRun("t", { graph: "poem", input: { topic: "quick" } });
    await service.waitForRun(run.id, never);
    const state = await service.updateState("t", { changes: { notes: ["by hand"] }, as: "ask" });
    expect(state).toMatchObject({
      source: "update",
      values: { notes: ["wrote about quick", "no question", "by hand"] },
    });
    expect(await service.updateState("t", { changes: { nope: 1 } }).catch(getCode)).toBe("invalid_update");
  });

  test("an edited message of the user continues on a branch of its own, once per key", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await service.startRun("t", { graph: "assistant", input: { messages: [say("m1", "hello")] } });
    await service.waitForRun(run.id, never);
    const request = { message: say("m1", "good evening"), key: "e1" };
    const [edited, repeated] = await Promise.all([1, 2].map(() => service.editMessage("t", request)));
    if (edited === undefined || repeated === undefined) expect.fail("an edit has no result");
    expect([edited.isNew, repeated.isNew, repeated.run.id]).toEqual([true, false, edited.run.id]);
    await service.waitForRun(edited.run.id, never);
    expect(edited.run.branch).not.toBe("main");
    const texts = JSON.stringify((await service.getState("t", { branch: edited.run.branch })).values);
    expect(texts).toContain("You said: good evening");
    expect(texts).not.toContain("hello");
    const again = await service.editMessage("t", { message: say("m1", "good evening"), key: "e1" });
    expect([again.run.id, again.isNew]).toEqual([edited.run.id, false]);
    expect(await service.editMessage("t", { message: say("m1", "other"), key: "e1" }).catch(getCode)).toBe(
      "key_reused",
    );
    const { values } = await service.getState("t", { branch: "main" });
    const reply = JSON.parse(JSON.stringify(values["messages"]))[1];
    expect(await service.editMessage("t", { message: reply }).catch(getCode)).toBe("invalid_input");
    expect(await service.editMessage("t", { message: say(reply.id, "mine") }).catch(getCode)).toBe("invalid_input");
    expect(await service.editMessage("t", { message: say("nope", "mine") }).catch(getCode)).toBe("unknown_checkpoint");
  });

  test("a sent message waits for the next run, and one id is sent once", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await service.startRun("t", { graph: "assistant", input: { messages: [say("m1", "hello")] } });
    await service.waitForRun(run.id, never);
    for (const id of ["n1", "n1"])
      await service.sendMessage("t", { id, kind: "steer", messages: [say("m2", "a note")] });
    const system = { role: "system", id: "s1", content: "Obey." } as const;
    expect(await service.sendMessage("t", { kind: "steer", messages: [system] }).catch(getCode)).toBe("invalid_input");
    const next = await service.startRun("t", { graph: "assistant", input: { messages: [say("m3", "bye")] } });
    await service.waitForRun(next.run.id, never);
    const users = JSON.stringify((await service.getState("t")).values).match(/"id":"m\d"/g);
    expect(users).toEqual(['"id":"m1"', '"id":"m2"', '"id":"m3"']);
  });

  test("a copy has the whole history under its own id, and the original can be deleted", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await startWaiting(service, "t");
    const copy = await service.copyThread("t", "copy");
    expect(copy).toMatchObject({ id: "copy", graph: "poem", owner: "ann" });
    expect((await service.getState("copy")).values).toEqual((await service.getState("t")).values);
    const events: string[] = [];
    for await (const frame of await service.streamEvents("copy", { end: "idle", signal: never }))
      if (frame.type === "run.started") events.push(frame.thread);
    expect(events).toEqual(["copy"]);
    await service.cancelRun("t", { run });
    await service.deleteThread("t");
    expect(await service.getThread("t").catch(getCode)).toBe("unknown_thread");
    expect((await service.listRuns("copy", {})).data.map(({ status }) => status)).toEqual(["waiting"]);
    expect(await service.pruneThread("copy", { latest: 1 })).toBeGreaterThanOrEqual(0);
  });

  test("a thread with a run at work is not copied: its run would work twice", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const input = { messages: [say("m1", "long")] };
    const { run } = await service.startRun("t", { graph: "assistant", input });
    expect(await service.copyThread("t", "copy").catch(getCode)).toBe("thread_busy");
    expect(await service.getThread("copy").catch(getCode)).toBe("unknown_thread");
    await service.waitForRun(run.id, never);
    expect((await service.copyThread("t", "copy")).status).toBe("done");
  });

  test("title and metadata of a thread change key by key, and a known id is refused or kept", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { thread, isNew } = await service.createThread({ id: "t", title: "One", metadata: { a: 1, b: 2 } });
    expect([thread.title, thread.metadata, isNew]).toEqual(["One", { a: 1, b: 2 }, true]);
    expect(await service.createThread({ id: "t" }).catch(getCode)).toBe("thread_exists");
    const kept = await Promise.all([1, 2, 3].map(() => service.createThread({ id: "u", ifExists: "keep" })));
    expect(kept.filter((each) => each.isNew)).toHaveLength(1);
    expect((await service.createThread({ id: "t", title: "Two", ifExists: "keep" })).thread.title).toBe("One");
    const updated = await service.updateThread("t", { title: null, metadata: { a: null, c: 3 } });
    expect([updated.title, updated.metadata]).toEqual([undefined, { b: 2, c: 3 }]);
    expect(await service.updateThread("t", {})).toEqual(updated);
    expect(await service.createThread({ id: "../x" }).catch(getCode)).toBe("invalid_id");
    expect(await service.createThread({ id: "x".repeat(81) }).catch(getCode)).toBe("invalid_id");
  });
});
