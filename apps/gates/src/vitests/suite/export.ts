/** Exports a run as a test file, which runs with the other tests. */
import { memoryStore, run } from "@statewright/core";
import { exportTest, virtualClock } from "@statewright/testing";
import { shop } from "./shop.ts";

const store = memoryStore();
const world = virtualClock();
const { result } = run(shop, { store, world, thread: "t", input: { cents: 7 } });
await world.runAll();
await result;
await exportTest(store, "t", { graph: shop, file: "exported.test.ts", from: "./shop.ts#shop" });
