/** The support desk behind HTTP: customers ask over HTTP, a clerk answers through the store. */
import process from "node:process";
import { call, say, scriptedModel } from "@statewright/testing";
import { memoryStore } from "statewright";
import { getRun, listInterrupts } from "statewright/inspect";
import { expect, onTestFinished, test } from "vitest";
import { createSupportDesk, serveSupportDesk } from "../../src/agents/support.ts";

test("a customer asks the served support desk for a refund, a clerk answers through the store, and other customers see nothing", async () => {
  process.env["BANK_KEY"] = "the key of the bank";
  onTestFinished(() => {
    delete process.env["BANK_KEY"];
  });
  const store = memoryStore();
  const refunds: unknown[] = [];
  const model = scriptedModel([call("refund", { orderId: "7", cents: 9_900 }), say("Your 99 euros are on their way.")]);
  const desk = createSupportDesk(model, {
    store,
    orders: { list: (customer) => (customer === "c1" ? [{ id: "7", cents: 9_900, item: "Headphones" }] : []) },
    bank: {
      refund: async ({ key, orderId }) => {
        refunds.push([key, orderId]);
        return { receipt: "r1" };
      },
    },
  });
  const authenticate = ({ headers }: Request) => {
    const id = headers.get("authorization");
    return id === null ? undefined : { id, tenant: "shop" };
  };
  const { host, server, url } = await serveSupportDesk(desk, { store, authenticate, port: 0 });
  onTestFinished(() => host.stop({ now: true }));
  onTestFinished(() => server.close());
  const ask = async (customer: string, path: string, body?: object) => {
    const headers = { authorization: customer, "content-type": "application/json", prefer: "wait=30" };
    const request = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${url}/api${path}`, request);
    return { status: response.status, body: await response.json() };
  };
  const input = { messages: [{ role: "user", content: "My headphones broke." }] };
  const asked = await ask("c1", "/threads/case-1/runs", { graph: "support", input });
  expect(asked.body).toMatchObject({ run: { status: "waiting" } });
  expect((await ask("c2", "/threads/case-1/state")).status).toBe(404);

  const [waiting] = await listInterrupts(store);
  expect(waiting?.payload).toMatchObject({ tool: "refund", args: { orderId: "7" } });
  const answers = { [waiting?.id ?? ""]: { approved: true } };
  const row = await getRun(store, waiting?.run ?? "");
  const context = { customerId: row?.owner ?? "" };
  const answered = await host.resume(desk, { thread: waiting?.thread ?? "", context, answers, by: "Kim" }).result;
  expect(answered.status).toBe("done");
  expect(refunds).toEqual([["the key of the bank", "7"]]);
  expect((await ask("c1", "/threads/case-1/state")).body).toMatchObject({ status: "done" });
});
