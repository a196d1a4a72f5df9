/** Worker in a child process of Node, which real signals end and stop. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Delivery, DeliveryResult } from "@statewright/core/adapter";
import type { WorkerOptions } from "@statewright/testing/conformance";
import type { DeliveryReply } from "./delivery-process.ts";
import { StoreFailedError, storeFile, type Worker, WorkerLostError } from "./worker.ts";

const file = fileURLToPath(new URL("./delivery-process.ts", import.meta.url));

interface OpenDelivery {
  readonly resolve: (result: DeliveryResult) => void;
  readonly reject: (error: Error) => void;
}

export function createProcessWorker(folder: string, { version = 1, clockOffsetMs = 0 }: WorkerOptions): Worker {
  const child = spawn(process.execPath, ["--no-warnings", file, folder, String(version), String(clockOffsetMs)], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { NODE_COMPILE_CACHE: join(folder, "compiled"), ...process.env },
  });
  const open = new Map<number, OpenDelivery>();
  let count = 0;

  function loseAll(): void {
    for (const { reject } of open.values()) reject(new WorkerLostError());
    open.clear();
  }

  createInterface({ input: child.stdout }).on("line", (line) => {
    const reply = JSON.parse(line) as DeliveryReply;
    const waiting = open.get(reply.id);
    open.delete(reply.id);
    if ("result" in reply) waiting?.resolve(reply.result);
    else waiting?.reject(new StoreFailedError(reply.error));
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  void closed.then(loseAll);
  child.stdin.on("error", loseAll);
  return {
    deliver: (delivery: Delivery) =>
      new Promise((resolve, reject) => {
        count += 1;
        open.set(count, { resolve, reject });
        child.stdin.write(`${JSON.stringify({ id: count, delivery })}\n`);
      }),
    kill: async () => {
      child.kill("SIGKILL");
      await closed;
    },
    stop: async () => {
      await stopChild(child, folder);
      loseAll();
      return async () => {
        child.kill("SIGCONT");
      };
    },
    end: async () => {
      child.kill("SIGCONT");
      child.stdin.end();
      await closed;
    },
  };
}

/** Stops a child outside of a transaction: a process that is stopped inside one blocks the file for all others. */
async function stopChild(child: ChildProcess, folder: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    child.kill("SIGSTOP");
    if (canWrite(folder)) return;
    if (attempt === maxAttempts) throw new Error(`a stopped worker held a lock of its file ${maxAttempts} times`);
    child.kill("SIGCONT");
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

const maxAttempts = 50;

/** Returns true if another process can take the write lock of the file. */
function canWrite(folder: string): boolean {
  const program = `
    const { DatabaseSync } = require("node:sqlite");
    const db = new DatabaseSync(process.argv[1], { timeout: 250 });
    db.exec("BEGIN IMMEDIATE; ROLLBACK");`;
  const file = join(folder, storeFile);
  return spawnSync(process.execPath, ["--no-warnings", "-e", program, file], { stdio: "ignore" }).status === 0;
}
