/** Runs that others overtake between the look at their thread and their first commit. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  defineGraph,
  defineState,
  END,
  getState,
  list,
  listRuns,
  run,
  START,
  type Store,
  sqliteStore,
} from "statewright";
import { afterAll, expect, test } from "vitest";
import * as z from "zod";

const home = mkdtempSync(join(tmpdir(), "statewright-overtaken-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const chat = defineGraph({ name: "chat", state: defineState({ said: list(z.string()) }) })
  .nodes({ answer: ({ said }) => ({ said: [`${said.length}`] }) })
  .edges({ [START]: "answer", answer: END });

/** The store, where something else happens after each claim of a run that begins. */
function overtaken(store: Store, meanwhile: () => Promise<unknown>): Store {
  return {
    ...store,
    claim: async (request) => {
      const claim = await store.claim(request);
      if (request.begins === true) await meanwhile();
      return claim;
    },
  };
}

test("a run that another process overtakes begins after it, on what it has left", async () => {
  const file = join(home, "agent.db");
  const [one, other] = [sqliteStore(file), sqliteStore(file)];
  await run(chat, { input: { said: ["a"] }, store: one, thread: "t" }).result;

  const late = overtaken(one, () => run(chat, { input: { said: ["b"] }, store: other, thread: "t" }).result);
  const { status } = await run(chat, { input: { said: ["c"] }, store: late, thread: "t" }).result;
  expect(status).toBe("done");
  expect((await getState(chat, { store: one, thread: "t" })).state.said).toEqual(["a", "1", "b", "3", "c", "5"]);
  expect((await listRuns(one)).map((each) => each.status)).toEqual(["done", "done", "done"]);

  const gone = overtaken(one, () => other.delete("t"));
  await run(chat, { input: { said: ["d"] }, store: gone, thread: "t" }).result;
  expect((await getState(chat, { store: one, thread: "t" })).state.said).toEqual(["d", "1"]);
  expect(await one.verify()).toMatchObject({ faults: [] });
  one.close();
  other.close();
});

test("a run that finds its thread taken by then is told so", async () => {
  const file = join(home, "taken.db");
  const [one, other] = [sqliteStore(file), sqliteStore(file)];
  await run(chat, { input: { said: ["a"] }, store: one, thread: "t" }).result;
  const held = { graph: "chat", version: 1, shape: "s", at: 1, thread: "t" };
  const taken = overtaken(one, () => other.claim(held).catch(() => undefined));
  await expect(run(chat, { input: { said: ["b"] }, store: taken, thread: "t" }).result).rejects.toMatchObject({
    code: "thread_busy",
  });
  one.close();
  other.close();
});
