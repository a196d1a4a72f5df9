import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  applyDelta,
  type Channel,
  defineState,
  ephemeral,
  isStatewrightError,
  list,
  type Message,
  type MessageWrite,
  messages,
  overwrite,
  record,
  reduce,
  untracked,
} from "../../src/index.ts";
import { failureOf } from "../support/failure.ts";

const { channels }: { readonly channels: Readonly<Record<string, Channel>> } = defineState({
  last: z.number().default(0),
  list: list(z.object({ n: z.number() })),
  total: reduce(z.number().default(10), (sum, by: { readonly add: number }) => sum + by.add),
  messages: messages(),
  record: record(z.number()),
  ephemeral: ephemeral(z.string()),
  untracked: untracked(z.instanceof(URL)),
});

function channel(name: string): Channel {
  const found = channels[name];
  if (found === undefined) throw new Error(`no channel ${name}`);
  return found;
}

/** The value after writes, each parsed as a node's return is. */
function after(name: string, ...writes: readonly unknown[]): unknown {
  const { initial, parse, fold } = channel(name);
  const parsed = writes.map((write) => {
    const result = parse(write);
    if (!result.ok) throw new Error(JSON.stringify(result.issues));
    return result.value;
  });
  return fold(initial()?.value, parsed).value;
}

function user(id: string, text = id): Message {
  return { role: "user", id, content: [{ type: "text", text }] };
}

describe("each kind folds its writes", () => {
  test("the last value wins", () => expect(after("last", 1, 2)).toBe(2));
  test("a list appends", () =>
    expect(after("list", [{ n: 1 }], [], [{ n: 2 }, { n: 3 }])).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]));
  test("a reducer folds one write after the other, from its default", () =>
    expect(after("total", { add: 1 }, { add: 5 })).toBe(16));
  test("messages are added, replaced in their place, and removed by id", () => {
    expect(
      after("messages", [user("a"), user("b")], user("a", "new"), { remove: "b" }, [user("c"), { remove: "zz" }]),
    ).toEqual([user("a", "new"), user("c")]);
  });
  test("the same id twice in one write is one message", () => {
    expect(after("messages", [user("a", "1"), user("a", "2")])).toEqual([user("a", "2")]);
  });
  test("a record merges by key and removes what is undefined", () => {
    expect(after("record", { a: 1, b: 2 }, { b: undefined, c: 0 })).toEqual({ a: 1, c: 0 });
  });
  test("ephemeral and untracked keep the last value and start undefined", () => {
    expect(channel("ephemeral").initial()).toEqual({ value: undefined });
    expect(channel("untracked").initial()).toEqual({ value: undefined });
    expect(after("ephemeral", "a", "b")).toBe("b");
  });
});

test("a whole value is a value of the channel, not a write", () => {
  expect(channel("record").parseValue({ a: 1, b: undefined })).toEqual({ ok: true, value: { a: 1 } });
  expect(channel("messages").parseValue([user("a", "1"), user("a", "2"), { remove: "x" }])).toEqual({
    ok: true,
    value: [user("a", "2")],
  });
  expect(channel("total").parseValue("ten").ok).toBe(false);
  expect(channel("list").parseValue([{ n: "x" }])).toMatchObject({ ok: false, issues: [{ path: "0.n" }] });
});

test.each([
  ["last", "x", ""],
  ["list", { n: 1 }, ""],
  ["list", [{ n: 1 }, { n: "x" }], "1.n"],
  ["record", { a: "x" }, "a"],
  ["record", new Map([["a", 1]]), ""],
  ["record", [1], ""],
  ["messages", [user("a"), { role: "user", content: [] }], "1.id"],
  ["messages", { role: "nobody", id: "a", content: [] }, "0.role"],
  ["messages", [{ role: "user", id: "a", content: [{}] }], "0.content.0"],
  ["messages", "hello", "0"],
])("the channel %s refuses %j with the path", (name, write, path) => {
  expect(channel(name).parse(write)).toMatchObject({ ok: false, issues: [{ path }] });
});

test("what a write gives is frozen, and the list of the caller stays the caller's", () => {
  const given = [user("a")];
  const value = after("messages", given) as Message[];
  given.push(user("b"));
  expect(value).toEqual([user("a")]);
  expect(() => value.push(user("c"))).toThrow(TypeError);
  expect(() => Object.assign(value[0]!, { id: "x" })).toThrow(TypeError);
});

test("a reducer's result is parsed and frozen like any value", () => {
  const { totals } = defineState({
    totals: reduce(z.object({ n: z.number().max(9) }).default({ n: 0 }), (sum, by: number) => ({ n: sum.n + by })),
  }).channels;
  const { value } = totals!.fold({ n: 1 }, [2]);
  expect(value).toEqual({ n: 3 });
  expect(() => Object.assign(value as object, { n: 0 })).toThrow(TypeError);
  expect(() => totals!.fold({ n: 5 }, [5])).toThrow("n: ");
});

test("what lives in the process only is not frozen: a client goes on working", () => {
  const client = new URL("https://a.example");
  expect(channel("untracked").parse(client)).toEqual({ ok: true, value: client });
  expect(Object.isFrozen(client)).toBe(false);
});

test("an overwrite is recognised by identity, never by its looks", () => {
  const lookalike = { overwrite: 5 };
  const { parse } = defineState({ free: z.unknown() }).channels["free"]!;
  expect(parse(lookalike)).toEqual({ ok: true, value: lookalike });
  expect(overwrite(5)).toEqual(lookalike);
});

test("a state refuses a name that is no id, and a part that is neither schema nor channel", async () => {
  await failureOf(() => defineState({ "a b": z.string() }), "invalid_id");
  await failureOf(() => defineState(JSON.parse('{"__proto__":{}}')), "invalid_id");
  const error = await failureOf(() => defineState({ a: "string" as never }), "invalid_state");
  expect(error.place).toMatchObject({ channel: "a" });
  expect(isStatewrightError(error)).toBe(true);
});

test("a state refuses one schema in place of its channels, and says which form it wants", async () => {
  const error = await failureOf(() => defineState(z.object({ a: z.string() }) as never), "invalid_state");
  expect(error.message).toContain("without z.object around it");
});

const ids = fc.constantFrom("a", "b", "c", "d", "e", "__proto__");
const writesOf: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  last: fc.double({ noNaN: true, noDefaultInfinity: true }),
  list: fc.array(fc.record({ n: fc.integer() })),
  total: fc.record({ add: fc.integer() }),
  messages: fc.array(
    fc.oneof(
      fc.tuple(ids, fc.string()).map(([id, text]): MessageWrite => user(id, text)),
      ids.map((id): MessageWrite => ({ remove: id })),
    ),
  ),
  record: fc
    .array(fc.tuple(fc.oneof(ids, fc.constant("constructor")), fc.option(fc.integer(), { nil: undefined })))
    .map((entries) => Object.fromEntries(entries)),
};

describe("a saved delta leads to what the fold gave", () => {
  test.each(Object.keys(writesOf))("for any writes to a channel of kind %s, over any number of supersteps", (name) => {
    const { initial, parse, fold } = channel(name);
    fc.assert(
      fc.property(fc.array(fc.array(writesOf[name]!, { minLength: 1, maxLength: 3 }), { maxLength: 6 }), (steps) => {
        let folded: unknown = initial()?.value;
        let replayed: unknown = folded;
        for (const writes of steps) {
          const before = JSON.stringify(folded);
          const parsed = writes
            .map((write) => parse(write))
            .map((each) => (each.ok ? each.value : expect.fail("refused")));
          const { value, delta } = fold(folded, parsed);
          expect(JSON.stringify(folded)).toBe(before);
          replayed = applyDelta(replayed, delta);
          expect(JSON.stringify(replayed)).toBe(JSON.stringify(value));
          expect(Object.isFrozen(replayed)).toBe(true);
          folded = value;
        }
      }),
      { numRuns: 300 },
    );
  });
});
