import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  isStatewrightError,
  memoryStore,
  resume,
  run,
  START,
} from "statewright";
import { memoryCache } from "statewright/store";
import * as z from "zod";

const Scrape = defineState({ urls: z.array(z.string()), log: channel.list(z.string()) });
const bodies = new Map<string, number>();
const countStart = (name: string): number => {
  const count = (bodies.get(name) ?? 0) + 1;
  bodies.set(name, count);
  return count;
};

const scrape = defineGraph({
  name: "scrape",
  state: Scrape,
  defaults: { retry: { attempts: 2, initialMs: 1 }, timeoutMs: 30_000 },
})
  .nodes({
    // retry
    login: {
      run: (_state, { attempt }) => {
        if (attempt < 3) throw new Error("busy");
        return { log: [`login, attempt ${attempt}`] };
      },
      retry: {
        attempts: 4,
        initialMs: 1,
        factor: 2,
        maxMs: 1_000,
        jitter: 0.2,
        on: (error) => `${error}`.includes("busy"),
      },
    },
    // time limits
    listen: {
      run: async (_state, { attempt, heartbeat }) => {
        heartbeat();
        if (attempt === 1) await new Promise(() => undefined);
        return { log: [`listen, attempt ${attempt}`] };
      },
      timeoutMs: 20_000,
      idleTimeoutMs: 50,
    },
    // cache
    fetch: inputNode(
      z.string(),
      (_state, { input }) => {
        countStart(input);
        return { log: [`page ${input}`] };
      },
      { cache: { key: (_state, input) => input, ttlMs: 60_000, store: memoryCache({ maxEntries: 100 }) } },
    ),
    // error handler
    rank: {
      run: () => {
        throw new TypeError("no ranks today");
      },
      onError: (_state, { error }) => ({ log: [`unranked: ${error.place.node}, attempt ${error.place.attempt}`] }),
    },
    // defer, claims, once
    close: { run: ({ log }) => ({ log: [`close after ${log.length}`] }), defer: true, writes: ["log"], interrupts: [] },
    pay: { run: () => ({ log: [`paid ${countStart("pay")}`] }), effect: "once" },
  })
  .edges({
    [START]: ["login", "listen"],
    login: fanOut("fetch", (state) => state.urls, { otherwise: "close" }),
    listen: "close",
    fetch: "rank",
    rank: "close",
    close: "pay",
    pay: END,
  });

const store = memoryStore();
const input = { urls: ["a", "b"] };
const first = await run(scrape, { store, thread: "one", input, maxConcurrency: 2, onTaskFailure: "abort" }).result;
console.log(first.state.log.join("\n"));

// a cache hit
await run(scrape, { store, thread: "two", input }).result;
console.log("bodies of a:", bodies.get("a"));

// limits
try {
  await run(scrape, { store, thread: "three", input, maxSteps: 2 }).result;
} catch (error) {
  if (isStatewrightError(error, "step_limit")) console.log(error.code);
}

// breakpoints
const breakpoints = { before: ["pay"], after: ["rank"] } as const;
const paused = await run(scrape, { store, thread: "four", input, breakpoints }).result;
if (paused.status === "paused") console.log(paused.cause.code, paused.cause.details);
const next = await resume(scrape, { store, thread: "four" }).result;
if (next.status === "paused") console.log(next.cause.code, next.cause.details);
console.log((await resume(scrape, { store, thread: "four" }).result).status);

export { scrape };
