/**
 * Child process of a deliverer: delivers each line of its input. Arguments: the folder, the version of the graphs, and
 * the milliseconds by which its clock is ahead.
 */
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { type Delivery, type DeliveryResult, deliver, systemWorld } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";
import { createDelivererGraphs } from "@statewright/testing/conformance";
import { storeFile, toOffsetClock } from "./worker.ts";

/** Line to this process. */
export interface DeliveryRequest {
  readonly id: number;
  readonly delivery: Delivery;
}

/** Line from this process. */
export type DeliveryReply =
  | { readonly id: number; readonly result: DeliveryResult }
  | { readonly id: number; readonly error: string };

const [folder = "", version = "1", offsetMs = "0"] = process.argv.slice(2);
const store = sqliteStore(join(folder, storeFile), { durability: "normal", ownership: "orchestrator" });
const world = toOffsetClock(systemWorld(), Number(offsetMs));
const graphs = createDelivererGraphs(folder, version === "2" ? 2 : 1);

async function reply({ id, delivery }: DeliveryRequest): Promise<DeliveryReply> {
  try {
    return { id, result: await deliver({ store, graphs, world }, delivery) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  void reply(JSON.parse(line) as DeliveryRequest).then((answer) => process.stdout.write(`${JSON.stringify(answer)}\n`));
});
lines.on("close", () => void store.close().then(() => process.exit(0)));
