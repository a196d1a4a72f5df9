/** An engine resumes the runs that its own store paused. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  memoryStore,
  resume,
  START,
  StatewrightError,
  type Store,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

type Code = "store_locked" | "store_full" | "store_unreachable";

/** Creates a store that refuses checkpoints, and claims if told so, while it is blocked. */
function createBlockedStore(code: Code) {
  const inner = memoryStore();
  const state = { isBlocked: false, refusesClaims: false, claims: 0 };
  const createError = () => new StatewrightError(code, { what: "blocked", next: "Wait" });
  const store: Store = {
    ...inner,
    claim: (request) => {
      if (state.isBlocked) state.claims += 1;
      return state.isBlocked && state.refusesClaims ? Promise.reject(createError()) : inner.claim(request);
    },
    commit: (commit, onCommitted) => {
      if (!state.isBlocked || commit.checkpoint === undefined) return inner.commit(commit, onCommitted);
      queueMicrotask(() => onCommitted(createError()));
    },
  };
  return { store, state };
}

function createGraph(onFirst: () => void) {
  return defineGraph({ name: "line", state: defineState({ log: channel.list(z.string()) }) })
    .nodes({
      first: () => {
        onFirst();
        return { log: ["first"] };
      },
      second: () => ({ log: ["second"] }),
    })
    .edges({ [START]: "first", first: "second", second: END });
}

for (const code of ["store_locked", "store_full", "store_unreachable"] as const)
  for (const refusesClaims of [false, true])
    test(`an engine resumes a run that its store paused with ${code}${refusesClaims ? " and whose claims it then refused" : ""}, with growing delays [FX66]`, async () => {
      const world = createVirtualWorld();
      const { store, state } = createBlockedStore(code);
      const graph = createGraph(() => {
        if (state.claims === 0) state.isBlocked = true;
      });
      const host = engine({ store, graphs: [graph], world });
      await host.start();
      const first = host.run(graph, { thread: "t", input: {} });
      expect(await first.result).toMatchObject({ status: "paused", cause: { code } });
      expect((await listRuns(store)).map(({ status, error }) => [status, error?.code])).toEqual([["paused", code]]);
      state.refusesClaims = refusesClaims;
      for (let second = 0; second < 300; second++) await world.advance(1_000);
      // Delays of 1 s to 60 s: few attempts in five minutes, and never none.
      expect(state.claims).toBeGreaterThan(6);
      expect(state.claims).toBeLessThan(20);
      state.isBlocked = false;
      for (let second = 0; second < 61; second++) await world.advance(1_000);
      expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done"]);
      await host.stop();
    });

test("an engine does not resume a paused run that another caller continued, nor a run paused at a breakpoint [FX66]", async () => {
  const world = createVirtualWorld();
  const { store, state } = createBlockedStore("store_full");
  let isFirst = true;
  const graph = createGraph(() => {
    state.isBlocked = isFirst;
    isFirst = false;
  });
  const host = engine({ store, graphs: [graph], world });
  await host.start();
  expect((await host.run(graph, { thread: "t", input: {} }).result).status).toBe("paused");
  state.isBlocked = false;
  const other = resume(graph, { store, world, thread: "t", breakpoints: { before: ["second"] } });
  expect(await other.result).toMatchObject({ status: "paused", cause: { code: "breakpoint" } });
  await world.advance(120_000);
  expect((await listRuns(store)).map(({ status, error }) => [status, error?.code])).toEqual([["paused", "breakpoint"]]);
  await host.stop();
});
