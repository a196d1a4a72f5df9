/** Saved texts as a stranger could write them: JSON that is whole, and says something else; now and then no JSON. */
import type { Json } from "@statewright/core";
import type { Chance } from "@statewright/testing";

/** What stands in place of a part. A function, since two places must not share an object. */
const strange: () => readonly Json[] = () => [
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

const broken = ["", "{", "[[", "nul", "[".repeat(2_000), "9".repeat(400), '{"$":'];

/** The text with one place in it bent. */
export function bentText(chance: Chance, text: string): string {
  if (chance.share(0.08)) return chance.of([...broken, text.slice(0, -1)]);
  const root = { all: JSON.parse(text) as unknown };
  const [object, key] = chance.of(placesIn(root));
  if (chance.share(0.7)) put(object, key, chance.of(strange()));
  else if (chance.share(0.6) && object !== root) remove(object, key);
  else
    put(
      object,
      Array.isArray(object) ? object.length : chance.of(["step", "id", "task", "kind", "from"]),
      chance.of(strange()),
    );
  return JSON.stringify(root.all) ?? "null";
}

type Place = readonly [object: object, key: string | number];

function placesIn(object: object): readonly Place[] {
  return Object.entries(object).flatMap(([key, value]): readonly Place[] =>
    typeof value === "object" && value !== null ? [[object, key], ...placesIn(value)] : [[object, key]],
  );
}

function put(object: object, key: string | number, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

function remove(object: object, key: string | number): void {
  if (Array.isArray(object)) object.splice(Number(key), 1);
  else Reflect.deleteProperty(object, key);
}
