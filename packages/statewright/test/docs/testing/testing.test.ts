import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { faults, virtualClock } from "@statewright/testing";
import { everyOrder, nodeTest, testRun } from "@statewright/testing/vitest";
import { checkGraph, END, memoryStore, sqliteStore } from "statewright";
import { afterAll, expect, test } from "vitest";
import { airlinesAsking, tripWith } from "./trip.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-testing-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const cheap = { north: 120, south: 90 };
const expensive = { north: 700, south: 900 };

test("the trip books the cheapest flight", async () => {
  const airlines = airlinesAsking({ north: 120, south: 90 });
  const t = await testRun(tripWith(airlines), {});
  await t.finish();
  expect(t).toPassThrough(["plan", "offer", "choose", "book", "done"]);
  expect(t.state.price).toBe(90);
  expect(airlines.booked).toHaveLength(1);
});

test("a failed path expectation shows the path of the run", async () => {
  const t = await testRun(tripWith(airlinesAsking(cheap)), {});
  await t.finish();
  expect(() => expect(t).toVisit("approve")).toThrowErrorMatchingInlineSnapshot(`
    [Error: the run never visited "approve".
    The path: start → plan → offer → choose → book → done
    The run is done and accepts no more events.
    After "choose" the route chose "book" of "book", "approve", not "approve".]
  `);
});

test("the trip interrupts for an expensive flight and books nothing after a refusal", async () => {
  const t = await testRun(tripWith(airlinesAsking(expensive)), {});
  await t.until("interrupted");
  expect(t).toBeInState("approve.interrupted");
  expect(t).toAccept("approve");
  expect(t).toHaveInterrupted("approve", { price: 700 });
  await t.resume({ approve: false });
  expect(t).toTakeEdge("approve", "stay");
  expect(t).toNeverVisit("book");
});

test("a test run stops at a given point", async () => {
  const t = await testRun(tripWith(airlinesAsking(expensive)), {});
  await t.step();
  expect(t).toBeInState("plan");
  await t.until("choose");
  expect(t.state.offers).toHaveLength(2);
  await t.until((at) => at.state.price > 0);
  await t.until({ tag: "waiting" });
  expect([t.status, t.accepts]).toEqual(["waiting", ["approve"]]);
});

test("a test run starts at a given node and state", async () => {
  const t = await testRun(tripWith(airlinesAsking(expensive)), {
    startAt: { node: "approve", state: { price: 800 } },
  });
  await t.finish();
  expect(t).toHaveInterrupted("approve", { price: 800 });
});

test("nodeTest runs a single node from a given state", async () => {
  const trip = tripWith(airlinesAsking(cheap));
  const offers = [
    { airline: "north", price: 600 },
    { airline: "south", price: 640 },
  ];
  const chosen = await nodeTest(trip, "choose", { state: { offers } });
  expect(chosen.state.price).toBe(600);
  expect(chosen.next).toEqual(["approve"]);
  const booked = await nodeTest(trip, "book", {});
  expect(booked).toMatchObject({ state: { ticket: "ticket 1" }, next: [END] });
});

test("the trip books once across a crash", async () => {
  const airlines = airlinesAsking(expensive);
  const t = await testRun(() => tripWith(airlines), {});
  await t.until("interrupted");
  await t.crash();
  await t.resume({ approve: true });
  expect(t).toHaveInterruptedOnce("approve");
  expect(t).toHaveRunOnce({ step: "book" });
  expect(airlines.booked).toHaveLength(1);
});

test("a test run crashes and resumes over a file", async () => {
  const t = await testRun(() => tripWith(airlinesAsking(expensive)), {
    store: () => sqliteStore(join(folder, "trip.db")),
  });
  await t.until("interrupted");
  await t.crash();
  await t.resume({ approve: true });
  expect(t.state.ticket).toBe("ticket 1");
});

test("a test run resumes identically in another process", async () => {
  const t = await testRun(() => tripWith(airlinesAsking(cheap)), {});
  await t.until("choose");
  await expect(t).toResumeIdentically();
});

test("the trace of a complete trip matches its snapshot", async () => {
  const t = await testRun(tripWith(airlinesAsking(expensive)), {});
  await t.finish();
  await t.resume({ approve: true });
  expect(t.trace).toMatchInlineSnapshot(`
    start → plan
    plan done
    plan → offer
      step price of offer
      step price of offer
    offer done
    offer → choose, wrote offers
    choose done
    choose → approve, wrote price
    approve interrupted
    waits for approve
    (resume with approve)
    approve continues
    approve done
    approve → book
      step book of book
    book done
    book → done, wrote ticket
    completed
  `);
});

test("the trip reaches the same end in every order", async () => {
  const { orders, all } = await everyOrder(async (order) => {
    const t = await testRun(tripWith(airlinesAsking(cheap)), { order });
    await t.finish();
    return t;
  });
  expect([orders, all]).toEqual([10, true]);
});

test("everyOrder finds an end that depends on the order of answers", async () => {
  const race = everyOrder(async (order) => {
    const answered: string[] = [];
    const t = await testRun(
      tripWith({
        price: async (airline) => answered.push(airline) * 100,
        book: async () => "ticket",
      }),
      { order },
    );
    await t.finish();
    return t;
  });
  await expect(race).rejects.toThrowErrorMatchingInlineSnapshot(`
    [Error: the result depends on the order in which work completes: state.offers[0].price is 100 in one order, and 200 in another.
    100: offer("north"), then offer("south"), then step "price" of offer("north"), then step "price" of offer("south") (one after the other).
    200: offer("north"), then offer("south"), then step "price" of offer("south"), then step "price" of offer("north") (one after the other).
    Writes of "offers" in this order:
      step 2, given [{"airline":"south","price":100}] by "offer" ("south"), [{"airline":"north","price":200}] by "offer" ("north"): [{"airline":"north","price":200},{"airline":"south","price":100}]
    The path: start → plan → offer → choose → book → done
    The run is done and accepts no more events.
    To test this order alone: everyOrder(body, { only: "apart 0 0 1" })]
  `);
});

test("hours of waiting take no time on a virtual clock", async () => {
  const world = virtualClock();
  const slow = {
    ...airlinesAsking(cheap),
    price: () => new Promise<number>((resolve) => world.schedule.after(3_600_000, () => resolve(90))),
  };
  const t = await testRun(tripWith(slow), { clock: world });
  await t.finish();
  expect(world.clock.monotonic()).toBe(3_600_000);
});

test("a full disk pauses the run, and the run continues once there is room", async () => {
  const t = await testRun(tripWith(airlinesAsking(cheap)), {
    store: faults.store(memoryStore(), { failNth: 3, error: "store_full" }),
  });
  await t.finish();
  expect(t.status).toBe("paused");
  await t.resume();
  expect(t.state.ticket).toBe("ticket 1");
});

test("the trip has no dead ends", () => expect(checkGraph(tripWith(airlinesAsking(cheap)))).toHaveNoViolations());

test("a waiting run in the store loads under this code", async () => {
  const store = memoryStore();
  const t = await testRun(tripWith(airlinesAsking(expensive)), { store });
  await t.finish();
  await expect(store).toLoadRuns([tripWith(airlinesAsking(expensive))]);
});
