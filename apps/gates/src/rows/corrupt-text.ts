/** Corrupted texts: mostly valid JSON with another content, sometimes invalid JSON. */
import type { Json } from "@statewright/core";
import type { Chance } from "@statewright/testing";

/** Creates the replacement values. A function, because two locations must not share an object. */
const createReplacements: () => readonly Json[] = () => [
  null,
  true,
  -1,
  0.5,
  1e308,
  4_294_967_296,
  "",
  "x",
  "__proto__",
  "0:0",
  "a/b",
  "\ud800",
  [],
  [[]],
  {},
  { length: 1e9 },
  JSON.parse('{"__proto__":{"polluted":1}}'),
  JSON.parse('{"constructor":{"prototype":{"polluted":1}}}'),
  { $: "nobody", v: 1 },
  { $: "date", v: "x" },
  { $: "map", v: 3 },
  { $: "bigint", v: "zz" },
  { $: "error", v: {} },
  { $: "undefined" },
  { $: "hole" },
];

const invalidTexts = ["", "{", "[[", "nul", "[".repeat(2_000), "9".repeat(400), '{"$":'];

/** Corrupts one location of a JSON text. */
export function corruptText(chance: Chance, text: string): string {
  if (chance.flip(0.08)) return chance.pick([...invalidTexts, text.slice(0, -1)]);
  const root = { all: JSON.parse(text) as unknown };
  const [object, key] = chance.pick(listLocations(root));
  if (chance.flip(0.7)) setValue(object, key, chance.pick(createReplacements()));
  else if (chance.flip(0.6) && object !== root) removeValue(object, key);
  else
    setValue(
      object,
      Array.isArray(object) ? object.length : chance.pick(["step", "id", "task", "kind", "from"]),
      chance.pick(createReplacements()),
    );
  return JSON.stringify(root.all) ?? "null";
}

type Location = readonly [object: object, key: string | number];

function listLocations(object: object): readonly Location[] {
  return Object.entries(object).flatMap(([key, value]): readonly Location[] =>
    typeof value === "object" && value !== null ? [[object, key], ...listLocations(value)] : [[object, key]],
  );
}

function setValue(object: object, key: string | number, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

function removeValue(object: object, key: string | number): void {
  if (Array.isArray(object)) object.splice(Number(key), 1);
  else Reflect.deleteProperty(object, key);
}
