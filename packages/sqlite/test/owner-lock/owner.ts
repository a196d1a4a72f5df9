/**
 * Owner process: runs the cells given as JSON argument, and prints what happened. The owner acts at its stage, lets
 * another process open, write and close the store, and writes on.
 */
import { spawn, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import type { Store } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { createEffectRow, createSuperstep, graph, saveCommit } from "../support/rows.ts";
import { actions } from "./actions.ts";
import type { Cell, CellResult } from "./matrix.ts";
import type { Check, Request, Work } from "./requests.ts";

/** Work around COMMIT of the owner's next transaction. */
let hooks: { readonly before?: () => void; readonly after?: () => void } = {};

/** Runs the hooks around a COMMIT. */
function runHooked<Result>(run: () => Result): Result {
  const { before, after } = hooks;
  hooks = {};
  before?.();
  const result = run();
  after?.();
  return result;
}

const prepare = Database.prototype.prepare<[]>;
Object.defineProperty(Database.prototype, "prepare", {
  value(this: Database.Database, source: string): Database.Statement<[]> {
    const statement = prepare.call(this, source);
    if (source !== "COMMIT") return statement;
    const run = statement.run.bind(statement);
    statement.run = () => runHooked(run);
    return statement;
  },
});

const { prepare: prepareInNode } = DatabaseSync.prototype;
Object.defineProperty(DatabaseSync.prototype, "prepare", {
  value(this: DatabaseSync, source: string): ReturnType<typeof prepareInNode> {
    const statement = prepareInNode.call(this, source);
    if (source !== "COMMIT") return statement;
    const run = statement.run.bind(statement);
    statement.run = () => runHooked(run);
    return statement;
  },
});

const home = mkdtempSync(join(tmpdir(), "statewright-rival-"));
const [requests, answers] = [join(home, "requests"), join(home, "answers")];
spawnSync("mkfifo", [requests, answers]);
// An empty folder as the path hides the program flock from this process and the other one.
if (process.argv[3] === "absent") process.env["PATH"] = home;
const rival = spawn(process.execPath, [fileURLToPath(new URL("rival.ts", import.meta.url)), requests, answers], {
  stdio: ["ignore", "ignore", "inherit"],
});
const output = openSync(requests, "w");
const input = openSync(answers, "r");

/** Asks the other process and waits, also inside a transaction. */
function ask<Answer>(request: Request): Answer {
  writeSync(output, JSON.stringify(request));
  const buffer = Buffer.alloc(4_096);
  let text = "";
  while (!text.endsWith("\n")) {
    const size = readSync(input, buffer);
    if (size === 0) throw new Error("the other process ended");
    text += buffer.toString("utf8", 0, size);
  }
  return JSON.parse(text);
}

async function attempt(run: () => unknown): Promise<string> {
  try {
    await run();
    return "ok";
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown ? String(thrown.code) : String(thrown);
  }
}

async function runCell(cell: Cell): Promise<CellResult> {
  const folder = mkdtempSync(join(cell.base, "statewright-owner-"));
  const file = join(folder, "agent.db");
  let work: Work = { opened: "none", owned: "none", own: "none" };
  let acted = "none";
  const act = (): void => {
    if (cell.place === "outside") {
      acted = ask<string>({ do: "act", file, action: cell.action });
      return;
    }
    try {
      actions[cell.action]?.(file);
      acted = "ok";
    } catch (thrown) {
      acted = String(thrown);
    }
  };
  const interfere = (): void => {
    act();
    work = ask<Work>({ do: "work", file });
  };
  const store = sqliteStore(file, { driver: cell.driver });
  const written: string[] = [];
  try {
    const claim = await store.claim({ ...graph, thread: "t" });
    const save = (id: number): Promise<string> => attempt(() => saveCommit(store, createSuperstep("t", claim, id)));
    await save(1);
    if (cell.stage === "idle") interfere();
    if (cell.stage === "once effect") {
      await startEffect(store, claim);
      interfere();
    }
    if (cell.stage === "before COMMIT")
      hooks = {
        before: () => {
          act();
          ask<string>({ do: "write", file });
        },
      };
    if (cell.stage === "after COMMIT") hooks = { after: interfere };
    written.push(await save(2));
    if (cell.stage === "before COMMIT") work = ask<Work>({ do: "work", file });
    written.push(await save(3));
  } finally {
    hooks = {};
    await store.close();
  }
  const checked = ask<Check>({ do: "check", file });
  for (const path of [folder, `${folder}-copy`]) rmSync(path, { recursive: true, force: true });
  return { ...cell, acted, work, written, checked };
}

function startEffect(store: Store, claim: { readonly epoch: number; readonly branch: string }): Promise<void> {
  const { outcome: _, endedAt: __, ...started } = createEffectRow(1);
  return saveCommit(store, {
    thread: "t",
    branch: claim.branch,
    epoch: claim.epoch,
    seq: 1,
    effects: [{ ...started, state: "started" }],
  });
}

const cells: readonly Cell[] = JSON.parse(process.argv[2] ?? "[]");
for (const cell of cells) process.stdout.write(`${JSON.stringify(await runCell(cell))}\n`);
closeSync(output);
rival.kill();
rmSync(home, { recursive: true, force: true });
