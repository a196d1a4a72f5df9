import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@statewright/client";
import { expect, onTestFinished, test } from "vitest";

const program = fileURLToPath(new URL("chat-server.ts", import.meta.url));

/** One process of the server, on a port of its own. */
async function serve(folder: string) {
  const env = { ...process.env, PORT: "0" };
  const child: ChildProcess = spawn(process.execPath, [program], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit");
  const [line] = await once(child.stdout ?? child, "data");
  const url = `${line}`.trim();
  return {
    url,
    talkAs: (session: string) => createClient({ url, token: session }),
    die: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    stop: async () => {
      child.kill("SIGTERM");
      return (await ended)[0];
    },
  };
}

const ask = (id: string, content: string) => ({
  input: { messages: [{ role: "user", id, content }] },
  onBusy: "cancel" as const,
  key: id,
});

test("the chat server serves two users, approves a transfer after a kill, and loses nothing by a kill during an answer [FX52]", async () => {
  const folder = await mkdtemp(join(tmpdir(), "chat-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  let server = await serve(folder);
  const ann = server.talkAs("session-of-ann");
  const asked = await ann.thread("c1").runToRest("assistant", ask("m1", "Send Bob five euros."));
  expect(asked.run.status).toBe("waiting");
  const [interrupt] = asked.state?.interrupts ?? [];
  expect(interrupt).toMatchObject({ key: "approve", payload: { tool: "transfer", args: { to: "Bob", euros: 5 } } });

  const bob = server.talkAs("session-of-bob");
  await expect(bob.thread("c1").get()).rejects.toMatchObject({ code: "unknown_thread" });
  expect((await bob.thread("c1").runToRest("assistant", ask("m1", "Hi."))).run.status).toBe("done");
  expect((await bob.listThreads()).data.map(({ id, status }) => [id, status])).toEqual([["c1", "done"]]);
  await expect(server.talkAs("another-session").listThreads()).rejects.toMatchObject({ status: 401 });

  await server.die();
  server = await serve(folder);
  const answers = { [interrupt?.id ?? ""]: { approved: true } };
  for await (const event of server.talkAs("session-of-ann").thread("c1").streamAnswer({ answers, key: "a1" }))
    if (event.type === "message.delta") break;
  await server.die();

  server = await serve(folder);
  const thread = server.talkAs("session-of-ann").thread("c1");
  const types: string[] = [];
  for await (const event of thread.events({ end: "idle" })) types.push(event.type);
  expect(types.filter((type) => type === "run.completed")).toHaveLength(1);
  const { status, values, interrupts } = await thread.state();
  const roles = Array.isArray(values["messages"]) ? values["messages"].map(({ role }) => role) : [];
  expect([status, roles, interrupts]).toEqual(["done", ["user", "assistant", "tool", "assistant"], []]);
  expect((await readFile(join(folder, "bank.txt"), "utf8")).trim().split("\n")).toHaveLength(1);
  await expect(thread.answer({ answers })).rejects.toMatchObject({ code: "already_answered", status: 409 });
  expect(
    (await thread.runToRest("assistant", ask("m1", "Send Bob five euros."))).state?.values["messages"],
  ).toHaveLength(4);
  expect(await server.stop()).toBe(0);
});

test("the client of the chat server approves a transfer, and learns that a second answer comes too late", async () => {
  const folder = await mkdtemp(join(tmpdir(), "chat-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const server = await serve(folder);
  const client = fileURLToPath(new URL("chat-client.ts", import.meta.url));
  const args = [client, server.url, "session-of-ann", "c1", "Send Bob five euros."];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toContain('"tool":"transfer"');
  expect(stdout).toContain("ann sent 5 euros to Bob");
  expect(stdout.trim().split("\n").at(-1)).toBe("answered before");
  expect(await server.stop()).toBe(0);
});
