/** The native API over fetch: a run that waits for approval, its answer, its events, and a schedule. */
import process from "node:process";
import { serve } from "@statewright/server";
import { createAgent, defineContext, engine, sqliteStore } from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";
import { createBankModel, defineTransfer } from "./bank-model.ts";

const User = defineContext({ userId: z.string() });
const store = sqliteStore("chats.db");
const assistant = createAgent({
  name: "assistant",
  model: createBankModel(),
  context: User,
  tools: [defineTransfer(User.from(({ userId }) => userId))],
  middleware: [confirmTools()],
  store,
});

// the server
const { API_TOKEN: token = "a-token-for-this-page", PORT = "4270" } = process.env;
const host = engine({ store, graphs: [assistant], context: ({ owner }) => ({ userId: owner }) });
await host.start();
const server = serve({ engine: host, access: { tokens: { ann: { token, tenant: "acme" } } } });
const { url, close } = await server.listen({ port: Number(PORT) });

// a call
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
async function call(path: string, body?: object, more: Readonly<Record<string, string>> = {}) {
  const request = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  return await fetch(`${url}/api${path}`, { ...request, headers: { ...headers, ...more } });
}
const Outcome = z.object({ run: z.object({ id: z.string(), status: z.string() }) });
const Interrupts = z.object({ data: z.array(z.object({ id: z.string(), payload: z.unknown() })) });
const Schedule = z.object({ id: z.string(), status: z.string() });

// a run, its interrupt, and the answer
const input = { messages: [{ role: "user", content: "Send Bob five euros." }] };
const started = await call("/threads/t1/runs", { graph: "assistant", input }, { prefer: "wait=10" });
const { run } = Outcome.parse(await started.json());
console.log(started.status, run.status);

const { data: interrupts } = Interrupts.parse(await (await call("/interrupts")).json());
const answers = Object.fromEntries(interrupts.map(({ id }) => [id, { approved: true }]));
const answered = await call("/threads/t1/answers", { answers }, { accept: "text/event-stream" });

// the stream of the run
let text = "";
for await (const chunk of answered.body ?? []) text += new TextDecoder().decode(chunk, { stream: true });
const names = text.split("\n").filter((line) => line.startsWith("event: "));
console.log(names[0], names.at(-2), names.at(-1));

// a schedule
const daily = { id: "daily", graph: "assistant", cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", input };
const { id, status } = Schedule.parse(await (await call("/schedules", daily)).json());
console.log(id, status);

await close();
await host.stop();
