import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";

test("the program of the page serves a run to a LangGraph client", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "langgraph-server-"));
  const token = "a-token-of-at-least-16-characters";
  const program = fileURLToPath(new URL("langgraph-server.ts", import.meta.url));
  const env = { ...process.env, PORT: "0", TOKEN: token };
  const child = spawn(process.execPath, [program], { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
    rmSync(cwd, { recursive: true, force: true });
  });
  const lines = createInterface({ input: child.stdout });
  const url = await new Promise<string>((resolve) => {
    lines.on("line", (line) => line.startsWith("http") && resolve(line));
  });
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${url}/langgraph${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": token },
      body: JSON.stringify(body),
    });
  const { thread_id: thread } = z.object({ thread_id: z.string() }).parse(await (await post("/threads", {})).json());
  const input = { messages: [{ type: "human", content: "Oslo?" }] };
  const stream = await post(`/threads/${thread}/runs/stream`, { assistant_id: "assistant", input });
  const text = await stream.text();
  expect(text).toContain("event: metadata");
  expect(text).toContain("It rains in Oslo.");
  expect(text.trimEnd().split("\n").slice(-2).join("\n")).toMatch(/^event: end\ndata: \{.*"status":"success"\}$/);
});
