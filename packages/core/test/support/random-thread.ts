/** Threads with random writes, forks and edits, for readers that are compared with reads by the graph. */
import fc from "fast-check";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  edit,
  fork,
  getHistory,
  resume,
  route,
  run,
  START,
  type Store,
} from "../../src/index.ts";
import { createCodec } from "../../src/store.ts";

/** Amount of money: a class with a codec. */
export class Money {
  readonly cents: number;
  constructor(cents: number) {
    this.cents = cents;
  }
}

/** Codec that knows {@link Money}. */
export const moneyCodec = createCodec([
  {
    tag: "money",
    matches: (value): value is Money => value instanceof Money,
    encode: ({ cents }: Money) => ({ cents }),
    decode: (data) => new Money((data as { readonly cents: number }).cents),
  },
]);

const kinds = ["log", "notes", "drop", "items", "shift", "name", "total", "flash", "price", "nothing"] as const;

const action = z.object({ kind: z.enum(kinds), n: z.number() });

type Action = z.infer<typeof action>;

const Random = defineState({
  todo: z.array(action),
  log: channel.list(z.object({ id: z.string(), n: z.number() })),
  notes: channel.record(z.number()),
  doc: z.object({ items: z.array(z.number()), name: z.string(), "a/b~c": z.number() }).default({
    items: [7, 8],
    name: "first",
    "a/b~c": 0,
  }),
  total: channel.reduce(z.number().default(0), (current: number, add: number) => current + add),
  flash: channel.ephemeral(z.number()),
  price: z.instanceof(Money).optional(),
});

/** Graph that performs one action per superstep. */
export const randomGraph = defineGraph({ name: "random", state: Random })
  .nodes({
    work: ({ todo, doc }) => {
      const [next, ...rest] = todo;
      if (next === undefined) return {};
      const { kind, n } = next;
      const base = { todo: rest };
      switch (kind) {
        case "log":
          return { ...base, log: [{ id: `m${n}-${rest.length}`, n }] };
        case "notes":
          return { ...base, notes: { [`k${n % 3}`]: n } };
        case "drop":
          return { ...base, notes: { [`k${n % 3}`]: undefined } };
        case "items":
          return { ...base, doc: { ...doc, items: [...doc.items, n] } };
        case "total":
          return { ...base, total: n };
        case "flash":
          return { ...base, flash: n };
        case "price":
          return { ...base, price: new Money(n) };
        case "nothing":
          return base;
        case "shift":
        case "name":
          return edit((draft: { todo: Action[]; doc: { items: number[]; name: string; "a/b~c": number } }) => {
            draft.todo.shift();
            if (kind === "shift") draft.doc.items.shift();
            else draft.doc.name = `n${n}`;
            draft.doc["a/b~c"] = n;
          });
      }
    },
  })
  .edges({ [START]: "work", work: route(["work", END], ({ todo }) => (todo.length > 0 ? "work" : END)) });

/** Random thread: actions of the first run, then forks with more actions. */
export interface ThreadPlan {
  readonly actions: readonly Action[];
  readonly forks: readonly { readonly at: number; readonly actions: readonly Action[] }[];
}

const actions = fc.array(fc.record({ kind: fc.constantFrom(...kinds), n: fc.nat(9) }), { minLength: 1, maxLength: 12 });

export const threadPlans: fc.Arbitrary<ThreadPlan> = fc.record({
  actions,
  forks: fc.array(fc.record({ at: fc.nat(30), actions }), { maxLength: 3 }),
});

/** Runs a plan on the thread `t`; returns its branches. */
export async function runThreadPlan(store: Store, plan: ThreadPlan): Promise<readonly string[]> {
  const shared = { store, thread: "t", codec: moneyCodec };
  await run(randomGraph, { ...shared, input: { todo: [...plan.actions] } }).result;
  const branches = ["main"];
  for (const [index, { at, actions: todo }] of plan.forks.entries()) {
    const from = branches[at % branches.length] ?? "main";
    const ids: number[] = [];
    for await (const { checkpointId, next } of getHistory(randomGraph, { ...shared, branch: from }))
      if (!next.includes(END)) ids.push(checkpointId);
    const name = `fork${index}`;
    await fork(randomGraph, { ...shared, at: ids[at % ids.length] ?? 1, name, update: { todo: [...todo] } });
    await resume(randomGraph, { ...shared, branch: name }).result;
    branches.push(name);
  }
  return branches;
}
