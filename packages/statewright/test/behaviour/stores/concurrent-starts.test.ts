/** Runs that lose their thread to another process between the first read and the first commit. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  channel,
  defineGraph,
  defineMigration,
  defineState,
  END,
  getState,
  route,
  run,
  START,
  type Store,
  sqliteStore,
} from "statewright";
import { listRuns } from "statewright/inspect";
import { afterAll, expect, test } from "vitest";
import * as z from "zod";

const home = mkdtempSync(join(tmpdir(), "statewright-overtaken-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const state = defineState({ said: channel.list(z.string()) });
const chat = defineGraph({ name: "chat", state })
  .nodes({ answer: ({ said }) => ({ said: [`${said.length}`] }) })
  .edges({ [START]: "answer", answer: END });

/** Wraps a store; runs other work after each claim of a starting run. */
function wrapClaims(store: Store, meanwhile: () => Promise<unknown>): Store {
  return {
    ...store,
    claim: async (request) => {
      const claim = await store.claim(request);
      if (request.startsRun === true) await meanwhile();
      return claim;
    },
  };
}

test("a run overtaken by another process starts after that run, on its result", async () => {
  const file = join(home, "agent.db");
  const [one, other] = [sqliteStore(file), sqliteStore(file)];
  await run(chat, { input: { said: ["a"] }, store: one, thread: "t" }).result;

  const late = wrapClaims(one, () => run(chat, { input: { said: ["b"] }, store: other, thread: "t" }).result);
  const { status } = await run(chat, { input: { said: ["c"] }, store: late, thread: "t" }).result;
  expect(status).toBe("done");
  expect((await getState(chat, { store: one, thread: "t" })).state.said).toEqual(["a", "1", "b", "3", "c", "5"]);
  expect((await listRuns(one)).map((each) => each.status)).toEqual(["done", "done", "done"]);

  const gone = wrapClaims(one, () => other.delete("t"));
  await run(chat, { input: { said: ["d"] }, store: gone, thread: "t" }).result;
  expect((await getState(chat, { store: one, thread: "t" })).state.said).toEqual(["d", "1"]);
  expect(await one.verify()).toMatchObject({ faults: [] });
  await one.close();
  await other.close();
});

test("a run whose thread was claimed in the meantime is refused", async () => {
  const file = join(home, "taken.db");
  const [one, other] = [sqliteStore(file), sqliteStore(file)];
  await run(chat, { input: { said: ["a"] }, store: one, thread: "t" }).result;
  const held = { graph: "chat", version: 1, shape: "s", at: 1, thread: "t" };
  let isHeld = false;
  const taken = wrapClaims(one, async () => {
    await other.claim(held);
    isHeld = true;
  });
  await expect(run(chat, { input: { said: ["b"] }, store: taken, thread: "t" }).result).rejects.toMatchObject({
    code: "thread_busy",
  });
  expect(isHeld).toBe(true);
  await one.close();
  await other.close();
});

test("concurrent inputs to a new thread are all accepted", async () => {
  const store = sqliteStore(join(home, "at-once.db"));
  await run(chat, { input: { said: ["a"] }, store, thread: "before" }).result;
  const inputs = ["a", "b", "c"].map(
    (said) => ({ input: { said: [said] }, store, thread: "t", onBusy: "enqueue" }) as const,
  );
  const results = await Promise.all(inputs.map((options) => run(chat, options).result));
  expect(results.map(({ status }) => status)).toEqual(["done", "done", "done"]);
  expect((await getState(chat, { store, thread: "t" })).state.said).toEqual(["a", "1", "b", "3", "c", "5"]);
  await store.close();
});

test("an input that fails to start does not take later queued inputs of a new thread with it", async () => {
  const picky = defineGraph({ name: "picky", state })
    .nodes({ answer: ({ said }) => ({ said: [`${said.length}`] }) })
    .edges({
      [START]: route(["answer"], ({ said }) => {
        if (said.includes("bad")) throw new Error("no way from here");
        return "answer";
      }),
      answer: END,
    });
  const store = sqliteStore(join(home, "picky.db"));
  await run(picky, { input: { said: ["a"] }, store, thread: "before" }).result;
  const begin = (said: string) =>
    run(picky, { input: { said: [said] }, store, thread: "t", onBusy: "enqueue" }).result.then(
      ({ status }) => status,
      (error: unknown) => String(error),
    );
  expect(await Promise.all([begin("bad"), begin("good")])).toEqual([expect.stringContaining("no way"), "done"]);
  await store.close();
});

test("a run overtaken before its thread is migrated starts after the other runs", async () => {
  const file = join(home, "migrated.db");
  const [one, other] = [sqliteStore(file), sqliteStore(file)];
  await run(chat, { input: { said: ["a"] }, store: one, thread: "t" }).result;
  const late = wrapClaims(one, () => run(chat, { input: { said: ["b"] }, store: other, thread: "t" }).result);
  const next = defineGraph({ name: "chat", version: 2, state })
    .nodes({ answer: ({ said }) => ({ said: [`${said.length}`] }) })
    .edges({ [START]: "answer", answer: END });
  // A graph that is new in the file is written with a separate claim.
  await run(next, { input: { said: [] }, store: one, thread: "other" }).result;
  const migrations = [defineMigration({ from: chat, to: next, state: ({ said }) => ({ said }) })];
  await run(next, { input: { said: ["c"] }, store: late, thread: "t", migrations }).result;
  expect((await getState(next, { store: one, thread: "t" })).state.said).toEqual(["a", "1", "b", "3", "c", "5"]);
  await one.close();
  await other.close();
});

test("a run that fails to read the queue releases its thread", async () => {
  const store = sqliteStore(join(home, "line.db"));
  const options = { input: { said: ["a"] }, store, thread: "t" };
  await run(chat, options).result;
  const queued = {
    id: "q",
    graph: "chat",
    version: 1,
    status: "queued",
    attempt: 1,
    startedAt: 1,
    queuedAt: 1,
  } as const;
  await store.enqueue({ thread: "t", run: { ...queued, input: '{"said":["q"]}' } });
  const broken = { ...store, runs: () => Promise.reject(new Error("no runs")) };
  await expect(run(chat, { ...options, store: broken }).result).rejects.toThrow("no runs");
  expect((await store.claim({ graph: "chat", version: 1, shape: "s", at: 1, thread: "t" })).queued).toBe(1);
  await store.close();
});
