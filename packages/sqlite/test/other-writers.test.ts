import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { StatewrightError } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../src/file/open-database.ts";
import { createSuperstep, graph, readItems, saveCommit } from "./support/rows.ts";
import { runLimited } from "./support/run-limited.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
});

afterEach(() => home.remove());

/** Starts another program that has the file open. */
async function startOtherWriter(): Promise<{ order(what: "take" | "give"): Promise<void>; end(): void }> {
  const child: ChildProcess = fork(
    fileURLToPath(new URL("./support/processes/lock-process.ts", import.meta.url)),
    [file],
    {
      execArgv: [],
    },
  );
  const waitForMessage = (what: string): Promise<void> =>
    new Promise((resolve, reject) => {
      child.once("exit", () => reject(new Error("the other program ended")));
      child.on("message", (message) => {
        if (message === what) resolve();
      });
    });
  await waitForMessage("ready");
  return {
    order: async (what) => {
      const done = waitForMessage(what);
      child.send(what);
      await done;
    },
    end: () => child.kill("SIGKILL"),
  };
}

describe("a file with other writers [F4]", () => {
  test("a lock held by another program blocks neither reads nor own work nor the commit in the end [F4]", async () => {
    const waits: number[] = [];
    const world = systemWorld();
    const log: typeof world.log = (_level, text, fields) => {
      if (text.includes("locked")) waits.push(Number(fields?.["delayMs"]));
    };
    const store = sqliteStore(file, { world: { ...world, log } });
    const claim = await store.claim({ ...graph, thread: "t" });
    await saveCommit(store, createSuperstep("t", claim, 1));
    const other = await startOtherWriter();
    await other.order("take");
    let observed: "saved" | StatewrightError["code"] | undefined;
    const saved = saveCommit(store, createSuperstep("t", claim, 2)).then(
      () => {
        observed = "saved";
      },
      (error: StatewrightError) => {
        observed = error.code;
      },
    );
    // The event loop turns while the store waits: each turn here is between two attempts.
    while (waits.length < 4) await new Promise<void>((resolve) => setImmediate(resolve));
    expect(observed).toBeUndefined();
    for (const [index, delayMs] of waits.slice(0, 4).entries()) {
      expect(delayMs).toBeGreaterThan(0);
      expect(delayMs).toBeLessThanOrEqual(2 ** (index + 2));
    }
    expect(await readItems(store, "t")).toEqual(["1"]);
    await other.order("give");
    await saved;
    expect(observed).toBe("saved");
    expect(await readItems(store, "t")).toEqual(["1", "2"]);
    other.end();
    await store.close();
  });

  test("two processes with four writers each commit everything without an error [F4]", async () => {
    const commits = 40;
    const ends = await Promise.all(
      ["one", "two"].map((name) => runLimited("./processes/writers-process.ts", [file, name, "4", String(commits)])),
    );
    expect(ends.map(({ code, said, complaints }) => [code, said, complaints])).toEqual([
      [0, "[]", ""],
      [0, "[]", ""],
    ]);
    const store = sqliteStore(file);
    for (const name of ["one", "two"])
      for (let writer = 0; writer < 4; writer++)
        expect(await readItems(store, `${name}${writer}`)).toHaveLength(commits);
    await store.close();
  });

  test("a SQLite call waits at most 20 ms for a lock", () => {
    const { db } = openDatabase(file);
    expect(db.pragma("busy_timeout", { simple: true })).toBeLessThanOrEqual(20);
    db.close();
  });
});
