/** Hostile ids and options of programs without types: each call ends in an error of the library. */
import { isStatewrightError, isToolError } from "@statewright/core";
import { expect, test } from "vitest";
import { type HostileCall, listHostileCalls } from "../support/hostile/calls.ts";
import { isOwnError } from "../support/hostile/values.ts";

const isWhole = process.env["STATEWRIGHT_WHOLE"] === "1";

/** Turns of the event loop after which a call without a result counts as accepted. */
const maxTurns = 50;

/** Deterministic numbers from 0 to 1 (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function waitTurns(): Promise<void> {
  for (let turn = 0; turn < maxTurns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Awaits the result of a call: of a promise, of a run, or of the first event of a stream. */
async function finish(returned: unknown): Promise<void> {
  const value = await returned;
  if (typeof value !== "object" || value === null) return;
  if ("result" in value && value.result instanceof Promise) await value.result;
  else if (Symbol.asyncIterator in value && typeof value[Symbol.asyncIterator] === "function") {
    const iterator: AsyncIterator<unknown> = Reflect.apply(value[Symbol.asyncIterator] as () => never, value, []);
    await iterator.next();
    await iterator.return?.();
  } else if ("close" in value && typeof value.close === "function") value.close();
}

/** Returns the foreign error of a call; undefined for a result, for a documented error and for the caller's own. */
async function findForeignError({ name, call }: HostileCall): Promise<string | undefined> {
  const turns = waitTurns();
  try {
    await Promise.race([finish(call()), turns]);
    return undefined;
  } catch (thrown) {
    if (isStatewrightError(thrown) || isToolError(thrown) || isOwnError(thrown)) return undefined;
    const [what, where] = (thrown instanceof Error ? (thrown.stack ?? "") : String(thrown)).split("\n");
    return `${name}: ${what} ${where?.trim() ?? ""}`;
  }
}

test("hostile ids and options of every exported function end in a StatewrightError [FX77]", async () => {
  const random = createRandom(77);
  const all = await listHostileCalls();
  const calls = isWhole ? all : all.filter(() => random() < 0.25);
  const errors: string[] = [];
  for (const call of calls) {
    const error = await findForeignError(call);
    if (error !== undefined) errors.push(error);
  }
  expect(errors).toEqual([]);
  expect(calls.length).toBeGreaterThan(2_000);
}, 600_000);
