/** The support desk over HTTP: `node support-server.ts` serves customers, `… approve Kim` is the clerk. */
import process from "node:process";
import { call, say, scriptedModel } from "@statewright/testing";
import { listInterrupts, sqliteStore, submitAnswers } from "statewright";
import { getRun } from "statewright/inspect";
import { createSupportDesk, serveSupportDesk } from "./support.ts";

const store = sqliteStore("desk.db");
const desk = createSupportDesk(
  // In place of a model of a provider: finds the orders, asks for a refund, and answers.
  scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "user") return call("my_orders", {});
    if (last?.role === "tool" && last.name === "my_orders") return call("refund", { orderId: "7", cents: 9_900 });
    return say("Your 99 euros are on their way.");
  }),
  {
    store,
    orders: { list: (customer) => (customer === "ada" ? [{ id: "7", cents: 9_900, item: "Headphones" }] : []) },
    bank: {
      refund: async ({ orderId, idempotencyKey }) => {
        console.log(`the bank pays order ${orderId}`);
        return { receipt: idempotencyKey };
      },
    },
  },
);

/** Customers by session. Your own program looks the session up in its database. */
const customers = new Map([
  ["session-of-ada", "ada"],
  ["session-of-bob", "bob"],
]);

function authenticate(request: Request) {
  const id = customers.get(request.headers.get("authorization")?.replace("Bearer ", "") ?? "");
  return id === undefined ? undefined : { id, tenant: "shop" };
}

/** Approves all open refunds; the server continues their runs. */
async function approveRefunds(by: string): Promise<void> {
  for (const { thread, id, run, payload } of await listInterrupts(store, { graph: "support", key: "approve" })) {
    const { owner = "" } = (await getRun(store, run)) ?? {};
    await submitAnswers(desk, { store, thread, context: { customerId: owner }, answers: { [id]: true }, by });
    console.log(`${by} approved for ${owner}: ${JSON.stringify(payload)}`);
  }
}

const [role, clerk = "Kim"] = process.argv.slice(2);
if (role === "approve") await approveRefunds(clerk);
else
  console.log((await serveSupportDesk(desk, { store, authenticate, port: Number(process.env["PORT"] ?? 4270) })).url);
