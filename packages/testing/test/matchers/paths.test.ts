import { END, START } from "@statewright/core";
import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import { claims } from "../support/claims-graph.ts";

async function small() {
  const t = await testRun(claims, { input: { amount: 50, documents: ["a"] } });
  await t.finish();
  return t;
}

async function runRefusedClaim() {
  const t = await testRun(claims, { input: { amount: 500 } });
  await t.finish();
  await t.resume({ approve: false });
  return t;
}

describe("toPassThrough", () => {
  test("toPassThrough names the first state not reached and the guard that refused", async () => {
    const t = await small();
    expect(t).toPassThrough(["read", "check", "decide", "pay", "done"]);
    expect(t).not.toPassThrough(["pay", "decide"]);
    expect(() => expect(t).toPassThrough(["read", "decide", "ask", "done"])).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run passed through "read", "decide" and then never reached "ask".
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.
      After "decide" the route chose "pay" of "pay", "ask", not "ask".]
    `);
    expect(() => expect(t).toPassThrough(["pay", "decide"])).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run passed through "pay" and then never reached "decide", which the run visited once before.
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).not.toPassThrough(["read", "pay"])).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run passed through "read", "pay" in this order, and should not.
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
  });
});

describe("toVisit and toNeverVisit", () => {
  test("toVisit and toNeverVisit count visits and show the path to them", async () => {
    const t = await runRefusedClaim();
    expect(t).toVisit("refuse");
    expect(t).toVisit("ask", { times: 2 });
    expect(t).toNeverVisit("pay");
    expect(t).not.toVisit("check");
    expect(t).not.toNeverVisit("ask");
    expect(() => expect(t).toVisit("pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run never visited "pay".
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.
      After "decide" the route chose "ask" of "pay", "ask", not "pay".
      "ask" returned a command to "refuse", not to "pay".]
    `);
    expect(() => expect(t).toVisit("ask", { times: 1 })).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run visited "ask" 2 times, not once.
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).not.toVisit("ask")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run visited "ask" 2 times, and should not.
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).toNeverVisit("refuse")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run visited "refuse" once, and should never visit this state.
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.
      Incoming edges: from "ask" (step 3).]
    `);
    expect(() => expect(t).not.toNeverVisit("check")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run never visited "check", and should have.
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.
      After "read" the fan-out chose "decide" of "check", "decide", not "check".]
    `);
  });
});

describe("toTakeEdge", () => {
  test("toTakeEdge accepts edges, routes, fan-outs and command targets", async () => {
    const t = await small();
    expect(t).toTakeEdge(START, "read");
    expect(t).toTakeEdge("read", "check");
    expect(t).toTakeEdge("check", "decide");
    expect(t).toTakeEdge("decide", "pay");
    expect(t).toTakeEdge("pay", END);
    expect(t).not.toTakeEdge("decide", "ask");
    expect(await runRefusedClaim()).toTakeEdge("ask", "refuse");
  });

  test("toTakeEdge shows the route taken instead and the existing edges", async () => {
    const t = await runRefusedClaim();
    expect(() => expect(t).toTakeEdge("decide", "pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run never took the edge "decide" → "pay": "decide" led to "ask" (step 2).
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.
      After "decide" the route chose "ask" of "pay", "ask", not "pay".
      "ask" returned a command to "refuse", not to "pay".]
    `);
    expect(() => expect(t).toTakeEdge("ask", "pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run never took the edge "ask" → "pay": "ask" led to "refuse" (step 3).
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.
      After "decide" the route chose "ask" of "pay", "ask", not "pay".
      "ask" returned a command to "refuse", not to "pay".]
    `);
    expect(() => expect(t).toTakeEdge("read", "pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run never took the edge "read" → "pay": the graph has no such edge: "read" may lead to "check", "decide".
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).not.toTakeEdge("decide", "ask")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run took the edge "decide" → "ask" once (step 2), and should not.
      The path: start → read → decide → ask → ask.interrupted → ask → refuse → done
      The run is done and accepts no more events.]
    `);
  });
});
