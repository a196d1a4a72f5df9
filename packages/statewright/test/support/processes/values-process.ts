/** One process that saves values of every kind, one per thread, and hangs in the next step. */
import process from "node:process";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { channel, defineGraph, defineState, END, run, START, sqliteStore } from "statewright";
import * as z from "zod";

const typed = fc
  .uint8Array({ maxLength: 8 })
  .map((bytes) => new Uint8Array([...bytes, ...new Uint8Array(8)]).slice(0, 8));

const leaf = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.double(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.date({ noInvalidDate: false }),
  fc.webUrl().map((url) => new URL(url)),
  fc.constantFrom(/a+/giu, /^\/$/m),
  fc.string().map((message) => Object.assign(new RangeError(message, { cause: message }), { code: message })),
  fc.string().map((message) => new AggregateError([new TypeError(message)], message)),
  typed.map((bytes) => Buffer.from(bytes)),
  typed.map((bytes) => bytes.buffer),
  typed.map((bytes) => new DataView(bytes.buffer)),
  ...[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array].map((of) =>
    typed.map((bytes): unknown => new of(bytes.buffer)),
  ),
  ...[Float32Array, Float64Array, BigInt64Array, BigUint64Array].map((of) =>
    typed.map((bytes) => new of(bytes.buffer)),
  ),
);
const key = fc.oneof(fc.string(), fc.constantFrom("$", "__proto__", "constructor", "toJSON", "then"));
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("value")),
    fc.array(fc.tuple(key, tie("value"))).map(Object.fromEntries),
    fc.array(fc.tuple(key, tie("value"))).map((entries) => Object.assign(Object.create(null), { it: entries })),
    fc.array(fc.tuple(tie("value"), tie("value"))).map((entries) => new Map(entries)),
    fc.array(tie("value")).map((items) => new Set(items)),
  ),
})).value;

/** Creates the values of a seed, equal in every process. */
export function createValues(seed: number, count: number): readonly unknown[] {
  return fc.sample(anything, { seed, numRuns: count });
}

/**
 * Graph that keeps the values, one per thread; `made` is the result of its step, `later` the promise that it awaits.
 */
export function createKeepingGraph(
  values: readonly unknown[],
  made: (nth: number) => unknown,
  later: () => Promise<void>,
) {
  const it = z.object({ it: z.unknown() });
  const state = defineState({
    nth: z.number(),
    kept: it.optional(),
    all: channel.list(it),
    by: channel.record(it),
    seen: channel.list(z.boolean()),
  });
  return defineGraph({ name: "keeping", version: 1, state })
    .nodes({
      keep: ({ nth }) => ({ kept: { it: values[nth] }, all: [{ it: values[nth] }], by: { one: { it: values[nth] } } }),
      look: async ({ nth, kept, all, by }, { step }) => {
        const stepped = await step("made", () => made(nth), { effect: "once" });
        await later();
        return {
          seen: [kept?.it, all[0]?.it, by["one"]?.it, stepped].map((value) => isDeepStrictEqual(value, values[nth])),
        };
      },
    })
    .edges({ [START]: "keep", keep: "look", look: END });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , file = "", seed, count] = process.argv;
  const store = sqliteStore(file, { durability: "normal" });
  const values = createValues(Number(seed), Number(count));
  const graph = createKeepingGraph(
    values,
    (nth) => values[nth],
    () => new Promise<never>(() => undefined),
  );
  values.forEach((_value, nth) => {
    run(graph, { store, thread: `t${nth}`, input: { nth } }).result.catch((error: unknown) => console.error(error));
  });
  const isRecorded = async (nth: number): Promise<boolean> =>
    (await store.effects(`t${nth}`, "main")).some(({ key: name, state }) => name === "made" && state === "ok");
  for (let nth = 0; nth < values.length; )
    if (await isRecorded(nth)) nth += 1;
    else await new Promise((resolve) => setImmediate(resolve));
  process.kill(process.pid, "SIGKILL");
}
