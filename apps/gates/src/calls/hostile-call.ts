/** Hostile calls: what a model may send when it is broken, confused, or driven by somebody else's text. */
import type { Json, ToolCallBlock } from "@statewright/core";
import type { Chance } from "@statewright/testing";

/** A call, and whether a sound tool may be run by it. */
export interface HostileCall {
  readonly how: string;
  readonly block: ToolCallBlock;
  readonly mayRun: boolean;
}

const orders = { sku: "AB-12", count: 2, tags: ["new"], options: { gift: true } } as const;

/** Arguments that fit, each key left out or kept as the schema allows. */
function fitting(chance: Chance): Record<string, Json> {
  const { sku, count, tags, options } = orders;
  return { sku, count, ...(chance.share(0.5) ? { tags } : {}), ...(chance.share(0.5) ? { options } : {}) };
}

function nested(levels: number): Json {
  let value: Json = "deep";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { down: value };
  return value;
}

const attack = `${"a".repeat(40_000)}!`;
const words = ["", " ", "\ud800", "\u202e", "null", "0", "'; DROP TABLE threads; --", "$(id)", "__proto__", attack];
const wrong: readonly Json[] = [null, -1, 1.5, 1e308, "2", true, [], {}, [[]], "x".repeat(2_000), { $ref: "#" }];
const hostileKeys = ["__proto__", "constructor", "prototype"];
const hidden = ["customer", "key"];
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
  fits: (chance) => ({ args: fitting(chance), mayRun: true }),
  "fits, with forged hidden keys": (chance) => ({
    args: { ...fitting(chance), [chance.of(hidden)]: "FORGED" },
    mayRun: true,
  }),
  "text that ends too early": (chance) => {
    const text = JSON.stringify(fitting(chance));
    return { raw: text.slice(0, 1 + chance.below(text.length - 1)) };
  },
  "text that goes on": (chance) => ({ raw: `${JSON.stringify(fitting(chance))}${chance.share(0.5) ? "}" : "{}"}` }),
  "empty text": (chance) => ({ raw: " ".repeat(chance.below(3)) }),
  "no object": (chance) => ({ args: chance.of(wrong) }),
  "a key too many": (chance) => ({ args: { ...fitting(chance), [chance.of(words)]: 1 } }),
  "a key too many, within": (chance) => ({
    args: { ...fitting(chance), options: { gift: true, [`k${chance.below(9)}`]: 1 } },
  }),
  "a wrong type": (chance) => {
    const key = chance.of(["sku", "count", "tags", "options"]);
    const value = chance.of(wrong);
    const fits = (key === "tags" && Array.isArray(value) && value.length === 0) || (key === "sku" && value === "2");
    return { args: { ...fitting(chance), [key]: fits ? 7 : value } };
  },
  "a text that slow patterns choke on": (chance) => ({ args: { ...fitting(chance), sku: attack } }),
  "a key that leads to a prototype": (chance) => {
    const key = chance.of(hostileKeys);
    const inside = chance.share(0.5) ? { options: JSON.parse(`{"${key}":{"polluted":true}}`) as Json } : {};
    return {
      args: { ...fitting(chance), ...inside, ...(JSON.parse(`{"${key}":{"polluted":true}}`) as Record<string, Json>) },
    };
  },
  "too deep": (chance) => ({ args: { ...fitting(chance), options: nested(65 + chance.below(5_000)) } }),
  "too many parts": () => ({ args: { list: Array.from({ length: 100_001 }, () => 0) } }),
  "too large": (chance) => ({ args: { ...fitting(chance), sku: "x".repeat(2 ** 20 + chance.below(9 * 2 ** 20)) } }),
  "too large, and no JSON": (chance) => ({ raw: "[".repeat(2 ** 20 + chance.below(2 ** 20)) }),
  "a tool that does not exist": (chance) => ({ args: fitting(chance), name: chance.of(names) }),
};
const ways = Object.keys(makers);
/** Ten megabytes take their time: they are met now and then. */
const rare = new Set(["too large", "too many parts", "too large, and no JSON"]);

/** The next call of a message. */
export function hostileCall(chance: Chance, index: number): HostileCall {
  let how = chance.of(ways);
  if (rare.has(how) && chance.share(0.9)) how = "fits";
  const { args = {}, raw, name = "order", mayRun = false } = makers[how]?.(chance) ?? {};
  // Models repeat ids, and leave them out.
  const id = chance.share(0.1) ? "again" : chance.share(0.05) ? "" : `call_${index}`;
  const block: ToolCallBlock = { type: "call", id, name, args, ...(raw === undefined ? {} : { raw }) };
  return { how, block, mayRun };
}
