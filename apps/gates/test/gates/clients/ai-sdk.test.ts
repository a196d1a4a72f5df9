/** The unmodified `useChat` of the AI SDK against a server in another process, over TCP, on a SQLite file. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { installClients } from "../../../src/clients/install-clients.ts";
import { writeGolden } from "./write-golden.ts";

const token = "a-token-of-the-gate-0123456789";
const words = Array.from({ length: 60 }, (_, index) => `w${index} `).join("");

let folder = "";
beforeAll(async () => {
  folder = await installClients({
    name: "ai-sdk",
    dependencies: {
      ai: "7.0.173",
      "@ai-sdk/react": "4.0.177",
      react: "19.3.1",
      "react-dom": "19.3.1",
      jsdom: "31.0.1",
      zod: "4.3.6",
    },
  });
}, 300_000);

const shownMessage = z.object({
  id: z.string(),
  role: z.enum(["user", "assistant"]),
  parts: z.array(z.looseObject({ type: z.string() })),
});
const shownPage = z.object({
  messages: z.array(shownMessage),
  status: z.enum(["submitted", "streaming", "ready", "error"]),
  error: z.string().optional(),
  text: z.string(),
});
const response = z.object({ value: z.unknown().optional(), error: z.string().optional() });
const seenRequests = z.array(z.object({ method: z.string(), path: z.string(), status: z.number() }));
const seenStreams = z.object({ streams: z.array(z.array(z.string())), issues: z.array(z.string()) });

type ShownPage = z.infer<typeof shownPage>;

/** Kills a child and waits for its end. */
async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

interface Server {
  readonly url: string;
  /** Lets the model say this many words more of its answer to "long". */
  readonly say: (count: number) => void;
  readonly kill: () => Promise<void>;
}

/** Starts a server process on a file, and returns its URL. */
async function startServer(file: string, port = 0): Promise<Server> {
  const program = fileURLToPath(new URL("ai-sdk-server.ts", import.meta.url));
  const child = spawn(process.execPath, [program, file, token, String(port)], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => kill(child));
  const say = (count: number): void => void child.stdin.write(`${count}\n`);
  for await (const line of createInterface({ input: child.stdout })) return { url: line, say, kill: () => kill(child) };
  throw new Error("the server ended before it was ready");
}

/** Page with `useChat`. */
interface Page {
  readonly command: (command: string, options?: object) => Promise<unknown>;
  /** Opens a chat; the page before is closed. */
  readonly open: (options: object) => Promise<ShownPage>;
  readonly until: (condition: object) => Promise<ShownPage>;
  readonly countPosts: () => Promise<number>;
}

/** Starts a page process. */
async function startPage(url: string): Promise<Page> {
  const program = fileURLToPath(new URL("ai-sdk-page.mjs", import.meta.url));
  const child = spawn(process.execPath, [program, folder, url, token], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => kill(child));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const command = async (name: string, options: object = {}): Promise<unknown> => {
    child.stdin.write(`${JSON.stringify({ command: name, ...options })}\n`);
    const { value: line } = await lines.next();
    const answer = response.parse(JSON.parse(line ?? '{"error":"the page has ended"}'));
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer.value;
  };
  return {
    command,
    open: async (options) => shownPage.parse(await command("open", { id: "t1", ...options })),
    until: async (condition) => shownPage.parse(await command("until", condition)),
    countPosts: async () =>
      seenRequests.parse(await command("requests")).filter(({ method }) => method === "POST").length,
  };
}

async function openChat() {
  const data = mkdtempSync(join(tmpdir(), "ai-sdk-gate-"));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const file = join(data, "threads.db");
  const server = await startServer(file);
  const page = await startPage(server.url);
  return { file, server, page };
}

/** Checks what was streamed and what is shown by the package itself, and that a reload shows the same. */
async function checkPage(page: Page): Promise<void> {
  const { streams, issues } = seenStreams.parse(await page.command("streams"));
  expect(issues).toEqual([]);
  for (const lines of streams) {
    if (lines.some((line) => line.startsWith("broken: "))) continue;
    expect(lines.at(-1)).toBe("[DONE]");
    expect(lines.filter((line) => line.includes('"interrupted"'))).toEqual([]);
  }
  const shown = shownPage.parse(await page.command("state"));
  await page.command("validate", {});
  const stored = z.array(shownMessage).parse(await page.command("messages", { id: "t1" }));
  await page.command("validate", { messages: stored });
  expect(stored.map(({ id, role }) => [id, role])).toEqual(shown.messages.map(({ id, role }) => [id, role]));
}

/** Writes the golden file of a scenario that the page has passed. */
async function keepGolden(name: string, { file, page }: { readonly file: string; readonly page: Page }): Promise<void> {
  const { streams } = seenStreams.parse(await page.command("streams"));
  writeGolden(name, `${file}.tapes`, streams);
}

/** Part of a tool in the last message. */
function findTool({ messages }: ShownPage, tool: string): Readonly<Record<string, unknown>> {
  const found = messages.at(-1)?.parts.findLast(({ type }) => type === `tool-${tool}`);
  if (found === undefined) throw new Error(`the page shows no tool ${tool}: ${JSON.stringify(messages)}`);
  return found;
}

function getApprovalId(part: Readonly<Record<string, unknown>>): string {
  return z.object({ id: z.string() }).parse(part["approval"]).id;
}

test("useChat shows text and tools of a run, and a reload shows the same [V64]", async () => {
  const { file, page } = await openChat();
  await page.open({});
  await page.command("send", { text: "look at the sea" });
  const shown = await page.until({ status: "ready", text: "done" });
  expect(shown.messages.at(-1)?.parts).toMatchObject([
    { type: "step-start" },
    { type: "text", text: "I look.", state: "done" },
    { type: "tool-look", state: "output-available", input: { at: "at the sea" }, output: { seen: "at the sea" } },
    { type: "step-start" },
    { type: "text", text: "The tools are done with look at the sea.", state: "done" },
  ]);
  await checkPage(page);
  const { streams } = seenStreams.parse(await page.command("streams"));
  const read = shownMessage.parse(await page.command("read", { lines: streams[0] }));
  expect(read.parts).toEqual(shown.messages.at(-1)?.parts);
  const reloaded = await page.open({ load: true, resume: true });
  expect(reloaded.messages.at(-1)?.parts).toEqual(shown.messages.at(-1)?.parts);
  await keepGolden("tool", { file, page });
});

test("useChat approves a call and denies another, and sends the answers by itself [V64]", async () => {
  const { file, page } = await openChat();
  await page.open({ automatic: "approvals" });
  await page.command("send", { text: "pay Ada Bob" });
  const asked = await page.until({ status: "ready", state: "approval-requested" });
  const calls = asked.messages.at(-1)?.parts.filter(({ type }) => type === "tool-pay") ?? [];
  expect(calls).toHaveLength(2);
  const [first, second] = calls.map(getApprovalId);
  await page.command("approve", { id: first, approved: true });
  await page.command("approve", { id: second, approved: false, reason: "too much" });
  const done = await page.until({ status: "ready", text: "done" });
  expect(done.messages.at(-1)?.parts).toMatchObject([
    { type: "step-start" },
    { state: "output-available", output: "Paid Ada.", approval: { approved: true } },
    { state: "output-denied", approval: { approved: false, reason: "too much" } },
    { type: "step-start" },
    { type: "text", text: "The tools are done with pay Ada Bob." },
  ]);
  expect(await page.countPosts()).toBe(2);
  await checkPage(page);
  await keepGolden("two-interrupts", { file, page });
});

test("useChat runs a client tool, and sends its output by itself [V64]", async () => {
  const { file, page } = await openChat();
  await page.open({ automatic: "tools" });
  await page.command("send", { text: "color please" });
  const asked = await page.until({ status: "ready", state: "input-available" });
  const part = findTool(asked, "pick_color");
  expect(part).toMatchObject({ input: { question: "Which color?" } });
  await page.command("output", { tool: "pick_color", toolCallId: part["toolCallId"], output: { color: "red" } });
  const done = await page.until({ status: "ready", text: "done" });
  expect(findTool(done, "pick_color")).toMatchObject({ state: "output-available", output: { color: "red" } });
  expect(await page.countPosts()).toBe(2);
  await checkPage(page);
  await keepGolden("client-tool", { file, page });
});

test("useChat regenerates an answer and edits a message [V64]", async () => {
  const { file, page } = await openChat();
  await page.open({});
  await page.command("send", { text: "one" });
  await page.until({ status: "ready", text: "You said one." });
  await page.command("send", { text: "two" });
  const before = await page.until({ status: "ready", text: "You said two." });
  await page.command("regenerate");
  await page.until({ status: "submitted" });
  const again = await page.until({ status: "ready", text: "You said two." });
  expect(again.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect(again.messages.at(-1)?.id).not.toBe(before.messages.at(-1)?.id);
  await checkPage(page);
  await page.command("send", { text: "three", messageId: again.messages[0]?.id });
  const edited = await page.until({ status: "ready", text: "You said three." });
  expect(edited.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  await checkPage(page);
  await keepGolden("fork", { file, page });
});

test("a reload in the middle of an answer shows each word once [V64]", async () => {
  const { page, server } = await openChat();
  await page.open({});
  await page.command("send", { text: "long" });
  for (const word of ["w14 ", "w29 ", "w44 "]) {
    server.say(15);
    await page.until({ text: word });
    await page.open({ load: true, resume: true });
    // Only then more words: a run that ends before the page has asked for its stream has no stream.
    await page.until({ text: word });
  }
  server.say(15);
  const done = await page.until({ status: "ready", text: "w59 " });
  expect(done.text).toBe(words);
  expect(done.messages).toHaveLength(2);
  await checkPage(page);
});

test("closing the page ends no run, and the stop route ends it [V31, V60, V64]", async () => {
  const { file, page, server } = await openChat();
  await page.open({});
  await page.command("send", { text: "long" });
  server.say(5);
  await page.until({ text: "w4 " });
  // Only the connection: the run goes on.
  await page.command("stop");
  server.say(5);
  await page.open({ load: true, resume: true });
  await page.until({ text: "w9 " });
  const stopped = await page.command("call", { method: "POST", path: "/ui/chat/t1/stop", body: {} });
  expect(stopped).toMatchObject({ status: 202, body: { stopped: true } });
  const ended = await page.until({ status: "ready" });
  expect(ended.text).not.toContain("w59");
  expect(await page.command("call", { method: "GET", path: "/ui/chat/t1/stream" })).toMatchObject({ status: 204 });
  await keepGolden("cancel", { file, page });
});

test("useChat shows exactly the second text of a model that has failed in the middle of the first [V32, V64]", async () => {
  const { file, page } = await openChat();
  await page.open({});
  await page.command("send", { text: "retract" });
  const done = await page.until({ status: "ready", text: "You said retract." });
  expect(done.messages.at(-1)?.parts).toMatchObject([
    { type: "step-start" },
    { type: "text", text: "You said retract." },
  ]);
  await checkPage(page);
  await keepGolden("retraction", { file, page });
});

test("useChat shows the code of a failed run, and nothing of its message [V64]", async () => {
  const { file, page } = await openChat();
  await page.open({});
  await page.command("send", { text: "fail" });
  const failed = await page.until({ status: "error" });
  expect(failed.error).toMatch(/^\w+_failed: /);
  expect(failed.error).not.toContain("sk-123");
  await keepGolden("failure", { file, page });
});

test("a killed server in the middle of an answer costs the page nothing after it has resumed [V64]", async () => {
  const { file, page, server } = await openChat();
  const port = Number(new URL(server.url).port);
  await page.open({});
  await page.command("send", { text: "long" });
  server.say(20);
  await page.until({ text: "w19 " });
  await server.kill();
  await page.until({ status: "error" });
  const next = await startServer(file, port);
  await page.command("resume");
  next.say(60);
  const done = await page.until({ status: "ready", text: "w59 " });
  expect(done.text).toBe(words);
  expect(done.messages).toHaveLength(2);
  await checkPage(page);
  await keepGolden("crash", { file, page });
});

test("an answer from another tab makes a page with automatic sending post at most twice [V59]", async () => {
  const { server, page } = await openChat();
  await page.open({ automatic: "approvals" });
  await page.command("send", { text: "pay Ada" });
  const asked = await page.until({ status: "ready", state: "approval-requested" });
  const id = getApprovalId(findTool(asked, "pay"));
  const other = await startPage(server.url);
  await other.open({ load: true, automatic: "approvals" });
  await other.command("approve", { id, approved: true });
  await other.until({ status: "ready", text: "done" });
  const before = await page.countPosts();
  await page.command("approve", { id, approved: true });
  await page.until({ status: "error" });
  expect((await page.countPosts()) - before).toBeLessThanOrEqual(2);
});

test("useChat answers another interrupt as the output of a tool [V64]", async () => {
  const { file, page } = await openChat();
  await page.open({ graph: "trip", automatic: "tools" });
  await page.command("send", { text: "plan" });
  const asked = await page.until({ status: "ready", state: "input-available" });
  const part = findTool(asked, "which_city");
  expect(part).toMatchObject({ input: { cities: ["Oslo", "Rome"] }, toolMetadata: { interrupt: "which_city" } });
  await page.command("output", { tool: "which_city", toolCallId: part["toolCallId"], output: { city: "Rome" } });
  await page.until({ status: "ready", state: "output-available" });
  await page.command("validate", {});
  const stored = z.array(shownMessage).parse(await page.command("messages", { id: "t1", graph: "trip" }));
  expect(stored.at(-1)?.parts).toMatchObject([
    { type: "step-start" },
    { type: "tool-which_city", state: "output-available", output: { city: "Rome" } },
    { type: "step-start" },
  ]);
  expect(await page.countPosts()).toBe(2);
  await keepGolden("other-interrupt", { file, page });
});

test("useChat shows an agent with a sub-agent, and calls in parallel [V64]", async () => {
  const boss = await openChat();
  await boss.page.open({ graph: "boss" });
  await boss.page.command("send", { text: "go" });
  const delegated = await boss.page.until({ status: "ready", text: "It is done." });
  expect(delegated.messages.at(-1)?.parts).toMatchObject([
    { type: "step-start" },
    { type: "tool-helper", state: "output-available", output: "I have looked." },
    { type: "step-start" },
    { type: "text", text: "It is done." },
  ]);
  await keepGolden("sub-agent", boss);
  const { file, page } = await openChat();
  await page.open({});
  await page.command("send", { text: "both" });
  const both = await page.until({ status: "ready", text: "done" });
  expect(both.messages.at(-1)?.parts.filter(({ state }) => state === "output-available")).toHaveLength(2);
  await checkPage(page);
  await keepGolden("parallel-tools", { file, page });
  await page.open({ id: "t2" });
  await page.command("send", { text: "hello" });
  await page.until({ status: "ready", text: "You said hello." });
});
