import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  type Channel,
  channel,
  defineState,
  isStatewrightError,
  type Message,
  type MessageWrite,
  overwrite,
} from "../../src/index.ts";
import { applyDelta } from "../../src/store.ts";
import { getFailure } from "../support/failure.ts";

const { channels }: { readonly channels: Readonly<Record<string, Channel>> } = defineState({
  last: z.number().default(0),
  list: channel.list(z.object({ n: z.number() })),
  total: channel.reduce(z.number().default(10), (sum, by: { readonly add: number }) => sum + by.add),
  messages: channel.messages(),
  record: channel.record(z.number()),
  ephemeral: channel.ephemeral(z.string()),
  untracked: channel.untracked(z.instanceof(URL)),
});

function oneChannel(name: string): Channel {
  const found = channels[name];
  if (found === undefined) throw new Error(`no channel ${name}`);
  return found;
}

/** Folds writes into a channel, each parsed like a node return. */
function foldWrites(name: string, ...writes: readonly unknown[]): unknown {
  const { initial, parse, reduce } = oneChannel(name);
  const parsed = writes.map((write) => {
    const result = parse(write);
    if (!result.ok) throw new Error(JSON.stringify(result.issues));
    return result.value;
  });
  return reduce(initial()?.value, parsed).value;
}

function user(id: string, text = id): Message {
  return { role: "user", id, content: [{ type: "text", text }] };
}

describe("fold of each channel kind", () => {
  test("a last channel keeps the last value", () => expect(foldWrites("last", 1, 2)).toBe(2));
  test("a list channel appends", () =>
    expect(foldWrites("list", [{ n: 1 }], [], [{ n: 2 }, { n: 3 }])).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]));
  test("a reduce channel folds writes in order, from its default", () =>
    expect(foldWrites("total", { add: 1 }, { add: 5 })).toBe(16));
  test("a messages channel adds messages, replaces them in place, and removes them by id", () => {
    expect(
      foldWrites("messages", [user("a"), user("b")], user("a", "new"), { remove: "b" }, [user("c"), { remove: "zz" }]),
    ).toEqual([user("a", "new"), user("c")]);
  });
  test("a messages channel treats the same id twice in one write as one message", () => {
    expect(foldWrites("messages", [user("a", "1"), user("a", "2")])).toEqual([user("a", "2")]);
  });
  test("a record channel merges by key and removes keys set to undefined", () => {
    expect(foldWrites("record", { a: 1, b: 2 }, { b: undefined, c: 0 })).toEqual({ a: 1, c: 0 });
  });
  test("ephemeral and untracked channels keep the last value and start undefined", () => {
    expect(oneChannel("ephemeral").initial()).toEqual({ value: undefined });
    expect(oneChannel("untracked").initial()).toEqual({ value: undefined });
    expect(foldWrites("ephemeral", "a", "b")).toBe("b");
  });
});

test("parseValue reads a complete channel value and not a write", () => {
  expect(oneChannel("record").parseValue({ a: 1, b: undefined })).toEqual({ ok: true, value: { a: 1 } });
  expect(oneChannel("messages").parseValue([user("a", "1"), user("a", "2"), { remove: "x" }])).toEqual({
    ok: true,
    value: [user("a", "2")],
  });
  expect(oneChannel("total").parseValue("ten").ok).toBe(false);
  expect(oneChannel("list").parseValue([{ n: "x" }])).toMatchObject({ ok: false, issues: [{ path: "0.n" }] });
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
  expect(oneChannel(name).parse(write)).toMatchObject({ ok: false, issues: [{ path }] });
});

test("a written value is frozen, and the list of the caller stays mutable", () => {
  const given = [user("a")];
  const value = foldWrites("messages", given) as Message[];
  given.push(user("b"));
  expect(value).toEqual([user("a")]);
  expect(() => value.push(user("c"))).toThrow(TypeError);
  expect(() => Object.assign(value[0]!, { id: "x" })).toThrow(TypeError);
});

test("the result of a reducer is parsed and frozen like any value", () => {
  const { totals } = defineState({
    totals: channel.reduce(z.object({ n: z.number().max(9) }).default({ n: 0 }), (sum, by: number) => ({
      n: sum.n + by,
    })),
  }).channels;
  const { value } = totals!.reduce({ n: 1 }, [2]);
  expect(value).toEqual({ n: 3 });
  expect(() => Object.assign(value as object, { n: 0 })).toThrow(TypeError);
  expect(() => totals!.reduce({ n: 5 }, [5])).toThrow("n: ");
});

test("an untracked value is not frozen, so that a client object stays usable", () => {
  const client = new URL("https://a.example");
  expect(oneChannel("untracked").parse(client)).toEqual({ ok: true, value: client });
  expect(Object.isFrozen(client)).toBe(false);
});

test("an overwrite is recognized by identity and not by its shape", () => {
  const lookalike = { overwrite: 5 };
  const { parse } = defineState({ free: z.unknown() }).channels["free"]!;
  expect(parse(lookalike)).toEqual({ ok: true, value: lookalike });
  expect(overwrite(5)).toEqual(lookalike);
});

test("defineState refuses an invalid channel name, and a channel that is neither schema nor channel", async () => {
  await getFailure(() => defineState({ "a b": z.string() }), "invalid_id");
  await getFailure(() => defineState(JSON.parse('{"__proto__":{}}')), "invalid_id");
  const error = await getFailure(() => defineState({ a: "string" as never }), "invalid_state");
  expect(error.place).toMatchObject({ channel: "a" });
  expect(isStatewrightError(error)).toBe(true);
});

test("defineState refuses a single schema in place of channels, and names the expected form", async () => {
  const error = await getFailure(() => defineState(z.object({ a: z.string() }) as never), "invalid_state");
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

describe("saved deltas equal the fold", () => {
  test.each(Object.keys(writesOf))(
    "saved deltas replay to the folded value for any writes to a channel of kind %s over any number of supersteps",
    (name) => {
      const { initial, parse, reduce } = oneChannel(name);
      fc.assert(
        fc.property(fc.array(fc.array(writesOf[name]!, { minLength: 1, maxLength: 3 }), { maxLength: 6 }), (steps) => {
          let folded: unknown = initial()?.value;
          let replayed: unknown = folded;
          for (const writes of steps) {
            const before = JSON.stringify(folded);
            const parsed = writes
              .map((write) => parse(write))
              .map((each) => (each.ok ? each.value : expect.fail("refused")));
            const { value, delta } = reduce(folded, parsed);
            expect(JSON.stringify(folded)).toBe(before);
            replayed = applyDelta(replayed, delta);
            expect(JSON.stringify(replayed)).toBe(JSON.stringify(value));
            expect(Object.isFrozen(replayed)).toBe(true);
            folded = value;
          }
        }),
        { numRuns: 300 },
      );
    },
  );
});
