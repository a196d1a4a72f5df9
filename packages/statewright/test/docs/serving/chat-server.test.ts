import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";

const program = fileURLToPath(new URL("chat-server.ts", import.meta.url));
const Address = z.object({ port: z.number() });
const Update = z.looseObject({ type: z.string(), text: z.string().optional() });
const Interrupts = z.looseObject({ interrupts: z.array(z.looseObject({ id: z.string() })) });
const Chat = z.object({
  status: z.string(),
  messages: z.array(z.looseObject({ role: z.string() })),
  interrupts: z.array(z.unknown()),
});

test("the chat server serves two users, approves a transfer after a kill, and loses nothing by a kill during an answer", async () => {
  const folder = await mkdtemp(join(tmpdir(), "chat-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  let server = await serve(folder);
  const words = { id: "m1", text: "Send Bob five euros." };
  const asked = server.listens("ann", "c1", "interrupts");
  await asked.firstResponse;
  expect(await server.posts("ann", "c1", words)).toMatchObject({ status: 200 });
  const [interrupt = { id: "" }] = Interrupts.parse((await asked.all).at(-1)).interrupts;
  expect(interrupt).toMatchObject({ key: "approve", payload: { tool: "transfer", args: { to: "Bob", euros: 5 } } });

  const greeted = server.listens("bob", "c1", "ended");
  await greeted.firstResponse;
  await server.posts("bob", "c1", { id: "m1", text: "Hi." });
  expect((await greeted.all).map(({ type }) => type)).toEqual(["listening", "text", "message", "ended"]);
  expect(await server.gets("bob", "")).toEqual([expect.objectContaining({ id: "bob.c1", status: "done" })]);
  expect(await server.gets("bob", "c2")).toEqual({ error: "unknown_thread" });

  await server.dies();
  server = await serve(folder);
  const verdict = { interrupt: interrupt.id, approved: true };
  const cut = server.listens("ann", "c1", "text");
  await cut.firstResponse;
  expect(await server.posts("ann", "c1/verdicts", verdict)).toMatchObject({ status: 200 });
  expect((await cut.all).map(({ type }) => type)).toEqual(["listening", "tool", "text"]);
  await server.dies();

  server = await serve(folder);
  const rest = server.listens("ann", "c1", "ended");
  const chat = async () => Chat.parse(await server.gets("ann", "c1"));
  await rest.firstResponse;
  // The answer may be complete before the next listener connects.
  if ((await chat()).status !== "done") await rest.all;
  const { status, messages, interrupts } = await chat();
  expect([status, messages.map(({ role }) => role), interrupts]).toEqual([
    "done",
    ["user", "assistant", "tool", "assistant"],
    [],
  ]);
  expect(await readFile(join(folder, "bank.txt"), "utf8")).toMatch(/^ann\.c1\/[0-9a-z]{12}\/main\/1:0\/call_1\n$/);
  expect(await server.posts("ann", "c1/verdicts", verdict)).toEqual({
    status: 409,
    body: { error: "already_answered" },
  });
  expect(await server.posts("ann", "c1", words)).toMatchObject({ status: 200 });
  expect((await chat()).messages).toHaveLength(4);
  expect(await server.stops()).toBe(0);
});

/** One process of the server. */
async function serve(folder: string) {
  const child: ChildProcess = spawn(process.execPath, [program], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit");
  const [line] = await once(child.stdout ?? child, "data");
  const base = `http://localhost:${Address.parse(JSON.parse(`${line}`)).port}/chats`;
  const headers = (user: string) => ({ "x-user": user });
  return {
    gets: async (user: string, chat: string): Promise<unknown> =>
      (await fetch(chat === "" ? base : `${base}/${chat}`, { headers: headers(user) })).json(),
    posts: async (user: string, chat: string, body: object) => {
      const response = await fetch(`${base}/${chat}`, {
        method: "POST",
        headers: headers(user),
        body: JSON.stringify(body),
      });
      return { status: response.status, body: await response.json() };
    },
    /** Events that a browser receives, up to the first of a type. */
    listens: (user: string, chat: string, until: string) => {
      const response = fetch(`${base}/${chat}/events`, { headers: headers(user) });
      return { firstResponse: response, all: response.then((stream) => readUpdates(stream, until)) };
    },
    dies: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    stops: async (): Promise<unknown> => {
      child.kill("SIGTERM");
      const [code] = await ended;
      return code;
    },
  };
}

async function readUpdates(response: Response, until: string): Promise<readonly z.infer<typeof Update>[]> {
  const all: z.infer<typeof Update>[] = [];
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      all.push(Update.parse(JSON.parse(block.slice("data: ".length))));
      if (all.at(-1)?.type === until) return all;
    }
  }
  return all;
}
