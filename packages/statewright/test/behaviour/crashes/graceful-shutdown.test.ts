/** A process that serves threads: SIGTERM, two SIGTERMs and SIGKILL; the next process continues. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { sqliteStore } from "statewright";
import { listRuns } from "statewright/inspect";
import type { RunRow } from "statewright/store";
import { afterEach, beforeEach, expect, test } from "vitest";

let home: string;
let children: ChildProcess[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "statewright-serving-"));
  children = [];
});

afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

interface Served {
  readonly child: ChildProcess;
  /** Waits for a printed line. */
  said(line: string): Promise<void>;
  /** Exit code, or the signal that ended the process. */
  readonly ended: Promise<number | string | null>;
  readonly lines: readonly string[];
}

/** Starts the program of the documentation with these orders. */
function serve(...orders: string[]): Served {
  const program = fileURLToPath(new URL("../../docs/serving/serving-threads.ts", import.meta.url));
  const child = spawn(process.execPath, [program, ...orders], {
    cwd: home,
    env: {
      PATH: process.env["PATH"],
      PAY_KEY: "k",
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      NODE_OPTIONS: process.env["NODE_OPTIONS"],
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let rest = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
    for (const look of waiting) look();
  });
  const ended = new Promise<number | string | null>((resolve) => {
    child.on("close", (code, signal) => resolve(code ?? signal));
  });
  const waitForLine = (line: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!lines.includes(line)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      ended.then((code) => reject(new Error(`it ended with ${code} before it said "${line}"`)), reject);
    });
  return { child, said: waitForLine, ended, lines };
}

async function runs(): Promise<readonly (readonly [string, RunRow["status"], number])[]> {
  const store = sqliteStore(join(home, "transfers.db"));
  try {
    return (await listRuns(store)).map(({ thread, status, attempt }) => [thread, status, attempt] as const);
  } finally {
    await store.close();
  }
}

const finishOrder = (order: string): void => writeFileSync(join(home, `${order}.settled`), "");

test("SIGTERM drains a process that serves threads: it exits with 0, and the next process continues [C24, F8]", async () => {
  const first = serve("a", "b");
  await first.said("waiting for the bank: a");
  await first.said("waiting for the bank: b");
  first.child.kill("SIGTERM");
  await first.said("stopping");
  finishOrder("a");
  finishOrder("b");
  expect(await first.ended).toBe(0);
  expect(first.lines.filter((line) => line.startsWith("a ")).at(-1)).toBe("a run.paused");
  expect(await runs()).toEqual([
    ["b", "paused", 1],
    ["a", "paused", 1],
  ]);
  const second = serve();
  await waitUntilDone("a", "b");
  second.child.kill("SIGTERM");
  expect(await second.ended).toBe(0);
  expect(await runs()).toEqual([
    ["b", "done", 2],
    ["a", "done", 2],
  ]);
  const third = serve("a");
  await third.said("serving");
  third.child.kill("SIGTERM");
  expect(await third.ended).toBe(0);
  expect(third.lines).not.toContain("waiting for the bank: a");
});

test("a second SIGTERM ends the process at once, and its runs read as crashed [C24, F8]", async () => {
  const first = serve("a");
  await first.said("waiting for the bank: a");
  first.child.kill("SIGTERM");
  await first.said("stopping");
  first.child.kill("SIGTERM");
  expect(await first.ended).toBe("SIGTERM");
  expect(await runs()).toEqual([["a", "crashed", 1]]);
  finishOrder("a");
  const second = serve();
  await waitUntilDone("a");
  second.child.kill("SIGTERM");
  expect(await second.ended).toBe(0);
  expect(await runs()).toEqual([["a", "done", 2]]);
});

test("after a SIGKILL the next process continues the active runs of the killed one [C24]", async () => {
  const first = serve("a", "b");
  await first.said("waiting for the bank: a");
  await first.said("waiting for the bank: b");
  first.child.kill("SIGKILL");
  expect(await first.ended).toBe("SIGKILL");
  const second = serve();
  await second.said("waiting for the bank: a");
  await second.said("waiting for the bank: b");
  second.child.kill("SIGKILL");
  await second.ended;
  finishOrder("a");
  finishOrder("b");
  const third = serve();
  await waitUntilDone("a", "b");
  third.child.kill("SIGTERM");
  expect(await third.ended).toBe(0);
  expect(await runs()).toEqual([
    ["b", "done", 3],
    ["a", "done", 3],
  ]);
});

/** Polls until the runs of these threads are done, like another process. */
async function waitUntilDone(...threads: string[]): Promise<void> {
  const store = sqliteStore(join(home, "transfers.db"));
  try {
    for (;;) {
      const done = await listRuns(store, { status: "done" });
      if (threads.every((thread) => done.some((row) => row.thread === thread))) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    await store.close();
  }
}
