import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { UiMessage } from "../../src/ai-sdk/ui-chunk.ts";

test("the program of the page about useChat asks for an approval, and goes on with the answer", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "use-chat-server-"));
  const token = "a-token-of-at-least-16-characters";
  const program = fileURLToPath(new URL("use-chat-server.ts", import.meta.url));
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
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const post = async (messages: readonly object[]): Promise<string> => {
    const body = JSON.stringify({ id: "t1", messages, trigger: "submit-message" });
    return await (await fetch(`${url}/ui/assistant`, { method: "POST", headers, body })).text();
  };
  const question = { id: "m1", role: "user", parts: [{ type: "text", text: "Pay Ada." }] };
  expect(await post([question])).toContain('"type":"tool-approval-request","approvalId":"1:0:call_1"');
  const listMessages = async () =>
    (await (await fetch(`${url}/ui/assistant/t1/messages`, { headers })).json()) as readonly UiMessage[];
  const [, asked] = await listMessages();
  const parts = asked?.parts.map((part) =>
    part["toolCallId"] === "call_1"
      ? { ...part, state: "approval-responded", approval: { id: "1:0:call_1", approved: true } }
      : part,
  );
  const answered = await post([question, { ...asked, parts }]);
  expect(answered).toContain('"output":"Paid 5 to Ada."');
  expect(answered.trimEnd().endsWith("data: [DONE]")).toBe(true);
  expect((await listMessages()).at(-1)?.parts.at(-1)).toMatchObject({ type: "text", text: "Ada has her money." });
});
