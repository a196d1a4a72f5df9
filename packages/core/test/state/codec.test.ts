import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ClassCodec, createCodec, plainCodec } from "../../src/store.ts";
import { getFailure } from "../support/failure.ts";

const encodeAndDecode = (value: unknown): unknown => plainCodec.decode(plainCodec.encode(value, "the test"));

/** Compares content and class; the comparison of vitest reads a data key `constructor` as the class. */
function same(left: unknown, right: unknown): boolean {
  return isDeepStrictEqual(left, right);
}

/** Creates a dictionary without a prototype, like `Object.groupBy`. */
function bare(entries: object): object {
  return Object.assign(Object.create(null), entries);
}

class Money {
  readonly cents: number;
  constructor(cents: number) {
    this.cents = cents;
  }
}
const money: ClassCodec<Money> = {
  tag: "money",
  matches: (value): value is Money => value instanceof Money,
  encode: ({ cents }) => cents,
  decode: (cents) => new Money(Number(cents)),
};

const leaf = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.double(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.date({ noInvalidDate: false }),
  fc.webUrl().map((url) => new URL(url)),
  fc.constantFrom(/a+/giu, /^\/$/m),
  fc.uint8Array(),
  fc.float64Array(),
  fc.bigInt64Array(),
);
const key = fc.oneof(
  fc.string(),
  fc.constantFrom("$", "__proto__", "constructor", "toJSON", "v", "hasOwnProperty", "then"),
);
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("value")),
    fc.array(fc.tuple(key, tie("value"))).map(Object.fromEntries),
    fc.array(fc.tuple(key, tie("value"))).map((entries) => bare(Object.fromEntries(entries))),
    fc.array(fc.tuple(tie("value"), tie("value"))).map((entries) => new Map(entries)),
    fc.array(tie("value")).map((items) => new Set(items)),
  ),
})).value;

test("any supported value is equal after a codec round trip, and encodes to the same text again [E48]", () => {
  fc.assert(
    fc.property(anything, (value) => {
      const text = plainCodec.encode(value, "the test");
      const back = plainCodec.decode(text);
      expect(same(back, value)).toBe(true);
      expect(plainCodec.encode(back, "the test")).toBe(text);
    }),
    { numRuns: 200 },
  );
});

test.each([
  ["Date", new Date(1_700_000_000_123)],
  ["an invalid Date", new Date(Number.NaN)],
  ["Map", new Map<unknown, unknown>([[{ k: 1 }, new Set([1n])]])],
  ["Set", new Set([undefined, Number.NaN])],
  ["BigInt", -(2n ** 80n)],
  ["NaN", Number.NaN],
  ["infinities", [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
  ["-0", -0],
  ["undefined in objects and lists", { a: undefined, b: [undefined, 1] }],
  ["a list with holes", { board: Object.assign(new Array(9), { 1: "x", 4: undefined }), none: new Array(2) }],
  ["an object without a prototype", bare({ a: 1, $: "x", inner: bare({}) })],
  ["URL", new URL("https://a.example/?q=%20#x")],
  ["RegExp", /a"b\/c/giu],
  ["ArrayBuffer", new Uint8Array([0, 255, 7]).buffer],
  ["Int8Array", Int8Array.of(-1, 2)],
  ["Uint8Array", Uint8Array.of(0, 255)],
  ["Uint8ClampedArray", Uint8ClampedArray.of(300)],
  ["Int16Array", Int16Array.of(-300)],
  ["Uint16Array", Uint16Array.of(65_535)],
  ["Int32Array", Int32Array.of(-70_000)],
  ["Uint32Array", Uint32Array.of(4_294_967_295)],
  ["Float32Array", Float32Array.of(0.5, Number.NaN)],
  ["Float64Array", Float64Array.of(Math.PI, -0)],
  ["BigInt64Array", BigInt64Array.of(-1n)],
  ["BigUint64Array", BigUint64Array.of(1n)],
  ["DataView", new DataView(Uint8Array.of(1, 2, 3).buffer)],
  ["Buffer", Buffer.from("håndbok")],
  ["a part of a larger buffer", new Uint16Array(Uint8Array.of(9, 9, 1, 0, 2, 0).buffer, 2, 2)],
  ["large bytes", new Uint8Array(100_000).map((_, index) => index)],
])("%s survives a codec round trip with its class [E48]", (_name, value) => {
  const back = encodeAndDecode(value);
  expect(back).toStrictEqual(value);
  if (typeof value === "object") expect(Object.getPrototypeOf(back)).toBe(Object.getPrototypeOf(value));
});

test("the codec supports every typed array of the platform [E48]", () => {
  const typedArray: object = Object.getPrototypeOf(Uint8Array);
  const classes = Object.getOwnPropertyNames(globalThis)
    .map((name) => (/Array$/.test(name) ? Reflect.get(globalThis, name) : undefined))
    .filter(
      (made): made is Uint8ArrayConstructor =>
        typeof made === "function" && Object.getPrototypeOf(made) === typedArray && made !== (Buffer as never),
    );
  expect(classes.length).toBeGreaterThanOrEqual(11);
  for (const Class of classes) expect(encodeAndDecode(new Class(2))).toStrictEqual(new Class(2));
});

describe("codec for errors", () => {
  test("class, name, message, stack, cause and own fields of an error survive a codec round trip [E48]", () => {
    const cause = Object.assign(new TypeError("inside"), { code: "EIN" });
    const error = Object.assign(new RangeError("outside", { cause }), { at: new Date(3), status: 502 });
    const back = encodeAndDecode(error) as RangeError & { cause: TypeError & { code: string } };
    expect(back).toBeInstanceOf(RangeError);
    expect(back).toMatchObject({ name: "RangeError", message: "outside", status: 502, at: new Date(3) });
    expect(back.stack).toBe(error.stack);
    expect(back.cause).toBeInstanceOf(TypeError);
    expect(back.cause).toMatchObject({ message: "inside", code: "EIN", stack: cause.stack });
    expect(Object.keys(back)).toEqual(["at", "status"]);
  });

  test("a custom error class keeps its name, and an AggregateError keeps all of its errors [E48]", () => {
    class QuotaError extends Error {
      override readonly name = "QuotaError";
    }
    expect(encodeAndDecode(new QuotaError("full"))).toMatchObject({ name: "QuotaError", message: "full" });
    const back = encodeAndDecode(new AggregateError([new Error("one"), "two"], "both")) as AggregateError;
    expect(back).toBeInstanceOf(AggregateError);
    expect(back.message).toBe("both");
    expect(back.errors[0]).toMatchObject({ message: "one" });
    expect(back.errors[1]).toBe("two");
    expect(Object.keys(back)).toEqual([]);
  });
});

test("classes with a codec are restored as their class, also inside maps, lists and errors [E48]", () => {
  const codec = createCodec([money]);
  const value = { list: [new Money(5)], map: new Map([["k", new Money(6)]]) };
  const back = codec.decode(codec.encode(value, "the test"));
  expect(back).toStrictEqual(value);
});

test("own keys `__proto__` and `constructor` survive as data and pollute no prototype [E48]", () => {
  const hostile: unknown = JSON.parse(
    '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}},"in":{"__proto__":[1n0]}}'.replace("1n0", "1"),
  );
  for (const value of [hostile, { deep: hostile, big: 1n }, [hostile]]) {
    const back = encodeAndDecode(value);
    expect(same(back, value)).toBe(true);
    expect(Object.keys(back as object)).toEqual(Object.keys(value as object));
  }
  const back = encodeAndDecode(hostile) as Record<string, unknown>;
  expect(Object.hasOwn(back, "__proto__")).toBe(true);
  expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
  expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
});

test("objects that look like the codec format are data", () => {
  for (const value of [
    { $: "date", v: 1 },
    { $: "nobody knows", v: { $: "map", v: [] } },
    { toJSON: 1, a: [{ $: undefined }, { $: "hole" }] },
    '{"$":"date","v":1}',
  ])
    expect(same(encodeAndDecode(value), value)).toBe(true);
});

describe("codec refusals with path [E48]", () => {
  class Secret {}
  class Fancy extends Map {}
  class Rows extends Array {}
  const cycle: { next: { back?: unknown } } = { next: {} };
  cycle.next.back = cycle;
  const knot = new Map<string, unknown>();
  knot.set("self", [knot]);
  test.each([
    ["a function", { a: [{ b: () => 1 }] }, "a.0.b", "function"],
    ["a symbol", { a: Symbol("x") }, "a", "symbol"],
    ["a symbol as a key", { a: { [Symbol("x")]: 1 } }, "a", "symbol"],
    ["a cycle", cycle, "next.back", "cycle"],
    ["a cycle through a map", knot, "0.0", "cycle"],
    ["an unknown class", { a: new Secret() }, "a", "Secret"],
    ["a subclass of Map", { a: new Fancy() }, "a", "Fancy"],
    ["a subclass of Array", { a: new Rows() }, "a", "Rows"],
    ["a boxed text", { a: new String("x") }, "a", "String"],
    ["a promise", [Promise.resolve()], "0", "Promise"],
    ["a weak map", { a: new WeakMap() }, "a", "WeakMap"],
    ["a function inside an error", { e: Object.assign(new Error("x"), { retry: () => 1 }) }, "e.retry", "function"],
    ["a match of a regular expression", { found: ["a=1".match(/(?<key>\w)=/)] }, "found.0", "match"],
    ["a function inside a set", { s: new Set([() => 1]) }, "s.0", "function"],
  ])("the codec refuses %s with its path", async (_name, value, path, said) => {
    const error = await getFailure(() => plainCodec.encode(value, 'the channel "notes"'), "unencodable_value");
    expect(error.place.path).toBe(path);
    expect(error.message).toContain(said);
    expect(error.message).toContain('the channel "notes"');
  });

  test("a class codec that throws fails with its tag and keeps the cause", async () => {
    const broken: ClassCodec<Money> = {
      ...money,
      encode: () => {
        throw new Error("no cents");
      },
    };
    const error = await getFailure(
      () => createCodec([broken]).encode({ a: new Money(1) }, "the test"),
      "unencodable_value",
    );
    expect(error.place.path).toBe("a");
    expect(error.message).toContain('"money"');
    expect(error.cause).toMatchObject({ message: "no cents" });
  });
});

test("the codec does not treat a shared object as a cycle", () => {
  const shared = { a: 1 };
  expect(encodeAndDecode([shared, shared])).toEqual([{ a: 1 }, { a: 1 }]);
});

test("decoding constructs nothing that the text names: unknown tags and malformed texts are refused [R1]", async () => {
  for (const text of [
    "{",
    '{"$":"money","v":5}',
    '{"$":"Function","v":"return 1"}',
    '{"$":"__proto__","v":1}',
    '{"$":"bytes","v":["Proxy","AA=="]}',
    '{"$":"map","v":5}',
    '{"$":"bigint","v":"x"}',
    '{"$":"url","v":"::"}',
    '{"$":"regexp","v":["(",""]}',
    '{"$":"error","v":1}',
    '{"$":"hole"}',
  ]) {
    await getFailure(() => plainCodec.decode(text), "store_corrupt");
  }
});

test("decoding a class without its codec fails with the tag and the fix", async () => {
  const failure = await getFailure(() => plainCodec.decode('{"$":"money","v":5}'), "store_corrupt");
  expect(failure.message).toContain('unknown tag "money"');
  expect(failure.message).toContain("pass its codec here too");
});

test("a class codec with a tag of the format, or with a duplicate tag, is refused", async () => {
  await getFailure(() => createCodec([{ ...money, tag: "date" }]), "invalid_option");
  await getFailure(() => createCodec([money, money]), "invalid_option");
});

test("data of an earlier class codec version is upgraded, and data of a later version is refused [E48]", async () => {
  const euros: ClassCodec<Money> = {
    ...money,
    version: 3,
    encode: ({ cents }) => ({ euros: cents / 100 }),
    decode: (data) => new Money((data as { readonly euros: number }).euros * 100),
    upgrade: (data, from) => ({
      euros: from === 1 ? Number(data) / 100 : (data as { readonly cents: number }).cents / 100,
    }),
  };
  const first = createCodec([money]).encode([new Money(500)], "money");
  expect(first).toBe('[{"$":"money","v":500}]');
  const now = createCodec([euros]);
  expect(now.decode(first)).toEqual([new Money(500)]);
  expect(now.decode('{"$":"money","n":2,"v":{"cents":700}}')).toEqual(new Money(700));
  const saved = now.encode(new Money(900), "money");
  expect(saved).toBe('{"$":"money","n":3,"v":{"euros":9}}');
  expect(now.decode(saved)).toEqual(new Money(900));
  const newer = await getFailure(() => createCodec([money]).decode(saved), "store_newer");
  expect(newer.message).toContain(
    'a saved value of "money" was written by version 3 of its codec, but the current version is 1',
  );
  const broken = createCodec([
    {
      ...euros,
      upgrade: () => {
        throw new Error("no rate");
      },
    },
  ]);
  expect((await getFailure(() => broken.decode(first), "store_corrupt")).cause).toMatchObject({ message: "no rate" });
  const { upgrade: _, ...without } = euros;
  for (const codec of [without, { ...euros, version: 0 }, { ...euros, version: 1.5 }])
    await getFailure(() => createCodec([codec]), "invalid_option");
});
