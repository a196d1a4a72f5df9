import { appendFileSync, existsSync, readFileSync } from "node:fs";
import process from "node:process";
import {
  channel,
  checkRuns,
  commandTargets,
  defineGraph,
  defineState,
  defineTool,
  END,
  goto,
  isStatewrightError,
  listInterrupts,
  type Message,
  recover,
  resume,
  run,
  START,
  sqliteStore,
  toolNode,
} from "statewright";
import * as z from "zod";

// logs of the bank and the printer, one line per effect
const bank = { file: "bank.log", hasKey: (key: string) => read("bank.log").includes(key) };
const printer = { file: "printer.log" };

const charge = defineTool({
  name: "charge",
  description: "Charge the card.",
  input: z.object({ cents: z.int() }),
  effect: "once",
  run: ({ cents }, { idempotencyKey }) => {
    appendFileSync(bank.file, `${idempotencyKey}\n`);
    die();
    return `charged ${cents}`;
  },
  reconcile: ({ cents }, { idempotencyKey }) => (bank.hasKey(idempotencyKey) ? `charged ${cents}` : undefined),
});

const print = defineTool({
  name: "print",
  description: "Print the label.",
  input: z.object({}),
  effect: "once",
  run: (_input, { idempotencyKey }) => {
    appendFileSync(printer.file, `${idempotencyKey}\n`);
    die();
    return "printed";
  },
});

const Order = defineState({ cents: z.int(), messages: channel.messages() });

const order = defineGraph({
  name: "order",
  version: 1,
  state: Order,
  interrupts: { approve: z.object({ ok: z.boolean() }) },
})
  .nodes({
    ask: async ({ cents }, { interrupt }) => {
      const { ok } = await interrupt("approve", { payload: { cents } });
      return ok ? goto("pay", { messages: [wants("charge", { cents })] }) : goto(END);
    },
    pay: toolNode({ tools: [charge] }),
    pack: () => ({ messages: [wants("print", {})] }),
    label: toolNode({ tools: [print] }),
  })
  .edges({ [START]: "ask", ask: commandTargets("pay", END), pay: "pack", pack: "label", label: END });

/** The message that a model would return. */
function wants(tool: string, args: Record<string, number>): Message {
  return {
    role: "assistant",
    id: `m-${tool}`,
    finish: "calls",
    content: [{ type: "call", id: tool, name: tool, args }],
  };
}

const store = sqliteStore("shop.db");
const thread = "order-7";

const programs: Record<string, () => Promise<void>> = {
  order: async () => {
    const first = await run(order, { store, thread, input: { cents: 900 } }).result;
    if (first.status === "waiting") console.log(first.status, first.interrupts[0]?.payload);
  },
  approve: async () => {
    await resume(order, { store, thread, answers: { approve: { ok: true } } }).result;
  },
  recover: async () => {
    for (const handle of await recover({ store, graphs: [order] })) console.log((await handle.result).status);
  },
  resume: async () => {
    const later = await resume(order, { store, thread }).result;
    if (later.status === "waiting") console.log(later.status, later.interrupts[0]?.key, later.interrupts[0]?.node);
  },
  list: async () => {
    for (const interrupt of await listInterrupts(store)) console.log(interrupt.thread, interrupt.key, interrupt.node);
    for (const { run: open, verdict } of await checkRuns(store, [order])) console.log(open.thread, verdict);
  },
  printed: async () => {
    const answers = { in_doubt: { happened: true, content: "printed" } };
    const last = await resume(order, { store, thread, answers }).result;
    console.log(last.status, read(bank.file).length, "charge,", read(printer.file).length, "label");
  },
  refuse: async () => {
    try {
      await resume(order, { store, thread, answers: { approve: { ok: false } } }).result;
    } catch (error) {
      if (isStatewrightError(error, "already_answered")) console.log(error.code);
    }
  },
};
await programs[process.argv[2] ?? "order"]?.();
await store.close();

function read(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

/** Kills the process after the effect has happened and before its outcome is saved. */
function die(): void {
  process.kill(process.pid, "SIGKILL");
}
