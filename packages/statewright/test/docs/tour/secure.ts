import { type ServerAccess, serve } from "@statewright/server";
import { defineContext, defineGraph, defineState, END, engine, memoryStore, START } from "statewright";
import * as z from "zod";

const User = defineContext({ userId: z.string() });
const greeting = defineGraph({
  name: "greeting",
  state: defineState({ text: z.string().default("") }),
  context: User,
})
  .nodes({ greet: (_state, { context }) => ({ text: `Hello ${context.userId}` }) })
  .edges({ [START]: "greet", greet: END });

// callers and their rights
const access: ServerAccess = {
  tokens: {
    ann: { token: "a-token-of-ann-at-acme", tenant: "acme", scopes: ["operator"] },
    amy: { token: "a-token-of-amy-at-acme", tenant: "acme" },
    bob: { token: "a-token-of-bob-at-globex", tenant: "globex", scopes: ["operator"] },
  },
  authorize: ({ scopes = [] }, { action }) => action.endsWith(".read") || scopes.includes("operator"),
  contextOf: ({ id }) => ({ userId: id }),
};

// the server
const host = engine({
  store: memoryStore(),
  graphs: [greeting],
  context: ({ owner }) => ({ userId: owner }),
});
await host.start();
const server = serve({
  engine: host,
  access,
  limit: { requests: 60 },
  onAudit: ({ caller, action, thread, result }) => console.log(`audit: ${caller} ${action} ${thread} ${result}`),
});

const problem = z.object({ code: z.string() });
async function call(token: string, path: string, body?: object): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", prefer: "wait=10" };
  const request = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await server.fetch(new Request(`http://localhost/api${path}`, { ...request, headers }));
  const answer: unknown = await response.json();
  return `${response.status} ${problem.safeParse(answer).data?.code ?? ""}`.trim();
}

// who may do what
const start = { graph: "greeting", input: {}, context: { userId: "eve" } };
console.log("no token:", await call("", "/threads"));
console.log("ann starts:", await call("a-token-of-ann-at-acme", "/threads/t9/runs", start));
console.log("amy starts:", await call("a-token-of-amy-at-acme", "/threads/t9/runs", start));
console.log("amy reads:", await call("a-token-of-amy-at-acme", "/threads/t9"));
console.log("bob reads:", await call("a-token-of-bob-at-globex", "/threads/t9"));

// the context of the run
const headers = { authorization: "Bearer a-token-of-ann-at-acme" };
const state = await server.fetch(new Request("http://localhost/api/threads/t9/state", { headers }));
console.log(z.object({ values: z.unknown() }).parse(await state.json()).values);

await server.close();
await host.stop();
