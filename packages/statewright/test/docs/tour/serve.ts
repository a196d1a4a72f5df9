import { serve } from "@statewright/server";
import { commandTargets, defineGraph, defineState, END, engine, goto, memoryStore, START } from "statewright";
import * as z from "zod";

const purchase = defineGraph({
  name: "purchase",
  version: 1,
  state: defineState({ amount: z.number(), paid: z.boolean().default(false) }),
  interrupts: { approve: z.object({ ok: z.boolean() }) },
})
  .nodes({
    approve: async ({ amount }, { interrupt }) => {
      const { ok } = await interrupt("approve", { payload: { amount } });
      return goto(ok ? "pay" : "decline");
    },
    pay: () => ({ paid: true }),
    decline: () => ({ paid: false }),
  })
  .edges({ [START]: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });

// the server
const host = engine({ store: memoryStore(), graphs: [purchase] });
await host.start();
const server = serve({ engine: host, access: { token: "a-token-of-this-page" } });

// a request
const headers = { authorization: "Bearer a-token-of-this-page", "content-type": "application/json", prefer: "wait=10" };
async function call(path: string, body?: object): Promise<Response> {
  const request = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  return await server.fetch(new Request(`http://localhost/api${path}`, { ...request, headers }));
}

// a run that waits
const Outcome = z.object({
  run: z.object({ status: z.string() }),
  state: z.object({ values: z.unknown(), interrupts: z.array(z.object({ id: z.string(), payload: z.unknown() })) }),
});
const first = Outcome.parse(
  await (await call("/threads/t8/runs", { graph: "purchase", input: { amount: 100 } })).json(),
);
const [asked] = first.state.interrupts;
console.log(first.run.status, asked?.payload);

// the answer
const answers = { [asked?.id ?? ""]: { ok: true } };
const last = Outcome.parse(await (await call("/threads/t8/answers", { answers })).json());
console.log(last.run.status, last.state.values);

// a second answer
const second = await call("/threads/t8/answers", { answers });
console.log(second.status, z.object({ code: z.string() }).parse(await second.json()).code);

// the stream
const stream = await (await call("/threads/t8/events?end=idle")).text();
for (const line of stream.split("\n")) if (line.startsWith("event: ")) console.log(line);

await server.close();
await host.stop();
