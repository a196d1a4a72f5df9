import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  getHistory,
  inputNode,
  isStatewrightError,
  memoryStore,
  resume,
  route,
  run,
  START,
  sqliteStore,
} from "statewright";
import { createCodec } from "statewright/store";
import * as z from "zod";

// a diary with a summary at every third entry
const Diary = defineState({
  entry: z.string(),
  entries: channel.list(z.object({ at: z.date(), text: z.string() })),
  summary: z.string().default(""),
  scratch: channel.untracked(z.string()),
});

const diary = defineGraph({ name: "diary", version: 1, state: Diary })
  .nodes({
    note: ({ entry }, { clock }) => ({
      entries: [{ at: new Date(clock.now()), text: entry }],
      scratch: "known in this process only",
    }),
    sum: ({ entries }) => ({ summary: `${entries.length} entries` }),
  })
  .edges({
    [START]: "note",
    note: route(["sum", END], ({ entries }) => (entries.length % 3 === 0 ? "sum" : END)),
    sum: END,
  });

// the changes of each superstep
const store = sqliteStore("diary.db");
for (const entry of ["rain", "sun", "rain again"]) await run(diary, { store, thread: "ann", input: { entry } }).result;
for await (const { checkpointId, node, source, changes } of getHistory(diary, { store, thread: "ann" })) {
  const changed = Object.entries(changes).map(([name, { kind }]) => `${name} ${kind}`);
  console.log(checkpointId, node ?? source, changed.join(", "));
}

// the size of a superstep in a long diary
for (let day = 4; day <= 100; day++) await run(diary, { store, thread: "ann", input: { entry: "rain" } }).result;
const sizes: number[] = [];
for await (const { bytes } of getHistory(diary, { store, thread: "ann", nodes: ["note"] })) sizes.push(bytes);
console.log(`${sizes.length} entries; the first was saved with ${sizes.at(-1)} bytes, the last with ${sizes[0]}`);

// a step inside a node
const sent: string[] = [];
let broken = true;
const Mails = defineState({ to: z.array(z.string()), receipts: channel.list(z.string()) });

const mails = defineGraph({ name: "mails", version: 1, state: Mails })
  .nodes({
    mail: inputNode(z.string(), async (_state, { input, step }) => {
      const receipt = await step("send", async ({ idempotencyKey }) => {
        sent.push(input);
        return `sent under …${idempotencyKey.slice(-9)}`;
      });
      if (broken && input === "bob") throw new Error("the archive is down");
      return { receipts: [receipt] };
    }),
  })
  .edges({ [START]: fanOut("mail", (state) => state.to), mail: END });

try {
  await run(mails, { store, thread: "monday", input: { to: ["ann", "bob"] } }).result;
} catch (error) {
  if (isStatewrightError(error, "node_failed")) console.log(error.code, error.place.task, sent.join());
}
broken = false;
const resumed = await resume(mails, { store, thread: "monday" }).result;
console.log(resumed.state.receipts, sent.join());

// a value that cannot be saved
class Money {
  readonly cents: number;
  constructor(cents: number) {
    this.cents = cents;
  }
}
const Till = defineState({ paid: z.instanceof(Money).optional() });
const till = defineGraph({ name: "till", version: 1, state: Till })
  .nodes({ pay: () => ({ paid: new Money(900) }) })
  .edges({ [START]: "pay", pay: END });

try {
  await run(till, { store: memoryStore() }).result;
} catch (error) {
  if (isStatewrightError(error, "unencodable_value")) console.log(error.code, error.place.node);
}

// a class with a codec
const codec = createCodec([
  {
    tag: "money",
    matches: (value): value is Money => value instanceof Money,
    encode: ({ cents }: Money) => cents,
    decode: (cents) => new Money(Number(cents)),
  },
]);
const paid = await run(till, { store: memoryStore(), codec }).result;
console.log(paid.state.paid);

await store.close();
