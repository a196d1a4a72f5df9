/** Hostile calls, as sent by a broken or confused model, or by a model under prompt injection. */
import type { Json, ToolCallBlock } from "@statewright/core";
import type { Chance } from "@statewright/testing";

/** Call; `mayRun` is true if a sound tool may run the call. */
export interface HostileCall {
  readonly kind: string;
  readonly block: ToolCallBlock;
  readonly mayRun: boolean;
}

const orders = { sku: "AB-12", count: 2, tags: ["new"], options: { gift: true } } as const;

/** Creates valid arguments. Optional keys are present at random. */
function createValidArgs(chance: Chance): Record<string, Json> {
  const { sku, count, tags, options } = orders;
  return { sku, count, ...(chance.flip(0.5) ? { tags } : {}), ...(chance.flip(0.5) ? { options } : {}) };
}

function createNested(levels: number): Json {
  let value: Json = "deep";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { down: value };
  return value;
}

const attack = `${"a".repeat(40_000)}!`;
const words = ["", " ", "\ud800", "\u202e", "null", "0", "'; DROP TABLE threads; --", "$(id)", "__proto__", attack];
const invalidValues: readonly Json[] = [
  null,
  -1,
  1.5,
  1e308,
  "2",
  true,
  [],
  {},
  [[]],
  "x".repeat(2_000),
  { $ref: "#" },
];
const hostileKeys = ["__proto__", "constructor", "prototype"];
const injectedKeys = ["customer", "key"];
const names = [
  "",
  "__proto__",
  "constructor",
  "toString",
  "orders ",
  "ORDER",
  "o".repeat(5_000),
  "../order",
  "order\u0000",
];

type Maker = (chance: Chance) => {
  readonly args?: Json;
  readonly raw?: string;
  readonly name?: string;
  readonly mayRun?: boolean;
};

const makers: Readonly<Record<string, Maker>> = {
  fits: (chance) => ({ args: createValidArgs(chance), mayRun: true }),
  "fits, with forged hidden keys": (chance) => ({
    args: { ...createValidArgs(chance), [chance.pick(injectedKeys)]: "FORGED" },
    mayRun: true,
  }),
  "truncated text": (chance) => {
    const text = JSON.stringify(createValidArgs(chance));
    return { raw: text.slice(0, 1 + chance.getInteger(text.length - 1)) };
  },
  "text with a surplus suffix": (chance) => ({
    raw: `${JSON.stringify(createValidArgs(chance))}${chance.flip(0.5) ? "}" : "{}"}`,
  }),
  "empty text": (chance) => ({ raw: " ".repeat(chance.getInteger(3)) }),
  "no object": (chance) => ({ args: chance.pick(invalidValues) }),
  "unexpected key": (chance) => ({ args: { ...createValidArgs(chance), [chance.pick(words)]: 1 } }),
  "unexpected nested key": (chance) => ({
    args: { ...createValidArgs(chance), options: { gift: true, [`k${chance.getInteger(9)}`]: 1 } },
  }),
  "a wrong type": (chance) => {
    const key = chance.pick(["sku", "count", "tags", "options"]);
    const value = chance.pick(invalidValues);
    const fits = (key === "tags" && Array.isArray(value) && value.length === 0) || (key === "sku" && value === "2");
    return { args: { ...createValidArgs(chance), [key]: fits ? 7 : value } };
  },
  "text for slow patterns": (chance) => ({ args: { ...createValidArgs(chance), sku: attack } }),
  "key of a prototype": (chance) => {
    const key = chance.pick(hostileKeys);
    const inside = chance.flip(0.5) ? { options: JSON.parse(`{"${key}":{"polluted":true}}`) as Json } : {};
    return {
      args: {
        ...createValidArgs(chance),
        ...inside,
        ...(JSON.parse(`{"${key}":{"polluted":true}}`) as Record<string, Json>),
      },
    };
  },
  "too deep": (chance) => ({
    args: { ...createValidArgs(chance), options: createNested(65 + chance.getInteger(5_000)) },
  }),
  "too many parts": () => ({ args: { list: Array.from({ length: 100_001 }, () => 0) } }),
  "too large": (chance) => ({
    args: { ...createValidArgs(chance), sku: "x".repeat(2 ** 20 + chance.getInteger(9 * 2 ** 20)) },
  }),
  "too large, and not JSON": (chance) => ({ raw: "[".repeat(2 ** 20 + chance.getInteger(2 ** 20)) }),
  "unknown tool": (chance) => ({ args: createValidArgs(chance), name: chance.pick(names) }),
};
const kinds = Object.keys(makers);
/** Calls of several megabytes are slow, so they are rare. */
const rareKinds = new Set(["too large", "too many parts", "too large, and not JSON"]);

/** Creates the next call of a message. */
export function createHostileCall(chance: Chance, index: number): HostileCall {
  let how = chance.pick(kinds);
  if (rareKinds.has(how) && chance.flip(0.9)) how = "fits";
  const { args = {}, raw, name = "order", mayRun = false } = makers[how]?.(chance) ?? {};
  // Models repeat ids and leave ids out.
  const id = chance.flip(0.1) ? "again" : chance.flip(0.05) ? "" : `call_${index}`;
  const block: ToolCallBlock = { type: "call", id, name, args, ...(raw === undefined ? {} : { raw }) };
  return { kind: how, block, mayRun };
}
