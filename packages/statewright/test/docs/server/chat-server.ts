/** A chat over HTTP: users with threads of their own, approval, and a process that may be killed. */
import process from "node:process";
import { serve } from "@statewright/server";
import { uiStream } from "@statewright/server/ai-sdk";
import { createAgent, defineContext, engine, sqliteStore } from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";
import { createBankModel, defineTransfer } from "./bank-model.ts";

const User = defineContext({ userId: z.string() });
const model = createBankModel();
const transfer = defineTransfer(User.from(({ userId }) => userId));

// the agent
export const assistant = createAgent({
  name: "assistant",
  model,
  context: User,
  tools: [transfer],
  middleware: [confirmTools()],
});

// the engine
const host = engine({
  store: sqliteStore("chats.db"),
  graphs: [assistant],
  context: ({ owner }) => ({ userId: owner }),
});

/** Users by session. Your own program looks the session up in its database. */
const users = new Map([
  ["session-of-ann", "ann"],
  ["session-of-bob", "bob"],
]);

function findUser(request: Request): string | undefined {
  return users.get(request.headers.get("authorization")?.replace("Bearer ", "") ?? "");
}

// the server
const server = serve({
  engine: host,
  access: {
    authenticate: (request) => {
      const id = findUser(request);
      return id === undefined ? undefined : { id, tenant: "chat" };
    },
    scope: "caller",
  },
  protocols: [uiStream()],
});
await host.start();
const { url } = await server.listen({ port: Number(process.env["PORT"] ?? 4270) });
console.log(url);
