/** Tools served over real HTTP, as official clients of each protocol generation list and call them. */
import type { Client } from "@modelcontextprotocol/client";
import {
  decide,
  defineContext,
  defineMiddleware,
  defineTool,
  inject,
  memoryStore,
  ToolError,
  toolRegistry,
} from "@statewright/core";
import { listThreads } from "@statewright/core/inspect";
import { serveMcp } from "@statewright/mcp/server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { connectOverHttp } from "./support/clients.ts";

/** Time limit of the test: it waits only for the other process. */
const patient = { timeout: 60_000 };

const Shop = defineContext({ customerId: z.string() });
const paid: string[] = [];
const stopped: string[] = [];

const refund = defineTool({
  name: "refund",
  label: "Refund an order",
  description: "Return money for one order.",
  input: z.object({ orderId: z.string(), cents: z.int().positive() }),
  output: z.object({ order: z.string(), cents: z.number() }),
  inject: { customer: Shop.from((shop) => shop.customerId), key: inject.secret("PAY_KEY") },
  effect: "idempotent",
  safety: { access: "write", network: ["pay.example"] },
  run: ({ orderId, cents }, { injected, progress }) => {
    progress("Asking the bank");
    paid.push(`${injected.customer} ${injected.key.reveal()} ${orderId} ${cents}`);
    return { content: `Refunded ${cents} with ${injected.key.reveal()}`, value: { order: orderId, cents } };
  },
});

const wipe = defineTool({
  name: "wipe",
  description: "Remove a folder.",
  input: z.object({ folder: z.string() }),
  safety: { access: "destructive", confirm: "always" },
  run: ({ folder }) => {
    paid.push(`wiped ${folder}`);
    return `Wiped ${folder}`;
  },
});

const draw = defineTool({
  name: "draw",
  description: "Draw.",
  input: z.object({}),
  effect: "pure",
  safety: { access: "read", network: false },
  run: () => ({
    content: [
      { type: "text", text: "Here" },
      { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
    ],
  }),
});

const logs = defineTool({
  name: "logs",
  description: "A long log.",
  input: z.object({}),
  limits: { resultBytes: 2_000, artifactBytes: 1_000 },
  run: () => "line\n".repeat(1_000),
});

const wait = defineTool({
  name: "wait",
  description: "Wait until somebody has enough.",
  input: z.object({}),
  run: async (_args, { signal, progress }) => {
    progress("waiting");
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    stopped.push("its signal fired");
    throw ToolError.cancelled();
  },
});

const broken = defineTool({
  name: "broken",
  description: "Fails.",
  input: z.object({}),
  run: () => {
    throw ToolError.notFound("There is no such order.");
  },
});

const nightShift = defineMiddleware({
  name: "nightShift",
  beforeTool: ({ call }) =>
    refund.is(call) && call.args.cents > 10_000 ? decide.deny("Too much for one night") : undefined,
});

describe.each(["2025", "2026"] as const)("an MCP client of %s", (generation) => {
  const store = memoryStore();
  const mcp = serveMcp({
    name: "shop",
    version: "1.0.0",
    tools: toolRegistry([refund, wipe, draw, logs, wait, broken]),
    middleware: [nightShift],
    resources: [
      { uri: "shop://opening", name: "opening", mimeType: "text/plain", read: ({ id }) => `Open for ${id}` },
      { uri: "shop://logo", name: "logo", read: () => new Uint8Array([1, 2, 3]) },
    ],
    context: ({ id }) => ({ customerId: `customer of ${id}` }),
    secrets: { get: () => "sk-very-secret" },
    store,
  });
  let client: Client;
  let at: { readonly url: string; readonly token: string | undefined };
  beforeAll(async () => {
    at = await mcp.listen({ port: 0 });
    client = await connectOverHttp(at, { generation });
  });
  afterAll(async () => {
    await client.close();
    await mcp.close();
  });
  const call = (name: string, args: Record<string, unknown>, by = client) => by.callTool({ name, arguments: args });

  test("an MCP client lists tools like a model sees them, with hints derived from their declarations", async () => {
    const { tools } = await client.listTools();
    const seen = new Map(tools.map((tool) => [tool.name, tool]));
    expect(JSON.stringify(tools)).not.toMatch(/customer|PAY_KEY|inject/);
    expect(seen.get("refund")).toMatchObject({
      title: "Refund an order",
      inputSchema: { type: "object", properties: { orderId: { type: "string" } }, required: ["orderId", "cents"] },
      outputSchema: { type: "object", required: ["order", "cents"] },
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    });
    expect(seen.get("wipe")?.annotations).toEqual({ title: "Wipe", readOnlyHint: false, destructiveHint: true });
    expect(seen.get("draw")?.annotations).toMatchObject({
      readOnlyHint: true,
      idempotentHint: true,
      openWorldHint: false,
    });
    expect(seen.get("broken")?.annotations).toEqual({ title: "Broken" });
  });

  test("an MCP client gets results with hidden values injected, secrets redacted, and data next to the text", async () => {
    paid.length = 0;
    const observed: (string | undefined)[] = [];
    const result = await client.callTool(
      { name: "refund", arguments: { orderId: "o7", cents: 900 } },
      { onprogress: ({ message }) => observed.push(message) },
    );
    expect(paid).toEqual(["customer of local sk-very-secret o7 900"]);
    expect(JSON.stringify(result)).not.toContain("sk-very");
    expect(result.structuredContent).toEqual({ order: "o7", cents: 900 });
    expect(result.isError).not.toBe(true);
    expect(observed).toContain("Refund an order: Asking the bank");
    await call("refund", { orderId: "o8", cents: 1, customer: "somebody else" });
    expect(paid[1]).toBe("customer of local sk-very-secret o8 1");
    const { content } = await call("draw", {});
    expect(content).toEqual([
      { type: "text", text: "Here" },
      { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
    ]);
  });

  test("an MCP client gets the error text that a model would get for a refused or failed call", async () => {
    const text = async (name: string, args: Record<string, unknown>) => {
      const { content, isError } = await call(name, args);
      expect(isError).toBe(true);
      return (content[0] as { text: string }).text;
    };
    paid.length = 0;
    expect(await text("refund", { orderId: "o7", cents: -1 })).toMatch(/cents/);
    expect(await text("refund", { orderId: "o7", cents: 20_000 })).toBe("Too much for one night");
    expect(await text("broken", {})).toBe("There is no such order.");
    expect(await text("wipe", { folder: "/" })).toMatch(
      /was not run: it needs the answer of a person, and this client does not support elicitation/,
    );
    expect(paid).toEqual([]);
    await expect(call("nothing", {})).rejects.toThrow(/Unknown tool/);
  });

  test("a call that requires confirmation is elicited from the user with the arguments shown", async () => {
    paid.length = 0;
    const asked: string[] = [];
    const answers = [{ approved: true }, { approved: false, reason: "it is full" }, undefined];
    const host = await connectOverHttp(at, {
      generation,
      person: ({ message }) => {
        asked.push(message);
        const content = answers.shift();
        return content === undefined ? { action: "decline" } : { action: "accept", content: content as never };
      },
    });
    const results = [];
    for (const folder of ["a", "b", "c"]) results.push(await call("wipe", { folder }, host));
    expect(asked).toEqual(["a", "b", "c"].map((folder) => `Wipe needs approval: wipe {"folder":"${folder}"}`));
    expect(paid).toEqual(["wiped a"]);
    expect(results.map(({ content }) => (content[0] as { text: string }).text)).toEqual([
      "Wiped a",
      "A person denied this call: it is full",
      "A person denied this call.",
    ]);
    await host.close();
  });

  test("an MCP client reads a large result as a resource, and nothing else remains", async () => {
    const { content } = await call("logs", {});
    const link = content.find((block) => block.type === "resource_link") as { uri: string; size: number };
    expect(link.size).toBe(5_000);
    expect(content[0]).toMatchObject({ type: "text", text: expect.stringContaining("bytes are cut here") });
    const { contents } = await client.readResource({ uri: link.uri });
    expect(contents).toEqual([{ uri: link.uri, mimeType: "text/plain", text: "line\n".repeat(1_000) }]);
    await expect(client.readResource({ uri: link.uri.replace("/logs/", "/refund/") })).rejects.toThrow();
    const threads = await listThreads(store);
    expect(threads.map(({ id }) => id.split(".").slice(0, 3).join("."))).toEqual(["mcp.local.logs"]);
  });

  test("an MCP client reads the offered resources and no others", async () => {
    const { resources } = await client.listResources();
    expect(resources).toEqual([
      { uri: "shop://opening", name: "opening", mimeType: "text/plain" },
      { uri: "shop://logo", name: "logo" },
    ]);
    const read = async (uri: string) => (await client.readResource({ uri })).contents[0];
    expect(await read("shop://opening")).toMatchObject({ mimeType: "text/plain", text: "Open for local" });
    expect(await read("shop://logo")).toMatchObject({ blob: "AQID" });
    await expect(read("file:///etc/passwd")).rejects.toThrow(/not found/i);
  });

  test("an MCP client cancels a call, and the signal of the tool fires", async () => {
    stopped.length = 0;
    const enough = new AbortController();
    const called = client.callTool(
      { name: "wait", arguments: {} },
      { signal: enough.signal, onprogress: () => enough.abort("enough") },
    );
    await expect(called).rejects.toThrow();
    await expect.poll(() => stopped, patient).toEqual(["its signal fired"]);
  });
});

test("logging middleware does not suppress the confirmation of an MCP tool call", async () => {
  paid.length = 0;
  const seen: string[] = [];
  const mcp = serveMcp({
    name: "shop",
    version: "1.0.0",
    tools: [wipe],
    middleware: [
      defineMiddleware({
        name: "log",
        beforeTool: ({ call }) => {
          seen.push(call.name);
          return undefined;
        },
      }),
    ],
  });
  const at = await mcp.listen({ port: 0 });
  const client = await connectOverHttp(at);
  const { isError } = await client.callTool({ name: "wipe", arguments: { folder: "/" } });
  expect({ isError, seen, paid }).toEqual({ isError: true, seen: ["wipe"], paid: [] });
  await client.close();
  await mcp.close();
});
