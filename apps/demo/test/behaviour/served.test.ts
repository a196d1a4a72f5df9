/** `npm run demo -- --serve`: the agent over HTTP, the file with its port and token, and its options. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { readOptions } from "../../src/options.ts";
import { describeServedDemo, startServedDemo } from "../../src/serve/serve-demo.ts";

const State = z.object({
  status: z.string(),
  interrupts: z.array(z.object({ id: z.string(), key: z.string() })),
  values: z.object({ messages: z.array(z.object({ role: z.string(), content: z.array(z.unknown()) })) }),
});

function createTree(): { readonly folder: string; readonly target: string; readonly store: string } {
  const folder = mkdtempSync(join(tmpdir(), "served-demo-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const target = join(folder, "tree");
  mkdirSync(target);
  writeFileSync(join(target, "README.md"), "# Teapot\n\nIt pours.\n");
  return { folder, target, store: join(folder, "state", "threads.db") };
}

/** Starts a server, called by this host name: connections of a closed server stay in the pool of fetch by host name. */
async function startServed({ target, store }: { readonly target: string; readonly store: string }, hostName: string) {
  const served = await startServedDemo({ target, store, port: undefined, model: undefined, chunkMs: 0 });
  const send = async (path: string, body?: unknown): Promise<Response> =>
    await fetch(`${served.url.replace("127.0.0.1", hostName)}/api${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${served.token}`, "content-type": "application/json", prefer: "wait=30" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return { ...served, send };
}

const ask = (text: string, id: string) => ({
  graph: "audit",
  input: { messages: [{ role: "user", id, content: [{ type: "text", text }] }] },
});

test("a served demo that starts again has the same port, token and threads, and a call waits for its approval meanwhile", async () => {
  const { folder, ...tree } = createTree();
  const first = await startServed(tree, "127.0.0.1");
  const path = `${tree.store}.connection.json`;
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect((await first.send("/threads/t1/runs", ask("Write a report", "m1"))).status).toBeLessThan(300);
  const waiting = State.parse(await (await first.send("/threads/t1/state")).json());
  expect([waiting.status, waiting.interrupts.map(({ key }) => key)]).toEqual(["waiting", ["approve"]]);
  expect((await fetch(`${first.url}/api/threads/t1/state`)).status).toBe(401);
  await first.close();

  const second = await startServed(tree, "localhost");
  expect([second.url, second.token]).toEqual([first.url, first.token]);
  const answers = { [waiting.interrupts[0]?.id ?? ""]: { approved: true } };
  expect((await second.send("/threads/t1/answers", { answers })).status).toBeLessThan(300);
  const done = State.parse(await (await second.send("/threads/t1/state")).json());
  expect(done.status).toBe("done");
  expect(JSON.stringify(done.values.messages.at(-1)?.content)).toContain("The report is in ");
  expect(readdirSync(join(folder, "state")).filter((name) => name.startsWith("report-"))).toHaveLength(1);
  await second.close();
});

test("the served demo prints ten lines for fetch and ten for the LangGraph SDK, with the path of the token and not the token", () => {
  const text = describeServedDemo({ url: "http://127.0.0.1:4270" }, "/app/threads.db");
  expect(text).toContain('readFileSync("/app/threads.db.connection.json"');
  expect(text).toContain("new Client({ apiUrl:");
  for (const program of text.split("\n\n").filter((part) => part.includes("readFileSync(")))
    expect(program.split("\n").length).toBeLessThanOrEqual(11);
});

test("the printed programs with fetch ask the served demo for a report and approve its call", async () => {
  const { folder, ...tree } = createTree();
  const served = await startServed(tree, "127.0.0.1");
  const parts = describeServedDemo(served, tree.store).split("\n\n");
  const start = async (name: string, ...args: readonly string[]) => {
    const program = parts[parts.findIndex((part) => part.endsWith(`as ${name}:`)) + 1] ?? "";
    writeFileSync(join(folder, name), program);
    return (await promisify(execFile)(process.execPath, [join(folder, name), ...args])).stdout;
  };
  expect(await start("talk.mjs", "Write a report")).toContain("event: run.waiting");
  expect(await start("approve.mjs")).toContain("The report is in ");
  expect(await start("talk.mjs")).toContain("event: run.completed");
  await served.close();
});

test("options of the served demo and of the acts of the demo are not mixed", () => {
  expect(() => readOptions(["--port", "1"])).toThrow("--port is an option of --serve. Add --serve.");
  expect(() => readOptions(["--serve", "--json"])).toThrow(
    "--json is not an option of --serve. Remove one of the two.",
  );
  expect(() => readOptions(["--serve", "--port", "x"])).toThrow('--port: expected an integer from 0 to 65535, got "x"');
  expect(() => readOptions(["--serve", "--store", "threads.db"])).toThrow("is in the folder that the agent reads");
  expect(readOptions(["--serve", "--store", "/app/threads.db", "--port", "0"])).toMatchObject({
    serve: { store: "/app/threads.db", port: 0 },
  });
});
