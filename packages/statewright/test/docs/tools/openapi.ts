import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { loadOpenApi } from "@statewright/openapi";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, env, getMessageText, memoryStore } from "statewright";

const pets = [{ id: 1, name: "Tom" }];
const server = createServer((request, response) => {
  response.setHeader("content-type", "application/json");
  if (request.headers["x-key"] !== "a-secret-key") response.writeHead(401).end('{"error":"no key"}');
  else if (request.method === "GET") response.end(JSON.stringify(pets));
  else if (request.method === "POST")
    response.writeHead(201).end(JSON.stringify({ id: 2, key: request.headers["x-key"] }));
  else response.writeHead(404).end('{"error":"there is no such pet"}');
}).listen(0, "127.0.0.1");
await new Promise((ready) => server.once("listening", ready));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
process.env["PETS_KEY"] = "a-secret-key";

// load
const shop = await loadOpenApi("pets.yaml", {
  operations: { tags: ["pets"] },
  baseUrl: address,
  auth: { key: "PETS_KEY" },
  allowPrivate: ["127.0.0.1"], // the server of this page is on this machine
});
for (const { spec } of shop.tools) console.log(spec.name, spec.effect, spec.safety.access);

const model = scriptedModel([
  [call("list_pets", { kind: "cat" }), call("add_pet", { body: { name: "Kitty" } })],
  call("remove_pet", { id: 7 }),
  say("Done."),
]);
const store = memoryStore();

// use
const agent = createAgent({ name: "keeper", model, store, tools: shop.tools });
const { state } = await agent.run({
  thread: "t1",
  input: "Which cats are there? Add Kitty, and remove pet 7.",
  secrets: env(["PETS_KEY"]),
}).result;
for (const message of state.messages)
  if (message.role === "tool") console.log(`model reads: ${getMessageText(message)}`);

// tokens
export const calendar = (url: string, freshToken: () => Promise<string>) => ({
  options: { baseUrl: url, auth: { login: "CALENDAR_TOKEN" } },
  secrets: { get: (name: string) => (name === "CALENDAR_TOKEN" ? freshToken() : undefined) },
});

// more options
export const careful = () =>
  loadOpenApi("pets.yaml", {
    operations: { where: ({ deprecated }) => !deprecated },
    auth: { key: "PETS_KEY" },
    idempotencyKey: true,
    prefix: "pets",
    pin: shop.digest,
    tool: ({ method }) => (method === "DELETE" ? { safety: { access: "destructive", confirm: "always" } } : undefined),
  });
server.close();
