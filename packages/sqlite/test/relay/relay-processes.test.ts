/** Text of runs in other processes: real workers, real sockets, real kills. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type SocketRelay, type SqliteStore, socketRelay, sqliteStore } from "../../src/index.ts";
import { readBytes } from "../support/database-file.ts";
import { startTalkingWorker, type TalkingWorker } from "../support/talking-worker.ts";
import { watchThread } from "../support/thread-watcher.ts";

let folder: string;
let file: string;
let store: SqliteStore;
let relay: SocketRelay;
const workers: TalkingWorker[] = [];
const runtimeFolder = process.env["XDG_RUNTIME_DIR"];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relay-"));
  process.env["XDG_RUNTIME_DIR"] = folder;
  file = join(folder, "agent.db");
  store = sqliteStore(file);
  relay = socketRelay(file);
});

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
  relay.close();
  await store.close();
  if (runtimeFolder === undefined) delete process.env["XDG_RUNTIME_DIR"];
  else process.env["XDG_RUNTIME_DIR"] = runtimeFolder;
  rmSync(folder, { recursive: true });
});

async function startWorker(): Promise<TalkingWorker> {
  const worker = await startTalkingWorker(file);
  workers.push(worker);
  return worker;
}

/** Starts a run of a thread in a worker, up to the request of its model. */
async function ask(worker: TalkingWorker, thread: string): Promise<void> {
  worker.order({ do: "ask", thread });
  await worker.waitFor("requested");
}

/** Names of the sockets in the folder of the file. */
function listSockets(): readonly string[] {
  const base = join(folder, "statewright");
  return readdirSync(base).flatMap((key) => readdirSync(join(base, key)));
}

test("a reader of another process sees the words of a worker as they come, and every word once at each reload [SE6]", async () => {
  const worker = await startWorker();
  await ask(worker, "t");
  const words = Array.from({ length: 60 }, (_, index) => `word${index} `);
  for (const [index, word] of words.entries()) {
    const texts: string[] = [];
    const watcher = watchThread(store, { thread: "t", relay, onText: (text) => texts.push(text) });
    await watcher.waitForEvent("snapshot");
    expect(watcher.getText()).toBe(words.slice(0, index).join(""));
    worker.order({ do: "say", word });
    await watcher.waitForText(words.slice(0, index + 1).join(""));
    await watcher.stop();
  }
  const text = words.join("");
  expect(readBytes(file)).not.toContain("word1 ");
  const last = watchThread(store, { thread: "t", relay });
  await last.waitForText(text);
  worker.order({ do: "finish" });
  await worker.waitFor("ended");
  await last.waitForEvent("run.completed");
  expect(last.getText()).toBe(text);
  await last.stop();
  await worker.stop();
  expect(listSockets()).toEqual([]);
});

test("a worker is killed in mid-sentence, another one continues its run, and the reader ends with every word once [SE6]", async () => {
  const first = await startWorker();
  await ask(first, "t");
  const shown: string[] = [];
  const watcher = watchThread(store, { thread: "t", relay, onText: (text) => shown.push(text) });
  await watcher.waitForEvent("snapshot");
  for (const word of ["In ", "Oslo ", "it "]) first.order({ do: "say", word });
  await watcher.waitForText("In Oslo it ");
  await first.kill();
  await watcher.waitForText("");
  const second = await startWorker();
  await second.waitFor("requested");
  for (const word of ["In ", "Oslo ", "it ", "rains"]) second.order({ do: "say", word });
  await watcher.waitForText("In Oslo it rains");
  second.order({ do: "finish" });
  await watcher.waitForEvent("run.completed");
  expect(watcher.getText()).toBe("In Oslo it rains");
  expect(shown.filter((text) => !"In Oslo it rains".startsWith(text))).toEqual([]);
  await watcher.stop();
  expect(listSockets()).toHaveLength(1);
});

test("two workers and two readers of one file: each reader sees the words of its thread only [SE6]", async () => {
  const [north, south] = [await startWorker(), await startWorker()];
  await Promise.all([ask(north, "north"), ask(south, "south")]);
  const otherRelay = socketRelay(file);
  const watchers = [
    watchThread(store, { thread: "north", relay }),
    watchThread(store, { thread: "south", relay }),
    watchThread(store, { thread: "south", relay: otherRelay }),
  ];
  for (let turn = 0; turn < 20; turn++) {
    north.order({ do: "say", word: `n${turn} ` });
    south.order({ do: "say", word: `s${turn} ` });
  }
  const toText = (letter: string): string => Array.from({ length: 20 }, (_, turn) => `${letter}${turn} `).join("");
  await Promise.all(["n", "s", "s"].map((letter, nth) => watchers[nth]?.waitForText(toText(letter))));
  await Promise.all(watchers.map((watcher) => watcher.stop()));
  otherRelay.close();
});
