/** One service for many tenants: tokens, rights, and threads of the same name. */
import { serve } from "@statewright/server";
import { channel, defineGraph, defineState, END, engine, memoryStore, START } from "statewright";
import * as z from "zod";

const notes = defineGraph({ name: "notes", state: defineState({ notes: channel.list(z.string()) }) })
  .nodes({ keep: () => ({}) })
  .edges({ [START]: "keep", keep: END });

const host = engine({ store: memoryStore(), graphs: [notes] });
await host.start();

const server = serve({
  engine: host,
  access: {
    tokens: {
      ann: { token: "token-of-ann-at-acme", tenant: "acme", scopes: ["admin"] },
      amy: { token: "token-of-amy-at-acme", tenant: "acme" },
      bob: { token: "token-of-bob-at-globex", tenant: "globex" },
    },
    authorize: (caller, { action }) => action !== "thread.delete" || (caller.scopes ?? []).includes("admin"),
  },
  onAudit: ({ action, caller, thread, result }) => console.log("audit:", caller, action, thread, result),
});

/** Sends a request as a caller, and prints the status of the response. */
async function call(who: string, method: string, path: string, body?: object): Promise<void> {
  const headers = { authorization: `Bearer token-of-${who}`, "content-type": "application/json" };
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const response = await server.fetch(new Request(`http://localhost/api${path}`, init));
  console.log(method, path, "as", who, response.status);
}

await call("ann-at-acme", "POST", "/threads/plan/runs", { graph: "notes", input: { notes: ["buy tea"] } });
await call("amy-at-acme", "GET", "/threads/plan");
await call("bob-at-globex", "GET", "/threads/plan");
await call("bob-at-globex", "POST", "/threads", { id: "plan" });
await call("amy-at-acme", "DELETE", "/threads/plan");
await call("nobody", "GET", "/threads/plan");
await server.close();
await host.stop();
