/**
 * Server process of the gate `servers`. Arguments: folder, port (0: a free one). Loads its modules, prints `standby`,
 * and opens the store and listens after a line on stdin: a process can stand by for the death of another one.
 */
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { serve } from "@statewright/server";
import { uiStream } from "@statewright/server/ai-sdk";
import { langgraph } from "@statewright/server/langgraph";
import { socketRelay, sqliteStore } from "@statewright/sqlite";
import { engine } from "statewright";
import { createServedChat } from "./served-chat.ts";

/** Output line of this process. */
export type ServerMessage = { readonly kind: "standby" } | { readonly kind: "listening"; readonly port: number };

/** Token of the server. */
export const serverToken = "token-of-the-gate-0123456789";

function sendMessage(message: ServerMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function listen(folder: string, port: number): Promise<void> {
  const lines = createInterface({ input: process.stdin });
  const isAwaited = new Promise((resolve) => lines.once("line", resolve));
  // The gate has ended.
  lines.once("close", () => process.exit(0));
  sendMessage({ kind: "standby" });
  await isAwaited;
  const file = join(folder, "threads.db");
  const store = sqliteStore(file, { durability: "normal" });
  await store.threads({});
  const host = engine({
    store,
    graphs: [createServedChat(join(folder, "payments.txt"))],
    relay: socketRelay(file),
    pollMs: 200,
  });
  await host.start();
  const server = serve({
    engine: host,
    access: { token: serverToken },
    protocols: [langgraph(), uiStream()],
    limits: { streamsPerCaller: 500 },
    log: (level, message, details) => {
      if (level === "error") process.stderr.write(`${message} ${JSON.stringify(details)} ${describeError(details)}\n`);
    },
  });
  const listener = await server.listen({ port });
  sendMessage({ kind: "listening", port: listener.port });
}

function describeError(details: unknown): string {
  const error: unknown = typeof details === "object" && details !== null ? Reflect.get(details, "error") : undefined;
  return error instanceof Error ? String(error.stack) : "";
}

const [folder, port] = process.argv.slice(2);
if (folder !== undefined && import.meta.main) await listen(folder, Number(port ?? 0));
