import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";

test("an MCP host starts the example server, calls its tools, and its user answers the elicitation", async () => {
  const folder = mkdtempSync(join(tmpdir(), "statewright-examples-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const client = new Client({ name: "host", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { street: "Hill 2" } }));
  const args = [join(import.meta.dirname, "../src/mcp-server.ts"), join(folder, "parcels.db")];
  const env = { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" };
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" }));
  onTestFinished(() => client.close());
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["parcel", "parcel_continue", "calculator", "process_rows"]);
  const sum = await client.callTool({ name: "calculator", arguments: { expression: "(1 + 2) * 3" } });
  expect(sum.content).toEqual([{ type: "text", text: "(1 + 2) * 3 = 9" }]);
  const observed: (string | undefined)[] = [];
  const rows = { name: "process_rows", arguments: { total: 201 } };
  await client.callTool(rows, { onprogress: ({ message }) => observed.push(message) });
  expect(observed).toEqual(["Processed 0/201 rows", "Processed 100/201 rows", "Processed 200/201 rows"]);
  const sent = await client.callTool({ name: "parcel", arguments: { item: "a book", thread: "book" } });
  expect(sent.structuredContent).toEqual({
    thread: "book",
    status: "done",
    output: { item: "a book", street: "Hill 2" },
  });
});
