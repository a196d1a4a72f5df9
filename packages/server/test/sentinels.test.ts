/** Private data, planted at once in each place, is in no tape and no answer of any protocol. */
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  engine,
  inject,
  type Model,
  memoryStore,
  START,
  toolNode,
} from "@statewright/core";
import { type VirtualClock, virtualClock } from "@statewright/testing";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { uiStream } from "../src/ai-sdk.ts";
import { type Server, serve } from "../src/index.ts";
import { langgraph } from "../src/langgraph.ts";
import { createTestRequest, testTokens } from "./support/create-test-server.ts";
import { createOpen, createStart, type WireCall, type WireProtocol, wireProtocols } from "./support/wire-protocols.ts";

const sentinels = {
  context: "SENTINEL-context-4711",
  channel: "SENTINEL-channel-4711",
  secret: "SENTINEL-secret-4711",
  argument: "SENTINEL-argument-4711",
};

const Desk = defineContext({ desk: z.string() });

/** Model that calls a tool, and then answers. */
const model: Model = {
  id: "caller",
  respond: async ({ messages }, { delta }) => {
    if (messages.at(-1)?.role !== "tool")
      return { content: [{ type: "call", id: "c1", name: "open", args: { box: "b1" } }], finish: "calls" };
    delta?.({ type: "text", text: "The box is open." });
    return { content: [{ type: "text", text: "The box is open." }], finish: "stop" };
  },
};

/** Graph whose tool gets hidden arguments and returns the secret, and whose private channel holds a text. */
function createVault() {
  const open = defineTool({
    name: "open",
    description: "Opens a box.",
    input: z.object({ box: z.string() }),
    effect: "pure",
    inject: {
      desk: inject.context(Desk, ({ desk }) => desk),
      token: inject.secret("VAULT_TOKEN"),
      plan: inject.custom(() => sentinels.argument),
    },
    run: async ({ box }, { injected }) => {
      const hidden = [injected.desk, await injected.token.reveal(), injected.plan];
      return `opened ${box} with ${hidden.filter((text) => text.startsWith("SENTINEL")).length} values and ${hidden[1]}`;
    },
  });
  return defineGraph({
    name: "assistant",
    state: defineState({ messages: channel.messages(), plan: z.string().default(""), seen: z.number().default(0) }),
    context: Desk,
    private: ["plan"],
  })
    .nodes({
      ask: {
        run: async ({ messages }, runtime) => ({
          plan: sentinels.channel,
          messages: [await runtime.model({ model, request: { messages, tools: [] } })],
        }),
      },
      tools: toolNode({ tools: [open] }),
      answer: {
        run: async ({ messages, plan }, runtime) => ({
          seen: plan.length,
          messages: [await runtime.model({ model, request: { messages, tools: [] } })],
        }),
      },
    })
    .edges({ [START]: "ask", ask: "tools", tools: "answer", answer: END });
}

async function createVaultServer(): Promise<{ readonly server: Server; readonly clock: VirtualClock }> {
  const clock = virtualClock();
  const host = engine({
    store: memoryStore(),
    graphs: [createVault()],
    world: clock,
    secrets: { get: (name) => (name === "VAULT_TOKEN" ? sentinels.secret : undefined) },
  });
  await host.start();
  onTestFinished(() => host.stop({ now: true }));
  const server = serve({
    engine: host,
    access: {
      tokens: { ann: { token: testTokens.ann, tenant: "acme" } },
      contextOf: () => ({ desk: sentinels.context }),
    },
    protocols: [langgraph(), uiStream({ state: ["seen"] })],
  });
  onTestFinished(() => server.close());
  return { server, clock };
}

/** Reads a response until it ends or is silent for ten seconds. */
async function read({ server, clock }: Awaited<ReturnType<typeof createVaultServer>>, call: WireCall): Promise<string> {
  const left = new AbortController();
  const response = await clock.until(
    server.fetch(createTestRequest(call.path, { ...call.request, signal: left.signal })),
  );
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let beats = 0; reader !== undefined && beats < 2; ) {
    const { done, value } = await clock.until(reader.read());
    if (done) break;
    const part = decoder.decode(value, { stream: true });
    beats = part.startsWith(":") ? beats + 1 : 0;
    text += part;
  }
  left.abort();
  await clock.until(reader?.cancel() ?? Promise.resolve());
  return text;
}

/** Finds a text raw, in base64 at each offset, and escaped as JSON. */
function holds(text: string, searched: string): boolean {
  const encode = (padding: string): string =>
    Buffer.from(padding + searched)
      .toString("base64")
      .slice(4, -4);
  const escaped = [...searched].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
  const forms = [
    searched,
    encode(""),
    encode(" "),
    encode("  "),
    escaped,
    JSON.stringify(JSON.stringify(searched)).slice(3, -3),
  ];
  return forms.some((form) => text.includes(form));
}

/** All reads of a thread through a protocol, beside its stream. */
const reads: Readonly<Record<WireProtocol, readonly string[]>> = {
  native: ["", "/state", "/history", "/runs", "/diff?from=1&to=4", "/branches", "/artifacts"].map(
    (end) => `/api/threads/t${end}`,
  ),
  langgraph: ["", "/state", "/history", "/runs"].map((end) => `/langgraph/threads/t${end}`),
  "langgraph v2": [],
  "ai-sdk": ["/ui/assistant/t/messages"],
};

test.each(wireProtocols)(
  "no frame, schema, state or difference of the protocol %s holds the context, a private channel, a secret or a hidden argument [V21, SS36]",
  async (protocol) => {
    const vault = await createVaultServer();
    const more =
      protocol === "langgraph"
        ? { stream_mode: ["values", "updates", "messages-tuple", "tasks", "debug", "custom"] }
        : {};
    const start = createStart(protocol, { thread: "t", text: "open", more });
    const streamed = protocol === "langgraph" ? { ...start, path: `${start.path}/stream` } : start;
    const shown = [await read(vault, streamed)];
    await vault.clock.waitUntilIdle();
    const run = /run_[a-z0-9]{20}/.exec(await read(vault, { path: "/api/threads/t/runs", request: {} }))?.[0];
    shown.push(await read(vault, createOpen(protocol, "t", run)));
    const schemas = ["/api/graphs/assistant", "/api/openapi.json", "/langgraph/assistants/assistant/schemas"];
    for (const path of [...reads[protocol], ...schemas]) shown.push(await read(vault, { path, request: {} }));
    const text = shown.join("\n");
    expect(text).toContain("The box is open.");
    expect(text).toContain("opened b1 with 3 values and");
    expect(text).toContain('"box":"b1"');
    for (const [place, sentinel] of Object.entries(sentinels))
      expect([place, holds(text, sentinel)]).toEqual([place, false]);
    expect(text).not.toContain('"plan"');
  },
);
