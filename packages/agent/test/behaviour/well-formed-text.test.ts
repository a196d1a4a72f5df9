/** Lone surrogates, such as those of a cut emoji, never reach a provider or the keys of a store. */
import { createAgent } from "@statewright/agent";
import {
  defineMiddleware,
  defineTool,
  type Model,
  type ModelReply,
  type ModelRequest,
  memoryStore,
} from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";

const lone = "\ud83d";
const loneSurrogate = /\\u[dD][89a-fA-F]/;

function office(replies: readonly ModelReply[]) {
  const requests: ModelRequest[] = [];
  const model: Model = {
    id: "test/model",
    respond: async (request) => {
      requests.push(request);
      return replies[requests.length - 1] ?? { content: [{ type: "text", text: "ok" }], finish: "stop" };
    },
  };
  return { model, requests };
}

test("text of a model, a tool and a person is made well formed where it enters [FX63, FX92]", async () => {
  const { model, requests } = office([
    {
      content: [
        { type: "text", text: `one ${lone}` },
        { type: "call", id: `id${lone}`, name: "cut", args: { text: lone, [lone]: 1 } },
        { type: "call", id: `id\ude00`, name: `unknown${lone}`, args: {} },
      ],
      finish: "calls",
    },
  ]);
  const seen: unknown[] = [];
  const cut = defineTool({
    name: "cut",
    description: "Cuts.",
    input: z.record(z.string(), z.unknown()),
    run: (args) => {
      seen.push(args);
      return {
        content: "😀".slice(0, 1),
        value: { short: "😀".slice(0, 1) },
        artifacts: [{ name: "page", mimeType: "text/plain", body: `page ${lone}` }],
      };
    },
  });
  const agent = createAgent({ name: "office", model, tools: [cut as never], store: memoryStore() });
  const end = await agent.run({ thread: "t", input: `cut ${lone}` }).result;
  expect([end.status, seen]).toEqual(["done", [{ text: "\ufffd", "\ufffd": 1 }]]);
  expect(JSON.stringify(end.state.messages)).not.toMatch(loneSurrogate);
  expect(JSON.stringify(requests)).not.toMatch(loneSurrogate);
  const again = await agent.run({ thread: "t", input: "again" }).result;
  expect(again.status).toBe("done");
});

test("a request is well formed even if a hook or a saved thread holds lone surrogates [FX92]", async () => {
  const { model, requests } = office([]);
  const middleware = defineMiddleware({
    name: "cutter",
    beforeModel: (request) => ({
      ...request,
      instructions: `Be brief ${lone}`,
      messages: [...request.messages, { role: "user", id: "old", content: [{ type: "text", text: lone }] }],
    }),
  });
  const agent = createAgent({ name: "office", model, middleware: [middleware] });
  await agent.run({ input: "hi" }).result;
  expect(JSON.stringify(requests)).not.toMatch(loneSurrogate);
  expect(requests[0]?.instructions).toBe("Be brief \ufffd");
});
