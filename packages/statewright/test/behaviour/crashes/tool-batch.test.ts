/** SIGKILL of a process in a batch of tool calls, one call per possible state; another process continues. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CrashOutcome, killAt } from "@statewright/testing";
import { sqliteStore } from "statewright";
import { afterAll, beforeAll, expect, test } from "vitest";

const script = new URL("../../support/processes/tool-batch-process.ts", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "statewright-batch-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type ToolRunLine = { readonly tool: string; readonly key: string; readonly isFirst: boolean };
type RequestLine = { readonly asked: string; readonly key: string };

let outcome: CrashOutcome;
beforeAll(async () => {
  outcome = await killAt({ script, folder, point: "all stand", timeoutMs: 60_000 });
}, 300_000);

/** Processes in which the tool ran, its keys, the reconciled keys, and the answer. */
function getStory(name: string) {
  const effects = outcome.effects as readonly (ToolRunLine | RequestLine)[];
  const runs = effects.filter((effect): effect is ToolRunLine => "tool" in effect && effect.tool === name);
  const asks = effects.filter((effect): effect is RequestLine => "asked" in effect && effect.asked === name);
  const { said } = JSON.parse(outcome.stdout) as { readonly said: readonly (readonly [string, boolean, string])[] };
  return {
    processes: runs.map(({ isFirst }) => (isFirst ? "before" : "after")),
    keys: [...new Set([...runs, ...asks].map(({ key }) => key))],
    asked: asks.length,
    answer: said.find(([tool]) => tool === name)?.slice(1),
  };
}

/** Expects one key over all processes. */
const one = [expect.stringMatching(/^batch\/[0-9a-z]{12}\/main\/.+\/call_\d$/)];

test("a call answered before a kill is not repeated, and its answer counts [K4]", () => {
  expect(getStory("answered")).toEqual({ processes: ["before"], asked: 0, keys: one, answer: [false, "ran answered"] });
});

test("a call not started before a kill runs once under its own key [K4]", () => {
  expect(getStory("never_started")).toEqual({
    processes: ["after"],
    asked: 0,
    keys: one,
    answer: [false, "ran never_started"],
  });
});

test("a pure or idempotent call started before a kill runs again under the same key [K4, S1.25]", () => {
  for (const name of ["pure", "idempotent"])
    expect(getStory(name)).toEqual({
      processes: ["before", "after"],
      asked: 0,
      keys: one,
      answer: [false, `ran ${name}`],
    });
});

test("a once call started before a kill is reconciled with the other side: completed, failed or unknown [K4, S1.25]", () => {
  expect(getStory("happened")).toEqual({
    processes: ["before"],
    asked: 1,
    keys: one,
    answer: [false, "the other side has it"],
  });
  expect(getStory("failed_there")).toEqual({
    processes: ["before"],
    asked: 1,
    keys: one,
    answer: [true, "the other side refused it"],
  });
  expect(getStory("unknown")).toEqual({ processes: ["before"], asked: 1, keys: one, answer: [true, "nobody can say"] });
  expect(getStory("not_happened")).toEqual({
    processes: ["before", "after"],
    asked: 1,
    keys: one,
    answer: [false, "ran not_happened"],
  });
});

test("a once call started before a kill and without a reconciler interrupts, and no other call does [K4, S1.25]", () => {
  expect(JSON.parse(outcome.stdout)).toMatchObject({ status: "done", asked: [{ key: "in_doubt", tool: "doubtful" }] });
  expect(getStory("doubtful")).toEqual({
    processes: ["before"],
    asked: 0,
    keys: one,
    answer: [false, "ann saw it in the log"],
  });
});

test("the journal of a killed process names the attempts, the processes and the reason of each repeat [FX19, ND8]", async () => {
  const store = sqliteStore(join(folder, "batch.db"));
  const rows = await store.effects("batch", "main");
  store.close();
  const died = { startedAt: expect.any(Number), error: "process_died" };
  const ended = { startedAt: expect.any(Number), endedAt: expect.any(Number) };
  const getCall = (name: string) => {
    const { attempts, processes, attemptLog, startedAt } = rows.find(
      (row) => row.name === name,
    ) as (typeof rows)[number];
    return { attempts, processes, attemptLog, restarted: startedAt === attemptLog?.at(-1)?.startedAt };
  };
  const repeated = { attempts: 2, processes: 2, attemptLog: [died, ended], restarted: true };
  for (const name of ["pure", "idempotent", "not_happened"]) expect(getCall(name), name).toEqual(repeated);
  const single = { attempts: 1, processes: undefined, attemptLog: undefined, restarted: false };
  for (const name of ["answered", "never_started"]) expect(getCall(name), name).toEqual(single);
  expect(getCall("happened")).toMatchObject({ attempts: 1, processes: undefined, attemptLog: [died] });
});
