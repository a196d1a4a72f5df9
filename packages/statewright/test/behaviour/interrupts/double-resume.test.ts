/** Two clients that answer the same interrupt or resume the same thread at the same moment. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { virtualClock } from "@statewright/testing";
import { getState, memoryStore, run, type Store, sqliteStore } from "statewright";
import { listRuns } from "statewright/inspect";
import { afterAll, expect, test } from "vitest";
import { answer, asking } from "../../support/processes/answer-process.ts";

/** Number of races; all with STATEWRIGHT_WHOLE=1, more with STATEWRIGHT_RACES. */
const asked = process.env["STATEWRIGHT_RACES"];
const races = Number(asked ?? (process.env["STATEWRIGHT_WHOLE"] === "1" ? 1_000 : 100));
const processRaces = Math.ceil(races / 10);

/** Timeout for many races; a wrong race fails earlier. */
function tell(where: string, count: number, seed: number | undefined): void {
  if (asked !== undefined)
    console.log(`races ${where}: ${count}${seed === undefined ? "" : ` (seed ${seed})`}, violations: 0`);
}

const home = mkdtempSync(join(tmpdir(), "statewright-races-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

type Outcome = Awaited<ReturnType<typeof answer>>;

/**
 * Checks that exactly one client wins, its answer counts, its effect occurs once, and the other client gets an error.
 */
async function judge(
  store: Store,
  thread: string,
  names: readonly [string, string],
  outcomes: readonly Outcome[],
): Promise<void> {
  const won = outcomes.findIndex(([code]) => code === "done");
  const winner = names[won] ?? "nobody";
  const lost = outcomes[1 - won];
  expect(outcomes.map(([code]) => code).filter((code) => code === "done")).toHaveLength(1);
  expect(["thread_busy", "already_answered"]).toContain(lost?.[0]);
  if (lost?.[0] === "already_answered") expect(lost[1]).toBe(winner);
  expect((await getState(asking, { store, thread })).state.log).toEqual([winner, "end"]);
  expect((await store.effects(thread, "main")).map(({ state, attempts }) => [state, attempts])).toEqual([["ok", 1]]);
}

async function race(one: Store, other: Store, turns: () => number): Promise<readonly string[]> {
  const observed: string[] = [];
  for (let nth = 0; nth < races; nth++) {
    const thread = `t${nth}`;
    await run(asking, { store: one, thread }).result;
    const resumeLate = async (): Promise<Outcome> => {
      for (let turn = turns(); turn > 0; turn--) await new Promise<void>((resolve) => setImmediate(resolve));
      return answer(other, thread, "b");
    };
    const outcomes = await Promise.all([answer(one, thread, "a"), resumeLate()]);
    await judge(one, thread, ["a", "b"], outcomes);
    observed.push(...outcomes.map(([code]) => code));
  }
  return observed;
}

function listTurns(seed: number): () => number {
  const { random } = virtualClock({ seed });
  return () => Math.floor(random.next() * 8);
}

test("of two clients that answer at the same moment exactly one wins, and the other gets an error: in memory [E30, F13]", async () => {
  const store = memoryStore();
  const observed = await race(store, store.peer(), listTurns(1));
  expect(new Set(observed)).toEqual(new Set(["done", "thread_busy", "already_answered"]));
  expect(await listRuns(store, { status: "done" })).toHaveLength(races);
  tell("in memory", races, 1);
}, 600_000);

test("of two clients that answer at the same moment exactly one wins, and the other gets an error: in a file [E30, F13]", async () => {
  const [one, other] = ["races.db", "races.db"].map((name) => sqliteStore(join(home, name), { durability: "normal" }));
  if (one === undefined || other === undefined) throw new Error("no stores");
  const observed = await race(one, other, listTurns(2));
  expect(new Set(observed)).toEqual(new Set(["done", "thread_busy", "already_answered"]));
  await one.close();
  await other.close();
  tell("in a file", races, 2);
}, 600_000);

test("of two processes that answer at the same moment exactly one wins, and the other gets an error [E30, F13]", async () => {
  const file = join(home, "processes.db");
  const store = sqliteStore(file, { durability: "normal" });
  const children = await Promise.all([startAnswering(file), startAnswering(file)]);
  try {
    for (let nth = 0; nth < processRaces; nth++) {
      const thread = `t${nth}`;
      await run(asking, { store, thread }).result;
      const outcomes = await Promise.all(children.map((child) => ask(child, thread)));
      const [a, b] = children.map(({ pid }) => String(pid));
      await judge(store, thread, [a ?? "", b ?? ""], outcomes);
    }
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await store.close();
  }
  tell("of two processes", processRaces, undefined);
}, 600_000);

function startAnswering(file: string): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL("../../support/processes/answer-process.ts", import.meta.url)), [file], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve(child));
    child.once("exit", () => reject(new Error("it ended before it was ready")));
  });
}

function ask(child: ChildProcess, thread: string): Promise<Outcome> {
  return new Promise((resolve) => {
    child.once("message", (outcome) => resolve(outcome as Outcome));
    child.send(thread);
  });
}
