import { writeFileSync } from "node:fs";
import { drawOutline } from "@statewright/pictures";
import { channel, defineGraph, defineState, defineTool, END, fork, resume, run, START, sqliteStore } from "statewright";
import {
  blame,
  compareBranches,
  createLenientCodec,
  diffStates,
  getBranchTree,
  getSavedOutline,
  getStateAt,
  getSuperstep,
  getUsage,
  isSuperstep,
  listNamespaces,
  listSupersteps,
  previewFork,
} from "statewright/inspect";
import * as z from "zod";

const Order = defineState({ items: channel.list(z.string()), price: z.number().optional() });
const orders = defineGraph({ name: "orders", state: Order, interrupts: { price: z.number() } })
  .nodes({
    pick: () => ({ items: ["pen"] }),
    ask: async (_state, { interrupt }) => ({ price: await interrupt("price") }),
    send: async ({ items }, { step }) => {
      await step("mail", () => `sent ${items.length}`, { effect: "once" });
      return { items: ["receipt"] };
    },
  })
  .edges({ [START]: "pick", pick: "ask", ask: "send", send: END });

const charge = defineTool({
  name: "charge",
  description: "Charges a card.",
  input: z.object({ card: z.string() }),
  effect: "once",
  safety: { redact: { args: ["card"] } },
  run: async () => "charged",
});

/** Writes the thread that the rest of this program reads: `main` costs 5, and the fork `cheaper` costs 3. */
async function writeOrders(): Promise<void> {
  const store = sqliteStore("orders.db");
  await run(orders, { store, thread: "order-1", input: { items: [] } }).result;
  await resume(orders, { store, thread: "order-1", answers: { price: 5 }, by: "kim" }).result;
  await fork(orders, { store, thread: "order-1", at: 2, name: "cheaper" });
  await resume(orders, { store, thread: "order-1", branch: "cheaper" }).result;
  await resume(orders, { store, thread: "order-1", branch: "cheaper", answers: { price: 3 }, by: "lee" }).result;
  await store.close();
}

await writeOrders();

const store = sqliteStore("orders.db", { readOnly: true });
const thread = "order-1";

const page = await listSupersteps(store, { thread, branch: "main", limit: 20 });
for (const row of page) {
  if (!isSuperstep(row)) console.log(row.seq, row.event.type);
  else console.log(row.seq, row.nodes, row.changes, `${row.effects.calls} calls`);
}
const older = await listSupersteps(store, { thread, branch: "main", before: page.at(-1)?.seq ?? 0 });

const newest = page.find(isSuperstep);
const detail = await getSuperstep(store, { thread, checkpoint: newest?.id ?? 0 });
for (const [index, op] of (detail?.patch ?? []).entries())
  console.log(op.op, op.path, detail?.before[index], detail?.authors[index]);
console.log(detail?.tasks, detail?.effectRows, detail?.asked, detail?.machine, detail?.writtenBy);

const { value, cut } = await getStateAt(store, { thread, path: "/items", depth: 2, maxBytes: 10_000 });
console.log(value, cut);

const patch = await diffStates(store, { thread, from: 1, to: newest?.id ?? 0 });
console.log(patch);

const [write] = await blame(store, { thread, branch: "cheaper", path: "/price" });
console.log(write?.superstep.branch, write?.superstep.nodes, write?.task, write?.by);

for (const { name, parent, from, status } of await getBranchTree(store, { thread }))
  console.log(name, parent, from, status);

const { ancestor, first, answers, effects } = await compareBranches(store, { thread, a: "main", b: "cheaper" });
console.log(
  ancestor,
  first?.a?.nodes,
  answers,
  effects.onlyA.map(({ key }) => key),
);

const calls = await listNamespaces(store, { thread });
for (const { name, within, graph, task } of calls) console.log(name, within, graph, task);

const preview = await previewFork(store, { thread, at: 2, graph: orders, update: { items: ["ink"] } });
console.log(
  preview.fits,
  preview.again.length,
  preview.asks.map(({ name }) => name),
);

const saved = await getSavedOutline(store, { thread });
if (saved !== undefined) writeFileSync("orders.svg", drawOutline(saved.outline, { name: saved.graph }));

const prices = { "anthropic/claude-sonnet-4-5": { input: 3, output: 15 } };
const { usage, cost, lost, unknown, models } = await getUsage(store, { thread, prices });
console.log(usage, cost, `${lost} lost, ${unknown} unknown`, models.length);

for (const { key, attempts, processes = 1, attemptLog = [] } of detail?.effectRows ?? [])
  console.log(key, `${attempts} attempts in ${processes} processes`, attemptLog);

const shown = await getStateAt(store, { thread, redact: [/\b\d{16}\b/], tools: [charge] });

const money = { tag: "money", matches: isMoney, encode: ({ cents }: Money) => cents, decode: createMoney };
const known = await getStateAt(store, { thread, codec: createLenientCodec([money]) });

const counts = await store.snapshot?.(async (reads) => [
  (await reads.head(thread))?.step,
  (await reads.history(thread, { limit: 100 })).length,
]);
console.log(older.length, shown.checkpoint, known.checkpoint, counts);
await store.close();

interface Money {
  readonly cents: number;
}

function isMoney(value: unknown): value is Money {
  return typeof value === "object" && value !== null && "cents" in value;
}

function createMoney(data: unknown): Money {
  return { cents: Number(data) };
}
