import process from "node:process";
import { createAgent } from "@statewright/agent";
import { defineContext, defineTool, engine } from "@statewright/core";
import { createJsonLog, type ServerAccess, serve } from "@statewright/server";
import { sqliteStore } from "@statewright/sqlite";
import { call, say, scriptedModel } from "@statewright/testing";
import * as z from "zod";

const { ANN_TOKEN = "a-random-token-for-ann", BOB_TOKEN = "a-random-token-for-bob" } = process.env;

const User = defineContext({ userId: z.string() });
const account = defineTool({
  name: "get_account",
  description: "Account of the user.",
  input: z.object({}),
  inject: { userId: User.from(({ userId }) => userId) },
  effect: "pure",
  run: (_input, { injected: { userId } }) => `account of ${userId}`,
});
const model = scriptedModel((request) => (request.messages.at(-1)?.role === "tool" ? say("Done.") : call(account, {})));
const assistant = createAgent({ name: "assistant", model, context: User, tools: [account] });
const store = sqliteStore("agent.db");

const access: ServerAccess = {
  tokens: {
    ann: { token: ANN_TOKEN, tenant: "acme", scopes: ["operator"] },
    bob: { token: BOB_TOKEN, tenant: "acme" },
  },
  authorize: ({ scopes = [] }, { action }) => action.endsWith(".read") || scopes.includes("operator"),
  contextOf: (caller) => ({ userId: caller.id }),
};

const host = engine({ store, graphs: [assistant], context: ({ owner }) => ({ userId: owner }) });
const server = serve({
  engine: host,
  access,
  limit: { requests: 600 },
  log: createJsonLog((line) => process.stdout.write(line)),
  onAudit: ({ caller, act, thread, result }) => console.log(`audit: ${caller} ${act} ${thread} ${result}`),
});
await host.start();
const { url } = await server.listen({ port: Number(process.env["PORT"] ?? 4270) });
console.log(url);
